"""The text of messages about a damaged shard or record: its look, its place, and what to do."""

from __future__ import annotations

import contextlib

from imagenet_prep.errors import InputError
from imagenet_prep.escaping import command
from imagenet_prep.hints import Hint, has_command
from imagenet_prep.state.manifest import features_by_column, find_set, load_manifest
from imagenet_prep.state.set_state import SetState
from imagenet_prep.storage.files import find_plain
from imagenet_prep.storage.layout import Layout, split_of
from imagenet_prep.storage.location import AnyPath
from imagenet_prep.text import listed
from imagenet_prep.tfrecord.compression import Compression
from imagenet_prep.tfrecord.framing import recorded_name

_BEGINNINGS = {
    b"\xff\xd8\xff": "a JPEG image",
    b"\x89PNG\r\n": "a PNG image",
    b"PK\3\4": "a zip file",
    b"PAR1": "a parquet file",
    b"\x93NUMPY": "a NumPy array",
    b"\x89HDF\r\n": "an HDF5 file",
}


OTHER_CONTENT = (
    "another program may write other records: read the file with TensorFlow's "
    "tf.data.TFRecordDataset, or ask who wrote it"
)
"""The advice for a record of another program that is no Example."""


def looks_like(head: bytes) -> str:
    """The kind of file that has these first bytes; "" if it may be a damaged TFRecord file.

    A TFRecord file starts with a length of eight bytes, the last ones 0: no text does.
    """
    if head[257:262] == b"ustar":
        return "a tar archive"
    for beginning, file_kind in _BEGINNINGS.items():
        if head.startswith(beginning):
            return file_kind
    text = head[:-3].decode(errors="replace")  # the last character may be cut
    return "a text file" if _is_text(text) else ""


def _is_text(text: str) -> bool:
    if not text or "\ufffd" in text:
        return False
    return all(char.isprintable() or char.isspace() for char in text)


def place_in_words(path: AnyPath, number: int, offset: int, compression: Compression) -> str:
    """The place of a record, for messages."""
    content = "" if compression == "none" else f" of its {compression} content"
    return f"{path}: record {number} at byte {offset}{content}"


def listed_name(path: AnyPath, number: int) -> str:
    """The name of a record's image by the index of its shard;
    "" without one: the record itself can't be read.
    """
    with contextlib.suppress(InputError):
        layout = find_set(Layout(path.parent), split_of(path.name))
        return recorded_name(find_plain(layout.listing_path(path.name)) or b"", number)
    return ""


def remedy(path: AnyPath, otherwise: str = "get a sound copy of it", **settings: str) -> str:
    """The verify command, with ``settings``, for a shard that imagenet-prep made;
    the advice ``otherwise`` for any other.
    """
    layout = Layout(path.parent)
    if not is_recorded(layout, path.name):
        return otherwise
    verifying = command("verify", layout.data_dir, tuple(settings.items()))
    return Hint("to check all shards of this set: ", verifying)


def remedy_of_image(path: AnyPath, advice: str) -> str:
    """The verify command for a shard that imagenet-prep made; otherwise the advice for an image
    that may be sound, or to get a sound copy.
    """
    hint = remedy(path, depth="decode")
    return hint if has_command(hint) or not advice else advice


def why_no_image(path: AnyPath, fault: str) -> tuple[str, str]:
    """Detail and hint for a record without an image:
    those of a recipe that names its own features, if it has one.
    """
    with contextlib.suppress(InputError):
        manifest = load_manifest(find_set(Layout(path.parent), split_of(path.name)).manifest_path)
        names = features_by_column(manifest.settings) if manifest else None
        if manifest and names and "image/encoded" not in manifest.dataset.features:
            image, *_ = names.get("encoded") or next(iter(names.values()))
            detail = (
                f"this set's recipe names its own features ({listed(manifest.dataset.features)})"
            )
            hint = f'in Python: read record.features["{image}"]'
            if "encoded" in names:
                hint += ", or convert with `record: inception`"
            return detail, hint
    return fault, "in Python: record.features has all values of the record"


def is_recorded(layout: Layout, name: str) -> bool:
    """Whether imagenet-prep made a shard, by the records of its set."""
    try:
        state = SetState.read(find_set(layout, split_of(name)))
    except InputError:  # a record can't be read: verify reports it
        return any(set_layout.index_path(name).exists() for set_layout in layout.sets())
    return name in state.infos or state.kind not in ("nothing", "foreign", "finished")
