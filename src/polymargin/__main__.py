"""``python -m polymargin``: the command ``polymargin``."""

import sys

from polymargin.cli import main

if __name__ == "__main__":
    sys.exit(main())
