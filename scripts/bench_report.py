"""Times a report at scale: the command, the size of the page, and the time until a browser shows it.

    python scripts/bench_report.py                     # a new set: 1,000 classes, 8 photographs each: minutes
    python scripts/bench_report.py DIR                 # of finished shards, such as those of make rehearsal DIR=...

The page goes to a folder of its own. It is opened a few times, 1280 and 390 CSS pixels wide, each time in a new browser
context. The script prints the median time to the first paint with content, and to the end of loading. Processor time
is that of the command, its workers included. Exit status 1: the page is larger than 8 MB, or needs more than a second
to its first paint. The script needs Debian's chromium and playwright.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from playwright.sync_api import sync_playwright  # noqa: E402

from imagenet_prep.demo.archives import make  # noqa: E402
from imagenet_prep.text import number_of, size_text  # noqa: E402

CHROMIUM = "/usr/bin/chromium"
WIDTHS = (1280, 390)
LARGEST, SLOWEST = 8_000_000, 1.0
"""Bytes of a page, and seconds to its first paint."""

READY = "performance.timing.loadEventEnd > 0 && performance.getEntriesByType('paint').length > 1"
PAINTED = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
LOADED = "performance.timing.loadEventEnd - performance.timing.navigationStart"


def main() -> int:
    """Make the page, open it, print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data_dir", type=Path, nargs="?")
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--per-class", type=int, default=8)
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--largest", type=int, default=LARGEST, help="the largest allowed page, in bytes")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        data_dir = given.data_dir or made(Path(name), given.classes, given.per_class)
        prep("verify", data_dir)  # timed separately from the report
        page = Path(name) / "page.html"
        wall, cpu = prep("report", data_dir, "--output", page)
        size = page.stat().st_size
        print(f"report: {wall:.1f} s, processor {cpu:.1f} s; the page: {size_text(size)}")
        slowest = max(shown(page, width, given.repeat) for width in WIDTHS)
    return int(size > given.largest or slowest > SLOWEST)


def made(folder: Path, classes: int, per_class: int) -> Path:
    """Make the finished shards of a set in ``folder``."""
    data_dir = folder / "data"
    (data_dir / "raw-data").mkdir(parents=True)
    make(data_dir / "raw-data", classes=classes, per_class=per_class, validation=classes)
    prep("annotate", data_dir)
    prep("convert", data_dir, "--allow-incomplete", "--train-shards", 16, "--validation-shards", 4)
    print(f"{number_of(classes, 'class', 'classes')}, {number_of(classes * (per_class + 1), 'image')}")
    return data_dir


def prep(*words: object) -> tuple[float, float]:
    """Run one of our commands; returns wall and processor seconds."""
    call = [sys.executable, "-m", "imagenet_prep", *map(str, words), "--quiet"]
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(call, stdout=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": paths})
    if done.returncode not in (0, 3):  # 3: problems were found, and the page shows them
        raise SystemExit(f"{words[0]} ended with status {done.returncode}")
    wall, after = time.monotonic() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def shown(page_path: Path, width: int, repeat: int) -> float:
    """Open the page in windows of this width; returns the median seconds to the first paint."""
    painted, loaded = [], []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for _ in range(repeat):
            context = browser.new_context(viewport={"width": width, "height": 900})
            page = context.new_page()
            page.goto(page_path.resolve().as_uri(), wait_until="load")
            while not page.evaluate(READY):  # wait_for_function would use eval, which the page forbids
                page.wait_for_timeout(10)
            painted.append(page.evaluate(PAINTED) / 1000)
            loaded.append(page.evaluate(LOADED) / 1000)
            context.close()
        browser.close()
    print(
        f"{width:>5} pixels wide: first paint {median(painted):.2f} s (at most {max(painted):.2f}),"
        f" loaded {median(loaded):.2f} s; {number_of(repeat, 'time')}"
    )
    return median(painted)


if __name__ == "__main__":
    raise SystemExit(main())
