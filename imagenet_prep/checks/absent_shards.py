"""no_shards: a folder without shards -> the error that names the next step of its set."""

from __future__ import annotations

from collections.abc import Callable

from imagenet_prep.checks.checked_dataset import CheckedDataset
from imagenet_prep.errors import InputError
from imagenet_prep.escaping import command
from imagenet_prep.hints import Hint
from imagenet_prep.model import State
from imagenet_prep.state.export_record import refuse_export
from imagenet_prep.state.set_records import SetRecords
from imagenet_prep.storage.layout import expected_names
from imagenet_prep.storage.location import AnyPath
from imagenet_prep.text import either, listed


def no_shards(
    records: SetRecords, dataset: CheckedDataset, retry: Callable[[AnyPath], str]
) -> InputError:
    """The error for a folder without shards of a set; it names the sets below or above it,
    or the command to run.

    ``retry`` gives the hint to do the same with another folder.

    Raises:
        InputError: the manifest, which alone says which set this is, is damaged.
    """
    layout = records.layout
    refuse_export(layout.output_dir)
    if records.plan is None and not layout.demo_path.exists():
        records.require_manifest()  # a damaged one may be of any set
    converted: State = "not started" if records.plan is None else "partly"
    following = dataset.following(records, {"convert": converted, "annotate": "done"})
    if not dataset.splits:
        return InputError(
            f"the splits of the set in {layout.state_dir} are not known",
            f"neither {layout.manifest_path.name} nor the plan of this folder can be read",
            Hint("restore one of them, or make the set again: ", following),
        )
    absence = f"no {either(dataset.splits)} shards in {layout.output_dir}"
    folders = layout.sets_below()
    if folders:
        return InputError(absence, f"found sets in {listed(map(str, folders))}", retry(folders[0]))
    parts = layout.shards_below(dataset.splits)
    if parts:
        found = f"found shards in {listed(map(str, parts))}"
        if len(parts) == 1:
            return InputError(absence, found, retry(parts[0]))
        return InputError(absence, found, f"move all shards of one set into {layout.output_dir}")
    above = layout.set_above()
    if above is not None:
        return InputError(absence, "found shards in the folder above it", retry(above))
    return InputError(
        absence,
        expected_names(dataset.splits[0]),
        Hint(
            "pass the folder that holds the shards; or, if there are none yet, run the next step: ",
            following,
        ),
    )


def verify_command(folder: AnyPath) -> str:
    """The hint to verify the set in a folder."""
    return Hint("pass a folder that holds shards: ", command("verify", folder))


def name_folder(folder: AnyPath) -> str:
    """The hint to pass a folder to the same command."""
    return f"pass a folder that holds shards: {folder}"
