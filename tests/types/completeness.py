"""How much of what the package exports has types that every checker reads alike, by ``pyright --verifytypes``."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LEAST = 0.98


def report():
    """Return what the checker says of the package, as it lies in the source tree."""
    command = ["basedpyright", "--pythonpath", sys.executable, "--verifytypes", "polymargin", "--ignoreexternal"]
    done = subprocess.run(
        [Path(sys.executable).with_name(command[0]), *command[1:], "--outputjson"],
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
    )
    return json.loads(done.stdout)["typeCompleteness"]


def main():
    """Print the share, and what has no type if there is too much of it."""
    found = report()
    share = found["completenessScore"]
    print(f"{share:.1%} of {sum(found['exportedSymbolCounts'].values())} exported symbols have known types")
    if share >= LEAST:
        return 0
    print(f"at least {LEAST:.0%} should; these have not:")
    for symbol in found["symbols"]:
        if symbol["isExported"] and (symbol["isTypeAmbiguous"] or not symbol["isTypeKnown"]):
            print(f"  {symbol['name']}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
