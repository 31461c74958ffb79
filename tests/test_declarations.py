"""Each setting is declared once: options, keys of recipes,
what is recorded and the command to run again follow.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from imagenet_prep.cli.commands import load_commands
from imagenet_prep.datasets.declarations import read_settings, recipe_keys, settings_of
from imagenet_prep.errors import UsageError
from imagenet_prep.ilsvrc2012.settings import ConvertOptions
from imagenet_prep.recipes.loading import read
from imagenet_prep.registry import imagenet_options

SETTINGS = {each.name: each for each in settings_of(ConvertOptions)}
OTHER = {
    "compression": "gzip",
    "seed": 7,
    "shuffle": False,
    "check": "header",
    "resize": 8,
    "max_side": 9,
    "quality": 80,
    "on_damaged": "skip",
    "read_order": "sequential",
    "memory": 1 << 20,
    "overwrite": True,
    "consume": True,
    "classes": "imagenette",
    "relabel": 0,
    "train_shards": 3,
    "validation_shards": 2,
    "validation_boxes": True,
    "allow_incomplete": True,
}
"""Another value than the default, of every setting."""
every_setting = pytest.mark.parametrize("name", SETTINGS)


def test_every_setting_has_words_and_another_value() -> None:
    """A new one needs a line in the table above."""
    assert OTHER.keys() == SETTINGS.keys()
    assert all(
        each.words.endswith(".") and each.default != OTHER[each.name] for each in SETTINGS.values()
    )


@every_setting
def test_the_command_to_run_again_reads_as_the_same_settings(name: str) -> None:
    """As an option of convert, or with --set."""
    options = ConvertOptions(**{name: OTHER[name]})
    ((option, value),) = options.chosen()
    found = read_settings(ConvertOptions, [value]) if option == "set" else {option: value}
    assert found == {name: OTHER[name]}
    assert ConvertOptions().chosen() == ()


@every_setting
@pytest.mark.parametrize("command", ["run", "convert"])
def test_options_are_those_that_are_declared(name: str, command: str) -> None:
    """With the default that is declared."""
    found = {each.name: each for each in load_commands()[command].params}
    assert (name in found) == (command in SETTINGS[name].options)
    if name in found:
        assert found[name].default == SETTINGS[name].default


@pytest.mark.parametrize(
    "name", [each.name for each in recipe_keys(ConvertOptions) if "_shards" not in each.name]
)
def test_a_recipe_of_imagenet_says_every_setting(name: str, tmp_path: Path) -> None:
    """By the name of the declaration; shards by split."""
    path = tmp_path / "r.yaml"
    value = str(OTHER[name]).lower() if isinstance(OTHER[name], bool) else OTHER[name]
    path.write_text(f"source: {{imagenet: true}}\nshards: {{train: 3}}\n{name}: {value}\n")
    assert imagenet_options(read(path)) == ConvertOptions(train_shards=3, **{name: OTHER[name]})


@pytest.mark.parametrize(
    "text", ["seed", "seed=x", "sead=1", "quality=101", "compression=zip", "overwrite=perhaps"]
)
def test_what_is_no_setting_is_refused(text: str) -> None:
    """With the names that there are, or what was expected."""
    with pytest.raises(UsageError, match=re.escape(f"--set {text}")):
        read_settings(ConvertOptions, [text])


def test_what_decides_bytes_is_recorded() -> None:
    """Of each record in fingerprints, of the set in the manifest; what is not set stays out."""
    assert ConvertOptions().fingerprinted() == {"format": 1, "compression": "none"}
    more = {"seed": 12345, "shuffle": True, "validation_boxes": False}
    assert ConvertOptions().settings() == {"format": 1, "compression": "none", **more}
    encoded = ConvertOptions(resize=8, relabel=0).fingerprinted()
    assert encoded.keys() == {"format", "compression", "reencode", "labels"}
    assert encoded["reencode"].keys() == {"resize", "max_side", "quality", "codec"}
