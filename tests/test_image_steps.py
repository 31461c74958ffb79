"""The Dockerfile: a slim system, no root, and the two commands that pages name. The steps
themselves run by scripts/image_steps.py.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

pytestmark = pytest.mark.project

ROOT = Path(__file__).parents[1]
DOCKERFILE = ROOT / "Dockerfile"


@pytest.fixture(scope="module")
def steps() -> list[tuple[str, str]]:
    """The instructions, as the script reads them."""
    spec = importlib.util.spec_from_file_location("image_steps", ROOT / "scripts/image_steps.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
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
