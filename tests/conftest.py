"""What every test module shares: the reference implementations on the path, and hypothesis' profile."""

import os
import signal
import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))
os.environ.setdefault("MPLBACKEND", "Agg")  # pictures without a screen
signal.signal(signal.SIGINT, signal.default_int_handler)  # shells let jobs in the background ignore Ctrl-C

settings.register_profile(
    "polymargin",
    max_examples=20,
    deadline=None,
    derandomize=bool(os.environ.get("CI")),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("polymargin")
