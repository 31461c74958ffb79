"""attach_boxes: the CSV that annotate wrote -> the boxes of a catalog's images, or why not."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from imagenet_prep.datasets.kept_notes import SAME_RAW, WHEN_STARTED
from imagenet_prep.datasets.planned_set import annotate_command
from imagenet_prep.errors import InputError
from imagenet_prep.escaping import CommandLine, command, mention
from imagenet_prep.hints import CONVERT_AGAIN, Hint
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.box_search import (
    BOX_ARCHIVES,
    can_annotate,
    find_annotations,
    find_boxes_csv,
)
from imagenet_prep.ilsvrc2012.boxes import BoxesFault, BoxTable, parse_boxes
from imagenet_prep.ilsvrc2012.settings import ConvertOptions
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.storage.durable import move_away
from imagenet_prep.storage.files import load_json
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import AnyPath


def attach_boxes(
    catalog: Catalog, layout: Layout, options: ConvertOptions
) -> tuple[dict[str, Mapping[str, object]], list[str]]:
    """Give the images their boxes; return the manifest's entry for their file, or a note if there
    are none.

    Raises:
        InputError: validation images require boxes, or the file is damaged, or not the one that
            annotate wrote.
    """
    split = catalog.split
    is_validation = split == facts.VALIDATION
    if is_validation and not options.validation_boxes:
        return {}, []
    path = find_boxes_csv(layout, split)
    if path is None and is_validation:
        raise InputError(
            f"no boxes for {split}: there is no file {layout.validation_boxes_csv}",
            "the setting validation_boxes requires it",
            _command_for_validation_boxes(layout),
        )
    if path is None:
        return {}, [_note_without_boxes(layout, split)]
    content = path.read_bytes()
    boxes = _parse(path, content, split, layout)
    catalog.attach_boxes(boxes)
    digest = hashlib.sha256(content).hexdigest()
    entry = {"count": content.count(b"\n"), "sha256": digest}
    _refuse_other_boxes(path, split, entry, layout)
    return {"boxes": entry}, []


def _parse(path: AnyPath, content: bytes, split: str, layout: Layout) -> BoxTable:
    try:
        return parse_boxes(content)
    except BoxesFault as fault:
        make_again = move_away(path)
        if find_annotations(layout, split) is None and can_annotate(layout):
            only = (("only", BOX_ARCHIVES[split]),)
            make_again = make_again.then(command("download", layout.data_dir, only))
        make_again = make_again.then(annotate_command(layout, split))
        raise InputError(
            f"line {fault.line:,} of {path} can't be used",
            fault.reason,
            Hint("set the file aside, and make it again: ", make_again),
        ) from fault


# no boxes -----------------------------------------------------------------------------------------


def _note_without_boxes(layout: Layout, split: str) -> str:
    """The note that a split has no boxes, with the commands that add them.

    It names no path of this set: the plan keeps the note, and ``note_of_call`` adds them.
    """
    unread = find_annotations(layout, split)
    folder = "DATA_DIR"
    make = Hint(mention("annotate", folder), SAME_RAW)
    if not can_annotate(layout):
        folder = "FOLDER"
        put = f" with a local FOLDER, put its {layout.boxes_csv.name} into the folder of raw data"
        make = Hint(mention("annotate", folder), put)
    steps = Hint(make, ", then ", CONVERT_AGAIN)
    if unread is None:
        download = mention("download", folder, "--only", BOX_ARCHIVES[split])
        return Hint(
            f"no boxes for {split}: no annotations were there {WHEN_STARTED}; to add boxes, run ",
            download,
            ", then ",
            steps,
        )
    return Hint(
        f"warning: no boxes for {split}, although {unread.path} was there {WHEN_STARTED}; "
        "to add boxes, run ",
        steps,
    )


def _command_for_validation_boxes(layout: Layout) -> str:
    """The advice to make the file of validation boxes. annotate takes no object store:
    a local folder is advised for it.
    """
    if not can_annotate(layout):
        annotate = mention("annotate", "FOLDER", "--validation-boxes")
        put = f" with a local FOLDER, and put it into {layout.raw_dir}"
        return Hint("make it with ", annotate, put)
    return Hint("make it: ", commands_for_boxes(layout, facts.VALIDATION))


def commands_for_boxes(layout: Layout, split: str) -> CommandLine:
    """The command that makes the file of a split's boxes, after the one that downloads missing
    annotations; annotate requires those of train in any case.
    """
    make = annotate_command(layout, split)
    missing_archives: list[str] = []
    for needed in dict.fromkeys((facts.TRAIN, split)):
        if find_annotations(layout, needed) is None:
            missing_archives.append(BOX_ARCHIVES[needed])
    if not missing_archives:
        return make
    only = ",".join(missing_archives)
    return command("download", layout.data_dir, (("only", only),)).then(make)


# other boxes --------------------------------------------------------------------------------------


def _refuse_other_boxes(
    path: AnyPath, split: str, entry: Mapping[str, object], layout: Layout
) -> None:
    """Raise InputError for a file of boxes that has changed since annotate wrote it."""
    record_path = Layout(path.parent.parent).annotate_path
    written = _dictionary_in(load_json(record_path), split)
    recorded = written.get("csv_sha256") if written else None
    if recorded in (None, entry["sha256"]):
        return
    totals = _dictionary_in(written, "totals") or {}
    annotate = annotate_command(layout, split)
    move_file = move_away(path)
    move_record = move_away(record_path)
    raise InputError(
        f"{path} is not the file that annotate wrote",
        f"expected {totals.get('boxes', 'other')} boxes and SHA-256 {recorded}, "
        f"got {entry['count']} and {entry['sha256']}",
        Hint(
            "make it again: ",
            move_file.then(annotate),
            "; to make another set with it as it is: ",
            move_record,
        ),
    )


def _dictionary_in(parent: object, key: str) -> dict[str, Any] | None:
    """The dictionary under a key, if there is one."""
    child = parent.get(key) if isinstance(parent, dict) else None
    return child if isinstance(child, dict) else None
