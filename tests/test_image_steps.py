"""The Dockerfile: a slim system, no root, and the two commands that pages name. The steps
themselves run by scripts/image_steps.py.
"""

from __future__ import annotations

import importlib.util
import stat
import sys
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = pytest.mark.project

ROOT = Path(__file__).parents[1]
DOCKERFILE = ROOT / "Dockerfile"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """The script, which is no part of the package."""
    spec = importlib.util.spec_from_file_location("image_steps", ROOT / "scripts/image_steps.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def steps(script: ModuleType) -> list[tuple[str, str]]:
    """The instructions, as the script reads them."""
    read: list[tuple[str, str]] = script.read_steps(DOCKERFILE)
    return read


def test_the_script_knows_every_instruction(steps: list[tuple[str, str]]) -> None:
    """An instruction that the script does not run would not be tried without docker."""
    known = {"FROM", "RUN", "COPY", "ENV", "USER", "WORKDIR", "ENTRYPOINT", "CMD"}
    assert {instruction for instruction, _ in steps} == known


def test_the_image_is_slim_and_runs_without_root(steps: list[tuple[str, str]]) -> None:
    """Its user is made in a step, and is no root when the program starts."""
    arguments = dict(steps)
    assert arguments["FROM"] == "debian:bookworm-slim"
    assert arguments["USER"] == "prep"
    instructions = [instruction for instruction, _ in steps]
    assert instructions.index("USER") < instructions.index("ENTRYPOINT")
    assert any(text.startswith("useradd") and text.endswith(" prep") for _, text in steps)


def test_the_page_has_its_two_commands() -> None:
    """The comment of the file and the page on installing name the same commands."""
    lines = DOCKERFILE.read_text().splitlines()
    commands = [line.removeprefix("#   ") for line in lines if line.startswith("#   docker")]
    page = (ROOT / "docs/install.md").read_text()
    assert len(commands) == 2
    assert [command for command in commands if command not in page] == []


def test_the_root_folder_is_open_to_the_user_of_the_image(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A temporary folder is closed to all but root, and so would be every path below it."""
    folder = tmp_path / "root"
    folder.mkdir(mode=0o700)
    program = tmp_path / "debootstrap"
    program.write_text(
        f"#!{sys.executable}\nimport os\nos.makedirs('{folder}/etc/apt/apt.conf.d')\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    script.make_root(folder, "debian:bookworm-slim")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o755
