"""Run the examples, all or those named, and put what they print into the README and the documentation."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FIRST_WORDS = {  # how the output of an example begins, and which example it is
    "wine:": "comparison",
    "test rate": "quick_start",
    "C   dual objective": "series_of_c",
    "same labels:": "from_svc",
    "machine  ": "compare_machines",
    "bias  ": "weston_watkins",
    "linear kernel:": "crammer_singer",
    "absolute margins  ": "absolute_margins",
    "linear machines on": "linear_text",
    "cost  machine": "linear_program",
    "pairs  ": "uncertainty",
    "code  ": "output_codes",
    "probabilities from": "probabilities",
    "trained with": "class_costs",
    "softmax machine:": "softmax",
    "exact kernel machine": "low_rank",
}


def output_of(example):
    """Return what an example prints."""
    command = [sys.executable, ROOT / "examples" / f"{example}.py"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return "\n".join(line.rstrip() for line in printed.rstrip().splitlines())


def main():
    """Replace every block of output of the chosen examples."""
    unknown = set(sys.argv[1:]) - set(FIRST_WORDS.values())
    if unknown:
        sys.exit(f"no output of {', '.join(sorted(unknown))} is shown; there are {', '.join(FIRST_WORDS.values())}")
    chosen = sys.argv[1:] or FIRST_WORDS.values()
    outputs = {first: output_of(example) for first, example in FIRST_WORDS.items() if example in chosen}

    def replaced(block):
        for first, output in outputs.items():
            if block[1].lstrip().startswith(first):
                return f"```text\n{output}\n```"
        return block[0]

    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        before = page.read_text()
        after = re.sub(r"```text\n(.*?)\n```", replaced, before, flags=re.DOTALL)
        if after != before:
            page.write_text(after)
            print(f"refreshed {page.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
