"""move_next_to: the command that moves something out of the inspected folder, next to it."""

from __future__ import annotations

from imagenet_prep.escaping import CommandLine, command_line
from imagenet_prep.init.inspection import Inspection


def move_next_to(inspection: Inspection, path: str, ending: str) -> CommandLine | None:
    """The command that moves a path of the folder to FOLDER-``ending``; None if that exists."""
    place = inspection.folder.resolve()
    target = place.with_name(f"{place.name}-{ending}")
    if target.exists():
        return None
    return command_line(["mv", "--", str(inspection.folder / path), str(target)])
