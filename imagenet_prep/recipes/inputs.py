"""Inputs: the files of a recipe's source, listed;
and where a recipe may write: its shards, and a manifest.
"""

from __future__ import annotations

import itertools
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from imagenet_prep.datasets import order
from imagenet_prep.errors import InputError, all_of
from imagenet_prep.model import Engine
from imagenet_prep.recipes import rules
from imagenet_prep.recipes.labels_file import LabelTable
from imagenet_prep.recipes.recipe_file import Key, RecipeFile, shortened
from imagenet_prep.recipes.row_marks import RowMarks
from imagenet_prep.recipes.row_source import Rows
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.sources.folders import list_folder, list_matching, look_up, read_file_list
from imagenet_prep.sources.names import below
from imagenet_prep.sources.patterns import compile_pattern, is_pattern, split_pattern
from imagenet_prep.sources.remarks import Remarks, missing_shards
from imagenet_prep.sources.skipped import Skipped
from imagenet_prep.sources.tars import list_tars
from imagenet_prep.storage.files import kind_of
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import AnyPath, local_or_none

ROOT_VARIABLE = "DATAPATH"


P = TypeVar("P", bound=AnyPath)


class ManifestFile(Struct, frozen=True):
    """A manifest that is still to be made: ``names`` in their order, one a line.

    With ``paths``, by split, each split gets one of its own in its place. ``lead`` is what comes
    before the name of a file in the listing.
    """

    path: AnyPath
    names: tuple[str, ...]
    paths: Mapping[str, AnyPath] = {}
    lead: str = ""


class Inputs(Struct, frozen=True):
    """The files of a recipe.

    Args:
        listing: all of them; names are relative to ``base``, or to their archive.
        remarks: what there is to say of the listing.
        base: the folder they are in.
        origin: the folder, archive or manifest that the recipe names, for the record.
        is_ordered: whether their order is that of a manifest.
        has_folders: whether their folders may be classes and splits.
        manifest: one that is to be made of them.
        divided: the rows of each split, where manifests of their own say so.
        given: the splits that the source has, the first folders of all names.
        table: the labels that the source has, and where it is.
        marks: the boxes and masks that the source has; None if it can't have any.
        notes: what is not read, as text.
    """

    listing: Catalog
    remarks: Remarks
    base: Path
    origin: AnyPath
    is_ordered: bool = False
    has_folders: bool = False
    manifest: ManifestFile | None = None
    divided: Mapping[str, range] = {}
    given: Sequence[str] = ()
    table: tuple[LabelTable, AnyPath] | None = None
    marks: RowMarks | None = None
    notes: Sequence[str] = ()

    @property
    def obstacles(self) -> list[InputError]:
        """The obstacles found so far: raised together, so that one run names all of them."""
        return self.remarks.obstacles


def data_root(file: RecipeFile, root: Path | None) -> Path:
    """The folder of relative paths: ``root``, or DATAPATH of the environment, or the recipe's own
    folder.

    Raises:
        InputError: it is not there.
    """
    named = os.environ.get(ROOT_VARIABLE)
    found = root or (Path(named) if named else file.path.parent)
    if kind_of(found) != "folder":
        said = "--raw" if root else f"{ROOT_VARIABLE} of the environment"
        raise InputError(
            f"{found} is not there", f"expected the folder of the data, as {said} names it"
        )
    return Path(os.path.abspath(found))  # noqa: PTH100 - resolve() would follow links, and names would change


def is_root_named(root: object) -> bool:
    """Whether ``root`` or DATAPATH says what is put before relative paths:
    the recipe alone doesn't tell then.
    """
    return root is not None or bool(os.environ.get(ROOT_VARIABLE))


def find_inputs(
    file: RecipeFile,
    root: Path,
    engine: Engine,
    *,
    layout: Layout | None = None,
    is_raw: bool = False,
) -> Inputs:
    """List the files of a recipe's source.

    Args:
        file: the recipe.
        root: the folder of relative paths.
        engine: lists files.
        layout: where the shards go.
        is_raw: whether nothing may be written below ``root``.

    Raises:
        InputError: there are none, or they can't be read; the error names file, line or path.
        UsageError: a pattern is none.
    """
    source = file.recipe.source
    key: Key = ("source",)
    if source is None:
        key, found = ("input_file_pattern",), _classic(file, root, engine, layout, is_raw=is_raw)
    else:
        name = next(name for name in rules.source_keys() if getattr(source, name) is not None)
        key = ("source", name)
        found = _SOURCES[name](file, key, root, engine)
    if not len(found.listing):
        if found.obstacles:
            raise all_of(found.obstacles)
        raise InputError(f"{file.place(key)}: no files in {found.origin}", "expected at least one")
    return found


def _plain(file: RecipeFile, key: Key, root: Path, engine: Engine) -> Inputs:
    """The files of a folder, of patterns, or of a manifest."""
    texts = _texts(file, key)
    if key[-1] == "files":
        return _matching(file, key, texts, root, engine)
    if key[-1] == "manifest":
        return _listed(below(root, texts[0]), root, engine)
    base = need_path(file, key, below(root, texts[0]), "folder")
    return Inputs(*list_folder(base, engine), base, base, has_folders=True)


def _texts(file: RecipeFile, key: Key) -> list[str]:
    """The value of the recipe's source: one text, or several."""
    said = getattr(file.recipe.source, str(key[-1]))
    return [said] if isinstance(said, str) else list(said)


def need_path(file: RecipeFile, key: Key, path: P, expected: str = "file") -> P:
    """A file or a folder that the recipe names.

    Raises:
        InputError: it is not there.
    """
    kind = kind_of(path)
    if kind != expected:
        raise InputError(
            (
                f"{file.place(key)}: "
                f"{path} is {'not there' if kind == 'nothing' else f'not a {expected}'}"
            ),
            f"expected the {expected} that the recipe names",
            (
                f"paths are relative to --raw, else to {ROOT_VARIABLE} of the environment, "
                "else to the recipe"
            ),
        )
    return path


# patterns -----------------------------------------------------------------------------------------


def _matching(
    file: RecipeFile, key: Key, patterns: Sequence[str], root: Path, engine: Engine
) -> Inputs:
    """Files that match patterns; several patterns are taken together, from one folder."""
    based = [_based(file, key, pattern, root) for pattern in patterns]
    base = based[0][0]
    if strange := next((each for each, _ in based if each != base), None):
        raise file.fault(
            key,
            f"patterns from {base} and {strange}",
            "expected several patterns to be from one folder",
        )
    found = [_match(file, key, each, engine) for each in based]
    listing = found[0][0]
    if len(found) > 1:  # each file once
        joined = Catalog.join(each for each, _ in found)
        listing = joined.picked(np.delete(np.arange(len(joined)), [*joined.names.repeated()]))
    return Inputs(listing, Remarks.join(remarks for _, remarks in found), base, base)


def _match(
    file: RecipeFile, key: Key, based: tuple[Path, str], engine: Engine
) -> tuple[Catalog, Remarks]:
    base, rest = based
    found = list_matching(base, rest, engine)
    if not len(found[0]):
        raise InputError(
            f"{file.place(key)}: no file matches {base / rest}", "expected at least one"
        )
    return found


def _based(file: RecipeFile, key: Key, pattern: str, root: Path) -> tuple[Path, str]:
    """The folder from which a pattern's files are named (it exists), and the pattern from there."""
    base, rest = _parted(pattern, root)
    try:
        compile_pattern(pattern.removeprefix("./"))
    except ValueError as error:
        raise file.fault(key, f"{shortened(pattern)!r} is not a pattern", str(error)) from error
    need_path(file, key, below(base, split_pattern(rest)[0]), "folder")
    if ".." in rest.split("/"):
        raise file.fault(
            key,
            f"{shortened(pattern)!r} is not a pattern",
            "expected .. before the first special sign only",
        )
    return base, rest


def _parted(pattern: str, root: Path) -> tuple[Path, str]:
    """The folder from which a pattern's files are named, and the pattern from there.

    That is the root of the data, or, for a pattern that leads out of it, the folders before its
    first special sign.
    """
    pattern = pattern.removeprefix("./").removeprefix(f"{root.as_posix().rstrip('/')}/")
    if not pattern.startswith("/") and ".." not in pattern.split("/"):
        return root, pattern
    fixed, rest = split_pattern(pattern)
    return Path(os.path.normpath(below(root, fixed))), rest


# manifests ----------------------------------------------------------------------------------------


def _listed(path: AnyPath, base: Path, engine: Engine) -> Inputs:
    return Inputs(*look_up(read_file_list(path, base), base, engine), base, path, is_ordered=True)


def _classic(
    file: RecipeFile, root: Path, engine: Engine, layout: Layout | None, *, is_raw: bool
) -> Inputs:
    """What ``manifest_file`` names, if it is there;
    else what the pattern matches, shuffled, for it to be made.
    """
    recipe, pattern, key = file.recipe, file.recipe.input_file_pattern, ("manifest_file",)
    if recipe.manifest_file is None:
        assert pattern is not None
        return _matching(file, ("input_file_pattern",), [pattern], root, engine)
    path = find_manifest(recipe.manifest_file, root, layout)
    base = root if pattern is None else _parted(pattern, root)[0]
    base = base if base.is_dir() else root
    if kind_of(path) != "nothing":
        return _listed(need_path(file, key, path), base, engine)
    names = _names_by_split(file)
    parts = {split: find_manifest(name, root, layout) for split, name in names.items()}
    if there := [each for each in parts.values() if kind_of(each) != "nothing"]:
        return _listed_by_split(file, parts, there, base, engine)
    if pattern is None:
        hint = "name an input_file_pattern, and it is made"
        raise InputError(
            f"{file.place(key)}: {path} is not there", "expected a list of file names", hint
        )
    path = place_manifest(file, recipe.manifest_file, root, layout, is_raw=is_raw)
    parts = {
        split: place_manifest(file, name, root, layout, is_raw=is_raw)
        for split, name in names.items()
    }
    inputs = _matching(file, ("input_file_pattern",), [pattern], root, engine)
    found, base = inputs.listing, inputs.base
    if recipe.shuffle:
        found = found.picked(order.shuffled(len(found), recipe.seed))
    lead = "" if base == root else f"{base.as_posix().rstrip('/')}/"
    made = ManifestFile(path, tuple(lead + name for name in found.names), parts, lead)
    return replace(inputs, listing=found, origin=path, is_ordered=True, manifest=made)


def _names_by_split(file: RecipeFile) -> dict[str, str]:
    """The ``manifest_file`` of each split: m-train.txt, m-test.txt for m.txt.
    None where one holds all files.
    """
    if any(sort == "manifest" for sort, _ in rules.places_of(file).values()):
        return {}
    path = Path(file.recipe.manifest_file or "")
    return {
        split: str(path.with_name(f"{path.stem}-{split}{path.suffix}"))
        for split in file.recipe.splits or ()
    }


def _listed_by_split(
    file: RecipeFile,
    parts: Mapping[str, AnyPath],
    there: Sequence[AnyPath],
    base: Path,
    engine: Engine,
) -> Inputs:
    """The files of one manifest a split, which must all be there."""
    if gone := next((path for path in parts.values() if path not in there), None):
        what = f"{file.place(('manifest_file',))}: {gone} is not there, and {there[0].name} is"
        hint = "bring it back, or remove the others: all are made again"
        raise InputError(what, "expected a manifest of each split, or of none", hint)
    found = [look_up(read_file_list(path, base), base, engine) for path in parts.values()]
    edges = [0, *itertools.accumulate(len(listing) for listing, _ in found)]
    divided = {
        split: range(*each) for split, each in zip(parts, itertools.pairwise(edges), strict=True)
    }
    joined = Catalog.join((listing for listing, _ in found), is_listed=True)
    again = next((name for name, count in Counter(joined.names).items() if count > 1), None)
    if again is not None:
        places = [
            path.name
            for path, (listing, _) in zip(parts.values(), found, strict=True)
            if again in listing.names
        ]
        raise InputError(
            f"{again} is in {' and in '.join(places)}", "expected every file in one split"
        )
    remarks = Remarks.join(each for _, each in found)
    return Inputs(joined, remarks, base, there[0], is_ordered=True, divided=divided)


# tars ---------------------------------------------------------------------------------------------


def _tars(file: RecipeFile, key: Key, root: Path, engine: Engine) -> Inputs:
    """The files in the tars that the recipe names, or that match its patterns."""
    archives, base = _archives(file, key, _texts(file, key), root, engine)
    assert file.recipe.source is not None
    skipped = Skipped()
    listing = list_tars(
        archives, engine, folder_each=file.recipe.source.tar_folders, skipped=skipped
    )
    notes = [f"skipped in tars: {skipped.text}"] if skipped.entries else []
    origin = archives[0] if len(archives) == 1 else base
    return Inputs(listing, Remarks(), root, origin, has_folders=True, notes=notes)


def _samples(file: RecipeFile, key: Key, root: Path, engine: Engine) -> Inputs:
    """The images in files that have the labels too, perhaps by split."""
    from imagenet_prep.recipes.sample_sources import list_samples

    source, kind = file.recipe.source, str(key[-1])
    assert source is not None
    groups, base = _groups(file, key, root, engine)
    as_arrays = file.recipe.content == "array" or file.recipe.min_val is not None
    samples, splits = list_samples(kind, groups, engine, as_arrays=as_arrays)
    first = next(iter(groups.values()))[0]
    origin = first if sum(map(len, groups.values())) == 1 else base
    found = Inputs(samples.listing, Remarks(), root, origin, has_folders=True)
    table = samples.table(source.label, first), first
    return replace(
        found, given=splits, table=table, marks=samples.marks or None, notes=samples.passed
    )


def _groups(
    file: RecipeFile, key: Key, root: Path, engine: Engine
) -> tuple[dict[str, list[Path]], Path]:
    """The files that the recipe names by split ("":
    of no split), and the folder where patterns start.
    """
    said = getattr(file.recipe.source, str(key[-1]))
    groups, base = {}, root
    for split, texts in (said if isinstance(said, dict) else {"": said}).items():
        several = [texts] if isinstance(texts, str) else texts
        groups[split], base = _archives(
            file, (*key, split) if split else key, several, root, engine
        )
    return groups, base


# rows ---------------------------------------------------------------------------------------------


def _tables(file: RecipeFile, key: Key, root: Path, engine: Engine) -> Inputs:
    """The images that the rows of tables name."""
    from imagenet_prep.recipes.row_tables import read_tables

    groups, base = _groups(file, key, root, engine)
    paths = [path for several in groups.values() for path in several]
    assert file.recipe.source is not None
    return _listed_rows(
        file,
        read_tables(file.recipe.source, groups),
        root,
        engine,
        paths[0] if len(paths) == 1 else base,
    )


def _sealed(file: RecipeFile, key: Key, root: Path, engine: Engine) -> Inputs:
    """The images of the rows that a function of the user's yielded, which convert sealed."""
    from imagenet_prep.recipes.python_source import read_sealed, refuse_unsealed

    if file.sealed is None:
        raise refuse_unsealed(file)
    assert file.recipe.source is not None
    return _listed_rows(
        file, read_sealed(file.recipe.source, file.sealed, root), root, engine, file.sealed
    )


def _listed_rows(file: RecipeFile, rows: Rows, root: Path, engine: Engine, origin: Path) -> Inputs:
    from imagenet_prep.recipes.row_files import find_images

    found = find_images(file, rows, root, engine)
    table = rows.table_of(found.images, list(found.listing.names)), origin
    return Inputs(
        found.listing,
        found.remarks,
        found.base,
        origin,
        divided=found.splits,
        table=table,
        marks=found.marks,
    )


def _archives(
    file: RecipeFile, key: Key, texts: Iterable[str], root: Path, engine: Engine
) -> tuple[list[Path], Path]:
    """The files that the recipe names by a path or a pattern, each once; and the folder where
    patterns start.

    Raises:
        InputError: one is missing.
    """
    archives: dict[Path, None] = {}
    base = root
    for text in texts:
        if is_pattern(text):
            base, rest = _based(file, key, text, root)
            archives |= dict.fromkeys(
                below(base, name) for name in _match(file, key, (base, rest), engine)[0].names
            )
        else:
            archives[need_path(file, key, below(root, text))] = None
    if faults := missing_shards(archives):
        raise all_of(faults)
    return list(archives), base


_SOURCES: Mapping[str, Callable[[RecipeFile, Key, Path, Engine], Inputs]] = {
    **dict.fromkeys(("folders", "files", "manifest"), _plain),
    **{"tar": _tars, "table": _tables, "python": _sealed, **dict.fromkeys(rules.SAMPLES, _samples)},
}
"""The function that lists each kind of source, by its key;
a new kind needs a field in schema.Source too.
"""


# where a recipe may write -------------------------------------------------------------------------


def shards_dir(file: RecipeFile, output: AnyPath) -> AnyPath:
    """The folder of the shards, as ``output_file_prefix`` says: ``output`` itself, or one below it.

    Raises:
        UsageError: an absolute prefix leads out of ``output``, or to a folder that has another
            purpose.
    """
    folder, name = rules.prefix_of(file)
    if folder.startswith("/"):
        prefix, inside = file.recipe.output_file_prefix, _below(Path(folder), output)
        if inside is None:
            what = f"{prefix!r} leads out of {output}"
            hint = f"give {folder} as DATA_DIR, and write output_file_prefix: {name}"
            raise file.fault(
                ("output_file_prefix",), what, "expected a name, or a path below DATA_DIR", hint
            )
        rules.check_own_folder(file, inside.parts)
    return output / folder


def find_manifest(name: str, root: Path, layout: Layout | None) -> AnyPath:
    """The ``manifest_file`` of this name: below the root of the data,
    else where ``place_manifest`` once put it.
    """
    path = below(root, name)
    inside = None if layout is None or kind_of(path) != "nothing" else _below(path, root)
    if layout is None or inside is None:
        return path
    kept = layout.lists_dir / inside
    return kept if kind_of(kept) != "nothing" else path


def place_manifest(
    file: RecipeFile, name: str, root: Path, layout: Layout | None, *, is_raw: bool
) -> AnyPath:
    """The path for a ``manifest_file`` that does not exist yet.

    As its name says, below the root of the data or DATA_DIR. Where ``--raw`` named that root, which
    is never written to, it has a place among what belongs to the shards.

    Raises:
        InputError: it would be elsewhere.
    """
    path = below(root, name)
    if layout is not None and _below(path, layout.data_dir) is not None:
        return path
    inside = _below(path, root)
    if inside is None:
        what = (
            f"{file.place(('manifest_file',))}: {path} is not there, "
            "and would be made outside the data"
        )
        raise InputError(
            what,
            f"expected a path below {root}",
            "name one that is there, or one below that folder",
        )
    return path if layout is None or not is_raw else layout.lists_dir / inside


def _below(path: Path, folder: AnyPath) -> Path | None:
    """The path from ``folder`` to ``path``, links followed; None if it leads out."""
    local = local_or_none(folder)
    if local is None:
        return None
    found, base = (
        Path(os.path.realpath(path)),
        Path(os.path.realpath(local)),
    )  # resolve() fails at a link to itself
    return found.relative_to(base) if found.is_relative_to(base) else None
