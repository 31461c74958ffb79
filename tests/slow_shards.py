"""A conversion by Ray whose workers write slowly, so that a test meets them in the middle of a
shard.

python -c "import slow_shards; slow_shards.main()" RAW OUTPUT ADDRESS SECONDS
"""

from __future__ import annotations

import functools
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from imagenet_prep import ConvertOptions, Layout, convert, make_engine
from imagenet_prep.shards import run
from imagenet_prep.shards.maker import Outcome, ShardMaker, ShardTask
from imagenet_prep.storage.local import LocalSink
from imagenet_prep.storage.store import Buffer

OPTIONS = ConvertOptions(train_shards=32, validation_shards=16, allow_incomplete=True)


class SlowMaker(ShardMaker, frozen=True):
    """Makes shards whose files are half written for a while."""

    seconds: float = 0.0

    def __call__(self, task: ShardTask) -> Outcome:
        """Make the shard of a task."""
        _slow_down(self.seconds)
        return ShardMaker.__call__(self, task)


@functools.cache
def _slow_down(seconds: float) -> None:
    write = LocalSink.write

    def slowly(self: LocalSink, parts: Sequence[Buffer]) -> None:
        half = len(parts) // 2
        write(self, parts[:half])
        time.sleep(seconds)
        write(self, parts[half:])

    LocalSink.write = slowly  # type: ignore[method-assign]


def main() -> None:
    """Convert, and print how many shards were made now."""
    raw, output, address, seconds = sys.argv[1:]
    run.ShardMaker = functools.partial(SlowMaker, seconds=float(seconds))  # type: ignore[assignment,misc]
    layout = Layout(Path(output), raw=Path(raw))
    summary = convert(layout, make_engine("ray", ray_address=address), OPTIONS)
    json.dump({split.split: split.made for split in summary.splits}, sys.stdout)
