"""kill -9 of an export at random moments: nothing wrong has a final name, and a rerun ends as an unbroken run does."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from pathlib import Path

import pytest
from test_export import files_below, sound
from test_kill import run

from imagenet_prep.storage.layout import Layout

pytestmark = pytest.mark.once

__all__ = ["sound"]  # the fixture

KILLS = 4


def test_an_export_survives_kills(tmp_path: Path, sound: Layout) -> None:
    """After each kill every file that has its name is whole, and a rerun makes the rest."""
    arguments = ["export", "folders", str(sound.output_dir), str(tmp_path / "out"), "--workers", "2", "--quiet"]
    began = time.monotonic()
    assert run(arguments).wait() == 0
    took = time.monotonic() - began
    expected = files_below(tmp_path / "out")
    draw, met = random.Random(KILLS), 0
    for _ in range(10 * KILLS):
        shutil.rmtree(tmp_path / "out")
        process = run(arguments)
        time.sleep(draw.uniform(took / 3, took))
        os.killpg(process.pid, signal.SIGKILL)
        met += process.wait() != 0
        assert files_below(tmp_path / "out").items() <= expected.items()
        assert run(arguments).wait() == 0
        assert files_below(tmp_path / "out") == expected
        assert not (tmp_path / "out" / "imagenet-prep" / "partial").exists()
        if met == KILLS:
            return
    pytest.fail("the kills come too late")
