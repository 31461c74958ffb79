"""describe_version: the version with the commit of the code, such as ``0.1.0 (c92c4c26)``.

It is shown to people, never compared by a resumed run, and never written to the plan or manifest. A
wheel brings its commit as a file; a checkout is asked at run time. The build hook imports this
module, so it needs only the standard library.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import imagenet_prep

COMMIT_FILE = "commit.txt"
"""The file that wheel and sdist hold next to this module."""

CHANGED = ", changed"
"""After a commit: the code is not exactly that of the commit."""

SHORT = 8
"""The digits of a commit that are shown."""

_SOURCES = ("imagenet_prep", "data")
_PATIENCE = 10.0  # seconds for git


def describe_version() -> str:
    """The version, with the commit of the code if it is known: ``0.1.0 (c92c4c26, changed)``."""
    commit = find_commit(Path(__file__).parent)
    version = imagenet_prep.__version__
    return f"{version} ({commit})" if commit else version


def is_same_code(description: str, other: str) -> bool:
    """Whether two descriptions have the same version, and the same commit if both name one."""
    words = description.removesuffix(")").removesuffix(CHANGED).split(" (")
    other_words = other.removesuffix(")").removesuffix(CHANGED).split(" (")
    return all(word == other_word for word, other_word in zip(words, other_words, strict=False))


def find_commit(package: Path) -> str:
    """The commit of a package's code, with ``CHANGED`` if files differ from it; "" if it is
    unknown.
    """
    try:
        return (package / COMMIT_FILE).read_text().strip()
    except OSError:
        root = package.parent
    if not _is_our_checkout(root):
        return ""
    commit = _checked_out(root)
    if not commit:
        return ""
    return commit[:SHORT] + (CHANGED if _has_changes(root) else "")


def _is_our_checkout(root: Path) -> bool:
    """Whether a folder is a checkout of this package, not of a project that holds a copy."""
    if not (root / ".git").exists():
        return False
    try:
        return 'name = "imagenet-prep"' in (root / "pyproject.toml").read_text()
    except OSError:
        return False


def _checked_out(root: Path) -> str:
    """The commit that is checked out, as git's files say; "" if they don't."""
    try:
        git_dir = _git_dir(root)
        head = (git_dir / "HEAD").read_text().strip()
        reference = head.removeprefix("ref: ")
        if reference != head:
            head = _commit_of(reference, git_dir)
    except (OSError, UnicodeDecodeError):
        return ""
    return head if re.fullmatch("[0-9a-f]{40,64}", head) else ""


def _git_dir(root: Path) -> Path:
    """The folder of a checkout's HEAD; a worktree has a file that names it."""
    git_dir = root / ".git"
    if git_dir.is_file():
        git_dir = root / git_dir.read_text().strip().removeprefix("gitdir: ")
    return git_dir


def _commit_of(reference: str, git_dir: Path) -> str:
    """The commit of a branch: in a file of its own, or in a line of packed-refs."""
    common_dir = git_dir
    if (git_dir / "commondir").exists():
        common_dir = git_dir / (git_dir / "commondir").read_text().strip()
    if (common_dir / reference).exists():
        return (common_dir / reference).read_text().strip()
    for line in (common_dir / "packed-refs").read_text().splitlines():
        commit, _, name = line.partition(" ")
        if name == reference:
            return commit
    return ""


def _has_changes(root: Path) -> bool:
    """Whether files of the package differ from the commit; False if git can't tell."""
    import subprocess

    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    call = ["git", "--no-optional-locks", "status", "--porcelain", "--", *_SOURCES]
    try:
        status = subprocess.run(
            call, cwd=root, env=environment, capture_output=True, timeout=_PATIENCE
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return status.returncode == 0 and bool(status.stdout.strip())
