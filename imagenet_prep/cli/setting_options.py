"""settings_for: the options of settings, derived from their declarations; and their values."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from types import NoneType, UnionType
from typing import Any, Literal, get_args, get_origin

import click
from msgspec import Meta

from imagenet_prep.cli.base_command import RareOption
from imagenet_prep.cli.option_types import Number, OneOf
from imagenet_prep.cli.options import F, all_of
from imagenet_prep.datasets.declarations import Setting, settings_of
from imagenet_prep.ilsvrc2012.settings import ConvertOptions


def settings_for(command: str) -> Callable[[F], F]:
    """The options of all settings that a command has one for,
    and ``--set`` for the other settings.
    """
    options: list[Callable[[F], F]] = []
    names_without_option: list[str] = []
    for setting in settings_of(ConvertOptions):
        if command in setting.options:
            option = _option_of(setting)
            options.append(option)
        else:
            names_without_option.append(setting.name)
    other_names = ", ".join(names_without_option)
    set_option = click.option(
        "--set",
        "texts",
        cls=RareOption,
        metavar="NAME=VALUE",
        multiple=True,
        help=f"Change another setting: {other_names}.",
    )
    return all_of(*options, set_option)


def _option_of(setting: Setting) -> Callable[[F], F]:
    option_class = None
    if setting.is_rare:
        option_class = RareOption
    attributes = _as_click(setting)
    return click.option(_flag(setting), cls=option_class, **attributes)


def settings_of_call(params: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that the options of a call and ``--set`` give, by name.

    Raises:
        UsageError: ``--set`` names an unknown setting, or a value that is invalid for it.
    """
    from imagenet_prep.datasets.declarations import read_settings

    settings: dict[str, Any] = {}
    for setting in settings_of(ConvertOptions):
        if setting.name in params:
            settings[setting.name] = params[setting.name]
    from_texts = read_settings(ConvertOptions, params["texts"])
    return settings | from_texts


def written_options(context: click.Context, names: Collection[str]) -> Iterator[str]:
    """The options of these settings in a call, as the user wrote them."""
    for setting in settings_of(ConvertOptions):
        if setting.name in names:
            source = context.get_parameter_source(setting.name)
            if source is click.core.ParameterSource.COMMANDLINE:
                yield _flag(setting)
    for text in context.params["texts"]:
        name, _, _ = text.partition("=")
        if name in names:
            yield f"--set {text}"


def _flag(setting: Setting) -> str:
    words = setting.name.replace("_", "-")
    return f"--{words}"


def _as_click(setting: Setting) -> dict[str, Any]:
    """The arguments of click.option for the setting's type."""
    attributes = {"default": setting.default, "help": setting.words}
    plain, bounds = _plain_type(setting.type)
    if plain is bool:
        attributes["is_flag"] = True
        return attributes
    attributes["show_default"] = setting.default is not None
    if get_origin(plain) is Literal:
        words = get_args(plain)
        attributes["type"] = OneOf(words, case_sensitive=False)
    elif plain is int:
        attributes["type"] = Number(bounds.get("ge"), bounds.get("le"))
    else:
        attributes["metavar"] = "FILE|NAME"
    return attributes


def _plain_type(annotated: Any) -> tuple[Any, dict[str, int]]:
    """A type without None and annotations; and its bounds."""
    bounds: dict[str, int] = {}
    while True:
        metadata = getattr(annotated, "__metadata__", ())
        constraints = [annotation for annotation in metadata if isinstance(annotation, Meta)]
        for constraint in constraints:
            bounds |= _bounds_of(constraint)
        parts = get_args(annotated)
        is_union = NoneType in parts or isinstance(annotated, UnionType)
        if constraints:
            annotated = annotated.__origin__
        elif is_union:
            annotated = next(part for part in parts if part is not NoneType)
        else:
            return annotated, bounds


def _bounds_of(constraint: Meta) -> dict[str, Any]:
    bounds = {"ge": constraint.ge, "le": constraint.le}
    return {name: bound for name, bound in bounds.items() if bound is not None}
