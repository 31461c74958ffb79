"""Sets of more shards than five digits number and of more classes than 16 bits: made, verified,
reported by commands.

At full size that is minutes, and only done with ``make exhaustive``; a small set goes the same way
each time.
"""

from __future__ import annotations

import json
import zlib
from pathlib import Path

import pytest
from made_tars import save
from running import command
from test_hostile_inputs import png

LARGE = pytest.mark.exhaustive
PAGE = 8_000_000  # bytes that a report may take, whatever it is about


@pytest.mark.parametrize(
    ("images", "classes", "shards"),
    [
        (60, 40, 30),
        pytest.param(100_001, 10, 100_001, marks=LARGE),
        pytest.param(70_001, 70_000, 16, marks=LARGE),
    ],
)
def test_a_set_goes_through_all_commands(
    tmp_path: Path, images: int, classes: int, shards: int
) -> None:
    """convert, verify, status, report; a lost shard is found and made again,
    and the page stays small.
    """
    for number in range(images):
        pixel = zlib.compress(b"\0" + number.to_bytes(3, "big"))  # in a colour of its own
        save(
            tmp_path / f"images/class-{number % classes:06d}/{number:06d}.png",
            png(1, 1, 8, 2, pixel),
        )
    recipe = (
        f"source: {{folders: images}}\nshards: {shards}\nrecord: "
        f"{{image: encoded, label: label, name: path}}\n"
    )
    (tmp_path / "recipe.yaml").write_text(recipe)
    assert (
        f"{images:,} images in {shards:,} shards"
        in command("convert", "out", "--config", "recipe.yaml", cwd=tmp_path).stdout
    )
    for more in ((), ("--depth", "quick")):
        command("verify", "out", "--json", "verdict.json", *more, cwd=tmp_path)
        verdict = json.loads((tmp_path / "verdict.json").read_bytes())
        totals = verdict["totals"]["train"]
        assert (totals["records"], totals["shards"], totals["classes"]) == (images, shards, classes)
        assert verdict["problems"] == []
    assert f"{shards:,} of {shards:,} shards" in command("status", "out", cwd=tmp_path).stdout
    command("report", "out", cwd=tmp_path)
    assert (tmp_path / "out/imagenet-prep/report.html").stat().st_size < PAGE
    lost = sorted((tmp_path / "out").glob("train-*"))[shards // 2]
    content = lost.read_bytes()
    lost.unlink()
    assert lost.name in command("repair", "out", cwd=tmp_path).stdout
    assert lost.read_bytes() == content
