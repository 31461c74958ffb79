"""Puts the commit of the source into wheel and sdist, for ``imagenet-prep --version``."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CommitHook(BuildHookInterface):  # type: ignore[type-arg]
    """Adds imagenet_prep/commit.txt, unless the source has it, or no commit is known."""

    _folder = ""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the file outside the source; an editable install asks git at run time."""
        sys.path.insert(0, self.root)
        from imagenet_prep.version import COMMIT_FILE, find_commit

        package = Path(self.root) / "imagenet_prep"
        commit = find_commit(package)
        if version == "editable" or not commit or (package / COMMIT_FILE).exists():
            return
        self._folder = tempfile.mkdtemp()
        written = Path(self._folder) / COMMIT_FILE
        written.write_text(f"{commit}\n")
        build_data["force_include"][str(written)] = f"imagenet_prep/{COMMIT_FILE}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the file."""
        shutil.rmtree(self._folder, ignore_errors=True)
