"""list_classic: what ``manifest_file`` and ``input_file_pattern`` of a recipe name -> Inputs."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from imagenet_prep.datasets import order
from imagenet_prep.errors import InputError
from imagenet_prep.model import Engine
from imagenet_prep.recipes import rules
from imagenet_prep.recipes.inputs import Inputs, ManifestFile
from imagenet_prep.recipes.named_files import list_by_manifest, list_by_patterns, split_root
from imagenet_prep.recipes.output_places import find_manifest, place_manifest
from imagenet_prep.recipes.recipe_file import RecipeFile
from imagenet_prep.recipes.recipe_paths import need_path
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.sources.folders import look_up, read_file_list
from imagenet_prep.sources.remarks import Remarks
from imagenet_prep.storage.files import kind_of
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import AnyPath


def list_classic(
    file: RecipeFile, root: Path, engine: Engine, layout: Layout | None, *, is_raw: bool
) -> Inputs:
    """What ``manifest_file`` names, if it is there;
    else what the pattern matches, shuffled, for it to be made.
    """
    pattern, manifest_name = file.recipe.input_file_pattern, file.recipe.manifest_file
    if manifest_name is None:
        assert pattern is not None
        return list_by_patterns(file, ("input_file_pattern",), [pattern], root, engine)
    base = root if pattern is None else split_root(pattern, root)[0]
    base = base if base.is_dir() else root
    path = find_manifest(manifest_name, root, layout)
    if kind_of(path) != "nothing":
        return list_by_manifest(need_path(file, ("manifest_file",), path), base, engine)
    split_names = _manifest_names(file)
    split_paths = {name: find_manifest(text, root, layout) for name, text in split_names.items()}
    existing = [path for path in split_paths.values() if kind_of(path) != "nothing"]
    if existing:
        return _list_by_split(file, split_paths, existing, base, engine)
    if pattern is None:
        place = file.place(("manifest_file",))
        hint = "name an input_file_pattern, and it is made"
        raise InputError(f"{place}: {path} is not there", "expected a list of file names", hint)
    path = place_manifest(file, manifest_name, root, layout, is_raw=is_raw)
    new_paths = {
        split: place_manifest(file, name, root, layout, is_raw=is_raw)
        for split, name in split_names.items()
    }
    inputs = list_by_patterns(file, ("input_file_pattern",), [pattern], root, engine)
    return _with_new_manifest(file, inputs, root, path, new_paths)


def _with_new_manifest(
    file: RecipeFile,
    inputs: Inputs,
    root: Path,
    path: AnyPath,
    split_paths: Mapping[str, AnyPath],
) -> Inputs:
    """Files that a pattern matched, shuffled, with the manifest that is to name them."""
    listing, base = inputs.listing, inputs.base
    if file.recipe.shuffle:
        listing = listing.picked(order.shuffled(len(listing), file.recipe.seed))
    lead = "" if base == root else f"{base.as_posix().rstrip('/')}/"
    names = tuple(lead + name for name in listing.names)
    manifest = ManifestFile(path, names, split_paths, lead)
    return replace(inputs, listing=listing, origin=path, is_ordered=True, manifest=manifest)


def _manifest_names(file: RecipeFile) -> dict[str, str]:
    """The ``manifest_file`` of each split: m-train.txt, m-test.txt for m.txt.
    None where one holds all files.
    """
    if any(place_key == "manifest" for place_key, _ in rules.places_of(file).values()):
        return {}
    path = Path(file.recipe.manifest_file or "")
    return {
        split: str(path.with_name(f"{path.stem}-{split}{path.suffix}"))
        for split in file.recipe.splits or ()
    }


def _list_by_split(
    file: RecipeFile,
    paths: Mapping[str, AnyPath],
    existing: Sequence[AnyPath],
    base: Path,
    engine: Engine,
) -> Inputs:
    """The files of one manifest a split, which must all be there."""
    for path in paths.values():
        if path not in existing:
            place = file.place(("manifest_file",))
            raise InputError(
                f"{place}: {path} is not there, and {existing[0].name} is",
                "expected a manifest of each split, or of none",
                "bring it back, or remove the others: all are made again",
            )
    listings, all_remarks = [], []
    for path in paths.values():
        listing, remarks = look_up(read_file_list(path, base), base, engine)
        listings.append(listing)
        all_remarks.append(remarks)
    joined = Catalog.join(listings, is_listed=True)
    _refuse_repeated(joined, paths, listings)
    edges = [0, *itertools.accumulate(map(len, listings))]
    rows = itertools.starmap(range, itertools.pairwise(edges))
    return Inputs(
        joined,
        Remarks.join(all_remarks),
        base,
        existing[0],
        is_ordered=True,
        divided=dict(zip(paths, rows, strict=True)),
    )


def _refuse_repeated(
    joined: Catalog, paths: Mapping[str, AnyPath], listings: Sequence[Catalog]
) -> None:
    """Raise InputError for a file that several manifests name, or one names twice."""
    for name, count in Counter(joined.names).items():
        if count > 1:
            manifests = [
                path.name
                for path, listing in zip(paths.values(), listings, strict=True)
                if name in listing.names
            ]
            raise InputError(
                f"{name} is in {' and in '.join(manifests)}", "expected every file in one split"
            )
