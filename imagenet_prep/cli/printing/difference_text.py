"""print_diff: the records that differ between two sets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from imagenet_prep.cli.terminal import say, tell
from imagenet_prep.text import listed, number_of

if TYPE_CHECKING:
    from imagenet_prep.checks.set_difference import Difference, DifferingRecord, SplitDifference

SHOWN_SHARDS = 20

SAME = (
    "By their manifests and checksums, both sets hold the same records in the same shards and "
    "order. diff --data reads every record and compares the data."
)
"""diff does not read equal shards: a changed byte or label may be hidden."""

SAME_DATA = "Both sets hold the same records in the same shards and order. Every record was read: "


def print_diff(difference: Difference, limit: int) -> None:
    """Print the differences of each split: counts, then the first records by name,
    each feature with both values.
    """
    place_a, place_b = difference.places
    say(f"A: {place_a}", f"B: {place_b}", *difference.problems)
    for split in difference.splits:
        _print_split(split, difference, limit)
    if difference.is_same:
        read_places = " and ".join(map(str, difference.read_places))
        tell(f"{SAME_DATA}{read_places}" if read_places else SAME, colour="green")


def _print_split(split: SplitDifference, difference: Difference, limit: int) -> None:
    records_a, records_b = split.records
    shards_a, shards_b = split.shards
    records = number_of(records_a, "record")
    shards = number_of(shards_a, "shard")
    say(f"{split.split}: {records} in {shards}, {records_b:,} in {shards_b:,} (A / B)")
    if split.other_shards:
        other_shards = number_of(len(split.other_shards), "shard")
        shard_names = listed(split.other_shards, SHOWN_SHARDS)
        say(f"  {other_shards} with other bytes: {shard_names}")
        say(
            "  a manifest doesn't tell whether their features differ: compare the shards themselves"
        )
    if split.moved:
        moved = number_of(split.moved, "record")
        say(f"  {moved} in another shard, or at another position")
    if split.encoded_differently:
        say(f"  the same records, encoded differently: {split.encoded_differently:,}")
    for place, names in zip(("A", "B"), split.only, strict=True):
        if names:
            records = number_of(len(names), "record")
            name_list = listed(names, limit or 1)
            say(f"  {records} only in {place}: {name_list}")
    if split.differing:
        compared_part = "bytes" if difference.by_bytes else "content"
        _print_differing(split, compared_part, limit)


def _print_differing(split: SplitDifference, compared_part: str, limit: int) -> None:
    total = len(split.differing)
    shown_records = split.differing[:limit]
    records = number_of(total, "record")
    end = ":" if split.differing_features or shown_records else ""
    say(f"  {records} with other {compared_part}{end}")
    compared = ""
    if split.compared != total:
        compared = f" of the {split.compared:,} that were compared"
    for feature, count in split.differing_features.items():
        records = number_of(count, "record")
        say(f"    {feature} differs in {records}{compared}")
    if shown_records:
        say("  each record's shard and number, and its values: A / B")
    for record in shown_records:
        _print_record(record)
    if shown_records and total > limit:
        say(f"  and {total - limit:,} more")


def _print_record(record: DifferingRecord) -> None:
    places = " / ".join(dict.fromkeys(record.places))
    say(f"  {record.name}    ({places})")
    if record.features == {}:
        say("    the same features, encoded differently")
        return
    features = record.features or {}
    for feature, (value_a, value_b) in features.items():
        say(f"    {feature}: {value_a} / {value_b}")
