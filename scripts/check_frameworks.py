"""Runs the programs of docs/train/frameworks.md as they stand on the demo set, kills them, and resumes them.

    pip install lightning transformers accelerate; python scripts/check_frameworks.py

A resumed program must see the labels that an uninterrupted one saw from that checkpoint on.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "train" / "frameworks.md"
WATCH = """
import os, torch
from imagenet_prep.torch import Loader
seen = Loader.__iter__
def watched(self):
    for batch in seen(self):
        labels = batch["labels"] if isinstance(batch, dict) else batch[1]
        with open("labels.txt", "a") as file:
            print(labels.tolist(), file=file)
        if os.environ.get("KILL") == str(sum(1 for _ in open("labels.txt"))):
            os._exit(9)
        yield batch
Loader.__iter__ = watched
"""


def run(folder: Path, program: str, kill: str = "", status: int = 0) -> tuple[list[str], str]:
    """The labels of each batch, and the output."""
    (folder / "train.py").write_text(program)
    (folder / "labels.txt").unlink(missing_ok=True)
    environment = {**os.environ, "KILL": kill, "USE_TF": "0"}
    done = subprocess.run([sys.executable, "train.py"], cwd=folder, capture_output=True, text=True, env=environment)
    assert done.returncode == status, done.stderr
    return (folder / "labels.txt").read_text().splitlines(), done.stdout


def main() -> None:
    """Check both programs."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run(
            [sys.executable, "-m", "imagenet_prep", "demo", folder / "demo-data", "--quiet"],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        for program in re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.M | re.S):
            every, output = run(folder, program.replace("\n\n", WATCH, 1))
            last = float(re.findall(r"loss ([\d.]+)$", output, re.M)[-1])
            assert last < 6  # from ln(1000) = 6.9
            for saved in ("20", "15"):
                shutil.rmtree(folder / "checkpoints", ignore_errors=True)
                shutil.rmtree(folder / "out", ignore_errors=True)
                watched = re.sub(r'(steps"?[=:] ?)20', rf"\g<1>{saved}", program).replace("\n\n", WATCH, 1)
                run(folder, watched, kill="34", status=9)
                rest, _ = run(folder, watched)
                assert rest == every[33 // int(saved) * int(saved) :], f"saved every {saved} steps: other records"
            print(f"{len(every)} batches, loss {last}; resumed with the next record")
            shutil.rmtree(folder / "checkpoints", ignore_errors=True)
            shutil.rmtree(folder / "out", ignore_errors=True)


if __name__ == "__main__":
    main()
