"""no_shards: a folder without shards -> the error that names the next step of its set."""

from __future__ import annotations

from collections.abc import Callable

from imagenet_prep.checks.checked_dataset import CheckedDataset
from imagenet_prep.errors import InputError
from imagenet_prep.escaping import command
from imagenet_prep.hints import Hint
from imagenet_prep.model import State
from imagenet_prep.state.set_records import SetRecords
from imagenet_prep.storage.layout import RAW_NAME, Layout, expected_names
from imagenet_prep.storage.location import AnyPath
from imagenet_prep.text import either, listed


def no_shards(
    records: SetRecords, dataset: CheckedDataset, retry: Callable[[AnyPath], str]
) -> InputError:
    """The error for a folder without shards of a set; it names the sets below or above it,
    or the command to run.

    ``retry`` gives the hint to do the same with another folder.
    """
    layout = records.layout
    splits = f"{either(dataset.splits)} shards" if dataset.splits else "shards of a known split"
    absence = f"no {splits} in {layout.output_dir}"
    folders = layout.sets_below()
    if folders:
        return InputError(
            absence, f"found other sets in {listed(map(str, folders))}", retry(folders[0])
        )
    above = layout.output_dir.parent
    if layout.output_dir.name == RAW_NAME and Layout(above).find_shards():
        return InputError(absence, "found shards in the folder above it", retry(above))
    example_split = (*dataset.splits, "train")[0]
    converted: State = "not started" if records.plan is None else "partly"
    following = dataset.following(records, {"convert": converted, "annotate": "done"})
    return InputError(
        absence,
        expected_names(example_split),
        Hint("name the folder that holds them, or run the next step: ", following),
    )


def verify_command(folder: AnyPath) -> str:
    """The command that verifies the set in a folder."""
    return command("verify", folder)


def name_folder(folder: AnyPath) -> str:
    """The hint to name a folder to the same command."""
    return f"name that folder: {folder}"
