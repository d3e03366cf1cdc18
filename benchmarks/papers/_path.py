"""Import this first: it puts the folder above on the path, where what all benchmarks share is."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
