"""Turns the options of a call into arguments that many stages have: the engine, the rank."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from imagenet_prep.errors import UsageError

if TYPE_CHECKING:
    from imagenet_prep.model import Engine, Progress
    from imagenet_prep.shards.share import Share

NOTED_SHARDS = 3
"""Shard numbers in the note about a rank."""


def engine_of(params: Mapping[str, Any]) -> Engine:
    """The engine of --engine and --workers."""
    from imagenet_prep.engines import make_engine

    name = params.get("engine", "processes")
    if name == "ray" and (consume := _consume_option(params)):
        raise UsageError(
            f"{consume} can't be used with --engine ray",
            "it deletes raw data when its shards are on the disk, and Ray doesn't tell when",
            "use --engine processes",
        )
    return make_engine(name, params["workers"])


def _consume_option(params: Mapping[str, Any]) -> str:
    """The option of a call that asks to remove raw data; "" if none does."""
    from imagenet_prep.cli.setting_options import settings_of_call

    if params.get("consume"):
        return "--consume"
    texts = params.get("texts", ())
    if not settings_of_call({"texts": texts}).get("consume"):
        return ""
    consume_texts = [text for text in texts if text.startswith("consume=")]
    return f"--set {consume_texts[-1]}"


def note_share(share: Share | None, progress: Progress) -> Share | None:
    """Note the requested rank."""
    if share is not None:
        numbers = [share.rank + step * share.world for step in range(NOTED_SHARDS)]
        shards = ", ".join(map(str, numbers))
        progress.note(
            f"{share}: shards {shards} and so on, as far as they exist; the numbers count the "
            "shards of all splits together, from 0"
        )
    return share
