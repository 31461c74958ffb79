"""What a release must not get wrong: one version everywhere,
types for strict users, workflows that call make.
"""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from existing import existing

import imagenet_prep

pytestmark = pytest.mark.project

ROOT = Path(__file__).parents[1]


def test_one_version() -> None:
    """Code, package and citation say the same."""
    package = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.M)
    assert package
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"]
    assert imagenet_prep.__version__ == package[1] == cited


def test_the_oldest_packages_are_those_of_pyproject() -> None:
    """make release runs the demo with them, so each must state its oldest version."""
    script = runpy.run_path(str(ROOT / "scripts/release.py"))
    oldest = script["oldest_packages"]((ROOT / "pyproject.toml").read_text())
    assert [each for each in oldest if each.count("==") != 1] == []
    assert [each.partition("==")[0] for each in oldest] == [
        *("click", "crc32c", "jinja2", "msgspec", "numpy", "pillow", "pyyaml"),
        *("requests", "simplejpeg", "tqdm", "urllib3"),
    ]


def test_a_strict_user_sees_no_any(tmp_path: Path) -> None:
    """A program that uses the public names passes mypy's strictest settings:
    no expression of it is of type Any.
    """
    call = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--disallow-any-expr",
        "--no-incremental",
        "--config-file=",
    ]
    result = subprocess.run(
        [
            *call,
            "--follow-imports=silent",
            "--ignore-missing-imports",
            str(ROOT / "tests" / "downstream.py"),
        ],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert (result.returncode, result.stdout.strip().splitlines()[-1]) == (
        0,
        "Success: no issues found in 1 source file",
    )


def test_workflows_call_make() -> None:
    """What the forge runs is a make target that exists, or installs a system package;
    nothing is only there.
    """
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.M))
    for path in existing(ROOT / ".github" / "workflows", "*.yml"):
        for job in yaml.safe_load(path.read_text())["jobs"].values():
            commands = [step["run"] for step in job["steps"] if "run" in step]
            assert commands
            for command in commands:
                assert (
                    command.startswith("sudo apt-get ") or command.removeprefix("make ") in targets
                ), command
