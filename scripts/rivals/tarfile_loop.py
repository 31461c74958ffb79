"""Image folders by Python's tarfile: one process, one loop over the archive in place, written as untar has them.

python tarfile_loop.py TRAIN.tar VALIDATION.tar OUT
"""

from __future__ import annotations

import sys
import tarfile
from pathlib import Path

from imagenet_prep.ilsvrc2012.facts import validation_number, validation_wnids


def write_images(tar: tarfile.TarFile, folder: Path) -> None:
    """Write each image of a flat tar to ``folder``, or to its class folder in there if it is a validation image."""
    for member in tar:
        number = validation_number(member.name)
        place = folder / validation_wnids()[number - 1] if number else folder
        place.mkdir(parents=True, exist_ok=True)
        content = tar.extractfile(member)
        assert content is not None
        (place / member.name).write_bytes(content.read())


def main() -> None:
    """Write both splits."""
    train, validation, out = map(Path, sys.argv[1:])
    with tarfile.open(train) as outer:
        for member in outer:
            with tarfile.open(fileobj=outer.extractfile(member)) as inner:
                write_images(inner, out / "train" / member.name.removesuffix(".tar"))
    with tarfile.open(validation) as tar:
        write_images(tar, out / "validation")


if __name__ == "__main__":
    main()
