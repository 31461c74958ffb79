"""What an error proposes works: a remedy is named only where it is one."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from existing import existing
from file_server import serve
from kaggle_copies import tree, write_zip
from made_sets import ENGINE, PART, converted, flip
from made_tars import pack, save
from running import command, prep

import imagenet_prep
from imagenet_prep import ConvertOptions, DownloadOptions, Layout, convert, pipeline, status, verify
from imagenet_prep.cli import cli
from imagenet_prep.demo import photographs
from imagenet_prep.demo.archives import MadeSet
from imagenet_prep.errors import AccessError, DataProblemsError, InputError, SpaceError, UsageError
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.kaggle import ZIP, KaggleZip
from imagenet_prep.ilsvrc2012.raw_data import find_source
from imagenet_prep.model import Silent
from imagenet_prep.recipes.recipe_set import RecipeSet
from imagenet_prep.registry import ILSVRC2012
from imagenet_prep.shards import consuming, consumption
from imagenet_prep.shards.share import Share
from imagenet_prep.stages.convert import foresee

SHARD = "train-00003-of-00008"
TENCH = "n01440764"


# raw data in another place ------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["raw-data/ILSVRC2012_img_train (1).tar", "x.tar.1"])
def test_an_archive_that_is_astray(
    place: str, tiny_data_dir: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """An archive under another name or in DATA_DIR is named, not fetched again;
    the command that is printed helps.
    """
    layout = Layout(tiny_data_dir)
    right = layout.raw_dir / "ILSVRC2012_img_train.tar"
    right.rename(tiny_data_dir / place)
    convert_words = ["convert", str(tiny_data_dir), "--allow-incomplete", "--train-shards", "2"]
    for words in (convert_words, ["run", str(tiny_data_dir)], ["download", str(tiny_data_dir)]):
        with pytest.raises(InputError, match=r"ILSVRC2012_img_train\.tar; rename"):
            cli.main(words, standalone_mode=False)
    assert cli.main(["status", str(tiny_data_dir)], standalone_mode=False) == 0
    move = capfd.readouterr().out.rpartition("next: ")[2]
    subprocess.run(["bash", "-c", move], check=True)
    assert right.exists()
    assert cli.main([*convert_words, "--validation-shards", "2"], standalone_mode=False) == 0


@pytest.mark.parametrize("kept", ["empty", "none"])
def test_a_split_without_images(
    kept: str, tiny_data_dir: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Folders train/0 to train/19 are refused, also with --allow-incomplete;
    a split that is absent is named first.
    """
    layout = Layout(tiny_data_dir)
    (layout.raw_dir / "ILSVRC2012_img_train.tar").unlink()
    words = [
        "convert",
        str(tiny_data_dir),
        "--allow-incomplete",
        "--validation-shards",
        "2",
        "--quiet",
    ]
    if kept == "none":
        assert cli.main(words, standalone_mode=False) == 0
        assert capfd.readouterr().out == "convert: train: no images\n"
        return
    for number in range(20):
        save(layout.raw_dir / "train" / str(number) / "a.JPEG", photographs.tiny(number))
    with pytest.raises(InputError, match=r"no train image"):
        cli.main(words, standalone_mode=False)


def test_class_folders_of_another_set_are_not_called_incomplete(tmp_path: Path) -> None:
    """--allow-incomplete would not help: no image is ImageNet's."""
    save(tmp_path / "raw-data/train/cats/a.jpg", photographs.tiny(1))
    with pytest.raises(InputError, match="holds no train image of ILSVRC2012") as caught:
        convert(Layout(tmp_path), ENGINE)
    assert "imagenet-prep init" in caught.value.hint
    wnid = TENCH
    save(tmp_path / f"raw-data/train/{wnid}/{wnid}_1.JPEG", photographs.tiny(1))
    save(tmp_path / "raw-data/val/cats/a.jpg", photographs.tiny(1))
    with pytest.raises(
        InputError, match=r"such as ILSVRC2012_val_00000001\.JPEG; found cats in it"
    ):
        convert(Layout(tmp_path), ENGINE)


def test_images_in_data_dir_itself_are_named_with_raw(tiny_data_dir: Path) -> None:
    """They need no download: the option that is advised finds them."""
    raw_dir = Layout(tiny_data_dir).raw_dir
    wnid = TENCH
    save(tiny_data_dir / f"train/{wnid}/{wnid}_1.JPEG", photographs.tiny(1))
    shutil.rmtree(raw_dir)
    with pytest.raises(InputError, match="found no images of ImageNet") as caught:
        convert(Layout(tiny_data_dir), ENGINE)
    assert caught.value.hint == f"run the same command with --raw {tiny_data_dir}"
    layout = Layout(tiny_data_dir, raw=tiny_data_dir)
    summary = convert(layout, ENGINE, PART.replace(train_shards=1))
    assert summary.splits[0].images == 1


def test_boxes_without_their_archive_are_downloaded_first(
    tiny_data_dir: Path, made_tiny: MadeSet
) -> None:
    """annotate alone would find no annotations."""
    layout = Layout(tiny_data_dir)
    layout.boxes_csv.write_text("a.JPEG,7,0,1,1\n")
    with pytest.raises(InputError, match=r"line 1 of .* can't be used") as caught:
        convert(layout, ENGINE, PART)
    assert " --only boxes && " not in caught.value.hint
    (layout.raw_dir / "ILSVRC2012_bbox_train_v2.tar.gz").unlink()
    with pytest.raises(InputError, match=r"line 1 of .* can't be used") as caught:
        convert(layout, ENGINE, PART)
    assert " --only boxes && imagenet-prep annotate " in caught.value.hint


def test_a_raw_folder_that_was_named_is_not_asked_for_again(tmp_path: Path) -> None:
    """Without --raw it may be named; with it, another one."""
    with pytest.raises(InputError) as caught:
        convert(Layout(tmp_path), ENGINE)
    assert caught.value.hint.endswith(
        "    (or, if you have the images, name their folder with --raw)"
    )
    layout = Layout(tmp_path / "data", raw=tmp_path / "raw")
    with pytest.raises(InputError, match="raw does not exist"):
        convert(layout, ENGINE)
    (tmp_path / "raw").write_bytes(b"")
    with pytest.raises(InputError, match="raw is a file") as caught:
        convert(layout, ENGINE)
    assert caught.value.hint == "name the folder that has the images with --raw"
    (tmp_path / "raw").unlink()
    (tmp_path / "raw").mkdir()
    with pytest.raises(InputError) as caught:
        convert(layout, ENGINE)
    own = tmp_path / "data" / "raw-data"
    then = f"    (then name {own} with --raw, or another folder)"
    assert caught.value.hint.endswith(then)


def test_an_archive_without_images_is_moved_and_not_described(tiny_data_dir: Path) -> None:
    """init describes folders only, so it is not advised; moved away, the archive is not read."""
    layout = Layout(tiny_data_dir)
    archive = layout.raw_dir / "ILSVRC2012_img_train.tar"
    archive.write_bytes(pack({}))
    options = ConvertOptions(train_shards=1, validation_shards=1, allow_incomplete=True)
    with pytest.raises(InputError) as caught:
        convert(layout, ENGINE, options)
    assert caught.value.what == f"{archive} holds no train image of ILSVRC2012"
    assert caught.value.hint == "get an intact copy of it, or move it away to use another copy"
    archive.unlink()
    convert(layout, ENGINE, options)


def test_a_folder_of_other_classes_is_not_moved(tmp_path: Path) -> None:
    """The message names a class that was asked for."""
    layout = Layout(tmp_path)
    save(layout.raw_dir / f"train/{TENCH}/{TENCH}_1.JPEG", photographs.tiny(1))
    options = ConvertOptions(
        train_shards=1, validation_shards=1, allow_incomplete=True, classes="imagewoof"
    )
    with pytest.raises(InputError) as caught:
        convert(layout, ENGINE, options)
    folder = layout.raw_dir / "train"
    assert caught.value.what == f"{folder} holds no train image of imagewoof"
    assert caught.value.detail == "expected images of its classes, such as n02086240"
    assert caught.value.hint == "get a copy with these classes, or choose other classes"


def test_half_a_folder_and_a_whole_zip(
    made_tiny: MadeSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copy with all classes is read; where both lack images,
    the one that is not read is named.
    """
    layout = Layout(tmp_path)
    layout.raw_dir.mkdir()
    write_zip(layout.raw_dir, tree(made_tiny))
    wnids = sorted(made_tiny.wnids)
    monkeypatch.setattr(facts, "CLASSES", len(wnids))
    for number, wnid in enumerate(wnids):
        save(layout.raw_dir / "train" / wnid / f"{wnid}_1.JPEG", photographs.tiny(1))
        source = find_source(layout, "train")
        assert isinstance(source, KaggleZip) is (number + 1 < len(wnids))
    with pytest.raises(InputError, match=rf"{layout.archive_path(ZIP)} ") as caught:
        convert(layout, ENGINE, ConvertOptions(train_shards=1, validation_shards=1))
    (unread,) = caught.value.choices
    assert unread.endswith(f"move {layout.raw_dir / 'train'} away")


# a bad image --------------------------------------------------------------------------------------


def broken() -> bytes:
    """A JPEG with both ends and nonsense between them."""
    data = bytearray(photographs.tiny(1))
    data[-40:-2] = b"\xff\xfe" * 19
    return bytes(data)


def remedy(layout: Layout, options: ConvertOptions, recipe: Path | None = None) -> str:
    """What a conversion that meets a bad image says to do about it."""
    progress = Silent()
    dataset = RecipeSet.read(recipe) if recipe else ILSVRC2012
    with pytest.raises(DataProblemsError):
        convert(layout, ENGINE, options, dataset=dataset, progress=progress)
    return next(note for note in progress.notes if note.startswith("bad image: "))


def test_an_image_of_imagenet(tmp_path: Path, made_tiny: MadeSet) -> None:
    """Of ImageNet's images: --check header, where images are decoded only to be looked at."""
    wnid = made_tiny.wnids[0]
    image, options = tmp_path / f"raw-data/train/{wnid}/{wnid}_1.JPEG", PART.replace(train_shards=1)
    save(image, broken())
    said = remedy(Layout(tmp_path), options)
    assert "--check header accepts it unchanged" in said
    assert "recipe images" not in said
    convert(Layout(tmp_path), ENGINE, options.replace(check="header"))
    image.write_bytes(broken()[:200])
    said = remedy(Layout(tmp_path), options.replace(check="header", overwrite=True))
    assert "header" not in said.partition("; or leave out")[2]


@pytest.mark.parametrize("record", ["record: inception\nlabels: labels.txt\n", ""])
def test_an_image_of_a_recipe(tmp_path: Path, record: str) -> None:
    """Of a recipe's images: its own key, which is no option."""
    (tmp_path / "labels.txt").write_text("a.jpg:1\n")
    (tmp_path / "a.jpg").write_bytes(broken())
    recipe = tmp_path / "recipe.yaml"
    text = f"source: {{files: '*.jpg'}}\nnum_shards: 1\n{record}"
    recipe.write_text(text)
    said = remedy(Layout(tmp_path / "out"), ConvertOptions(), recipe)
    assert "check: header in the recipe accepts it unchanged" in said
    assert "--check" not in said
    recipe.write_text(f"{text}check: header\n")
    convert(Layout(tmp_path / "out"), ENGINE, dataset=RecipeSet.read(recipe))


# what is kept -------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_output", [False, True])
def test_repair_finds_the_raw_data_of_the_conversion(
    is_output: bool, tmp_path: Path, made_tiny: MadeSet
) -> None:
    """verify and status name one command; repair alone finds the recorded folder,
    and says what to do if it is gone.
    """
    data = tmp_path / "a"
    shutil.copytree(made_tiny.archives["train"].parent, data / "raw-data")
    layout = Layout(tmp_path / "k2")
    convert(
        Layout(data, output=layout.data_dir)
        if is_output
        else Layout(layout.data_dir, data / "raw-data"),
        ENGINE,
        PART,
    )
    flip(layout.shard_path(SHARD), 100)
    layout.shard_path("train-00002-of-00008").unlink()
    said = f"imagenet-prep repair {layout.data_dir} --raw {data / 'raw-data'}"
    assert {problem.remedy for problem in verify(layout, ENGINE).problems} == {
        f"make it again: {said}"
    }
    assert status(layout).following == said
    assert not pipeline.verify_and_repair(layout, ENGINE).verdict.problems

    data.rename(tmp_path / "gone")
    flip(layout.shard_path(SHARD), 100)
    (problem,) = verify(layout, ENGINE).problems
    assert problem.remedy == f"make it again: imagenet-prep repair {layout.data_dir}"
    with pytest.raises(InputError) as caught:
        pipeline.verify_and_repair(layout, ENGINE)
    advice = f"name the folder of the raw data: imagenet-prep repair {layout.data_dir} --raw FOLDER"
    assert caught.value.hint == f"{advice}; or get a sound copy of the shards"


def test_the_manifest_of_another_set(tmp_path: Path, made_tiny: MadeSet) -> None:
    """repair refuses it, so verify does not name repair, even for shards that differ from it."""
    layout = converted(tmp_path / "a", made_tiny)
    other = converted(tmp_path / "b", made_tiny, PART.replace(seed=5))
    own = layout.manifest_path.read_bytes()
    shutil.copy(other.manifest_path, layout.manifest_path)
    remedies = {problem.remedy for problem in verify(layout, ENGINE).problems}
    assert len(remedies) == 1
    with pytest.raises(InputError) as caught:
        pipeline.verify_and_repair(layout, ENGINE)
    assert remedies == {caught.value.hint}
    layout.manifest_path.unlink()
    convert(layout, ENGINE, PART)
    assert layout.manifest_path.read_bytes() == own
    assert not verify(layout, ENGINE).problems


def test_shards_of_ranks_that_did_not_run(tmp_path: Path, made_tiny: MadeSet) -> None:
    """The same convert, of one rank, would make none of them; merge lists the ranks to run."""
    layout = Layout(tmp_path / "a", made_tiny.archives["train"].parent)
    convert(layout, ENGINE, PART, share=Share(0, 2))
    remedies = {problem.remedy for problem in verify(layout, ENGINE).problems}
    assert len(remedies) == 1
    assert "run the missing ranks" in remedies.pop()


def test_the_folder_above_a_set(tmp_path: Path, made_tiny: MadeSet) -> None:
    """verify and status name the set below it, and no download."""
    converted(tmp_path / "up/a", made_tiny)
    refused = command("verify", tmp_path / "up", status=4).stderr
    assert refused.endswith(f": imagenet-prep verify {tmp_path}/up/a\n")
    said = command("status", tmp_path / "up").stdout
    assert said.endswith(f"next: imagenet-prep status {tmp_path}/up/a\n")


def test_a_damaged_manifest_without_plan_and_shards(tmp_path: Path, made_tiny: MadeSet) -> None:
    """It may be of any set: no command of ImageNet is named."""
    layout = converted(tmp_path, made_tiny)
    for path in (*layout.data_dir.glob("*-of-*"), layout.plan_path):
        path.unlink()
    layout.manifest_path.write_text("{")
    refused = command("verify", tmp_path, status=4).stderr
    assert "manifest.json can't be understood" in refused
    assert "remove manifest.json and run the same imagenet-prep convert again" in refused
    layout.manifest_path.unlink()
    convert(layout, ENGINE, PART)
    assert not verify(layout, ENGINE).problems


def test_the_order_of_shards_that_can_not_be_read(tmp_path: Path, made_tiny: MadeSet) -> None:
    """It is unknown, not another one: one shard is cut short, or has a folder in its place."""
    layout = converted(tmp_path, made_tiny)
    shard = layout.shard_path("train-00000-of-00008")
    content = shard.read_bytes()
    shard.write_bytes(content[:100])
    assert verify(layout, ENGINE).order == "unknown"
    shard.unlink()
    shard.mkdir()
    assert verify(layout, ENGINE).order == "unknown"
    shard.rmdir()
    shard.write_bytes(content)
    assert verify(layout, ENGINE).order == "canonical"


def test_an_image_that_stops_convert_each_time(tmp_path: Path, made_tiny: MadeSet) -> None:
    """The same convert would fail again: verify and repair name what helps;
    once set aside, verify tells the image.
    """
    wnid = made_tiny.wnids[0]
    for number in range(1, 9):
        content = photographs.tiny(number) if number > 1 else broken()
        save(tmp_path / f"raw-data/train/{wnid}/{wnid}_{number}.JPEG", content)
    layout, options = Layout(tmp_path), PART.replace(train_shards=2)
    with pytest.raises(DataProblemsError):
        convert(layout, ENGINE, options)
    (problem,) = verify(layout, ENGINE).problems
    assert problem.remedy.endswith(
        "if an image could not be converted, mend the image first, or add --on-damaged skip"
    )
    with pytest.raises(InputError, match="mend the image first, or add --on-damaged skip"):
        pipeline.verify_and_repair(layout, ENGINE)
    convert(layout, ENGINE, options.replace(on_damaged="skip"))
    verdict = verify(layout, ENGINE)
    assert not verdict.problems
    assert f"1 image was set aside: {wnid}_1.JPEG" in verdict.notes


# no boxes -----------------------------------------------------------------------------------------


def test_images_without_boxes_can_be_converted(tmp_path: Path, made_tiny: MadeSet) -> None:
    """Where only the boxes can't be fetched, the command that does without them is named;
    it works.
    """
    for image in made_tiny.of("train")[:2]:
        save(tmp_path / f"raw-data/train/{image.wnid}/{image.wnid}_1.JPEG", photographs.tiny(1))
    save(tmp_path / "raw-data/val/ILSVRC2012_val_00000001.JPEG", photographs.tiny(2))
    options = PART.replace(train_shards=1, validation_shards=1)
    with serve(tmp_path, "ada", "key") as url:
        fetching = DownloadOptions(base_url=url, check_digest=False)
        with pytest.raises(AccessError) as caught:
            pipeline.run(Layout(tmp_path), ENGINE, fetching=fetching, options=options)
    said, found, proposed = caught.value.hint.rpartition("without boxes: ")
    assert found
    assert "only boxes were to be downloaded" in said
    assert cli.main(shlex.split(proposed)[1:], standalone_mode=False) == 0
    assert verify(Layout(tmp_path), ENGINE).problems == ()


@pytest.mark.parametrize("kind", ["archive", "Kaggle's zip elsewhere"])
def test_boxes_that_are_there_and_unread_are_a_warning(
    tmp_path: Path, made_tiny: MadeSet, kind: str
) -> None:
    """convert warns before it writes, and again at its end;
    the two commands that it names add the boxes.
    """
    raw = tmp_path / ("raw-data" if kind == "archive" else "kaggle")
    if kind == "archive":
        shutil.copytree(made_tiny.archives["train"].parent, raw)
    else:
        write_zip(raw, tree(made_tiny))
    elsewhere = () if kind == "archive" else ("--raw", raw)
    words = (
        "convert",
        tmp_path,
        *elsewhere,
        "--allow-incomplete",
        "--train-shards",
        1,
        "--validation-shards",
        1,
    )
    done = command(*words, "--workers", 1)
    file = raw / (facts.ARCHIVES["boxes"].filename if kind == "archive" else ZIP.filename)
    warning = (
        f"warning: no boxes for train, although {file} was there when this set was "
        "started; to add boxes, run "
    )
    assert done.stderr.index(warning) < done.stderr.index("Finished writing")
    assert done.stdout.count(warning) == command(*words).stdout.count(warning) == 1
    said = next(line for line in done.stdout.splitlines() if line.startswith(warning)).removeprefix(
        warning
    )
    annotate, _, afterwards = said.partition(", then ")
    assert annotate == shlex.join(["imagenet-prep", "annotate", *map(str, (tmp_path, *elsewhere))])
    assert afterwards.endswith(" --overwrite")
    command(*shlex.split(annotate)[1:])
    again = command(*shlex.split(afterwards)[1:])
    assert "warning:" not in again.stdout + again.stderr
    assert any(record.boxes for record in imagenet_prep.open(tmp_path, "train"))


# no space -----------------------------------------------------------------------------------------


def told(words: list[str], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The lines of the SpaceError that a command ends with."""
    monkeypatch.setattr(sys, "argv", ["imagenet-prep", *words])
    with pytest.raises(SpaceError) as caught:
        cli.main(words, standalone_mode=False)
    return caught.value.lines


def test_a_full_disk_names_the_command(
    small_disk: Path, made: MadeSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What did not fit is named as it was called,
    and with --consume where the archives may give their space.
    """
    monkeypatch.setattr(consuming, "HELD", 0)
    monkeypatch.setattr(consumption, "_LEAST_STEP", 1 << 16)
    subprocess.run(["mount", "-o", "remount,size=60m", small_disk], check=True)
    layout = Layout(small_disk / "d")
    layout.raw_dir.mkdir(parents=True)
    for split in ("train", "validation"):
        shutil.copy2(made.archives[split], layout.raw_dir)
    size = sum(path.stat().st_size for path in existing(layout.raw_dir, "*"))
    with (small_disk / "ballast").open("wb") as file:
        file.write(bytes(shutil.disk_usage(small_disk).free - size * 2 // 3))
    options = [
        "--allow-incomplete",
        "--train-shards",
        "8",
        "--validation-shards",
        "8",
        "--workers",
        "1",
    ]
    words = ["convert", str(layout.data_dir), *options]
    called = shlex.join(["imagenet-prep", *words])
    what, _, hint = told(words, monkeypatch)
    assert what.startswith("not enough space in ")
    plain, proposed = hint.split(
        "; or delete archives that download has compared while the shards are made: "
    )
    assert plain == f"free some space, or name another folder in the command, then run: {called}"
    assert proposed == f"{called} --consume"
    with pytest.raises(InputError, match="can't be consumed") as caught:
        cli.main(shlex.split(proposed)[1:], standalone_mode=False)
    assert caught.value.hint.startswith("compare it: imagenet-prep download ")
    for more in (["--output", str(small_disk / "e")], ["--rank", "0/1"]):
        assert "--consume" not in told([*words, *more], monkeypatch)[-1]


def test_a_run_that_does_not_fit_names_consume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before a byte is fetched; not beside what rules it out."""
    found, free = os.statvfs(tmp_path), 250 * 10**9
    sized = os.statvfs_result((1, 1, free, free, free, *found[5:]))
    monkeypatch.setattr(os, "statvfs", lambda _: sized)
    monkeypatch.setenv("IMAGENET_USERNAME", "ada")
    monkeypatch.setenv("IMAGENET_ACCESS_KEY", "key")
    served = tmp_path / "served"
    served.mkdir()
    for key in facts.DEFAULT_ARCHIVES:
        archive = facts.ARCHIVES[key]
        (served / archive.filename).touch()
        os.truncate(served / archive.filename, archive.size or archive.about)
    with serve(served, "ada", "key") as url:
        words = ["run", str(tmp_path / "d"), "--base-url", url]
        called = shlex.join(["imagenet-prep", *words])
        assert told(words, monkeypatch)[-1].endswith(
            f"archives that download has compared while the shards are made: {called} --consume"
        )
        for more in (["--extract"], ["--output", str(tmp_path / "e")]):
            assert "--consume" not in told([*words, *more], monkeypatch)[-1]


# more shards than images --------------------------------------------------------------------------


def test_empty_shards_are_said_to_come(tmp_path: Path, made_tiny: MadeSet) -> None:
    """With the option that sets their number, of each split for which there are too many;
    not if each has an image.
    """
    layout = Layout(tmp_path, raw=made_tiny.archives["train"].parent)
    counts = {split: len(made_tiny.of(split)) for split in ("train", "validation")}
    progress = Silent()
    foresee(
        layout, ENGINE, PART.replace(train_shards=1000, validation_shards=128), progress=progress
    )
    assert [note for note in progress.notes if "will be empty" in note] == [
        f"train: {counts['train']} images in 1,000 shards: {1000 - counts['train']} of these "
        "will be empty; "
        "set their number with --train-shards (in a recipe: shards: {train: NUMBER})",
        f"validation: {counts['validation']} images in 128 shards: "
        f"{128 - counts['validation']} of these will be "
        "empty; set their number with --validation-shards "
        "(in a recipe: shards: {validation: NUMBER})",
    ]
    progress = Silent()
    foresee(layout, ENGINE, PART.replace(train_shards=counts["train"]), progress=progress)
    assert not any("will be empty" in note for note in progress.notes)
    with pytest.raises(UsageError, match="can't cut") as caught:
        foresee(layout, ENGINE, PART.replace(validation_shards=2000), progress=Silent())
    assert caught.value.hint == (
        "set their number with --validation-shards (in a recipe: shards: {validation: NUMBER})"
    )


def test_a_rehearsed_run_names_shards_of_another_number(tmp_path: Path, made_tiny: MadeSet) -> None:
    """convert refuses them; with their number, or with --overwrite, nothing is said."""
    layout = Layout(tmp_path, raw=made_tiny.archives["train"].parent)
    convert(layout, ENGINE, PART)
    others = PART.replace(train_shards=1000)
    with pytest.raises(UsageError, match="shards were made from other inputs"):
        convert(layout, ENGINE, others)
    for options, is_told in (
        (PART, False),
        (others, True),
        (others.replace(overwrite=True), False),
    ):
        progress = Silent()
        pipeline.foresee(layout, options=options, progress=progress)
        told = [note for note in progress.notes if "train shards, not 1,000: convert" in note]
        assert bool(told) == is_told


def test_with_a_recipe_the_advised_key_helps(tmp_path: Path, made_tiny: MadeSet) -> None:
    """An incomplete set and too many shards: the hints name the keys, and with them it converts."""
    recipe = tmp_path / "imagenet.yaml"
    recipe.write_text("source: {imagenet: true}\n")
    raw = made_tiny.archives["train"].parent
    call = ("convert", str(tmp_path / "out"), "--config", str(recipe), "--raw", str(raw))
    keys = {
        "allow_incomplete: true": "allow_incomplete: true",
        "shards: {train: NUMBER}": "shards: {train: 4, validation: 2}",
    }
    for advised, key in keys.items():
        assert f"(in a recipe: {advised}" in prep(*call, "--dry-run").stderr
        with recipe.open("a") as file:
            file.write(f"{key}\n")
    assert "in a recipe" not in command(*call, "--dry-run").stderr
