"""The recipes of well-known data sets, each on a stand-in:
the archives as they are published, with few images.
"""

from __future__ import annotations

import gzip
import json
import pickle
import re
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import tf_fixture
from existing import existing
from made_folders import picture, write
from made_tars import in_memory, pack
from made_zips import Made, make_zip
from running import command

from imagenet_prep import Layout, convert, make_engine, verify
from imagenet_prep.errors import InputError
from imagenet_prep.recipes.examples import copy_example, list_examples
from imagenet_prep.recipes.recipe_set import RecipeSet

tf = tf_fixture.tf

ENGINE = make_engine("threads", 2)
Files = dict[str, bytes]
Labels = dict[str, dict[str, Any]]
"""By split, the label of each image by the last part of its name; or the names of its boxes."""


def jpeg(name: str) -> bytes:
    """A small JPEG, whatever the ending of its name."""
    return picture(name, "jpeg")


def matlab(**values: Any) -> bytes:
    """A MATLAB file."""
    scipy = pytest.importorskip("scipy.io")
    return in_memory(lambda file: scipy.savemat(file, values))


def zipped(files: Files) -> bytes:
    """A zip of files."""
    return make_zip([Made(name.encode(), content) for name, content in files.items()])


def of_21k(name: str, lead: str = "") -> tuple[Files, Labels]:
    """A tar of a tar for each class of ImageNet-21k."""
    labels = {"n00004475": 1, "n00005787": 2, "n02110185": 3}
    images = {
        wnid: {f"{wnid}_{number}.JPEG": jpeg(f"{wnid}_{number}") for number in range(4)}
        for wnid in labels
    }
    right = {image: labels[wnid] for wnid, own in images.items() for image in own}
    return {name: pack({f"{lead}{wnid}.tar": pack(own) for wnid, own in images.items()})}, {
        "train": right
    }


def pets() -> tuple[Files, Labels]:
    """Cats and dogs, two images that no list names, and the hidden files of the archive."""
    breeds = {
        "Abyssinian": "1 1 1",
        "Birman": "2 1 2",
        "american_bulldog": "3 2 1",
        "yorkshire_terrier": "4 2 2",
    }
    lines = {f"{breed}_{number}": text for breed, text in breeds.items() for number in (1, 20, 100)}
    extra = {"images/Birman_7.jpg": jpeg("Birman_7.jpg"), "images/Abyssinian_1.mat": b"MATLAB"}
    images = {**{f"images/{name}.jpg": jpeg(f"{name}.jpg") for name in lines}, **extra}
    split = {"trainval": [name for name in lines if not name.endswith("_100")]}
    split["test"] = [name for name in lines if name not in split["trainval"]]
    head = "#Image CLASS-ID SPECIES BREED ID\n#ID: 1:37 Class ids\n"
    texts = {
        name: "".join(f"{each} {lines[each]}\n" for each in own) for name, own in split.items()
    }
    texts["list"] = head + texts["trainval"] + texts["test"]
    annotations = {f"annotations/{name}.txt": text.encode() for name, text in texts.items()}
    labels = {each: list(breeds).index(each.rpartition("_")[0]) for each in lines}
    right = {
        "train": {f"{each}.jpg": labels[each] for each in split["trainval"]},
        "test": {f"{each}.jpg": labels[each] for each in split["test"]},
    }
    return {"images.tar.gz": pack(images), "annotations.tar.gz": pack(annotations)}, right


def flowers() -> tuple[Files, Labels]:
    """Twelve images of three kinds."""
    images = {
        f"jpg/image_{number:05d}.jpg": jpeg(f"image_{number:05d}.jpg") for number in range(1, 13)
    }
    labels = [77, 77, 1, 1, 102, 102] * 2
    ids = {"trnid": [1, 3, 5], "valid": [2, 4, 6], "tstid": [7, 8, 9, 10, 11, 12]}
    files = {"imagelabels.mat": matlab(labels=labels), "setid.mat": matlab(**ids)}
    names = {"trnid": "train", "valid": "validation", "tstid": "test"}
    right = {
        names[key]: {f"image_{n:05d}.jpg": labels[n - 1] for n in own} for key, own in ids.items()
    }
    return {"102flowers.tgz": pack(images), **files}, right


def cars() -> tuple[Files, Labels]:
    """Two splits with the same file names, and annotations with boxes."""
    import numpy as np

    names = [
        "AM General Hummer SUV 2000",
        "Ram C/V Cargo Van Minivan 2012",
        "smart fortwo Convertible 2012",
    ]
    form = [(key, object) for key in ("bbox_x1", "bbox_y1", "bbox_x2", "bbox_y2", "class", "fname")]
    labels = {"train": [2, 1, 3, 1], "test": [3, 1, 2]}
    files = {"devkit/cars_meta.mat": matlab(class_names=np.array(names, object))}
    for split, own in labels.items():
        rows = [(1, 2, 9, 10, label, f"{number:05d}.jpg") for number, label in enumerate(own, 1)]
        path = (
            "devkit/cars_train_annos.mat" if split == "train" else "cars_test_annos_withlabels.mat"
        )
        files[path] = matlab(annotations=np.array(rows, form))
        files |= {f"cars_{split}/{row[5]}": jpeg(f"{split}{row[5]}") for row in rows}
    right = {
        split: {f"cars_{split}/{n:05d}.jpg": label for n, label in enumerate(own, 1)}
        for split, own in labels.items()
    }
    return files, right


def places() -> tuple[Files, Labels]:
    """Scenes by letter, and validation images in one folder."""
    kinds = {"/a/airfield": 0, "/b/bus_station/indoor": 1, "/z/zen_garden": 2}
    train = {
        f"{kind}/0000000{number}.jpg": label for kind, label in kinds.items() for number in (1, 2)
    }
    val = {f"Places365_val_0000000{number}.jpg": number % 3 for number in range(1, 7)}
    lists = {
        "categories_places365.txt": kinds,
        "places365_train_standard.txt": train,
        "places365_val.txt": val,
    }
    texts = {
        name: "".join(f"{path} {label}\n" for path, label in own.items()).encode()
        for name, own in lists.items()
    }
    files = {
        "train_256_places365standard.tar": pack({f"data_256{name}": jpeg(name) for name in train}),
        "val_256.tar": pack({f"val_256/{name}": jpeg(name) for name in val}),
        "filelist_places365-standard.tar": pack(texts),
    }
    return files, {
        "train": {f"data_256{name}": label for name, label in train.items()},
        "validation": val,
    }


def food() -> tuple[Files, Labels]:
    """Three dishes."""
    dishes = ("apple_pie", "baby_back_ribs", "waffles")
    parts = {"train": range(3), "test": range(3, 5)}
    names = {
        split: [f"{dish}/{1000 + number}" for dish in dishes for number in own]
        for split, own in parts.items()
    }
    images = {
        f"food-101/images/{name}.jpg": jpeg(name + ".jpg") for own in names.values() for name in own
    }
    meta = {
        f"food-101/meta/{split}.txt": "".join(f"{name}\n" for name in own).encode()
        for split, own in names.items()
    }
    right = {
        split: {f"{n}.jpg": dishes.index(n.partition("/")[0]) for n in own}
        for split, own in names.items()
    }
    return {"food-101.tar.gz": pack({**images, **meta})}, right


def cifar() -> tuple[Files, Labels]:
    """Batches as Python 2 pickled them: texts are byte strings."""
    import numpy as np

    names, right, files = (
        [f"data_batch_{n}" for n in range(1, 6)],
        Labels({"train": {}, "test": {}}),
        Files(),
    )
    for place, name in enumerate([*names, "test_batch"]):
        labels = [(place + n) % 10 for n in range(20)]
        value = {
            "batch_label": name,
            "labels": labels,
            "data": np.full((20, 3072), place, np.uint8),
        }
        content = pickle.dumps(value, protocol=2)
        for word in ("batch_label", "labels", "data", name):
            size = len(word).to_bytes(4, "little")
            content = content.replace(b"X" + size + word.encode(), b"U" + size[:1] + word.encode())
        files[f"cifar-10-batches-py/{name}"] = content
        right["test" if name == "test_batch" else "train"] |= {
            f"{name}/data/{n:06d}.png": label for n, label in enumerate(labels)
        }
    meta = pickle.dumps(
        {"num_cases_per_batch": 20, "label_names": ["airplane"], "num_vis": 3072}, protocol=2
    )
    return {
        "cifar-10-python.tar.gz": pack({**files, "cifar-10-batches-py/batches.meta": meta})
    }, right


def mnist() -> tuple[Files, Labels]:
    """Four compressed IDX files."""
    files, right = Files(), Labels()
    for name, split, count in (("train", "train", 30), ("t10k", "test", 20)):
        labels = [n * 7 % 10 for n in range(count)]
        images = struct.pack(">4i", 0x803, count, 28, 28) + bytes(count * 784)
        files[f"mnist/{name}-images-idx3-ubyte.gz"] = gzip.compress(images)
        files[f"mnist/{name}-labels-idx1-ubyte.gz"] = gzip.compress(
            struct.pack(">2i", 0x801, count) + bytes(labels)
        )
        right[split] = {f"{name}-images/{n:06d}.png": label for n, label in enumerate(labels)}
    return files, right


VOC_BOX = (
    "<annotation><filename>{name}.jpg</filename><size><width>16</width><height>16</height><depth>3</depth></size>"
    "<object><name>{label}</name><pose>Left</pose><truncated>1</truncated><difficult>0</difficult>"
    "<bndbox><xmin>4</xmin><ymin>1</ymin><xmax>12</xmax><ymax>16</ymax></bndbox></object></annotation>"
)


def voc() -> tuple[Files, Labels]:
    """Two images of train, one of validation, and one of another task."""
    names = {
        "2007_000027": "person",
        "2007_000032": "aeroplane",
        "2008_000002": "tvmonitor",
        "2009_000001": "cat",
    }
    files = {f"JPEGImages/{name}.jpg": jpeg(name) for name in names}
    files |= {
        f"Annotations/{name}.xml": VOC_BOX.format(name=name, label=names[name]).encode()
        for name in names
    }
    files |= {
        "ImageSets/Main/train.txt": b"2007_000027\n2007_000032\n",
        "ImageSets/Main/val.txt": b"2008_000002\n",
    }
    right = {
        "train": {f"{name}.jpg": [names[name]] for name in ("2007_000027", "2007_000032")},
        "validation": {"2008_000002.jpg": ["tvmonitor"]},
    }
    return {
        "VOCtrainval_11-May-2012.tar": pack(
            {f"VOCdevkit/VOC2012/{name}": files[name] for name in files}
        )
    }, right


def coco() -> tuple[Files, Labels]:
    """Two images of train, the second without a box, and one of validation."""
    every = {"train2017": [9, 25], "val2017": [139]}
    annotations = {}
    for split, numbers in every.items():
        images = [
            {"id": n, "file_name": f"{n:012d}.jpg", "width": 16, "height": 16} for n in numbers
        ]
        box = {
            "id": 1,
            "image_id": numbers[0],
            "category_id": 90,
            "bbox": [4, 0, 8, 16],
            "area": 128.0,
            "iscrowd": 0,
        }
        categories = [{"id": 1, "name": "person"}, {"id": 90, "name": "toothbrush"}]
        captions = [{"id": n, "image_id": n, "caption": f"picture {n}"} for n in numbers]
        annotations[f"instances_{split}"] = {
            "images": images,
            "annotations": [box],
            "categories": categories,
        }
        annotations[f"captions_{split}"] = {"images": images, "annotations": captions}
    files = {
        f"annotations/{name}.json": json.dumps(value).encode()
        for name, value in annotations.items()
    }
    zips = {
        f"{split}.zip": zipped({f"{split}/{n:012d}.jpg": jpeg(str(n)) for n in own})
        for split, own in every.items()
    }
    right = {
        "train": {"000000000009.jpg": ["toothbrush"], "000000000025.jpg": []},
        "validation": {"000000000139.jpg": ["toothbrush"]},
    }
    return {
        **{f"{name}.zip": zips[name] for name in zips},
        "annotations_trainval2017.zip": zipped(files),
    }, right


WNIDS = ("n01440764", "n02102040", "n03888257")
SPECIES = (
    "Animalia_Annelida_Clitellata_Haplotaxida_Lumbricidae_Lumbricus_terrestris",
    "Animalia_Chordata_Aves_x_y_z_w",
)
TINY = {
    **{
        f"tiny-imagenet-200/train/{wnid}/images/{wnid}_{n}.JPEG": jpeg(f"{wnid}_{n}")
        for wnid in WNIDS
        for n in (0, 1)
    },
    **{
        f"tiny-imagenet-200/train/{wnid}/{wnid}_boxes.txt": b"n01443537_0.JPEG\t0\t10\t63\t58\n"
        for wnid in WNIDS
    },
    **{f"tiny-imagenet-200/val/images/val_{n}.JPEG": jpeg(f"val_{n}.JPEG") for n in range(6)},
    "tiny-imagenet-200/val/val_annotations.txt": "".join(
        f"val_{n}.JPEG\t{WNIDS[n % 3]}\t0\t32\t44\t62\n" for n in range(6)
    ).encode(),
    **{f"tiny-imagenet-200/test/images/test_{n}.JPEG": jpeg(f"test_{n}.JPEG") for n in range(2)},
    "tiny-imagenet-200/wnids.txt": "\n".join(reversed(WNIDS)).encode(),
}


def sets() -> Mapping[str, Callable[[], tuple[Files, Labels]]]:
    """For each example its published files, and the labels of each split."""
    numbered = {
        split: {f"{split}{label}.JPEG": label for label in range(3)} for split in ("train", "val")
    }
    nette = {
        f"imagenette2/{split}/{WNIDS[n]}/{name}": jpeg(name)
        for split in numbered
        for name, n in numbered[split].items()
    }
    inat = {
        f"{split}/{n:05d}_{SPECIES[n]}/{split}-{n}.jpg": jpeg(f"{split}{n}")
        for split in numbered
        for n in range(2)
    }
    v2 = {
        f"imagenetv2-matched-frequency-format-val/{n}/i{n}.jpeg": jpeg(f"i{n}.jpeg")
        for n in range(12)
    }
    r = {
        f"imagenet-r/{wnid}/art_{n}.jpg": jpeg(f"{wnid}{n}.jpg") for wnid in WNIDS for n in range(2)
    }
    return {
        "imagenet-21k-winter21": lambda: of_21k("winter21_whole.tar.gz", "winter21_whole/"),
        "imagenet-21k-fall11": lambda: of_21k("fall11_whole.tar"),
        "imagenette2": lambda: (
            {
                "imagenette2.tgz": pack(
                    {**nette, "imagenette2/noisy_imagenette.csv": b"path,noisy_labels_0\n"}
                )
            },
            {"train": numbered["train"], "validation": numbered["val"]},
        ),
        "imagenet-v2": lambda: (
            {"imagenetv2-matched-frequency.tar.gz": pack(v2)},
            {"test": {f"i{n}.jpeg": n for n in range(12)}},
        ),
        "imagenet-r": lambda: (
            {"imagenet-r.tar": pack({**r, "imagenet-r/README.txt": b"ImageNet-R"})},
            {
                "test": {
                    f"{wnid}/art_{n}.jpg": label
                    for label, wnid in enumerate(WNIDS)
                    for n in range(2)
                }
            },
        ),
        "tiny-imagenet": lambda: (
            {"tiny-imagenet-200.zip": zipped(TINY)},
            {
                "train": {
                    f"{wnid}_{n}.JPEG": label for label, wnid in enumerate(WNIDS) for n in range(2)
                }
            },
        ),
        "tiny-imagenet-val": lambda: (
            TINY,
            {"validation": {f"val_{n}.JPEG": n % 3 for n in range(6)}},
        ),
        "inaturalist2021": lambda: (
            {
                f"{split}.tar.gz": pack(
                    {name: data for name, data in inat.items() if name.startswith(f"{split}/")}
                )
                for split in numbered
            },
            {
                split: {f"{short}-{n}.jpg": n for n in range(2)}
                for split, short in (("train", "train"), ("validation", "val"))
            },
        ),
        "food101": food,
        "places365": places,
        "oxford-pets": pets,
        "flowers102": flowers,
        "stanford-cars": cars,
        "cifar10": cifar,
        "mnist": mnist,
        "voc2012": voc,
        "coco2017": coco,
    }


def prepare(folder: Path, name: str, files: Files, right: Labels) -> Path:
    """The published files, unpacked by the commands of the recipe;
    and the recipe with the totals of the stand-in.
    """
    write(folder, **files)
    recipe, text = copy_example(name, folder / "recipe.yaml")
    commands = "\n".join(line[6:] for line in text.split("\n") if line.startswith("#     "))
    if "unzip" in commands and shutil.which("unzip") is None:
        pytest.skip("unzip is not installed")
    script = commands.replace("python3 -c", f"{sys.executable} -c")
    script = re.sub(r"tar -xzf", "tar -xf", script)  # the stand-ins are not compressed
    subprocess.run(["bash", "-euc", script], cwd=folder, check=True, capture_output=True)
    every = [label for own in right.values() for label in own.values()]
    expected: dict[str, Any] = totals(every) | {
        split: totals([*own.values()]) for split, own in right.items()
    }
    recipe.write_text(text[: text.index("\nexpected:")] + f"\nexpected: {json.dumps(expected)}\n")
    return recipe


def totals(labels: list[Any]) -> dict[str, int]:
    """What a recipe expects of these; images with boxes have no classes."""
    found = {"images": len(labels)}
    return found if isinstance(labels[0], list) else {**found, "classes": len(set(labels))}


def read(tf: Any, path: Path) -> Labels:
    """The label, or the names of the boxes, of each record by split and name, by tf.data."""
    found: Labels = {}
    for shard in existing(path, "*-of-*"):
        own = found.setdefault(shard.name[:-15], {})
        for record in tf.data.TFRecordDataset(str(shard)):
            features = tf.train.Example.FromString(record.numpy()).features.feature
            label = features.get("image/class/label", features.get("label"))
            assert features["image/encoded"].bytes_list.value[0][:2] in (b"\xff\xd8", b"\x89P")
            names = [each.decode() for each in features["image/object/class/text"].bytes_list.value]
            for side, value in {"xmin": 0.25, "xmax": 0.75}.items():
                assert [*features[f"image/object/bbox/{side}"].float_list.value] == [value] * len(
                    names
                )
            value = label.int64_list.value[0] if label else names
            own[features["image/filename"].bytes_list.value[0].decode()] = value
    return found


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--list x", "leave the rest out: imagenet-prep init --list"),
        ("--list --example mnist", "leave the rest out: imagenet-prep init --list"),
        (
            "--example mnist --as coco",
            "expected at most one file to write, and no other option except --output",
        ),
        ("--example food101 my.yaml", "my.yaml already exists"),
        ("--example food", "expected food101, perhaps\nimagenet-prep init --list"),
        ("", "init requires a folder or a file of data"),
    ],
)
def test_words_that_init_does_not_take(tmp_path: Path, words: str, said: str) -> None:
    """No option beside an example is ignored, and no file is overwritten."""
    (tmp_path / "my.yaml").touch()
    assert said in command("init", *words.split(), cwd=tmp_path, status=2).stderr
    assert (tmp_path / "my.yaml").read_bytes() == b""


def test_the_command_of_an_existing_file_works(tmp_path: Path) -> None:
    """With another file in place of FILE."""
    (tmp_path / "my.yaml").touch()
    said = command("init", "--example", "food101", "my.yaml", cwd=tmp_path, status=2).stderr
    line = said.splitlines()[-1]
    assert line == "imagenet-prep init --example food101 --output FILE"
    command(*line.replace("FILE", "other.yaml").split()[1:], cwd=tmp_path)
    assert (tmp_path / "other.yaml").read_bytes()


def test_each_recipe_has_a_stand_in() -> None:
    """A new example needs a stand-in here; each says where its data is,
    its layout and the source of its counts.
    """
    assert list(list_examples()) == sorted(sets())
    for name in list_examples():
        text = (Path(copy_example.__globals__["__file__"]).parent / f"{name}.yaml").read_text()
        assert [
            word
            for word in ("# Data: ", "# Layout: ", "# Counts: ", "\nexpected:")
            if word not in text
        ] == [], name


@pytest.mark.parametrize("name", sorted(sets()))
def test_an_example_takes_the_published_files(name: str, tmp_path: Path, tf: Any) -> None:
    """Its commands and the recipe make the right labels in the right splits;
    another number of images is refused.
    """
    files, right = sets()[name]()
    recipe, layout = prepare(tmp_path, name, files, right), Layout(tmp_path / "out")
    convert(layout, ENGINE, dataset=RecipeSet.read(recipe))
    for each in layout.sets():
        assert verify(each, ENGINE).problems == ()
    found = read(tf, tmp_path / "out")
    assert found.keys() == right.keys()
    for split, own in right.items():
        assert len(found[split]) == len(own)
        ends = {
            path: next(n for n in own if path == n or path.endswith(f"/{n}"))
            for path in found[split]
        }
        assert {path: own[end] for path, end in ends.items()} == found[split]
    text = recipe.read_text()
    recipe.write_text(
        re.sub(r'"images": (\d+)', lambda found: f'"images": {int(found[1]) + 1}', text, count=1)
    )
    with pytest.raises(InputError, match=r"images: [0-9,]+ expected, "):
        convert(Layout(tmp_path / "other"), ENGINE, dataset=RecipeSet.read(recipe))


def test_the_command_lists_and_copies(tmp_path: Path) -> None:
    """init --list names all of them; --example writes a file."""
    listed = command("init", "--list").stdout
    assert all(f"{name}  " in listed for name in list_examples())
    assert max(map(len, listed.splitlines())) < 80
    assert "wrote food101.yaml" in command("init", "--example", "food101", cwd=tmp_path).stdout
    assert (
        "wrote my.yaml" in command("init", "--example", "food101", "my.yaml", cwd=tmp_path).stdout
    )
    assert (tmp_path / "my.yaml").read_bytes() == (tmp_path / "food101.yaml").read_bytes()
