"""Settings: how shards are made. Each is declared once, with its type, bounds, default and help.

These declarations define the options of the command line, the keys of a recipe, the settings in a
manifest, and the command to run again. To add a setting, add a field to the class of its data set.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct

from imagenet_prep.datasets.expectations import expected_words
from imagenet_prep.datasets.order import SEED
from imagenet_prep.errors import UsageError
from imagenet_prep.escaping import OptionValues
from imagenet_prep.images.pixels import QUALITY, Reencode, codec
from imagenet_prep.model import OnDamaged
from imagenet_prep.storage.layout import MAX_SHARDS
from imagenet_prep.text import SIZES, nearest_words, parse_size
from imagenet_prep.tfrecord.compression import Compression

S = TypeVar("S", bound="CommonSettings")

Pixels = Annotated[int, Meta(ge=1)]
Shards = Annotated[int, Meta(ge=1, le=MAX_SHARDS)]


def about(
    words: str,
    *,
    decides: Literal["", "records", "set"] = "",
    options: tuple[str, ...] = (),
    only_with: Literal["", "images", "boxes"] = "",
    is_rare: bool = False,
    is_size: bool = False,
) -> Meta:
    """The metadata of a setting.

    Args:
        words: its help.
        decides: whether it decides the bytes of each record, or only of the set, by their order.
            Both are recorded.
        options: the commands with an option for it; any other accepts it as ``--set``.
        only_with: what a recipe must have for it: image files, or boxes of them; "" for any.
        is_rare: whether only --help-all shows its option.
        is_size: whether it is a number of bytes, which may be written with a unit: 100MB.
    """
    extra = {
        "decides": decides,
        "options": options,
        "only_with": only_with,
        "is_rare": is_rare,
        "is_size": is_size,
    }
    return Meta(description=words, extra=extra)


class CommonSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """Settings of every data set, as options and as keys of a recipe."""

    compression: Annotated[Compression, about("Compression of each shard.", decides="records")] = (
        "none"
    )
    seed: Annotated[int, about("Seed of the shuffle.", decides="set")] = SEED
    shuffle: Annotated[
        bool, about("Shuffle the images instead of keeping their order.", decides="set")
    ] = True
    check: Annotated[
        Literal["auto", "header", "decode", "strict"],
        about(
            "Check headers, or decode every image; auto: decode, "
            "unless the archive's published MD5 was verified; "
            "strict: decode, and refuse images with odd headers too.",
            options=("convert",),
            only_with="images",
            is_rare=True,
        ),
    ] = "auto"
    resize: Annotated[
        Pixels | None,
        about(
            "Encode all images again, shrunk to this shorter side in pixels.",
            options=("convert",),
            only_with="images",
        ),
    ] = None
    max_side: Annotated[
        Pixels | None,
        about(
            "Encode all images again, shrunk to at most this longer side in pixels.",
            only_with="images",
        ),
    ] = None
    quality: Annotated[
        Annotated[int, Meta(ge=1, le=100)] | None,
        about(
            "Encode every image again, as a JPEG of this quality.",
            options=("convert",),
            only_with="images",
            is_rare=True,
        ),
    ] = None
    on_damaged: Annotated[
        OnDamaged,
        about(
            "Refuse damaged images, or leave them out; the exit status is then 3.",
            options=("run", "convert"),
        ),
    ] = "refuse"
    read_order: Annotated[
        Literal["auto", "shuffled", "sequential"],
        about(
            "Read images one by one, or the archive in one pass; auto: "
            "whichever is faster on this storage."
        ),
    ] = "auto"
    memory: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        about(
            "Memory for reading in one pass, such as 2GB (default: a quarter of the free memory).",
            is_size=True,
        ),
    ] = None

    @property
    def reencode(self) -> Reencode | None:
        """How images are encoded again; None if they are kept."""
        if self.resize is None and self.max_side is None and self.quality is None:
            return None
        quality = QUALITY if self.quality is None else self.quality
        return Reencode(self.resize, self.max_side, quality)

    def replace(self: S, **changes: Any) -> S:
        """The same settings with some changes."""
        return msgspec.structs.replace(self, **changes)

    def deciding(self, *sorts: str) -> dict[str, Any]:
        """The settings that decide bytes of ``sorts``, by name, as in fingerprints and manifests.

        None is left out.
        """
        deciding: dict[str, Any] = {}
        for setting in settings_of(type(self)):
            setting_value = getattr(self, setting.name)
            if setting.decides in sorts and setting_value is not None:
                deciding[setting.name] = setting_value
        if self.reencode is not None and "records" in sorts:
            deciding["reencode"] = {**msgspec.to_builtins(self.reencode), "codec": codec()}
        return deciding

    def chosen(self) -> OptionValues:
        """The settings that differ from the defaults, as options of convert.

        They are for the command to run again.
        """
        changed = self._changed()
        return tuple(
            setting.as_option(chosen_value)
            for setting, chosen_value in changed
            if chosen_value is not None
        )

    def _changed(self) -> Iterator[tuple[Setting, Any]]:
        for setting in settings_of(type(self)):
            setting_value = getattr(self, setting.name)
            if setting_value != setting.default:
                yield setting, setting_value


class MakingOptions(CommonSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of any data set's shards, and those of a single call."""

    overwrite: Annotated[
        bool,
        about(
            "Make shards again that were made with other settings.",
            options=("run", "convert"),
            is_rare=True,
        ),
    ] = False
    consume: Annotated[
        bool,
        about(
            "Need half the disk space: raw data gives its space to the shards, and is deleted.",
            options=("run", "convert"),
            is_rare=True,
        ),
    ] = False


class Setting(Struct, frozen=True):
    """One declaration: name, type, default, help; see ``about`` for the others."""

    name: str
    type: Any
    default: Any
    words: str
    decides: str
    options: tuple[str, ...]
    only_with: str
    is_rare: bool
    is_size: bool

    def as_option(self, setting_value: Any) -> tuple[str, Any]:
        """A value as an option of convert: one of its own, or ``--set``."""
        if "convert" in self.options:
            return self.name, setting_value
        if isinstance(setting_value, bool):
            setting_value = str(setting_value).lower()
        return "set", f"{self.name}={setting_value}"


@functools.cache
def settings_of(table: type[CommonSettings]) -> tuple[Setting, ...]:
    """The settings that a class declares, in order; fields without ``about`` are not settings."""
    settings: list[Setting] = []
    for field in msgspec.structs.fields(table):
        for meta in getattr(field.type, "__metadata__", ()):
            if meta.extra is not None:
                settings.append(
                    Setting(field.name, field.type, field.default, meta.description, **meta.extra)
                )
    return tuple(settings)


def recipe_keys(table: type[CommonSettings]) -> list[Setting]:
    """The settings that a recipe can have: all except those of a single call."""
    of_a_call = set(MakingOptions.__struct_fields__) - set(CommonSettings.__struct_fields__)
    return [setting for setting in settings_of(table) if setting.name not in of_a_call]


def read_settings(table: type[CommonSettings], texts: Iterable[str]) -> dict[str, Any]:
    """Settings by name from texts such as "seed=7".

    Raises:
        UsageError: the setting does not exist, or can't have this value.
    """
    settings = {setting.name: setting for setting in settings_of(table)}
    settings_by_name: dict[str, Any] = {}
    for text in texts:
        name, equals, value_text = text.partition("=")
        if name not in settings:
            expected = f"expected NAME=VALUE, with one of these names: {', '.join(settings)}"
            raise UsageError(f"--set {text}", expected, nearest_words(name, settings))
        if not equals:
            raise UsageError(f"--set {text} has no value", f"expected --set {name}=VALUE")
        settings_by_name[name] = _read_value(settings[name], value_text, text)
    return settings_by_name


def _read_value(setting: Setting, value_text: str, text: str) -> Any:
    """The value of a setting; raises UsageError for ``text`` if it can't have it."""
    if setting.name == "compression":
        value_text = value_text.lower()  # TensorFlow writes GZIP
    if setting.is_size:
        size = parse_size(value_text)
        if size is None:
            raise UsageError(f"--set {text}", SIZES)
        return size
    try:
        return msgspec.convert(value_text, setting.type, strict=False)
    except msgspec.ValidationError as error:
        raise UsageError(f"--set {text}", expected_words(str(error), setting.type)) from error
