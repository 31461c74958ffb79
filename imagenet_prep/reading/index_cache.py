"""Indexes of other makers' shards: made when they are first needed, and kept in the user's cache folder.

Nothing is written beside shards that are not ours. A cached index is that of one state of a file: its place, size and
time of change are in the name. It saves time and is not trusted: whoever reads a record compares its framing. So it
need not be durable either: storage.atomic would sync twice a shard, seconds of a first look at a thousand.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from array import array
from itertools import pairwise
from pathlib import Path

from imagenet_prep.storage.location import AnyPath, local_or_none
from imagenet_prep.tfrecord.index import decode_index, encode_index


def cached(shard: AnyPath) -> array[int] | None:
    """Where each record of a shard begins and the last one ends, in bytes; None if that is not known."""
    local = local_or_none(shard)
    if local is None:
        return None
    try:
        return decode_index(_cache_path(local).read_bytes())
    except OSError:
        return None


def keep(shard: AnyPath, offsets: array[int]) -> None:
    """Keep the offsets in the cache, but not those of remote shards; no space, or no right to write, is no error."""
    local = local_or_none(shard)
    if local is None:
        return
    content = encode_index(offsets[:-1], (stop - start for start, stop in pairwise(offsets)))
    with contextlib.suppress(OSError):
        path = _cache_path(local)
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            try:
                file.write(content)
                file.flush()
                Path(file.name).replace(path)
            except BaseException:
                Path(file.name).unlink()
                raise


def _cache_path(shard: Path) -> Path:
    home = os.environ.get("XDG_CACHE_HOME")
    folder = Path(home) if home and Path(home).is_absolute() else Path("~/.cache").expanduser()
    status = shard.stat()
    state = f"{shard.resolve()}\n{status.st_size}\n{status.st_mtime_ns}".encode("utf-8", "surrogateescape")
    return folder / "imagenet-prep" / "index" / f"{hashlib.sha256(state).hexdigest()[:32]}.idx"
