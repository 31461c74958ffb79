"""Takes the pictures of a report in docs/images: the demo's, in chromium, on a laptop and a phone,
light and dark.

    make screenshots
    python scripts/screenshots.py [DATA_DIR]     of another set of shards

The script needs Debian's chromium and playwright. Each picture is the top of the page, in 256
colours.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

from imagenet_prep.storage.layout import Layout

GAP = 24
IMAGES = Path(__file__).parents[1] / "docs" / "images"
CHROMIUM = "/usr/bin/chromium"
PARTS = {1280: ("body",), 390: ("body", "#colours")}
"""By window width in CSS pixels: the start of each part of the page in the picture,
from left to right.
"""

HEIGHTS = {1280: 1700, 390: 1500}
"""The height of such a part, in CSS pixels."""

SCALES = {1280: 1.0, 390: 1.5}
"""Pixels of the picture per CSS pixel."""


def main() -> None:
    """Make the demo set, unless a folder is given, its report, and its pictures."""
    with tempfile.TemporaryDirectory() as folder:
        data_dir = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(folder) / "demo-data"
        prep = [sys.executable, "-m", "imagenet_prep"]
        if len(sys.argv) == 1:
            subprocess.run(
                [*prep, "demo", data_dir, "--quiet"], check=True, stdout=subprocess.DEVNULL
            )
        subprocess.run(
            [*prep, "report", data_dir, "--quiet"], check=False, stdout=subprocess.DEVNULL
        )
        IMAGES.mkdir(exist_ok=True)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            for width in HEIGHTS:
                for scheme in ("light", "dark"):
                    take(browser, Layout(data_dir).report_path, width, scheme)
            browser.close()


def take(browser: Any, page_path: Path, width: int, scheme: str) -> None:
    """One picture."""
    size = {"width": width, "height": HEIGHTS[width]}
    context = browser.new_context(
        viewport=size, color_scheme=scheme, device_scale_factor=SCALES[width]
    )
    page = context.new_page()
    page.goto(page_path.resolve().as_uri())
    page.wait_for_selector("html.is-ready")
    parts = [
        page.eval_on_selector(start, "each => each.getBoundingClientRect().top")
        for start in PARTS[width]
    ]
    clips = [{"x": 0, "y": max(0, top - 16), **size} for top in parts]
    shots = [Image.open(io.BytesIO(page.screenshot(full_page=True, clip=clip))) for clip in clips]
    context.close()
    path = IMAGES / f"report-{width}-{scheme}.png"
    side_by_side(shots).quantize(256, Image.Quantize.MEDIANCUT, kmeans=1).save(path, optimize=True)
    print(f"{path}: {path.stat().st_size:,} bytes")


def side_by_side(shots: list[Image.Image]) -> Image.Image:
    """Pictures of one size in a row, separated by some grey."""
    width, height = shots[0].size
    picture = Image.new("RGB", (len(shots) * (width + GAP) - GAP, height), (128, 128, 128))
    for number, shot in enumerate(shots):
        picture.paste(shot, (number * (width + GAP), 0))
    return picture


if __name__ == "__main__":
    main()
