"""SetRecords: the plan and the manifest of a set, each read from the disk once, when it is needed.

One object goes through a whole command. Where another process may write meanwhile, the file is read
again: see ``PlanClaim``, ``refuse_superseded`` and ``remove_superseded``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from imagenet_prep.errors import InputError
from imagenet_prep.state.manifest import Manifest, load_manifest
from imagenet_prep.state.plan_file import Plan, load_plan
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import AnyPath, local_or_none


class SetRecords(Struct, frozen=True, dict=True):
    """The records of a set.

    Args:
        layout: the folder, and which of its sets.
    """

    layout: Layout

    def at(self, layout: Layout) -> SetRecords:
        """The records of a layout: these, with what was read, if it is the same set."""
        if layout == self.layout:
            return self
        records = SetRecords(layout)
        if layout.state_dir == self.layout.state_dir:
            records.__dict__.update(self.__dict__)
        return records

    def first_set(self) -> SetRecords:
        """The records of the folder's set without a prefix, or of the first one with a prefix."""
        return self.at(self.layout.sets()[0])

    @cached_property
    def plan(self) -> Plan | None:
        """The plan, or None if it does not exist or can't be understood.

        Raises:
            InputError: it can't be read.
        """
        return load_plan(self.layout)

    @property
    def usable_manifest(self) -> Manifest | None:
        """The manifest, or None if it is missing or can't be used: verify reports that."""
        manifest = self._manifest_or_fault
        return None if isinstance(manifest, InputError) else manifest

    def require_manifest(self) -> Manifest | None:
        """The manifest, or None if there is none.

        Raises:
            InputError: it can't be read or understood, or has changed since it was written.
        """
        manifest = self._manifest_or_fault
        if isinstance(manifest, InputError):
            raise manifest
        return manifest

    @cached_property
    def _manifest_or_fault(self) -> Manifest | InputError | None:
        try:
            return load_manifest(self.layout.manifest_path)
        except InputError as error:
            return error

    @property
    def raw_dir(self) -> AnyPath | None:
        """The folder of raw data that the conversion recorded; None if this machine can't read it.

        A folder of an object store counts as readable.
        """
        raw_dir = self.plan.raw_dir if self.plan else None
        if raw_dir is None:
            return None
        local = local_or_none(raw_dir)
        if local is not None and not os.access(local, os.R_OK):
            return None
        return raw_dir

    @cached_property
    def siblings(self) -> tuple[SetRecords, ...]:
        """The records of the other sets of the folder."""
        layouts = replace(self.layout, set_name="").sets()
        return tuple(
            SetRecords(layout) for layout in layouts if layout.set_name != self.layout.set_name
        )

    @property
    def foreign_splits(self) -> Mapping[str, Layout]:
        """The splits of the other sets of the folder, each with its set."""
        splits: dict[str, Layout] = {}
        for sibling in self.siblings:
            record = sibling.usable_manifest or sibling.plan
            if record is not None:
                splits.update(dict.fromkeys(record.dataset.splits, sibling.layout))
        return splits
