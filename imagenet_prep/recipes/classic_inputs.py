"""list_classic: what ``manifest_file`` and ``input_file_pattern`` of a recipe name -> Inputs."""

from __future__ import annotations

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
from imagenet_prep.recipes.recipe_paths import fault_of_path, need_path
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.sources.file_lists import look_up, read_file_list
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
    pattern = file.recipe.input_file_pattern
    manifest_name = file.recipe.manifest_file
    if manifest_name is None:
        assert pattern is not None
        return list_by_patterns(file, ("input_file_pattern",), [pattern], root, engine)
    base = root
    if pattern is not None:
        base, _ = split_root(pattern, root)
    if not base.is_dir():
        base = root
    base_key = "" if base == root else "input_file_pattern"
    path = find_manifest(manifest_name, root, layout)
    if kind_of(path) != "nothing":
        manifest_path = need_path(file, ("manifest_file",), path)
        return list_by_manifest(manifest_path, base, engine, base_key)
    split_names = manifest_names(file)
    split_paths = {name: find_manifest(text, root, layout) for name, text in split_names.items()}
    existing = [path for path in split_paths.values() if kind_of(path) != "nothing"]
    if existing:
        return _list_by_split(file, split_paths, existing, base, base_key, engine)
    if pattern is None:
        place = file.place(("manifest_file",))
        hint = "add this list; or write input_file_pattern in the recipe: convert then makes it"
        problem = f"{path} {fault_of_path(path, 'file')}"
        raise InputError(f"{place}: {problem}", "expected a list of file names", hint)
    path = place_manifest(file, manifest_name, root, layout, is_raw=is_raw)
    new_paths: dict[str, AnyPath] = {}
    for split, name in split_names.items():
        new_paths[split] = place_manifest(file, name, root, layout, is_raw=is_raw)
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
    listing = inputs.listing
    base = inputs.base
    if file.recipe.shuffle:
        shuffled_rows = order.shuffled(len(listing), file.recipe.seed)
        listing = listing.picked(shuffled_rows)
    lead = ""
    if base != root:
        lead = f"{base.as_posix().rstrip('/')}/"
    names = tuple(lead + name for name in listing.names)
    manifest = ManifestFile(path, names, split_paths, lead)
    return replace(inputs, listing=listing, origin=path, is_ordered=True, manifest=manifest)


def manifest_names(file: RecipeFile) -> dict[str, str]:
    """The ``manifest_file`` of each split: m-train.txt, m-test.txt for m.txt.
    None where one holds all files.
    """
    places = rules.places_of(file)
    if any(place_key == "manifest" for place_key, _ in places.values()):
        return {}
    path = Path(file.recipe.manifest_file or "")
    names: dict[str, str] = {}
    for split in file.recipe.splits or ():
        split_path = path.with_name(f"{path.stem}-{split}{path.suffix}")
        names[split] = str(split_path)
    return names


def _list_by_split(
    file: RecipeFile,
    paths: Mapping[str, AnyPath],
    existing: Sequence[AnyPath],
    base: Path,
    base_key: str,
    engine: Engine,
) -> Inputs:
    """The files of one manifest a split, which must all be there."""
    for path in paths.values():
        if path not in existing:
            place = file.place(("manifest_file",))
            expected = "expected a list of files for each split"
            hint = "add this list"
            if file.recipe.input_file_pattern is not None:
                expected = f"{expected}, or no list"
                others = " and ".join(str(path) for path in existing)
                hint = f"{hint}; or remove {others}: convert then makes all lists"
            problem = f"{path} {fault_of_path(path, 'file')}, but {existing[0].name} exists"
            raise InputError(f"{place}: {problem}", expected, hint)
    listings: list[Catalog] = []
    remarks_of_splits: list[Remarks] = []
    rows: dict[str, range] = {}
    start = 0
    for split, path in paths.items():
        file_list = read_file_list(path, base, base_key)
        listing, remarks = look_up(file_list, base, engine)
        listings.append(listing)
        remarks_of_splits.append(remarks)
        stop = start + len(listing)
        rows[split] = range(start, stop)
        start = stop
    joined = Catalog.join(listings, is_listed=True)
    _refuse_repeated(joined, paths, listings)
    all_remarks = Remarks.join(remarks_of_splits)
    return Inputs(joined, all_remarks, base, existing[0], is_ordered=True, divided=rows)


def _refuse_repeated(
    joined: Catalog, paths: Mapping[str, AnyPath], listings: Sequence[Catalog]
) -> None:
    """Raise InputError for a file that several manifests name."""
    for name, count in Counter(joined.names).items():
        if count == 1:
            continue
        manifests: list[str] = []
        for path, listing in zip(paths.values(), listings, strict=True):
            if name in listing.names:
                manifests.append(path.name)
        problem = f"{name} is in {' and in '.join(manifests)}"
        hint = "keep it in one of these lists, and remove it from the others"
        raise InputError(problem, "expected each file in only one split", hint)
