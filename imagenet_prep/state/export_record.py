"""refuse_export: a folder that holds an export, where the shards of a set are expected."""

from __future__ import annotations

from imagenet_prep.errors import InputError
from imagenet_prep.storage.files import load_json
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import AnyPath


def export_fault(folder: AnyPath) -> str:
    """That a folder holds an export, with its format; "" if it holds none."""
    recorded = load_json(Layout(folder).export_path)
    if not isinstance(recorded, dict):
        return ""
    return f"{folder} holds an export to {recorded.get('container')}, and no shards"


def refuse_export(folder: AnyPath) -> None:
    """Raise InputError for a folder that holds an export."""
    if fault := export_fault(folder):
        raise InputError(
            fault,
            "expected the folder that it was exported from",
            "name that folder, or read the export by its own library",
        )
