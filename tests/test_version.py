"""The version with its commit: from git's files, from a wheel, or none."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from existing import existing
from running import PROGRAM

import imagenet_prep
from imagenet_prep import version
from imagenet_prep.version import describe_version, find_commit, is_same_code

pytestmark = pytest.mark.project

ROOT = Path(__file__).parents[1]


def git(folder: Path, *words: str) -> str:
    """What git says in a folder, with no settings of the tester's."""
    environment = {name: text for name, text in os.environ.items() if not name.startswith("GIT_")}
    environment |= {"HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    call = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words]
    ran = subprocess.run(call, cwd=folder, env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository with a package of one module, as this package's is laid out."""
    root = tmp_path / "checkout"
    (root / "imagenet_prep").mkdir(parents=True)
    (root / "imagenet_prep" / "module.py").write_text("")
    (root / "pyproject.toml").write_text('[project]\nname = "imagenet-prep"\n')
    git(root, "init", "--quiet", "--initial-branch=main")
    git(root, "add", ".")
    git(root, "commit", "--quiet", "--message=first")
    return root


def add_worktree(root: Path) -> Path:
    """Another folder of the repository, on a branch of its own."""
    git(root, "worktree", "add", "--quiet", "-b", "side", str(root.parent / "side"))
    return root.parent / "side"


def pack_references(root: Path) -> Path:
    """No branch has a file of its own."""
    git(root, "pack-refs", "--all")
    return root


def detach(root: Path) -> Path:
    """HEAD is a commit and no branch."""
    git(root, "checkout", "--quiet", "--detach")
    return root


@pytest.mark.parametrize("change", [Path, add_worktree, pack_references, detach])
def test_the_commit_is_that_of_git(change: object, checkout: Path) -> None:
    """On a branch, in a worktree, with packed references, and without a branch."""
    root = change(checkout)  # type: ignore[operator]
    assert find_commit(root / "imagenet_prep") == git(root, "rev-parse", "HEAD")[:8]


def test_changed_code_is_told(checkout: Path) -> None:
    """A changed or new file of the package counts, a file next to the package doesn't."""
    package = checkout / "imagenet_prep"
    commit = find_commit(package)
    (checkout / "notes.txt").write_text("mine")
    assert find_commit(package) == commit
    (package / "other.py").write_text("")
    assert find_commit(package) == f"{commit}, changed"
    (package / "other.py").unlink()
    (package / "module.py").write_text("changed = True")
    assert find_commit(package) == f"{commit}, changed"


@pytest.mark.parametrize("lacking", [".git", ".git/HEAD", ".git/refs", "pyproject.toml"])
def test_no_commit_is_guessed(lacking: str, checkout: Path) -> None:
    """Without a repository, with a broken one, or in one of another project, it is unknown."""
    path = checkout / lacking
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert find_commit(checkout / "imagenet_prep") == ""


def test_a_package_without_repository_has_the_plain_version(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The version is shown alone, or with the commit of the file that a wheel brings."""
    monkeypatch.setattr(version, "__file__", str(tmp_path / "version.py"))
    assert describe_version() == imagenet_prep.__version__
    (tmp_path / version.COMMIT_FILE).write_text("c92c4c26, changed\n")
    assert describe_version() == f"{imagenet_prep.__version__} (c92c4c26, changed)"


@pytest.mark.parametrize(
    ("other", "is_same"),
    [
        ("0.1.0 (c92c4c26)", True),
        ("0.1.0 (c92c4c26, changed)", True),
        ("0.1.0", True),
        ("0.1.0 (00000000)", False),
        ("0.2.0 (c92c4c26)", False),
        ("0.2.0", False),
    ],
)
def test_other_commits_are_other_code(other: str, is_same: bool) -> None:
    """A commit counts if both are known; edits during a run don't end it."""
    assert is_same_code("0.1.0 (c92c4c26)", other) == is_same
    assert is_same_code(other, "0.1.0 (c92c4c26)") == is_same


def test_the_command_line_shows_it() -> None:
    """--version names it; --help neither loads this module nor starts git."""
    shown = subprocess.run([*PROGRAM, "--version"], capture_output=True, text=True, check=True)
    assert shown.stdout == f"imagenet-prep, version {describe_version()}\n"
    code = "import sys; events = []; sys.addaudithook(lambda event, _: events.append(event)); "
    code += "from imagenet_prep.cli import cli; cli.main(['--help'], 'x', None, False); "
    code += "sys.exit('imagenet_prep.version' in sys.modules or 'subprocess.Popen' in events)"
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


def test_state_holds_the_plain_version() -> None:
    """No module that writes a plan or manifest knows the commit."""
    package = ROOT / "imagenet_prep"
    rooms = {
        path.relative_to(package).parts[0]
        for path in existing(package, "**/*.py")
        if re.search(r"import .*\bdescribe_version\b", path.read_text())
    }
    assert rooms == {"cli", "engines", "reporting"}
