"""The wheel, installed in an empty environment and run from an empty folder, finds its tables."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest
from existing import existing

from imagenet_prep.demo.archives import MadeSet
from imagenet_prep.version import describe_version, find_commit

ROOT = Path(__file__).parents[1]


@pytest.mark.packaging
def test_an_installed_wheel_finds_its_tables(tmp_path: Path, made_tiny: MadeSet) -> None:
    """annotate, convert and verify work from a wheel that was built from the sdist,
    far from the source tree.
    """
    wheels = tmp_path / "wheels"
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run(
        [sys.executable, "-m", "build", "--outdir", wheels, ROOT],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    (wheel,) = wheels.glob("imagenet_prep-*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "imagenet_prep/ilsvrc2012/data/imagenet_lsvrc_2015_synsets.txt" in names
    assert "imagenet_prep/ilsvrc2012/imagenet.yaml" in names
    reporting = ROOT / "imagenet_prep/reporting"
    assets = [
        path for path in existing(reporting, "**/*") if path.suffix in (".html", ".css", ".js")
    ]
    assert {str(path.relative_to(ROOT)) for path in assets} <= set(names)
    commit = find_commit(ROOT / "imagenet_prep")
    assert ("imagenet_prep/commit.txt" in names) == bool(commit)
    assert not [name for name in names if name.startswith(("tests/", "data/"))]
    environment = tmp_path / "venv"
    venv.create(environment, with_pip=False)
    python = environment / "bin" / "python"
    # Its dependencies are borrowed from this environment; the package itself can only come from the
    # wheel.
    subprocess.run(
        [*pip, "--python", python, "install", "--no-compile", "--no-deps", wheel], check=True
    )
    site = subprocess.run(
        [python, "-c", "import site; print(site.getsitepackages()[0])"],
        capture_output=True,
        text=True,
    )
    borrowed = tmp_path / "borrowed"
    _borrow(borrowed)
    (Path(site.stdout.strip()) / "borrowed.pth").write_text(f"{borrowed}\n")
    data_dir = tmp_path / "data"
    (data_dir / "raw-data").mkdir(parents=True)
    for archive in made_tiny.archives.values():
        os.link(archive, data_dir / "raw-data" / archive.name)
    empty = tmp_path / "empty"
    empty.mkdir()
    command = environment / "bin" / "imagenet-prep"
    clean = {
        name: value for name, value in os.environ.items() if name != "PYTHONPATH"
    }  # it would win over the wheel
    for arguments in (
        ("annotate", data_dir),
        (
            "convert",
            data_dir,
            "--allow-incomplete",
            "--train-shards",
            "8",
            "--validation-shards",
            "8",
        ),
        ("verify", data_dir),
    ):
        result = subprocess.run(
            [command, *arguments], cwd=empty, env=clean, capture_output=True, text=True
        )
        assert result.returncode == 0, result.stderr
    shown = subprocess.run(
        [command, "--version"], cwd=empty, env=clean, capture_output=True, text=True
    )
    assert shown.stdout == f"imagenet-prep, version {describe_version()}\n"
    where = [python, "-c", "import imagenet_prep; print(imagenet_prep.__file__)"]
    assert (
        str(environment)
        in subprocess.run(where, cwd=empty, env=clean, capture_output=True, text=True).stdout
    )


def _borrow(folder: Path) -> None:
    """Links to this environment's packages, all but our own."""
    folder.mkdir()
    site = next(Path(entry) for entry in sys.path if entry.endswith("site-packages"))
    for path in existing(site, "*"):
        if "imagenet_prep" not in path.name and path.suffix != ".pth":
            (folder / path.name).symlink_to(path)
