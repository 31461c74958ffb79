"""make bench: every row comes out, and the programs ours is held against
do what they are said to do.
"""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest
import tf_fixture
from existing import existing

pytestmark = pytest.mark.project

tf = tf_fixture.tf

SCRIPTS = Path(__file__).resolve().parent.parent / "scripts"


def test_every_row_comes_out_with_a_ratio(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole program, on very few images: a line a row with a ratio in each.
    Ray takes too long to start.
    """
    monkeypatch.syspath_prepend(str(SCRIPTS))
    names = [row.name for row in importlib.import_module("bench").ROWS if row.name != "ray"]
    words = list(dict.fromkeys(name.partition(",")[0] for name in names))
    few = ["--images", "20", "--repeat", "1", "--warm-up", "0", "--workers", "1", "--no-tensorflow"]
    call = [
        sys.executable,
        SCRIPTS / "bench.py",
        "--dir",
        tmp_path / "bench",
        *few,
        "--only",
        ",".join(words),
    ]
    done = subprocess.run(call, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    table, _, about = done.stdout.partition("\n\n")
    cells = [[cell.strip() for cell in line.split("|")[1:]] for line in table.splitlines()[2:]]
    assert [line[0] for line in cells] == names
    assert all(
        re.match(r"\d+\.\d+ [a-z]", line[1]) or re.match(r"\d+\.\d+ [a-z]", line[2])
        for line in cells
    )
    assert about.startswith("21 images; medians; rounds: 1.")
    assert "TensorFlow" not in table
    assert re.search(r"Processor: .+ CPUs usable.*\n.*Python 3\..*\n.*simplejpeg \d", about)
    kept = sorted(path.name for path in existing(tmp_path / "bench", "*"))
    assert kept == ["annotations-20", "images-2", "images-20", "images-6", "rehearsal-20"]
