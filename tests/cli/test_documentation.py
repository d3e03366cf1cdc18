"""The reference of the command is that of the command."""

import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_reference_is_current():
    command = [sys.executable, str(DOCS / "refresh_command_line.py"), "--check"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 0, run.stderr


def test_every_command_is_on_the_page():
    page = (DOCS / "command_line.md").read_text()
    for command in ("easy", "check", "scale", "tune", "train", "predict", "info", "export"):
        assert f"### polymargin {command}\n" in page
