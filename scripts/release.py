"""make release: builds wheel and sdist, checks their metadata and contents, and runs the demo from
the wheel: with the newest packages that it requires, and on the first Python also with the oldest.

    python scripts/release.py [PYTHON ...]      default: every python3.10 to python3.13 that is found

Nothing is uploaded. The files in dist/ at the end are the tested ones.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
NEEDED = (
    "imagenet_prep/py.typed",
    "imagenet_prep/ilsvrc2012/imagenet.yaml",
    "imagenet_prep/ilsvrc2012/data/imagenet_lsvrc_2015_synsets.txt",
    "imagenet_prep/reporting/page.html",
)
NEEDED_IN_SDIST = (
    "README.md",
    "CHANGELOG.md",
    "LICENSE",
    "Makefile",
    "tests/conftest.py",
    "data/README.md",
)
STRANGE = re.compile(r"\.(JPEG|jpg|tfrecord|pyc|part)$|__pycache__|demo-data|\.env$|^site/")


def main() -> None:
    """Build, check, install, run; the first fault ends it."""
    version = _version()
    shutil.rmtree(DIST, ignore_errors=True)
    _run(sys.executable, "-m", "build", "--outdir", DIST, ROOT)
    _run(sys.executable, "-m", "twine", "check", "--strict", *DIST.iterdir())
    (wheel,), (sdist,) = DIST.glob("*.whl"), DIST.glob("*.tar.gz")
    if version not in wheel.name or version not in sdist.name:
        sys.exit(f"{wheel.name}, {sdist.name}: expected version {version}, as in the code")
    if f"## [{version}]" not in (ROOT / "CHANGELOG.md").read_text():
        print(f"note: CHANGELOG.md has no section [{version}] yet", flush=True)
    _look(wheel.name, zipfile.ZipFile(wheel).namelist(), NEEDED)
    with tarfile.open(sdist) as tar:
        names = [name.partition("/")[2] for name in tar.getnames()]
    _look(sdist.name, names, (*NEEDED, *NEEDED_IN_SDIST))
    pythons = sys.argv[1:] or find_pythons() or [sys.executable]
    for python in pythons:
        _try(python, wheel, version)
    oldest = oldest_packages((ROOT / "pyproject.toml").read_text())
    _try(pythons[0], wheel, version, *oldest)
    print(f"{wheel.name} and {sdist.name} are ready in {DIST}", flush=True)


def find_pythons() -> list[str]:
    """The Pythons of this machine: on the PATH, or kept by pyenv."""
    found = [find_python(f"3.{minor}") for minor in range(10, 14)]
    return [python for python in found if python]


def find_python(version: str) -> str:
    """The command of one version, "" if there is none.

    A shim of pyenv is on the PATH for every version that pyenv keeps, and fails for others than
    the chosen ones.
    """
    command = shutil.which(f"python{version}")
    if command and subprocess.run([command, "-c", ""], capture_output=True).returncode == 0:
        return command
    if not shutil.which("pyenv"):
        return ""
    kept = subprocess.run(["pyenv", "prefix", version], capture_output=True, text=True)
    python = Path(kept.stdout.strip()) / "bin" / f"python{version}"
    return str(python) if kept.returncode == 0 and python.is_file() else ""


def oldest_packages(project: str) -> list[str]:
    """The oldest version of each package that the command line depends on, as pip takes it."""
    needed = re.search(r"^dependencies = \[(.*?)^\]", project, re.M | re.S)
    stated = re.findall(r'"(.+?)"', needed[1]) if needed else []
    return [requirement.replace(">=", "==") for requirement in stated]


def _version() -> str:
    found = re.search(
        r'^__version__ = "(.+)"$', (ROOT / "imagenet_prep" / "__init__.py").read_text(), re.M
    )
    stated = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.M)
    cited = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.M)
    versions = {match[1] for match in (found, stated, cited) if match}
    if len(versions) != 1:
        sys.exit(
            "expected one version in the code, pyproject.toml and CITATION.cff, "
            f"got {sorted(versions)}"
        )
    return versions.pop()


def _look(package: str, names: list[str], needed: tuple[str, ...]) -> None:
    missing = [name for name in needed if name not in names]
    strange = [name for name in names if STRANGE.search(name) and "tests/" not in name]
    if missing or strange:
        sys.exit(f"{package}: missing {missing}, strange {strange}")


def _try(python: str, wheel: Path, version: str, *packages: str) -> None:
    """Install the wheel in an empty environment, with these packages if given,
    and run the demo, its report and a recipe from an empty folder.
    """
    with tempfile.TemporaryDirectory() as folder:
        _run(python, "-m", "venv", f"{folder}/venv")
        _run(f"{folder}/venv/bin/python", "-m", "pip", "install", "--quiet", wheel, *packages)
        program = f"{folder}/venv/bin/imagenet-prep"
        said = subprocess.run(
            [program, "--version"], check=True, capture_output=True, text=True
        ).stdout
        if version not in said:
            sys.exit(f"{python}: expected version {version}, got {said}")
        _run(program, "demo", "demo-data", "--quiet", cwd=folder)
        _run(program, "report", "demo-data", "--quiet", cwd=folder)
        _run(program, "export", "folders", "demo-data", "images", "--quiet", cwd=folder)
        _run(program, "init", "images/train", "--quiet", cwd=folder)
        _run(program, "convert", "shards", "--config", "train.yaml", "--quiet", cwd=folder)
        kind = "the oldest packages" if packages else "the newest packages"
        print(f"{python}, {kind}: installed, demo, report and a recipe's shards made", flush=True)


def _run(*command: str | Path, cwd: str | Path = ROOT) -> None:
    print("$", *command, flush=True)
    subprocess.run(list(map(str, command)), check=True, cwd=cwd, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
