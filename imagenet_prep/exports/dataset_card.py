"""encode_card: the README.md of an export to webdataset, by which Hugging Face's datasets knows
files and types.

Without it, datasets guesses the types from the first five records of a tar. These may have no
object, no label, or images of one format only. (huggingface.co/docs/datasets: repository_structure;
datasets.Features)
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from imagenet_prep.exports.image_values import Meaning, find_roles
from imagenet_prep.exports.source_set import SourceSet, class_names_from_0
from imagenet_prep.images import ENDINGS
from imagenet_prep.state.manifest import features_by_column

_DTYPES = {"int64": "int64", "float": "float32", "bytes": "string"}
_USUAL = {"label": "int64", "text": "string", "wnid": "string", "filename": "string"}
_OF_INCEPTION = {"boxes": "string", "height": "int64", "width": "int64"}

_BINARY = "raw", "mask.encoded", "boxes.mask"
"""The columns whose bytes are no text: the JSON has them as {"base64": ...}."""

_TEXT_OF_CARD = """
Made by imagenet-prep. `datasets.load_dataset(FOLDER)` reads it, with the names of the classes.
"""


def encode_card(source: SourceSet, meaning: Meaning, tars: Mapping[str, Sequence[str]]) -> bytes:
    """The content of the file: the tars of each split with records,
    and the type of each member of a sample.
    """
    image_endings = ["jpg"]
    if meaning.features:
        image_endings.append("png")
    if source.manifest and source.manifest.settings.get("keep"):
        image_endings = [endings[0][1:] for endings in ENDINGS.values()]
    members: list[dict[str, Any]] = [{"name": ending, "dtype": "image"} for ending in image_endings]
    if "label" in find_roles(source.manifest):
        class_type = _class_type(source)
        members.append({"name": "cls", "dtype": class_type})
    fields = _json_fields(source, meaning)
    members.append({"name": "json", "struct": fields})
    files = [{"split": split, "path": list(names)} for split, names in tars.items()]
    metadata = {
        "configs": [{"config_name": "default", "data_files": files}],
        "dataset_info": {"config_name": "default", "features": members},
    }
    text = json.dumps(metadata, ensure_ascii=False, indent=1)
    front_matter = _NOT_IN_YAML.sub(_escape, text)
    return f"---\n{front_matter}\n---\n{_TEXT_OF_CARD}".encode()


_NOT_IN_YAML = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
"""JSON may hold these as they are; YAML may not,
or reads them as the end of a line (yaml.org/spec/1.2.2, 5.1, 5.4).
"""


def _escape(character: re.Match[str]) -> str:
    return f"\\u{ord(character[0]):04x}"


def _class_type(source: SourceSet) -> Any:
    names = class_names_from_0(source.numbering)
    if not names:
        return "int64"
    name_by_index = {str(index): name for index, name in enumerate(names)}
    return {"class_label": {"names": name_by_index}}


def _json_fields(source: SourceSet, meaning: Meaning) -> list[dict[str, Any]]:
    """The values in a sample's JSON."""
    if source.manifest is None or not meaning.features:
        dtypes = _USUAL | _OF_INCEPTION
        return [{"name": name, "dtype": dtype} for name, dtype in dtypes.items()]
    fields: dict[str, dict[str, Any]] = {}
    for name, dtype in _USUAL.items():
        fields[name] = {"name": name, "dtype": dtype}
    columns = features_by_column(source.manifest.settings)
    binary: set[str] = set()
    for column in _BINARY:
        binary.update(columns.get(column, ()))
    for name, feature in meaning.others.items():
        fields[name] = _field(name, feature, is_binary=name in binary)
    return [*fields.values()]


def _field(name: str, feature: Mapping[str, Any], *, is_binary: bool) -> dict[str, Any]:
    """One value of the JSON: itself, or a list where there may be several."""
    base64 = [{"name": "base64", "dtype": "string"}]
    dtype = _DTYPES[feature["kind"]]
    is_single = feature["values"] == 1
    if is_binary:
        key = "struct" if is_single else "list"
        return {"name": name, key: base64}
    key = "dtype" if is_single else "list"
    return {"name": name, key: dtype}
