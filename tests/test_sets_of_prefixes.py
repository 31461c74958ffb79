"""Sets of recipes with prefixes in one DATA_DIR:
each keeps its own state, and commands handle all of them.
"""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path

import pytest
from made_folders import picture, write
from running import command, prep

import imagenet_prep
from imagenet_prep.engines import make_engine
from imagenet_prep.errors import PrepError, UsageError
from imagenet_prep.recipes.recipe_set import RecipeSet
from imagenet_prep.stages.convert import convert
from imagenet_prep.stages.status import status
from imagenet_prep.stages.verify import verify
from imagenet_prep.storage.layout import Layout

pytestmark = pytest.mark.once

ENGINE = make_engine("threads", 1)
SETS = ("eval", "test", "train")


def files_of(name: str) -> dict[str, bytes]:
    """The images of a set by path: two classes, other images in each set."""
    names = (f"{kind}/{name}-{number}.jpg" for kind in ("cat", "dog") for number in range(3))
    return {each: picture(each) for each in names}


def recipe(folder: Path, name: str, more: str = "shards: 2\n") -> Path:
    """The recipe of a set, with its prefix."""
    path = folder / f"{name}.yaml"
    path.write_text(f"source: {{folders: {name}}}\noutput_file_prefix: {name}\n{more}")
    return path


def made(path: Path, out: Path) -> None:
    """Convert by a recipe."""
    convert(Layout(out), ENGINE, dataset=RecipeSet.read(path))


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Train, eval and test images, and a set of each in ``out``."""
    folder = tmp_path_factory.mktemp("guide")
    for name in reversed(SETS):
        write(folder / name, **files_of(name))
        made(recipe(folder, name), folder / "out")
    return folder


@pytest.fixture
def folder(sound: Path, tmp_path: Path) -> Path:
    """The test's own copy; the recipes and images stay where the sets were made from."""
    return Path(shutil.copytree(sound / "out", tmp_path / "out"))


def state(out: Path, name: str) -> dict[str, bytes]:
    """All files of a set, by path."""
    own = [*out.glob(f"{name}-*"), *(out / "imagenet-prep/sets" / name).rglob("*")]
    found = {str(path.relative_to(out)): path.read_bytes() for path in own if path.is_file()}
    assert len(found) >= 2 + 4 + 3
    return found


def test_each_set_is_right(folder: Path) -> None:
    """verify checks all sets, each under its name; each is read back as its images are."""
    said = command("verify", folder).stdout
    assert [line for line in said.splitlines() if line.rstrip(":") in SETS] == [
        "eval:",
        "test:",
        "train:",
    ]
    assert said.count("as listed: all") == 3
    for name in SETS:
        found = {record.filename: record.encoded for record in imagenet_prep.open(folder, name)}
        assert found == files_of(name)
        assert {record.label for record in imagenet_prep.open(folder, name)} == {1, 2}
        assert verify(Layout(folder, set_name=name), ENGINE).problems == ()


def test_damage_to_one_set_is_named_and_mended(folder: Path) -> None:
    """verify names the shard, repair makes it again; the other sets stay as they are."""
    shard = folder / "eval-00001-of-00002"
    content = shard.read_bytes()
    others = state(folder, "test"), state(folder, "train")
    shard.write_bytes(content[:40] + bytes([content[40] ^ 1]) + content[41:])
    said = command("verify", folder, "--json", folder / "found.json", status=3).stdout
    assert "eval-00001-of-00002" in said
    outcome = json.loads((folder / "found.json").read_bytes())
    found = outcome["sets"]
    assert {name: sorted(found[name]["faulty"]) for name in SETS} == {
        "eval": [shard.name],
        "test": [],
        "train": [],
    }
    printed = json.loads(command("verify", folder, "--json", "-", status=3).stdout)
    assert printed | {"seconds": outcome["seconds"]} == outcome
    assert "repair" in status(Layout(folder, set_name="eval")).following
    assert "eval-00001-of-00002 made again" in command("repair", folder).stdout
    assert shard.read_bytes() == content
    command("verify", folder)
    after = state(folder, "test"), state(folder, "train")
    for before, now in zip(others, after, strict=True):
        assert before.items() <= now.items()


def test_other_settings_of_one_set_are_refused(sound: Path, folder: Path, tmp_path: Path) -> None:
    """The same settings resume; others are refused until --overwrite;
    the other sets stay as they are.
    """
    same, changed = sound / "train.yaml", sound / "changed.yaml"
    assert "0 made now" in command("convert", folder, "--config", same).stdout
    changed.write_text(same.read_text() + "seed: 7\n")
    before = {name: state(folder, name) for name in SETS}
    refused = command("convert", folder, "--config", changed, status=2).stderr
    assert "made from other inputs or with other settings" in refused
    assert {name: state(folder, name) for name in SETS} == before
    command("convert", folder, "--config", changed, "--overwrite")
    after = {name: state(folder, name) for name in SETS}
    assert [name for name in SETS if after[name] != before[name]] == ["train"]
    command("verify", folder)


def test_status_and_report_go_through_all_sets(folder: Path, tmp_path: Path) -> None:
    """Each set has its stages and a page of its own;
    with --output, the page's name has the set's.
    """
    lines = command("status", folder).stdout.splitlines()
    assert [line for line in lines if line.endswith(":")] == ["eval:", "test:", "train:"]
    assert sum("2 of 2 shards" in line for line in lines) == 3
    printed = json.loads(command("status", folder, "--json", "-").stdout)
    assert list(printed["sets"]) == list(SETS)
    command("report", folder, "--output", tmp_path / "page.html")
    assert sorted(path.name for path in list(tmp_path.glob("*.html"))) == [
        f"page-{name}.html" for name in SETS
    ]
    said = command("report", folder).stdout
    for name in SETS:
        assert f"{folder}/imagenet-prep/sets/{name}/report.html" in said


def test_one_unfinished_set_hides_no_other(folder: Path) -> None:
    """A set without manifest and plan is not taken for ImageNet,
    and verify still checks the others.
    """
    for name in ("manifest.json", "plan/plan.json"):
        (folder / "imagenet-prep/sets/test" / name).unlink()
    ran = command("verify", folder, status=4)
    assert f"the splits of the set in {folder}/imagenet-prep/sets/test are not known" in ran.stderr
    assert ran.stdout.count("as listed: all") == 2
    (folder / "train-00000-of-00002").unlink()
    assert "train-00000-of-00002" in command("verify", folder, status=4).stdout


def test_a_shard_name_belongs_to_one_set(sound: Path, folder: Path) -> None:
    """A recipe whose splits have the names of another set's shards is refused,
    and so is ImageNet.
    """
    other = sound / "other.yaml"
    other.write_text("source: {folders: test}\nsplits: {train: 0.5, validation: 0.5}\n")
    before = {name: state(folder, name) for name in SETS}
    for more in ((), ("--overwrite",)):
        refused = command("convert", folder, "--config", other, *more, status=2).stderr
        assert "has train shards too" in refused
    assert "the data set eval, made with a recipe" in command("convert", folder, status=2).stderr
    assert {name: state(folder, name) for name in SETS} == before


def test_names_that_begin_alike(sound: Path, folder: Path) -> None:
    """The set without a prefix and one whose prefix begins as another does
    live beside the others.
    """
    write(sound / "train-small", **files_of("train-small"))
    made(recipe(sound, "train-small"), folder)
    plain = sound / "plain.yaml"
    plain.write_text("source: {folders: test}\nsplits: {small: 0.5, rest: 0.5}\n")
    made(plain, folder)
    said = command("verify", folder).stdout
    assert [line for line in said.splitlines() if line.endswith(":")][:3] == [
        "without a prefix:",
        "eval:",
        "test:",
    ]
    assert said.count("as listed: all") == 5
    assert (
        len(imagenet_prep.open(folder, "train-small"))
        == len(imagenet_prep.open(folder, "train"))
        == 6
    )
    assert len(imagenet_prep.open(folder, "small")) + len(imagenet_prep.open(folder, "rest")) == 6
    shutil.copy(folder / "train-00000-of-00002", folder / "train-copy-00000-of-00002")
    assert "stray-file" in command("verify", folder, status=3).stdout


def test_python_names_the_set(folder: Path) -> None:
    """Without a name, the only set is meant; of several, one must be named."""
    with pytest.raises(UsageError, match=r"several sets: eval, test, train"):
        verify(Layout(folder), ENGINE)
    for name in ("eval", "train"):
        shutil.rmtree(folder / "imagenet-prep/sets" / name)
    assert verify(Layout(folder), ENGINE).dataset == "test"


def test_a_damaged_manifest_of_a_set_is_said(folder: Path) -> None:
    """Records are not read by another set's manifest when the set's own one is damaged."""
    path = folder / "imagenet-prep/sets/eval/manifest.json"
    path.write_bytes(path.read_bytes().replace(b'"seed": 12345', b'"seed": 12346'))
    with pytest.raises(PrepError, match="has changed since it was written"):
        imagenet_prep.open(folder, "eval")
    assert len(imagenet_prep.open(folder, "train")) == 6


def test_merge_of_a_folder_with_a_lost_state_is_no_success(folder: Path) -> None:
    """Its exit status is that of the verdict which it prints."""
    shutil.rmtree(folder / "imagenet-prep" / "sets" / "eval")
    command("merge", folder, status=3)


@pytest.fixture
def in_folders(sound: Path, tmp_path: Path) -> Path:
    """A DATA_DIR without shards of its own: the prefixes of its two sets have folders."""
    for name in ("eval", "train"):
        path = sound / f"deep-{name}.yaml"
        path.write_text(
            f"source: {{folders: {name}}}\noutput_file_prefix: more/{name}/{name}\nshards: 2\n"
        )
        command("convert", tmp_path / "data", "--config", path)
    return tmp_path / "data"


def test_sets_below_a_folder_are_named(in_folders: Path) -> None:
    """status and verify of the DATA_DIR that convert got name the folder of a set,
    and no command for ImageNet.
    """
    said = command("status", in_folders).stdout.splitlines()[-1]
    assert said == f"next: imagenet-prep status {in_folders}/more/eval"
    error = command("verify", in_folders, status=4).stderr
    assert f"found sets in {in_folders}/more/eval, {in_folders}/more/train" in error
    last_line = error.splitlines()[-1]
    assert last_line.endswith(f": imagenet-prep verify {in_folders}/more/eval")


@pytest.mark.parametrize("place", ["", "more/eval"])
@pytest.mark.parametrize("state_of_set", ["finished", "shard lost", "unfinished", "ranks"])
def test_each_next_command_works(
    place: str, state_of_set: str, sound: Path, tmp_path: Path
) -> None:
    """The commands that status prints for a set with a prefix,
    run one after the other, end with a report.
    """
    data_dir, path = tmp_path / "data", sound / f"next-{place.replace('/', '-')}.yaml"
    prefix = f"{place}/eval".lstrip("/")
    path.write_text(f"source: {{folders: eval}}\noutput_file_prefix: {prefix}\nshards: 2\n")
    for rank in ("0/2", "1/2") if state_of_set == "ranks" else (None,):
        command("convert", data_dir, "--config", path, *(("--rank", rank) if rank else ()))
    out = data_dir / place
    if state_of_set in ("shard lost", "unfinished"):
        (out / "eval-00001-of-00002").unlink()
    if state_of_set == "unfinished":
        (out / "imagenet-prep/sets/eval/manifest.json").unlink()
    words = ["", "status", str(data_dir)]
    commands = []
    while words[1] != "report" and len(commands) < 6:
        said = prep(*words[1:]).stdout
        commands.append(words[1])
        if words[1] != "status":
            said = command("status", out).stdout
        words = shlex.split(said.splitlines()[-1].removeprefix("next: "))
    assert words == ["imagenet-prep", "report", str(out)], commands
    command(*words[1:])
