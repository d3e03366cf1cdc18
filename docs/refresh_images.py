"""Draw the pictures of the documentation, all or those named, by running their examples; needs the extra plots."""

import os
import subprocess
import sys
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ("machines_side_by_side", "plane_figure")
COLORS = 96  # enough for flat regions, and a quarter of the bytes


def draw(example):
    """Run an example and keep what it draws, with few colours."""
    picture = ROOT / "docs" / "images" / f"{example}.png"
    command = [sys.executable, ROOT / "examples" / f"{example}.py", picture]
    subprocess.run(command, env=os.environ | {"MPLBACKEND": "Agg"}, check=True)
    with Image.open(picture) as image:
        few = image.convert("RGB").quantize(COLORS, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    few.save(picture, optimize=True)
    print(f"drew {picture.relative_to(ROOT)}, {picture.stat().st_size:,} bytes")


def main():
    """Draw the chosen pictures."""
    unknown = set(sys.argv[1:]) - set(EXAMPLES)
    if unknown:
        sys.exit(f"no picture of {', '.join(sorted(unknown))} is shown; there are {', '.join(EXAMPLES)}")
    for example in sys.argv[1:] or EXAMPLES:
        draw(example)


if __name__ == "__main__":
    main()
