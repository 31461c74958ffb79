"""The manifest's own checksum: a change anywhere in it is seen,
is blamed on nothing else, and is made good.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from existing import existing
from made_sets import ENGINE, PART, converted, copied
from msgspec.structs import replace
from test_recipe_sets import made, make_flowers

from imagenet_prep import Layout, PrepError, convert, verify
from imagenet_prep.cli import cli
from imagenet_prep.demo.archives import MadeSet
from imagenet_prep.errors import InputError
from imagenet_prep.model import ProblemKind
from imagenet_prep.pipeline import verify_and_repair
from imagenet_prep.recipes.recipe_set import RecipeSet
from imagenet_prep.registry import ILSVRC2012
from imagenet_prep.state.manifest import SplitTotals, load_manifest


def other_digit(found: re.Match[str]) -> str:
    """The same text with another last digit."""
    return found[1] + ("1" if found[2] == "0" else "0")


RECIPE = "source: {folders: flowers}\nshards: 3\nrecord: {image: encoded, label: label}\n"
CHANGES: dict[str, tuple[str, str | Callable[[re.Match[str]], str]]] = {
    "digit-of-names-and-sizes": (r'("names_and_sizes": ")(\w)', other_digit),
    "digit-of-a-shard": (r'("digest": ")(\w)', other_digit),
    "setting": (r'"seed": 12345', '"seed": 12346'),
    "shard-key": (r'"train-00001-of-(\d+)": \{', r'"train-00002-of-\1": {'),
    "version": (r'"version": "0', '"version": "1'),
    "schema": ('"schema": 1', '"schema": 2'),
    "crc": (r'("crc": ")(\w)', other_digit),
    "key-of-the-crc": ('"crc"', '"crd"'),
    "promised-values": ('"values": 1', '"values": 2'),
    "promised-kind": ('"kind": "int64"', '"kind": "int65"'),
    "feature-key": (r'"label": \{(\s+"kind")', r'"labem": {\1'),
}
"""What is damaged: a pattern in the text of a manifest, and what is put in its place, once."""

OF_A_RECIPE = ("promised-values", "promised-kind", "feature-key")
CASES = [
    (kind, name)
    for kind in ("imagenet", "recipe")
    for name in CHANGES
    if kind == "recipe" or name not in OF_A_RECIPE
]


@pytest.fixture(scope="module")
def imagenet(tmp_path_factory: pytest.TempPathFactory, made_tiny: MadeSet) -> Layout:
    """A set of ImageNet. Read only."""
    return converted(tmp_path_factory.mktemp("crc") / "data", made_tiny)


@pytest.fixture
def layout(request: pytest.FixtureRequest, tmp_path: Path, imagenet: Layout) -> Layout:
    """A set of ImageNet, or one of a recipe."""
    return (
        copied(imagenet, tmp_path / "data")
        if request.param == "imagenet"
        else of_a_recipe(tmp_path)
    )


of_either = pytest.mark.parametrize("layout", ["imagenet", "recipe"], indirect=True)


def of_a_recipe(folder: Path, recipe: str = RECIPE) -> Layout:
    """A set that was made by a recipe."""
    make_flowers(folder / "flowers", 1)
    return made(folder, recipe)


def made_again(layout: Layout) -> int:
    """How many shards the same conversion makes again."""
    path = layout.data_dir.parent / "recipe.yaml"
    dataset = RecipeSet.read(path) if path.exists() else ILSVRC2012
    return sum(split.made for split in convert(layout, ENGINE, PART, dataset=dataset).splits)


def damage(layout: Layout, name: str) -> bytes:
    """Damage the manifest; what it was before."""
    before, (pattern, replacement) = layout.manifest_path.read_bytes(), CHANGES[name]
    text, count = re.subn(pattern, replacement, before.decode(), count=1)
    assert count == 1
    layout.manifest_path.write_text(text)
    return before


def state(layout: Layout) -> dict[str, bytes]:
    """Every shard and index, the journal and the manifest."""
    paths = [*existing(layout.output_dir, "*-of-*"), *existing(layout.index_dir, "*")]
    return {
        path.name: path.read_bytes() for path in (*paths, layout.journal_path, layout.manifest_path)
    }


# what is damaged ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("layout", "name"), CASES, indirect=["layout"])
def test_a_damaged_manifest_is_blamed(
    layout: Layout, name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """Verify blames nothing else, at any depth; repair changes nothing by it;
    the same convert writes it again.
    """
    sound = damage(layout, name)
    damaged = state(layout)
    for depth in ("quick", "full"):
        try:
            words = ["verify", str(layout.data_dir), "--depth", depth]
            code, said = cli.main(words, standalone_mode=False), "".join(capfd.readouterr())
            problems = verify(layout, ENGINE, depth=depth).problems  # type: ignore[arg-type]
            assert [(each.kind, each.subject) for each in problems] == [
                (ProblemKind.BAD_MANIFEST, "manifest.json")
            ]
        except PrepError as error:
            code, said = error.exit_code, "\n".join(error.lines)
        assert code in (3, 4)
        assert "manifest.json" in said
        assert "run the same imagenet-prep convert again" in said
    with pytest.raises(InputError) as caught:
        verify_and_repair(layout, ENGINE)
    assert str(layout.manifest_path) in caught.value.what
    assert "run the same imagenet-prep convert again" in caught.value.hint
    assert state(layout) == damaged
    assert made_again(layout) == 0
    assert layout.manifest_path.read_bytes() == sound
    assert verify(layout, ENGINE).problems == ()


def test_no_digit_and_no_letter_of_a_manifest_can_change(tmp_path: Path) -> None:
    """Every third of them exchanged for another one:
    verify says that something is wrong, every time.
    """
    layout = of_a_recipe(tmp_path, RECIPE.replace("shards: 3", "shards: 1"))
    content, passed, tried = layout.manifest_path.read_bytes(), [], 0
    for position, byte in enumerate(content):
        if not chr(byte).isalnum() or position % 3:
            continue
        tried += 1
        other = byte - 1 if chr(byte) in "9zZ" else byte + 1
        layout.manifest_path.write_bytes(
            content[:position] + bytes([other]) + content[position + 1 :]
        )
        if not verify(layout, ENGINE, depth="quick").problems:
            passed.append(position)
    assert passed == []
    assert tried > 200
    layout.manifest_path.write_bytes(content)
    assert verify(layout, ENGINE).problems == ()


Head = dict[str, dict[str, dict[str, int]]]

FORGED: dict[str, tuple[str, Callable[[Head], object]]] = {
    "no-sources": ("sources", lambda head: head["sources"].clear()),
    "another-source": ("sources", lambda head: head["sources"]["train"].update(images=99)),
    "one-more-expected": (
        "expect",
        lambda head: head["totals"]["train"].update(expected=1_281_168),
    ),
    "one-class-more": (
        "number of train classes",
        lambda head: head["totals"]["train"].update(classes=99),
    ),
    "another-seed": ("seed|order", lambda head: head["settings"].update(seed=1, order={})),
}


@of_either
@pytest.mark.parametrize("has_plan", [True, False])
@pytest.mark.parametrize("name", FORGED)
def test_a_forged_manifest_with_the_right_crc(layout: Layout, name: str, has_plan: bool) -> None:
    """Sources, expected totals and settings are compared with the plan,
    the shards, and what was published.
    """
    manifest = load_manifest(layout.manifest_path)
    head = json.loads(json.dumps(manifest._head()))
    split = next(iter(head["totals"]))
    words, forge = FORGED[name]
    named = {part: {"train": head[part][split]} for part in ("sources", "totals")}
    forge({**head, **named} if name != "no-sources" else head)
    totals = {each: SplitTotals(**values) for each, values in head["totals"].items()}
    forged = replace(manifest, sources=head["sources"], totals=totals, settings=head["settings"])
    forged.save(layout.manifest_path)
    if not has_plan:
        layout.plan_path.unlink()
        if name in ("another-seed", "one-class-more"):
            return  # nothing but the plan tells the one, nothing but the shards the other
    try:
        problems = verify(layout, ENGINE).problems
        said = ", ".join(each.detail for each in problems if each.kind is ProblemKind.BAD_MANIFEST)
    except InputError as error:
        said = error.what
    assert re.search(words, said)
    if has_plan:
        with pytest.raises(InputError, match=r"manifest\.json") as caught:
            verify_and_repair(layout, ENGINE)
        assert "differ" in str(caught.value)
