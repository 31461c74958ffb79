"""A link that leads to itself, as each path of a command: it is refused, never a traceback."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_folders import picture
from made_tars import save
from running import command_here, error_lines, prep_here

CALLS = (
    "convert loop --config r.yaml",
    "convert loop/below --config r.yaml",
    "convert loop",
    "convert loop/raw-data",
    "convert new --raw loop",
    "convert new --config loop",
    "convert new --config r.yaml --raw loop",
    "convert new --config r.yaml --output loop",
    "convert new --config r.yaml --json loop",
    "convert new --config r.yaml --log-file loop",
    "download loop",
    "download loop/below",
    "untar loop",
    "annotate loop",
    "annotate new --raw loop",
    "annotate new --raw loop --boxes loop",
    "run loop",
    "verify loop",
    "verify --raw loop",
    "verify new --config loop",
    "status loop",
    "report loop",
    "report set --output loop/page.html",
    "diff loop loop",
    "repair loop",
    "repair set --raw loop",
    "show loop",
    "merge loop",
    "export folders loop out",
    "export folders set loop",
    "export parquet set loop/below",
    "init loop",
    "init flowers --names loop",
    "init flowers --output loop/r.yaml",
    "demo loop",
)


@pytest.fixture
def places(tmp_path: Path) -> Path:
    """Flowers, their recipe and set, and a loop."""
    for name in ("cat/1.jpg", "dog/2.jpg"):
        save(tmp_path / "flowers" / name, picture(name))
    (tmp_path / "r.yaml").write_text("source: {folders: flowers}\n")
    (tmp_path / "loop").symlink_to("loop")
    return tmp_path


@pytest.mark.parametrize("call", CALLS)
def test_a_loop_of_links_is_refused(places: Path, call: str) -> None:
    """The message names it."""
    if " set" in call:
        command_here("convert", "set", "--config", "r.yaml", cwd=places)
    ran = prep_here(*call.split(), cwd=places)
    assert ran.returncode != 0
    assert "Traceback" not in ran.stderr
    assert "bug" not in ran.stderr
    assert "loop" in " ".join(error_lines(ran))


@pytest.mark.parametrize("target", ["loop", "nowhere"])
def test_init_replaces_no_link(places: Path, target: str) -> None:
    """A link that leads nowhere stays as it is."""
    link = places / "link"
    link.symlink_to(target)
    ran = command_here("init", "flowers", "--output", "link", cwd=places, status=2)
    assert error_lines(ran)[0] == "error: link is a broken link"
    assert link.is_symlink()


def test_init_makes_no_file_called_by_a_dash(places: Path) -> None:
    """--output is a file, not the standard output."""
    ran = command_here("init", "flowers", "--output", "-", cwd=places, status=2)
    assert error_lines(ran)[:2] == ["error: --output -", "expected the name of a file"]
    assert not (places / "-").exists()
