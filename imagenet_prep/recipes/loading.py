"""read, load: a recipe -> its checked keys; and its data set: for each split a catalog, a recorder,
and how many shards of which name.
"""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from imagenet_prep.errors import InputError, UsageError, all_of
from imagenet_prep.model import Engine, OnDamaged, Progress, Silent
from imagenet_prep.recipes import rules
from imagenet_prep.recipes.annotated_images import Roots
from imagenet_prep.recipes.annotating import Annotations, annotate, annotate_rows
from imagenet_prep.recipes.columns import Content
from imagenet_prep.recipes.content_choice import decide_content, keep_content, refuse_several_arrays
from imagenet_prep.recipes.inputs import Inputs
from imagenet_prep.recipes.labelling import label_and_divide
from imagenet_prep.recipes.lists_of_left_out import listed_without_annotation
from imagenet_prep.recipes.recipe_dataset import RecipeDataset
from imagenet_prep.recipes.recipe_file import RecipeFile, read_recipe
from imagenet_prep.recipes.recipe_paths import data_root
from imagenet_prep.recipes.shared_numbering import SharedNumbering
from imagenet_prep.recipes.source_inputs import find_inputs
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.sources.obstacles import collected, refuse
from imagenet_prep.state.set_records import SetRecords
from imagenet_prep.storage.location import AnyPath, local_path


def read(recipe: Path, text: str | None = None) -> RecipeFile:
    """Read a recipe, or its ``text``, and check that its keys fit together, without reading any
    input.

    Raises:
        UsageError: it is wrong; the error names file, line and key.
        InputError: it can't be read.
    """
    file = read_recipe(recipe, text)
    rules.check_rules(file)
    return file


def load(  # noqa: PLR0913 - settings of a call, by keyword
    recipe: Path | RecipeFile,
    root: AnyPath | None,
    engine: Engine,
    *,
    records: SetRecords | None = None,
    on_damaged: OnDamaged | None = None,
    progress: Progress | None = None,
    overwrite: bool = False,
) -> RecipeDataset:
    """List a recipe's files, and plan what is to be made of them. Nothing is written.

    ``recipe`` is the file, or what ``read`` made of it, but not one of ImageNet
    (``rules.is_imagenet``). Relative paths start at ``root``; if None, at DATAPATH of the
    environment, or the folder of the recipe. ``records`` are those of the folder where the
    shards go, for a manifest that can't be made below ``root``, and for the classes of the sets
    that are there; ``overwrite``: this set is made again. ``on_damaged`` is the recipe's by
    default.

    Raises:
        UsageError: the recipe is wrong; the error names file, line and key.
        InputError: an input is missing or damaged, or contradicts the recipe; the error names file,
            line or path.
    """
    file = recipe if isinstance(recipe, RecipeFile) else read(recipe)
    on_damaged = on_damaged or file.recipe.on_damaged
    if records is not None:
        _, prefix = rules.prefix_of(file)
        records = records.at(replace(records.layout, set_name=prefix))
    folder = data_root(file, local_path(root) if root else None)
    progress = progress or Silent()
    progress.note(f"listing the files that {file.path} names")
    layout = records.layout if records else None
    inputs = find_inputs(file, folder, engine, layout=layout, is_raw=root is not None)
    content = decide_content(file, inputs.listing)
    listing, notes = keep_content(file, inputs, content, on_damaged=on_damaged)
    shared = SharedNumbering.find(records, grows=file.recipe.grow, overwrite=overwrite)
    annotations = _annotated(file, inputs, listing, folder, content, shared)
    try:
        items = label_and_divide(file, inputs, annotations, folder, content, shared)
    except InputError as error:
        raise _with_obstacles(inputs, file, error) from error
    _refuse_obstacles(inputs, file)
    items.check_expected()
    all_notes = (*notes, *annotations.notes, *items.all_notes(folder))
    return items.dataset(all_notes, on_damaged=on_damaged)


def _with_obstacles(inputs: Inputs, file: RecipeFile, error: InputError) -> InputError:
    """The error that ends a listing, with the obstacles unless they are collected."""
    if collected() is None:
        return all_of([*inputs.obstacles, error])
    _refuse_obstacles(inputs, file)
    return error


def _refuse_obstacles(inputs: Inputs, file: RecipeFile) -> None:
    """Raise one error for all obstacles, or collect each."""
    if inputs.obstacles and collected() is None:
        raise all_of(inputs.obstacles)
    for obstacle in inputs.obstacles:
        refuse(obstacle, subject=file.path.name)


def _annotated(
    file: RecipeFile,
    inputs: Inputs,
    listing: Catalog,
    root: Path,
    content: Content,
    shared: SharedNumbering,
) -> Annotations:
    """The images of a listing with their boxes and masks;
    raises UsageError if its arrays are not one a file.
    """
    if content == "array" and file.recipe.array is None:
        refuse_several_arrays(file, listing)
    marks = inputs.marks
    if file.recipe.boxes is None and file.recipe.mask is None and not marks:
        return Annotations(listing)
    key = _key_of_annotations(file)
    if content != "image":
        raise _not_of_images(file, key, content)
    roots = Roots(inputs.base, root, file.recipe.strip or "")
    if marks:
        _refuse_beside_marks(file)
        annotations = annotate_rows(file.recipe, marks, listing, roots)
    else:
        annotations = annotate(file.recipe, listing, roots)
    shared.number_boxes(file, annotations)
    if inputs.divided and len(annotations.listing) < len(listing):
        skipped = set(listing.names) - set(annotations.listing.names)
        raise listed_without_annotation(file, key, inputs, skipped)
    return annotations


def _not_of_images(file: RecipeFile, key: str, content: Content) -> UsageError:
    """The error for boxes or masks of what is no image."""
    recipe = file.recipe
    other = f"content: {content}"
    if recipe.content is None:
        other = "arrays" if content == "array" else "min_val and max_val"
    steps: list[str] = []
    if recipe.content == "pixels":
        steps.append("write content: image")
    if recipe.min_val is not None:
        steps.append("remove min_val and max_val")
    remedies: list[str] = []
    if content == "pixels":
        remedies.append(" and ".join(steps))
    if key != "source":
        remedies.append(f"remove `{key}`")
    subject = "it" if key != "source" else "the boxes and masks of its rows"
    problem = f"{subject} can't be combined with {other}"
    expected = "expected content: image with boxes or masks"
    return file.fault((key,), problem, expected, ", or ".join(remedies))


def _key_of_annotations(file: RecipeFile) -> str:
    """The key of a recipe that has the annotations: that of the source, if its rows have them."""
    if file.recipe.boxes:
        return "boxes"
    if file.recipe.mask:
        return "mask"
    return "source"


def _refuse_beside_marks(file: RecipeFile) -> None:
    """Raise UsageError if the recipe says something that contradicts the
    boxes or masks of the source's rows.
    """
    boxes = file.value.get("boxes", {})
    if file.recipe.record == "inception":
        problem = "the rows of the source have boxes or masks"
        expected = "expected no `record: inception`, whose records can't hold these"
        raise file.fault(("record",), problem, expected)
    has_other_boxes = boxes.keys() - {"names", "first_label"}
    for key, is_wrong in (("mask", file.recipe.mask), ("boxes", has_other_boxes)):
        if is_wrong:
            problem = "the rows of the source have boxes or masks already"
            raise file.fault((key,), problem, f"expected no `{key}` in the recipe")
