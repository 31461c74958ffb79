"""Digests that files of the raw folder were compared with, believed as long as a file was not touched since."""

from __future__ import annotations

from imagenet_prep.storage.files import load_json
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import AnyPath

ALGORITHMS = ("md5", "sha256", "crc32c")


def seen_digests(layout: Layout, filename: str, path: AnyPath) -> dict[str, str]:
    """The digests (hex), by algorithm, that ``path`` was found to have; none if it was touched since, or is not there.

    ``filename`` is what it is recorded under: its path below the raw folder.
    """
    checked = load_json(layout.checked_path)
    entry = checked.get(filename) if isinstance(checked, dict) else None
    if not isinstance(entry, dict) or not path.exists():
        return {}
    stat = path.stat()
    if (entry.get("size"), entry.get("mtime_ns")) != (stat.st_size, stat.st_mtime_ns):
        return {}
    return {name: entry[name] for name in ALGORITHMS if isinstance(entry.get(name), str)}
