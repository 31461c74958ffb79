"""Runs programs one after another, each in a process of its own that has the frameworks imported:
that takes seconds.

`python forked_programs.py FOLDER first.py rank0.py+rank1.py` runs them in FOLDER, those with + at
the same time, and writes first.out: what the program printed, and its exit status in the last line.
"""

from __future__ import annotations

import os
import runpy
import sys
import traceback
from pathlib import Path

from torchvision_operators import import_torchvision


def start(program: Path, output: Path) -> int:
    """The id of a child of this process that runs a program."""
    child = os.fork()
    if child:
        return child
    with output.open("w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    status = 1
    try:
        runpy.run_path(str(program), run_name="__main__")
        status = 0
    except BaseException:  # noqa: BLE001 - the parent sees the status
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def main(folder: str, *groups: str) -> None:
    """Run the programs in their order."""
    import_torchvision()
    import accelerate  # noqa: F401
    import ignite.engine  # noqa: F401
    import lightning  # noqa: F401
    from transformers import Trainer, ViTForImageClassification  # noqa: F401

    os.chdir(folder)
    for group in groups:
        outputs = {name: Path(name).with_suffix(".out") for name in group.split("+")}
        children = {start(Path(name), output): output for name, output in outputs.items()}
        for child, output in children.items():
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            with output.open("a") as file:
                print(f"\nstatus {status}", file=file)


if __name__ == "__main__":
    main(*sys.argv[1:])
