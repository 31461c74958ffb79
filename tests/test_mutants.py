"""make mutants: every listed edit applies, and the script says of a mutant what became of it."""

from __future__ import annotations

import importlib
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = pytest.mark.project

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def mutants(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    return importlib.import_module("mutants")


def test_every_listed_mutant_applies(mutants: ModuleType) -> None:
    """Each old text is in its file once, each edited file is Python, and each test named is there."""
    listed = mutants.load_mutants(ROOT)
    assert len(listed) >= 150
    mutants.check_mutants(ROOT, listed)
    for mutant in listed:
        for test in mutant.tests:
            path, _, name = test.partition("::")
            assert (ROOT / path).is_file(), mutant
            assert not name or f"def {name.partition('[')[0]}(" in (ROOT / path).read_text(), mutant


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of one function, with a test that looks at one of its two bounds."""
    root = tmp_path / "project"
    (root / "scripts" / "mutants").mkdir(parents=True)
    (root / "inside.py").write_text(
        "def inside(value):\n    while value > 100:\n        value -= 1\n    return 0 <= value < 10\n"
    )
    (root / "test_inside.py").write_text(
        "from inside import inside\n\n\ndef test_low():\n    assert inside(0) and not inside(-1) and not inside(101)\n"
    )
    subprocess.run(["git", "init", "--quiet", str(root)], check=True)
    return root


def _list(project: Path, *edits: tuple[str, str], reason: str | None = None, test: str = "test_low") -> None:
    entries = [
        f"- {{name: edit-{number}, file: inside.py, old: '{old}', new: '{new}', tests: ['test_inside.py::{test}']"
        + (f", equivalent: {reason}}}\n" if reason else "}\n")
        for number, (old, new) in enumerate(edits)
    ]
    (project / "scripts" / "mutants" / "one.yaml").write_text("".join(entries))


def test_killed_and_surviving_mutants_are_told_apart(
    mutants: ModuleType, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A bound that the test looks at is killed, one that it doesn't survives, and that is exit status 1."""
    before = (project / "inside.py").read_bytes()
    _list(project, ("0 <= value", "0 < value"), ("value < 10", "value <= 10"), ("0 <= value", "-1 <= value"))
    assert mutants.main([], project) == 1
    lines = capsys.readouterr().out.splitlines()
    assert {"killed      one: edit-0", "survived    one: edit-1", "killed      one: edit-2"} <= set(lines)
    assert lines[-2:] == ["one: edit-1: no test notices it", "    inside.py: 'value < 10' -> 'value <= 10'"]
    assert "all                   3           2           0           1           0           0           0" in lines
    assert (project / "inside.py").read_bytes() == before, "the working tree is left alone"
    assert mutants.main(["--only", "edit-0,edit-2"], project) == 0


def test_a_mutant_that_hangs_is_killed(
    mutants: ModuleType, project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A loop that doesn't end is ended, and counts as noticed."""
    monkeypatch.setattr(mutants, "_GRACE", 3.0)
    _list(project, ("value -= 1", "value += 1"))
    assert mutants.main([], project) == 0
    assert "timed out   one: edit-0" in capsys.readouterr().out


def test_an_equivalent_mutant_gives_its_reason(
    mutants: ModuleType, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One that survives as was said is fine, though no more than 5% are; one that is killed after all is not."""
    _list(project, ("value > 100", "value >= 100"), reason="100 is outside either way")
    assert mutants.main(["--only", "one"], project) == 0
    assert mutants.main([], project) == 1, "all of them survive"
    _list(project, ("0 <= value", "0 < value"), reason="none at all")
    assert mutants.main(["--only", "one"], project) == 1
    assert "edit-0: said to be equivalent, and a test notices it" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("edit", "test", "says"),
    [
        (("value", "number"), "test_low", "its old text is 4 times in inside.py"),
        (("no such text", "other"), "test_low", "its old text is 0 times in inside.py"),
        (("value < 10", "value <"), "test_low", "inside.py would be no Python"),
        (("value < 10", "value < 10"), "test_low", "its new text is its old text"),
        (("value < 10", "value < 9"), "test_other", "pytest ends with status 4 without any edit"),
    ],
)
def test_a_mutant_that_can_not_be_tried_is_an_error(
    mutants: ModuleType, project: Path, edit: tuple[str, str], test: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """An entry that code or tests have moved away from is named, and nothing counts as killed by it."""
    _list(project, edit, ("0 <= value", "0 < value"), test=test)
    assert mutants.main([], project) == 1
    captured = capsys.readouterr()
    assert says in captured.err
    assert "killed" not in captured.out
    if test == "test_low":
        assert mutants.main(["--only", "edit-1"], project) == 0, "others can still be tried"


def test_tests_must_pass_before_anything_is_edited(
    mutants: ModuleType, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A test that fails anyway, or is skipped, would kill every mutant or none."""
    _list(project, ("value < 10", "value <= 10"))
    test = project / "test_inside.py"
    for body, says in (("assert False", "failure"), ("pytest.skip('not here')", "skipped")):
        test.write_text(f"import pytest\n\n\ndef test_low():\n    {body}\n")
        assert mutants.main([], project) == 1
        out = capsys.readouterr().out
        assert f"test_inside.py::test_low: {says}" in out
        assert "untried     one: edit-0" in out
