"""Folders whose classes stand in tables and lists:
competitions, published data sets and exports of programs.
"""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterable, Sequence

from kept_by_folder import (
    all_in,
    by_name,
    numbered,
    paint_classes,
    renamed,
    table,
    unlabelled,
)
from kept_folders import Painter, Truth, kept, name_of, stem


def dealt(paths: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """Classes dealt to images in turn, as cards are."""
    return {path: names[place % len(names)] for place, path in enumerate(paths)}


def counted_from_0(names: Iterable[str]) -> dict[str, int]:
    """Classes whose names are their numbers."""
    return {name: int(name) for name in sorted(set(names))}


def counted_from_1(names: Iterable[str]) -> dict[str, int]:
    """Classes whose names are their numbers, the first of which is 1."""
    return {name: int(name) - 1 for name in sorted(set(names))}


def ids(paths: Iterable[str]) -> list[tuple[str]]:
    """A row of each image with its name without the ending."""
    return [(stem(path),) for path in paths]


def lines(rows: Iterable[str]) -> str:
    """A list of a line each."""
    return "".join(f"{row}\n" for row in rows)


# competitions: a table of ids beside a folder of images -------------------------------------------


@kept
def dog_breed_identification(painter: Painter) -> Truth:
    """Kaggle, Dog Breed Identification: labels.csv has id,breed without the ending .jpg;
    test has a submission.
    """
    train = painter.paint_all("train/000bec18{:04x}cbe3.jpg", 9)
    test = painter.paint_all("test/00a3edd2{:04x}ff1a.jpg", 4)
    breeds = ["beagle", "boston_bull", "dingo"]
    classes = dealt(train, breeds)
    painter.write("labels.csv", table(("id", "breed"), *by_name(classes, stem)))
    guesses = ((stem(path), 0.33, 0.33, 0.33) for path in test)
    painter.write("sample_submission.csv", table(("id", *breeds), *guesses))
    return Truth(classes, splits=all_in(train, "train"), left_out=test)


@kept
def cassava(painter: Painter) -> Truth:
    """Kaggle, Cassava Leaf Disease: numbers in train.csv,
    their names in label_num_to_disease_map.json.
    """
    train = painter.paint_all("train_images/10000152{:02}.jpg", 10)
    test = painter.paint_all("test_images/22168499{:02}.jpg", 2, first=48)
    names = {
        "0": "Cassava Bacterial Blight (CBB)",
        "1": "Cassava Brown Streak Disease (CBSD)",
        "2": "Cassava Green Mottle (CGM)",
        "3": "Cassava Mosaic Disease (CMD)",
        "4": "Healthy",
    }
    numbers = dealt(train, list(names))
    painter.write("train.csv", table(("image_id", "label"), *by_name(numbers, name_of)))
    painter.write("label_num_to_disease_map.json", json.dumps(names))
    painter.write(
        "sample_submission.csv",
        table(("image_id", "label"), *((name_of(path), 4) for path in test)),
    )
    splits = all_in(train, "train")
    classes = renamed(numbers, names)
    return Truth(classes, splits=splits, numbers=numbered(names.values()), left_out=test)


@kept
def plant_pathology_2020(painter: Painter) -> Truth:
    """Kaggle, Plant Pathology 2020: train.csv has a column of 0 and 1 for each class,
    and ids without the ending.
    """
    train = painter.paint_all("images/Train_{}.jpg", 9)
    test = painter.paint_all("images/Test_{}.jpg", 4)
    columns = ["healthy", "multiple_diseases", "rust", "scab"]
    classes = dealt(train, columns)
    rows = (
        (stem(path), *(int(name == column) for column in columns)) for path, name in classes.items()
    )
    painter.write("train.csv", table(("image_id", *columns), *rows))
    painter.write("test.csv", table(("image_id",), *ids(test)))
    painter.write(
        "sample_submission.csv",
        table(("image_id", *columns), *((stem(path), *[0.25] * 4) for path in test)),
    )
    return Truth(classes, splits=all_in(train, "train"), numbers=numbered(columns), left_out=test)


@kept
def plant_pathology_2021(painter: Painter) -> Truth:
    """Kaggle, Plant Pathology 2021: the column labels has one or several
    words with blanks between them.
    """
    train = painter.paint_all("train_images/800113bb{:04}.jpg", 10)
    cells = [
        "healthy",
        "scab frog_eye_leaf_spot complex",
        "scab",
        "rust complex",
        "frog_eye_leaf_spot",
    ]
    texts = dealt(train, cells)
    painter.write("train.csv", table(("image", "labels"), *by_name(texts, name_of)))
    classes = {path: tuple(cell.split()) for path, cell in texts.items()}
    return Truth(classes, splits=all_in(train, "train"))


@kept
def aptos_2019(painter: Painter) -> Truth:
    """Kaggle, APTOS 2019: train.csv has id_code,diagnosis, a grade from 0 to 4;
    grade 3 has no image here.
    """
    train = painter.paint_all("train_images/000c1434d8{:02}.png", 8)
    test = painter.paint_all("test_images/0005cfc8af{:02}.png", 3)
    classes = dealt(train, ["2", "4", "1", "0"])
    painter.write("train.csv", table(("id_code", "diagnosis"), *by_name(classes, stem)))
    painter.write("test.csv", table(("id_code",), *ids(test)))
    painter.write(
        "sample_submission.csv",
        table(("id_code", "diagnosis"), *((stem(path), 0) for path in test)),
    )
    return Truth(
        classes, splits=all_in(train, "train"), numbers=counted_from_0("0124"), left_out=test
    )


@kept
def diabetic_retinopathy(painter: Painter) -> Truth:
    """Kaggle, Diabetic Retinopathy 2015: trainLabels.csv names 10_left without .jpeg,
    its class is called level.
    """
    train = [
        painter.paint(f"train/{number}_{eye}.jpeg")
        for number in range(10, 15)
        for eye in ("left", "right")
    ]
    classes = dealt(train, ["0", "1", "2", "3", "4"])
    painter.write("trainLabels.csv", table(("image", "level"), *by_name(classes, stem)))
    return Truth(classes, splits=all_in(train, "train"), numbers=counted_from_0("01234"))


@kept
def histopathologic_cancer(painter: Painter) -> Truth:
    """Kaggle, Histopathologic Cancer Detection:
    train/ID.tif, and train_labels.csv with id,label of 0 and 1.
    """
    train = painter.paint_all("train/f38a6374c348f90b587e046aac{:014x}.tif", 8)
    test = painter.paint_all("test/00006537328c33e284c973d7b3{:014x}.tif", 3)
    classes = dealt(train, ["0", "1"])
    painter.write("train_labels.csv", table(("id", "label"), *by_name(classes, stem)))
    painter.write(
        "sample_submission.csv", table(("id", "label"), *((stem(path), 0) for path in test))
    )
    return Truth(
        classes, splits=all_in(train, "train"), numbers=counted_from_0("01"), left_out=test
    )


@kept
def cifar_10_kaggle(painter: Painter) -> Truth:
    """Kaggle, CIFAR-10: ids 1, 2, 3 name files of train, and test has files of these names too."""
    train = painter.paint_all("train/{}.png", 9, first=1)
    test = painter.paint_all("test/{}.png", 12, first=1)
    classes = dealt(train, ["frog", "truck", "deer"])
    painter.write("trainLabels.csv", table(("id", "label"), *by_name(classes, stem)))
    painter.write(
        "sampleSubmission.csv", table(("id", "label"), *((stem(path), "cat") for path in test))
    )
    return Truth(classes, splits=all_in(train, "train"), left_out=test)


@kept
def humpback_whales(painter: Painter) -> Truth:
    """Kaggle, Humpback Whale Identification: in train.csv the column Id is the class,
    and new_whale is one of them.
    """
    train = painter.paint_all("train/0000e88a{:02}.jpg", 9)
    test = painter.paint_all("test/00028a00{:02}.jpg", 3)
    classes = dealt(train, ["w_f48451c", "new_whale", "w_c3d896a"])
    painter.write("train.csv", table(("Image", "Id"), *by_name(classes, name_of)))
    rows = ((name_of(path), "new_whale w_23a388d w_9b5109b") for path in test)
    painter.write("sample_submission.csv", table(("Image", "Id"), *rows))
    return Truth(classes, splits=all_in(train, "train"), left_out=test)


@kept
def happy_whale(painter: Painter) -> Truth:
    """Kaggle, Happywhale: train.csv has image,species,individual_id; which is the class?"""
    train = painter.paint_all("train_images/00021adfb7{:02}.jpg", 9)
    species = dealt(train, ["beluga", "minke_whale", "orca"])
    individuals = {path: f"cadddb16{place // 2:02x}" for place, path in enumerate(train)}
    rows = ((name_of(path), species[path], individuals[path]) for path in train)
    painter.write("train.csv", table(("image", "species", "individual_id"), *rows))
    splits = all_in(train, "train")
    return Truth(individuals, splits=splits, must_ask=True, choices=[Truth(species, splits=splits)])


@kept
def planet_amazon(painter: Painter) -> Truth:
    """Kaggle, Planet: train_v2.csv has image_name,tags:
    train_0 without an ending, and words with blanks between.
    """
    train = painter.paint_all("train-jpg/train_{}.jpg", 10)
    test = painter.paint_all("test-jpg/test_{}.jpg", 3)
    texts = dealt(
        train, ["haze primary", "agriculture clear primary water", "clear primary", "cloudy"]
    )
    painter.write("train_v2.csv", table(("image_name", "tags"), *by_name(texts, stem)))
    guesses = ((stem(path), "primary clear") for path in test)
    painter.write("sample_submission_v2.csv", table(("image_name", "tags"), *guesses))
    classes = {path: tuple(cell.split()) for path, cell in texts.items()}
    return Truth(classes, splits=all_in(train, "train"), left_out=test)


@kept
def imet_collection(painter: Painter) -> Truth:
    """Kaggle, iMet: attribute_ids are numbers with blanks between them,
    labels.csv has the names of the numbers.
    """
    train = painter.paint_all("train/1000483014d9186{:x}.png", 8)
    names = {
        "0": "culture::abruzzi",
        "1": "culture::american",
        "2": "tag::men",
        "3": "tag::women",
        "4": "tag::trees",
    }
    texts = dealt(train, ["0 2", "1", "3 4", "1 2 3"])
    painter.write("train.csv", table(("id", "attribute_ids"), *by_name(texts, stem)))
    painter.write("labels.csv", table(("attribute_id", "attribute_name"), *names.items()))
    classes = {path: tuple(names[key] for key in cell.split()) for path, cell in texts.items()}
    return Truth(classes, splits=all_in(train, "train"), numbers=numbered(names.values()))


@kept
def google_landmarks(painter: Painter) -> Truth:
    """Kaggle, Google Landmarks 2020: ids lie in train/0/0/0; a landmark's number has great gaps."""
    train = [painter.paint(f"train/{key[0]}/{key[1]}/{key[2]}/{key}.jpg") for key in _LANDMARK_IDS]
    classes = dealt(train, ["1", "7", "27"])
    painter.write("train.csv", table(("id", "landmark_id"), *by_name(classes, stem)))
    other = [
        Truth(classes, numbers=counted_from_1(["1", "7", "27"])),
        Truth(classes, numbers=numbered(["1", "7", "27"])),
    ]
    return Truth(
        classes,
        splits=all_in(train, "train"),
        numbers=counted_from_0(["1", "7", "27"]),
        choices=other,
    )


_LANDMARK_IDS = (
    *(
        "17660ef415d37059",
        "92b6290d571448f6",
        "cd41bf948edc0340",
        "1a6cb1deed46bb17",
        "9ea4d1d3a8c1b2f0",
    ),
    *("cd0012aa34bb56cc", "17fedcba98765432", "92aaaabbbbccccdd", "9e00000000000001"),
)


@kept
def leaf_classification(painter: Painter) -> Truth:
    """Kaggle, Leaf Classification: train.csv and test.csv share one folder images,
    and have columns of numbers.
    """
    paths = painter.paint_all("images/{}.jpg", 14, first=1)
    train, test = paths[:9], paths[9:]
    classes = dealt(train, ["Acer_Opalus", "Pterocarya_Stenoptera", "Quercus_Hartwissiana"])
    rows = ((stem(path), name, 0.007812, 0.023438) for path, name in classes.items())
    painter.write("train.csv", table(("id", "species", "margin1", "margin2"), *rows))
    painter.write(
        "test.csv",
        table(("id", "margin1", "margin2"), *((stem(path), 0.0195, 0.0097) for path in test)),
    )
    return Truth(classes, splits=all_in(train, "train"), left_out=test)


@kept
def state_farm_drivers(painter: Painter) -> Truth:
    """Kaggle, State Farm: imgs/train/c0, and driver_imgs_list.csv with subject,classname,img,
    which agrees.
    """
    classes = paint_classes(
        painter, "imgs/train/{name}/img_{name}{number}.jpg", ["c0", "c1", "c2"], 4
    )
    test = painter.paint_all("imgs/test/img_{}.jpg", 4)
    rows = (
        (f"p{place % 3:03}", name, name_of(path))
        for place, (path, name) in enumerate(classes.items())
    )
    painter.write("driver_imgs_list.csv", table(("subject", "classname", "img"), *rows))
    return Truth(classes, splits=all_in(classes, "train"), left_out=test)


@kept
def siim_isic_2020(painter: Painter) -> Truth:
    """Kaggle, SIIM-ISIC 2020: train.csv has diagnosis, benign_malignant and target;
    which is the class?
    """
    train = painter.paint_all("jpeg/train/ISIC_00{:05}.jpg", 9, first=15719)
    test = painter.paint_all("jpeg/test/ISIC_00{:05}.jpg", 3, first=52060)
    diagnosis = dealt(train, ["nevus", "unknown", "melanoma"])
    kind = {
        path: "malignant" if name == "melanoma" else "benign" for path, name in diagnosis.items()
    }
    target = {path: str(int(name == "malignant")) for path, name in kind.items()}
    header = (
        "image_name",
        "patient_id",
        "sex",
        "age_approx",
        "diagnosis",
        "benign_malignant",
        "target",
    )
    facts = {
        path: (f"IP_{place // 2:07}", "female", 45 + 5 * (place % 4))
        for place, path in enumerate(train)
    }
    rows = ((stem(path), *facts[path], diagnosis[path], kind[path], target[path]) for path in train)
    painter.write("train.csv", table(header, *rows))
    painter.write(
        "test.csv", table(header[:4], *((stem(path), "IP_3579794", "male", 70) for path in test))
    )
    splits = all_in(train, "train")
    other = [Truth(each, splits=splits, left_out=test) for each in (kind, diagnosis)]
    numbers = counted_from_0("01")
    return Truth(
        target, splits=splits, numbers=numbers, left_out=test, must_ask=True, choices=other
    )


@kept
def fashion_products(painter: Painter) -> Truth:
    """Kaggle, Fashion Product Images (Small): styles.csv has five columns that may be the class,
    and lost images.
    """
    paths = painter.paint_all("images/{}.jpg", 10, first=15970)
    kinds = dealt(paths, ["Topwear", "Bottomwear", "Watches"])
    masters = {
        path: "Accessories" if kind == "Watches" else "Apparel" for path, kind in kinds.items()
    }
    articles = dealt(paths, ["Shirts", "Jeans", "Watches"])
    header = ("id", "gender", "masterCategory", "subCategory", "articleType", "productDisplayName")
    rows = [
        (
            stem(path),
            "Men",
            masters[path],
            kinds[path],
            articles[path],
            f"Brand Men {articles[path]}",
        )
        for path in paths
    ]
    rows.append(
        ("39403", "Men", "Apparel", "Topwear", "Shirts", "Brand Men Shirt whose image is lost")
    )
    painter.write("styles.csv", table(header, *rows))
    return Truth(articles, must_ask=True, choices=[Truth(masters), Truth(kinds)])


@kept
def pawpularity(painter: Painter) -> Truth:
    """Kaggle, PetFinder Pawpularity: columns of 0 and 1 are facts on each photograph,
    and the target is a score.
    """
    train = painter.paint_all("train/0007de18844b0dbbb5e1f607da{:06x}.jpg", 10)
    header = ("Id", "Subject Focus", "Eyes", "Face", "Near", "Blur", "Pawpularity")
    rows = ((stem(path), 0, 1, 1, place % 2, 0, 20 + 7 * place) for place, path in enumerate(train))
    painter.write("train.csv", table(header, *rows))
    scores = {path: str(20 + 7 * place) for place, path in enumerate(train)}
    as_classes = Truth(scores, numbers=counted_from_0(scores.values()))
    return Truth(unlabelled(train), splits=all_in(train, "train"), choices=[as_classes])


@kept
def shopee_matching(painter: Painter) -> Truth:
    """Kaggle, Shopee: posting_id,image,image_phash,title,label_group;
    the group is the class, titles have commas.
    """
    train = painter.paint_all("train_images/0000a68812bc7e98c42888dfb1{:06x}.jpg", 8)
    classes = dealt(train, ["249114794", "2937985045", "2395904891"])
    rows = []
    for place, (path, group) in enumerate(classes.items()):
        rows.append(
            (
                f"train_{place}",
                name_of(path),
                "94974f937d4c2433",
                f'"Paper bag, brown, No {place}"',
                group,
            )
        )
    painter.write(
        "train.csv", table(("posting_id", "image", "image_phash", "title", "label_group"), *rows)
    )
    in_order = sorted(
        set(classes.values()), key=int
    )  # a group's number is an id: no network has so many outputs
    return Truth(classes, splits=all_in(train, "train"), numbers=numbered(in_order))


# medical and face sets ----------------------------------------------------------------------------


@kept
def ham_10000(painter: Painter) -> Truth:
    """HAM10000: images in HAM10000_images_part_1 and part_2;
    the class is dx, and ids have no ending.
    """
    paths = painter.paint_all("HAM10000_images_part_1/ISIC_00{:05}.jpg", 6, first=24306)
    paths += painter.paint_all("HAM10000_images_part_2/ISIC_00{:05}.jpg", 6, first=29306)
    classes = dealt(paths, ["bkl", "mel", "nv"])
    header = ("lesion_id", "image_id", "dx", "dx_type", "age", "sex", "localization")
    rows = []
    for place, (path, name) in enumerate(classes.items()):
        rows.append((f"HAM_{place // 2:07}", stem(path), name, "histo", 80.0, "male", "scalp"))
    painter.write("HAM10000_metadata.csv", table(header, *rows))
    painter.write(
        "hmnist_8_8_L.csv",
        table([f"pixel{place:04}" for place in range(8)] + ["label"], [169] * 8 + [2]),
    )
    return Truth(classes)


@kept
def isic_2019(painter: Painter) -> Truth:
    """ISIC 2019: the ground truth has 1.0 in the column of its class;
    a second table has age and site.
    """
    paths = painter.paint_all("ISIC_2019_Training_Input/ISIC_00{:05}.jpg", 10)
    columns = ["MEL", "NV", "BCC", "AK", "UNK"]
    classes = dealt(paths, columns[:4])
    rows = (
        (stem(path), *(float(name == column) for column in columns))
        for path, name in classes.items()
    )
    painter.write("ISIC_2019_Training_GroundTruth.csv", table(("image", *columns), *rows))
    header = ("image", "age_approx", "anatom_site_general", "lesion_id", "sex")
    facts = ((stem(path), 55.0, "anterior torso", "", "female") for path in paths)
    painter.write("ISIC_2019_Training_Metadata.csv", table(header, *facts))
    painter.write("ISIC_2019_Training_Input/ATTRIBUTION.txt", "CC-BY-NC 4.0\n")
    return Truth(classes, numbers=numbered(columns))


@kept
def chest_xray_14(painter: Painter) -> Truth:
    """NIH ChestX-ray14: images_001/images, findings with bars between them,
    and two lists that split the images.
    """
    paths = [painter.paint(f"images_001/images/{number:08}_000.png") for number in range(1, 7)]
    paths += [
        painter.paint(f"images_002/images/{number:08}_000.png") for number in range(1336, 1342)
    ]
    texts = dealt(paths, ["No Finding", "Cardiomegaly|Effusion", "Hernia", "Effusion"])
    header = (
        "Image Index",
        "Finding Labels",
        "Follow-up #",
        "Patient ID",
        "Patient Age",
        "Patient Gender",
    )
    rows = ((name_of(path), cell, 0, int(stem(path)[:8]), 58, "M") for path, cell in texts.items())
    painter.write("Data_Entry_2017.csv", table(header, *rows))
    train, test = paths[::2], paths[1::2]
    painter.write("train_val_list.txt", lines(map(name_of, train)))
    painter.write("test_list.txt", lines(map(name_of, test)))
    classes = {path: tuple(cell.split("|")) for path, cell in texts.items()}
    splits = all_in(train, "train") | all_in(test, "test")
    return Truth(classes, splits=splits)


@kept
def chexpert(painter: Painter) -> Truth:
    """CheXpert: Path starts with the folder's own name;
    findings are 1.0, 0.0, -1.0 (uncertain) or empty.
    """
    columns = ["No Finding", "Cardiomegaly", "Edema", "Pleural Effusion"]
    cells = [("1.0", "", "", ""), ("", "1.0", "-1.0", ""), ("", "0.0", "1.0", "1.0")]
    classes: dict[str, tuple[str, ...]] = {}
    bold: dict[str, tuple[str, ...]] = {}
    splits = {}
    for split, folder, count in (("train", "train", 6), ("validation", "valid", 3)):
        rows = []
        for place in range(count):
            path = painter.paint(
                f"CheXpert-v1.0-small/{folder}/patient{place:05}/study1/view1_frontal.jpg"
            )
            values = dict(zip(columns, cells[place % 3], strict=True))
            classes[path] = tuple(name for name, value in values.items() if value == "1.0")
            bold[path] = tuple(name for name, value in values.items() if value in ("1.0", "-1.0"))
            splits[path] = split
            rows.append((path, "Female", 68, "Frontal", "AP", *values.values()))
        header = ("Path", "Sex", "Age", "Frontal/Lateral", "AP/PA", *columns)
        painter.write(f"CheXpert-v1.0-small/{folder}.csv", table(header, *rows))
    numbers = numbered(columns)
    uncertain_too = Truth(bold, splits=splits, numbers=numbers)
    return Truth(classes, splits=splits, numbers=numbers, choices=[uncertain_too])


@kept
def mura(painter: Painter) -> Truth:
    """MURA: study1_positive in the path, and train_labeled_studies.csv labels folders,
    not files, without a header.
    """
    classes, splits, files, studies = {}, {}, [], []
    for place in range(8):
        split = "train" if place < 5 else "valid"
        kind = "positive" if place % 2 else "negative"
        folder = f"MURA-v1.1/{split}/XR_{('ELBOW', 'WRIST')[place // 2 % 2]}/patient{place:05}/study1_{kind}"
        for path in painter.paint_all(f"{folder}/image{{}}.png", 2, first=1):
            classes[path], splits[path] = kind, {"train": "train", "valid": "validation"}[split]
            files.append((split, path))
        studies.append((split, f"{folder}/,{int(kind == 'positive')}"))
    for split in ("train", "valid"):
        painter.write(
            f"MURA-v1.1/{split}_image_paths.csv",
            lines(path for name, path in files if name == split),
        )
        painter.write(
            f"MURA-v1.1/{split}_labeled_studies.csv",
            lines(row for name, row in studies if name == split),
        )
    as_listed = {path: str(int(kind == "positive")) for path, kind in classes.items()}
    by_number = Truth(as_listed, splits=splits, numbers=counted_from_0("01"))
    by_folder = Truth({path: f"study1_{kind}" for path, kind in classes.items()}, splits=splits)
    return Truth(
        classes,
        splits=splits,
        numbers={"negative": 0, "positive": 1},
        choices=[by_number, by_folder],
    )


@kept
def idrid_grading(painter: Painter) -> Truth:
    """IDRiD: folders "a. Training Set" and "b. Testing Set",
    a CSV for each with empty columns at the end of lines.
    """
    names = {"a. Training Set": ("train", 8), "b. Testing Set": ("test", 4)}
    classes, splits = {}, {}
    for folder, (split, count) in names.items():
        rows: list[tuple[object, ...]] = []
        for path in painter.paint_all(
            f"1. Original Images/{folder}/IDRiD_{{:03}}.jpg", count, first=1
        ):
            classes[path], splits[path] = str(len(rows) % 5), split
            rows.append((stem(path), classes[path], len(rows) % 3, "", ""))
        title = f"{folder[:2]} IDRiD_Disease Grading_{folder[3:].replace(' Set', '')} Labels.csv"
        header = ("Image name", "Retinopathy grade", "Risk of macular edema ", "", "")
        painter.write(f"2. Groundtruths/{title}", table(header, *rows))
    return Truth(classes, splits=splits, numbers=counted_from_0("01234"))


@kept
def celeba_csv(painter: Painter) -> Truth:
    """Kaggle, CelebA: attributes of 1 and -1 in one CSV, the splits 0,
    1 and 2 in another, in a doubled folder.
    """
    paths = painter.paint_all("img_align_celeba/img_align_celeba/{:06}.jpg", 12, first=1)
    return _celeba(painter, paths, "list_attr_celeba.csv", "list_eval_partition.csv", ",")


@kept
def celeba_txt(painter: Painter) -> Truth:
    """CelebA as published: Anno/list_attr_celeba.txt begins with a count, then names;
    Eval has the splits 0, 1, 2.
    """
    paths = painter.paint_all("Img/img_align_celeba/{:06}.jpg", 12, first=1)
    return _celeba(painter, paths, "Anno/list_attr_celeba.txt", "Eval/list_eval_partition.txt", " ")


def _celeba(
    painter: Painter, paths: list[str], attributes: str, partition: str, sign: str
) -> Truth:
    columns = ["Bald", "Eyeglasses", "Male", "Smiling"]
    classes: dict[str, tuple[str, ...]] = {}
    splits: dict[str, str] = {}
    rows: list[tuple[str, ...]] = []
    parts: list[tuple[str, int]] = []
    for place, path in enumerate(paths):
        values = dict.fromkeys(columns, "-1") | {
            columns[place % 4]: "1",
            columns[place // 2 % 4]: "1",
        }
        classes[path] = tuple(name for name, value in values.items() if value == "1")
        part = 0 if place < 6 else 1 if place < 9 else 2
        splits[path] = ("train", "validation", "test")[part]
        rows.append((name_of(path), *values.values()))
        parts.append((name_of(path), part))
    if sign == ",":
        painter.write(attributes, table(("image_id", *columns), *rows))
        painter.write(partition, table(("image_id", "partition"), *parts))
    else:
        painter.write(attributes, f"{len(paths)}\n{' '.join(columns)} \n" + table(*rows, sign="  "))
        painter.write(partition, table(*parts, sign=" "))
    numbers = numbered(columns)
    return Truth(
        classes, splits=splits, numbers=numbers, choices=[Truth(unlabelled(paths), splits=splits)]
    )


@kept
def vggface_2(painter: Painter) -> Truth:
    """VGGFace2: n000002 is an identity of train, test has others;
    identity_meta.csv has the name of each.
    """
    names = {
        "n000001": "Dalai_Lama",
        "n000002": "A_Fine_Frenzy",
        "n000009": "A_R_Rahman",
        "n000003": "A._A._Gill",
    }
    train = paint_classes(painter, "train/{name}/{number:04}_01.jpg", ["n000002", "n000003"], 5)
    test = paint_classes(painter, "test/{name}/{number:04}_01.jpg", ["n000001", "n000009"], 3)
    rows = [(key, f' "{name}"', " 5", " 1", " m") for key, name in sorted(names.items())]
    painter.write(
        "identity_meta.csv", table(("Class_ID", " Name", " Sample_Num", " Flag", " Gender"), *rows)
    )
    painter.write("train_list.txt", lines(path.removeprefix("train/") for path in train))
    painter.write("test_list.txt", lines(path.removeprefix("test/") for path in test))
    splits = all_in(train, "train") | all_in(test, "test")
    numbers = numbered(name for _, name in sorted(names.items()))
    ids_alone = Truth(train | test, splits=splits)
    return Truth(renamed(train | test, names), splits=splits, numbers=numbers, choices=[ids_alone])


# published data sets: lists of paths and numbers --------------------------------------------------


@kept
def food_101(painter: Painter) -> Truth:
    """Food-101 unpacked: images of class folders, meta/train.txt with
    apple_pie/1005649 and no ending, train.json.
    """
    names = ["apple_pie", "baklava", "pho"]
    classes = paint_classes(painter, "images/{name}/10056{number}.jpg", names, 6)
    test = [path for path in classes if path.endswith(("5.jpg", "6.jpg"))]
    train = [path for path in classes if path not in test]
    for split, paths in (("train", train), ("test", test)):
        keys = [path.removeprefix("images/").removesuffix(".jpg") for path in paths]
        painter.write(f"meta/{split}.txt", lines(keys))
        by_class = {name: [key for key in keys if key.startswith(f"{name}/")] for name in names}
        painter.write(f"meta/{split}.json", json.dumps(by_class))
    painter.write("meta/classes.txt", lines(names))
    painter.write("meta/labels.txt", lines(["Apple pie", "Baklava", "Pho"]))
    splits = all_in(train, "train") | all_in(test, "test")
    in_words = renamed(classes, {"apple_pie": "Apple pie", "baklava": "Baklava", "pho": "Pho"})
    return Truth(classes, splits=splits, choices=[Truth(in_words, splits=splits)])


@kept
def cub_200(painter: Painter) -> Truth:
    """CUB-200-2011 without boxes: numbers of images in images.txt,
    of classes and of splits in three more lists.
    """
    names = ["001.Black_footed_Albatross", "002.Laysan_Albatross", "003.Sooty_Albatross"]
    classes = paint_classes(painter, "images/{name}/Bird_{number:04}.jpg", names, 4)
    paths = list(classes)
    painter.write(
        "images.txt", table(*((row, path[7:]) for row, path in enumerate(paths, 1)), sign=" ")
    )
    keys = ((row, int(classes[path][:3])) for row, path in enumerate(paths, 1))
    painter.write("image_class_labels.txt", table(*keys, sign=" "))
    painter.write(
        "train_test_split.txt", table(*((row, row % 2) for row in range(1, 13)), sign=" ")
    )
    painter.write(
        "classes.txt", table(*((row, name) for row, name in enumerate(names, 1)), sign=" ")
    )
    train, test = paths[::2], paths[1::2]
    splits = all_in(train, "train") | all_in(test, "test")
    return Truth(classes, splits=splits, numbers=numbered(names))


@kept
def tiny_imagenet(painter: Painter) -> Truth:
    """Tiny ImageNet as published: val/val_annotations.txt,
    test/images without classes, words.txt names the ids.
    """
    names = {
        "n01443537": "goldfish, Carassius auratus",
        "n01629819": "European fire salamander",
        "n01641577": "bullfrog",
    }
    train, val = {}, {}
    for wnid in names:
        for path in painter.paint_all(f"train/{wnid}/images/{wnid}_{{}}.JPEG", 4):
            train[path] = wnid
        painter.write(
            f"train/{wnid}/{wnid}_boxes.txt",
            table(*((f"{wnid}_{n}.JPEG", 0, 0, 9, 9) for n in range(4)), sign="\t"),
        )
    for place, path in enumerate(painter.paint_all("val/images/val_{}.JPEG", 6)):
        val[path] = list(names)[place % 3]
    rows = ((name_of(path), wnid, 0, 0, 9, 9) for path, wnid in val.items())
    painter.write("val/val_annotations.txt", table(*rows, sign="\t"))
    test = painter.paint_all("test/images/test_{}.JPEG", 3)
    painter.write("wnids.txt", lines(names))
    painter.write("words.txt", table(("n00001740", "entity"), *names.items(), sign="\t"))
    classes = renamed(train | val, names)
    splits = all_in(train, "train") | all_in(val, "validation")
    return Truth(classes, splits=splits, numbers=numbered(names.values()), left_out=test)


@kept
def flat_val_by_ids(painter: Painter) -> Truth:
    """A course's copy: class folders in train, loose images in val,
    and val.csv of their names without endings.
    """
    train = paint_classes(painter, "train/{name}/{number}.jpg", ["apple", "pear", "plum"], 4)
    val = dealt(painter.paint_all("val/v{}.jpg", 6), ["plum", "apple", "pear"])
    painter.write("val.csv", table(("id", "class"), *by_name(val, stem)))
    return Truth(train | val, splits=all_in(train, "train") | all_in(val, "validation"))


@kept
def flat_val_by_numbers(painter: Painter) -> Truth:
    """As before, with numbers from 1 in val.csv:
    which folder is 1 is not said, so a person asks.
    """
    train = paint_classes(painter, "train/{name}/{number}.jpg", ["apple", "pear", "plum"], 4)
    val = dealt(painter.paint_all("val/v{}.jpg", 6), ["3", "1", "2"])
    painter.write("val.csv", table(("file", "label"), *by_name(val, name_of)))
    return Truth(train, splits=all_in(train, "train"), left_out=list(val), must_ask=True)


@kept
def places_365_val(painter: Painter) -> Truth:
    """Places365's validation set: places365_val.txt has names and numbers,
    categories_places365.txt what they are.
    """
    paths = painter.paint_all("val_256/Places365_val_{:08}.jpg", 9, first=1)
    names = {"0": "/a/airfield", "1": "/a/airplane_cabin", "2": "/b/barn"}
    keys = dealt(paths, ["2", "0", "1"])
    painter.write("places365_val.txt", table(*by_name(keys, name_of), sign=" "))
    painter.write(
        "categories_places365.txt", table(*((name, key) for key, name in names.items()), sign=" ")
    )
    return Truth(renamed(keys, names), numbers=numbered(names.values()))


@kept
def describable_textures(painter: Painter) -> Truth:
    """DTD: class folders, and ten ways to split them:
    labels/train1.txt, val1.txt, test1.txt, train2.txt and so on.
    """
    classes = paint_classes(
        painter, "images/{name}/{name}_{number:04}.jpg", ["banded", "dotted", "woven"], 6
    )
    truths = []
    for way in (0, 1):
        splits = {}
        for place, path in enumerate(classes):
            splits[path] = ("train", "validation", "test")[(place + way) % 3]
        for name, split in (("train", "train"), ("val", "validation"), ("test", "test")):
            paths = [path.removeprefix("images/") for path in classes if splits[path] == split]
            painter.write(f"labels/{name}{way + 1}.txt", lines(paths))
        truths.append(Truth(classes, splits=splits))
    joint = ((path.removeprefix("images/"), name, "") for path, name in classes.items())
    painter.write("labels/labels_joint_anno.txt", table(*joint, sign=" "))
    first, second = truths
    undivided = Truth(classes, splits=all_in(classes, "train"))
    return Truth(classes, splits=first.splits, choices=[second, undivided])


@kept
def oxford_pets_lists(painter: Painter) -> Truth:
    """Oxford-IIIT Pets' list.txt: comments, then a name without ending,
    the breed's number from 1, species, breed.
    """
    breeds = ["Abyssinian", "american_bulldog", "beagle", "Bengal"]
    paths = paint_classes(painter, "images/{name}_{number}.jpg", breeds, 4)
    species = {"Abyssinian": "1", "Bengal": "1", "american_bulldog": "2", "beagle": "2"}
    rows = {
        path: (stem(path), breeds.index(name) + 1, species[name], 1) for path, name in paths.items()
    }
    notes = "#Image CLASS-ID SPECIES BREED ID\n#ID: 1:37 Class ids\n#SPECIES: 1:Cat 2:Dog\n"
    painter.write("annotations/list.txt", notes + table(*rows.values(), sign=" "))
    train = [path for path in paths if path.endswith(("1.jpg", "2.jpg"))]
    test = [path for path in paths if path not in train]
    for name, part in (("trainval", train), ("test", test)):
        painter.write(f"annotations/{name}.txt", table(*(rows[path] for path in part), sign=" "))
    splits = all_in(train, "train") | all_in(test, "test")
    by_number = {path: str(breeds.index(name) + 1) for path, name in paths.items()}
    numbers_alone = Truth(by_number, splits=splits, numbers=counted_from_1(by_number.values()))
    return Truth(paths, splits=splits, numbers=numbered(breeds), choices=[numbers_alone])


@kept
def resisc_45_splits(painter: Painter) -> Truth:
    """RESISC45 in torchgeo: class folders, and resisc45-train.txt,
    -val.txt and -test.txt with bare names of files.
    """
    pattern = "NWPU-RESISC45/{name}/{name}_{number:03}.jpg"
    classes = paint_classes(painter, pattern, ["airplane", "beach", "harbor"], 6)
    splits = {
        path: ("train", "validation", "test")[place % 3] for place, path in enumerate(classes)
    }
    for name, split in (("train", "train"), ("val", "validation"), ("test", "test")):
        painter.write(
            f"resisc45-{name}.txt",
            lines(name_of(path) for path in classes if splits[path] == split),
        )
    return Truth(classes, splits=splits)


@kept
def domain_net(painter: Painter) -> Truth:
    """DomainNet: clipart/aircraft_carrier; clipart_train.txt has the path
    and the number of the class.
    """
    names = ["aircraft_carrier", "alarm_clock", "ambulance"]
    classes: dict[str, str] = {}
    splits: dict[str, str] = {}
    for domain in ("clipart", "real"):
        files = paint_classes(painter, f"{domain}/{{name}}/{domain}_{{number:06}}.jpg", names, 3)
        test = [path for path in files if path.endswith("3.jpg")]
        train = [path for path in files if path not in test]
        for name, part in (("train", train), ("test", test)):
            rows = ((path, names.index(files[path])) for path in part)
            painter.write(f"{domain}_{name}.txt", table(*rows, sign=" "))
            splits |= all_in(part, name)
        classes |= files
    return Truth(classes, splits=splits, numbers=numbered(names))


@kept
def pacs_lists(painter: Painter) -> Truth:
    """PACS: art_painting/dog, and lists such as
    art_painting_train_kfold.txt whose numbers count from 1.
    """
    names = ["dog", "elephant", "giraffe"]
    classes: dict[str, str] = {}
    splits: dict[str, str] = {}
    for domain in ("art_painting", "sketch"):
        files = paint_classes(painter, f"kfold/{domain}/{{name}}/pic_{{number:03}}.jpg", names, 4)
        for place, (name, split) in enumerate((("train", "train"), ("crossval", "validation"))):
            part = [path for path in files if path.endswith(("4.jpg", "3.jpg")) == bool(place)]
            rows = ((path.removeprefix("kfold/"), names.index(files[path]) + 1) for path in part)
            painter.write(f"splits/{domain}_{name}_kfold.txt", table(*rows, sign=" "))
            splits |= all_in(part, split)
        classes |= files
    return Truth(classes, splits=splits, numbers=numbered(names))


@kept
def stanford_products(painter: Painter) -> Truth:
    """Stanford Online Products: Ebay_train.txt has image,
    class and super class by number, then the path.
    """
    kinds = ["bicycle", "cabinet"]
    products: dict[str, str] = {}
    supers, splits = {}, {}
    for split, first in (("train", 1), ("test", 7)):
        rows = []
        for product in range(first, first + 4):
            kind = kinds[product % 2]
            for path in painter.paint_all(f"{kind}_final/1110858711{product:02}_{{}}.JPG", 2):
                products[path], supers[path], splits[path] = str(product), f"{kind}_final", split
                rows.append((len(products), product, kinds.index(kind) + 1, path))
        header = ("image_id", "class_id", "super_class_id", "path")
        painter.write(f"Ebay_{split}.txt", table(header, *rows, sign=" "))
    numbers = counted_from_1(products.values())
    other = Truth(supers, splits=splits)
    return Truth(products, splits=splits, numbers=numbers, must_ask=True, choices=[other])


@kept
def deep_fashion(painter: Painter) -> Truth:
    """DeepFashion: Anno/list_category_img.txt begins with a count and a header;
    Eval/list_eval_partition.txt splits.
    """
    names = {"1": "Anorak", "2": "Blazer", "3": "Blouse"}
    paths = []
    for product in ("Sheer_Pleated_Blouse", "Faux_Leather_Anorak"):
        paths += painter.paint_all(f"img/{product}/img_{{:08}}.jpg", 6, first=1)
    keys = dealt(paths, ["3", "1", "2"])
    splits = dealt(paths, ["train", "validation", "test"])
    short = {"train": "train", "validation": "val", "test": "test"}
    rows = "".join(f"{path:<50}{key}\n" for path, key in keys.items())
    painter.write("Anno/list_category_img.txt", f"{len(paths)}\nimage_name  category_label\n{rows}")
    rows = "".join(f"{name:<20}1\n" for name in names.values())
    painter.write("Anno/list_category_cloth.txt", f"3\ncategory_name  category_type\n{rows}")
    rows = "".join(f"{path:<50}{short[split]}\n" for path, split in splits.items())
    painter.write(
        "Eval/list_eval_partition.txt", f"{len(paths)}\nimage_name  evaluation_status\n{rows}"
    )
    numbers = counted_from_1(names)
    by_number = Truth(keys, splits=splits, numbers=numbers)
    return Truth(
        renamed(keys, names), splits=splits, numbers=numbered(names.values()), choices=[by_number]
    )


@kept
def fgvc_aircraft(painter: Painter) -> Truth:
    """FGVC-Aircraft: lists of the variant, family and maker, a file for each split;
    names with blanks, no endings.
    """
    paths = painter.paint_all("data/images/{:07}.jpg", 12, first=34309)
    variants = dealt(paths, ["A340-300", "Boeing 707-320", "Cessna 172"])
    makers = {
        path: {"A": "Airbus", "B": "Boeing", "C": "Cessna"}[name[0]]
        for path, name in variants.items()
    }
    splits = {
        path: ("train", "validation", "test")[place // 3 % 3] for place, path in enumerate(paths)
    }
    for level, classes in (("variant", variants), ("manufacturer", makers)):
        for name, split in (("train", "train"), ("val", "validation"), ("test", "test")):
            rows = (f"{stem(path)} {classes[path]}" for path in paths if splits[path] == split)
            painter.write(f"data/images_{level}_{name}.txt", lines(rows))
        painter.write(f"data/{level}s.txt", lines(sorted(set(classes.values()))))
    for name, split in (("train", "train"), ("val", "validation"), ("test", "test")):
        painter.write(
            f"data/images_{name}.txt", lines(stem(path) for path in paths if splits[path] == split)
        )
    return Truth(variants, splits=splits, must_ask=True, choices=[Truth(makers, splits=splits)])


@kept
def caffe_lists(painter: Painter) -> Truth:
    """Caffe's ImageNet example: train.txt and val.txt of "path number",
    synset_words.txt in their order.
    """
    names = {
        "n01440764": "tench, Tinca tinca",
        "n01443537": "goldfish",
        "n01484850": "great white shark",
    }
    wnids = list(names)
    train = paint_classes(painter, "train/{name}/{name}_{number}.JPEG", wnids, 4)
    val = dealt(
        painter.paint_all("val/ILSVRC2012_val_{:08}.JPEG", 6, first=1),
        [wnids[2], wnids[0], wnids[1]],
    )
    for folder, files in (("train", train), ("val", val)):
        rows = (
            (path.removeprefix(f"{folder}/"), wnids.index(wnid)) for path, wnid in files.items()
        )
        painter.write(f"{folder}.txt", table(*rows, sign=" "))
    painter.write("synset_words.txt", table(*names.items(), sign=" "))
    painter.write("synsets.txt", lines(wnids))
    splits = all_in(train, "train") | all_in(val, "validation")
    return Truth(renamed(train | val, names), splits=splits, numbers=numbered(names.values()))


@kept
def wiki_art(painter: Painter) -> Truth:
    """WikiArt: CSV files without a header of style and genre, one for each split;
    the folder is the style.
    """
    styles = ["Baroque", "Cubism", "Realism"]
    by_style = paint_classes(painter, "wikiart/{name}/painter_{number}.jpg", styles, 4)
    genres = dealt(list(by_style), ["landscape", "portrait"])
    splits = {path: "test" if path.endswith("4.jpg") else "train" for path in by_style}
    for kind, classes, names in (
        ("style", by_style, styles),
        ("genre", genres, ["landscape", "portrait"]),
    ):
        for name, split in (("train", "train"), ("val", "test")):
            paths = [path for path in by_style if splits[path] == split]
            rows = ((path.removeprefix("wikiart/"), names.index(classes[path])) for path in paths)
            painter.write(f"wikiart_csv/{kind}_{name}.csv", table(*rows))
        painter.write(f"wikiart_csv/{kind}_class.txt", table(*enumerate(names), sign=" "))
    val = {path: "validation" if split == "test" else split for path, split in splits.items()}
    return Truth(by_style, splits=val, choices=[Truth(genres, splits=val)])


@kept
def animals_with_attributes(painter: Painter) -> Truth:
    """AwA2: classes.txt numbers the folders of JPEGImages from 1;
    trainclasses.txt and testclasses.txt split them.
    """
    names = ["antelope", "bat", "beaver", "chimpanzee"]
    classes = paint_classes(painter, "JPEGImages/{name}/{name}_1000{number}.jpg", names, 4)
    rows = ((f"{place:>8}", name) for place, name in enumerate(names, 1))
    painter.write("classes.txt", table(*rows, sign="\t"))
    painter.write("trainclasses.txt", lines(names[:3]))
    painter.write("testclasses.txt", lines(names[3:]))
    splits = {path: "test" if name == "chimpanzee" else "train" for path, name in classes.items()}
    numbers = numbered(names)
    undivided = all_in(classes, "train")
    by_class = Truth(classes, splits=splits, numbers=numbers)
    return Truth(classes, splits=undivided, numbers=numbers, choices=[by_class])


@kept
def mir_flickr(painter: Painter) -> Truth:
    """MIRFLICKR-25000: annotations/bird.txt lists the numbers of the images that show a bird."""
    paths = painter.paint_all("mirflickr/im{}.jpg", 10, first=1)
    cells = dealt(paths, ["bird sky", "sky", "people", "people night"])
    for name in ("bird", "night", "people", "sky"):
        numbers = [stem(path)[2:] for path in paths if name in cells[path].split()]
        painter.write(f"annotations/{name}.txt", lines(numbers))
    painter.write("annotations/README.txt", "im1 to im25000\n")
    return Truth({path: tuple(cell.split()) for path, cell in cells.items()})


@kept
def voc_lists_of_classes(painter: Painter) -> Truth:
    """Pascal VOC without its XML: ImageSets/Main/cat_train.txt has 1,
    -1 or 0 for each image of the split.
    """
    paths = painter.paint_all("JPEGImages/2008_{:06}.jpg", 12, first=1)
    cells = dealt(paths, ["cat", "dog", "cat sofa", "sofa"])
    splits = {path: "train" if place < 8 else "validation" for place, path in enumerate(paths)}
    for name, split in (("train", "train"), ("val", "validation")):
        part = [path for path in paths if splits[path] == split]
        painter.write(f"ImageSets/Main/{name}.txt", lines(map(stem, part)))
        for label in ("cat", "dog", "sofa"):
            rows = (f"{stem(path)} {1 if label in cells[path].split() else -1:2}" for path in part)
            painter.write(f"ImageSets/Main/{label}_{name}.txt", lines(rows))
    return Truth({path: tuple(cell.split()) for path, cell in cells.items()}, splits=splits)


@kept
def gtsrb_kaggle(painter: Painter) -> Truth:
    """Kaggle, GTSRB: Train/0 to Train/42, Test flat, Train.csv and Test.csv with sizes,
    boxes, ClassId and Path.
    """
    train = paint_classes(
        painter, "Train/{name}/000{name}_00000_{number:05}.png", ["0", "1", "2", "10"], 3
    )
    test = dealt(painter.paint_all("Test/{:05}.png", 5), ["10", "1", "2", "0"])
    header = ("Width", "Height", "Roi.X1", "Roi.Y1", "Roi.X2", "Roi.Y2", "ClassId", "Path")
    for name, files in (("Train", train), ("Test", test)):
        rows = ((16, 12, 1, 1, 14, 10, key, path) for path, key in files.items())
        painter.write(f"{name}.csv", table(header, *rows))
    signs = painter.paint_all("Meta/{}.png", 3)
    painter.write(
        "Meta.csv",
        table(("Path", "ClassId", "ShapeId"), *((path, stem(path), 0) for path in signs)),
    )
    splits = all_in(train, "train") | all_in(test, "test")
    numbers = counted_from_0(["0", "1", "2", "10"])
    return Truth(train | test, splits=splits, numbers=numbers, left_out=signs)


@kept
def gtsrb_official(painter: Painter) -> Truth:
    """GTSRB as published: Final_Training/Images/00000 has PPM files and a
    GT-00000.csv with semicolons.
    """
    classes: dict[str, str] = {}
    for key in ("00000", "00001", "00002"):
        start = f"GTSRB/Final_Training/Images/{key}"
        paths = painter.paint_all(f"{start}/00000_{{:05}}.ppm", 4)
        header = ("Filename", "Width", "Height", "Roi.X1", "Roi.Y1", "Roi.X2", "Roi.Y2", "ClassId")
        rows = ((name_of(path), 16, 12, 1, 1, 14, 10, int(key)) for path in paths)
        painter.write(f"{start}/GT-{key}.csv", table(header, *rows, sign=";"))
        classes |= dict.fromkeys(paths, key)
    plain = {path: str(int(key)) for path, key in classes.items()}
    numbers = {key: int(key) for key in classes.values()}
    return Truth(classes, numbers=numbers, choices=[Truth(plain, numbers=counted_from_0("012"))])


@kept
def stanford_cars_kaggle(painter: Painter) -> Truth:
    """Kaggle, Stanford Cars: class folders in train and test, anno_train.csv without a header:
    name, box, class.
    """
    names = ["AM General Hummer SUV 2000", "Acura RL Sedan 2012", "Acura TL Sedan 2012"]
    both: dict[str, str] = {}
    splits: dict[str, str] = {}
    for split, first in (("train", 1), ("test", 51)):
        files: dict[str, str] = {}
        for place, name in enumerate(names):
            start = first + 10 * place
            files |= paint_classes(
                painter, f"car_data/car_data/{split}/{{name}}/{{number:05}}.jpg", [name], 3, start
            )
        rows = (
            (name_of(path), 1, 2, 15, 11, names.index(name) + 1) for path, name in files.items()
        )
        painter.write(f"anno_{split}.csv", table(*rows))
        both |= files
        splits |= all_in(files, split)
    painter.write("names.csv", lines(names))
    return Truth(both, splits=splits, numbers=numbered(names))


@kept
def eurosat_kaggle(painter: Painter) -> Truth:
    """Kaggle, EuroSAT: class folders, train.csv, validation.csv and test.csv with Label and
    ClassName, a JSON map.
    """
    names = ["AnnualCrop", "Forest", "River"]
    classes = paint_classes(painter, "EuroSAT/{name}/{name}_{number}.jpg", names, 6)
    splits = {
        path: ("train", "validation", "test")[place % 3] for place, path in enumerate(classes)
    }
    for split in ("train", "validation", "test"):
        paths = [path for path in classes if splits[path] == split]
        rows = []
        for place, path in enumerate(paths):
            name = classes[path]
            rows.append((place, path.removeprefix("EuroSAT/"), names.index(name), name))
        painter.write(f"EuroSAT/{split}.csv", table(("", "Filename", "Label", "ClassName"), *rows))
    painter.write("EuroSAT/label_map.json", json.dumps(numbered(names)))
    return Truth(classes, splits=splits, numbers=numbered(names))


@kept
def mini_imagenet(painter: Painter) -> Truth:
    """mini-ImageNet (Ravi and Larochelle): one folder images;
    train.csv, val.csv and test.csv share no class.
    """
    parts = {
        "train": ["n01532829", "n01558993"],
        "val": ["n01855672", "n02091244"],
        "test": ["n01930112", "n01981276"],
    }
    classes: dict[str, str] = {}
    splits: dict[str, str] = {}
    for split, wnids in parts.items():
        files = paint_classes(painter, "images/{name}0000{number:04}.jpg", wnids, 3)
        painter.write(f"{split}.csv", table(("filename", "label"), *by_name(files, name_of)))
        classes |= files
        splits |= all_in(files, {"val": "validation"}.get(split, split))
    return Truth(classes, splits=splits, numbers=numbered(sorted(set(classes.values()))))


@kept
def sports_classification(painter: Painter) -> Truth:
    """Kaggle, 100 Sports: folders of splits and classes, and sports.csv with class id,
    filepaths, labels, data set.
    """
    names = ["air hockey", "archery", "barrel racing"]
    train = paint_classes(painter, "train/{name}/{number:03}.jpg", names, 4)
    valid = paint_classes(painter, "valid/{name}/{number}.jpg", names, 1)
    test = paint_classes(painter, "test/{name}/{number}.jpg", names, 1)
    classes = train | valid | test
    rows = ((names.index(name), path, name, path.split("/")[0]) for path, name in classes.items())
    painter.write("sports.csv", table(("class id", "filepaths", "labels", "data set"), *rows))
    painter.write("EfficientNetB0-sports.h5", b"\x89HDF\r\n")
    splits = all_in(train, "train") | all_in(valid, "validation") | all_in(test, "test")
    return Truth(classes, splits=splits, numbers=numbered(names))


@kept
def real_and_fake_faces(painter: Painter) -> Truth:
    """Kaggle, 140k Real and Fake Faces: folders of splits,
    a CSV each with a path of another machine.
    """
    classes: dict[str, str] = {}
    splits: dict[str, str] = {}
    for folder, split in (("train", "train"), ("valid", "validation"), ("test", "test")):
        start = f"real_vs_fake/real-vs-fake/{folder}"
        files = paint_classes(painter, f"{start}/{{name}}/{{number:05}}.jpg", ["fake", "real"], 3)
        rows = []
        for place, (path, name) in enumerate(files.items()):
            other = (
                f"/kaggle/input/flickrfaceshq-dataset-nvidia-resized-256px/resized/{name_of(path)}"
            )
            short = path.removeprefix("real_vs_fake/real-vs-fake/")
            rows.append((place, other, stem(path), int(name == "real"), name, short))
        painter.write(
            f"{folder}.csv", table(("", "original_path", "id", "label", "label_str", "path"), *rows)
        )
        classes |= files
        splits |= all_in(files, split)
    return Truth(classes, splits=splits, numbers=numbered(["fake", "real"]))


@kept
def garbage_classification(painter: Painter) -> Truth:
    """Kaggle, Garbage Classification: class folders;
    one list counts the classes from 1, another from 0.
    """
    names = ["glass", "paper", "cardboard", "plastic"]
    pattern = "Garbage classification/Garbage classification/{name}/{name}{number}.jpg"
    classes = paint_classes(painter, pattern, names, 4)
    for name, first in (("one-indexed-files", 1), ("zero-indexed-files", 0)):
        rows = ((name_of(path), names.index(kind) + first) for path, kind in classes.items())
        painter.write(f"{name}.txt", table(*rows, sign=" "))
    return Truth(classes, numbers=numbered(names), choices=[Truth(classes)])


@kept
def caption_lists(painter: Painter) -> Truth:
    """Flickr8k: captions.txt has two lines of text for each image, with a header;
    there are no classes.
    """
    paths = painter.paint_all("Images/1000268201_693b08cb{:02}.jpg", 8)
    rows = []
    for path in paths:
        rows += [
            (name_of(path), f'"A child, number {stem(path)[-2:]} ."'),
            (name_of(path), "A girl goes in ."),
        ]
    painter.write("captions.txt", table(("image", "caption"), *rows))
    return Truth(unlabelled(paths))


@kept
def flickr_30k(painter: Painter) -> Truth:
    """Flickr30k on Kaggle: results.csv with bars: image_name| comment_number| comment;
    there are no classes.
    """
    paths = painter.paint_all("flickr30k_images/1000092{:03}.jpg", 8)
    rows = []
    for path in paths:
        rows += [
            (name_of(path), " 0", " Two young guys ."),
            (name_of(path), " 1", " Two men outside ."),
        ]
    painter.write(
        "results.csv", table(("image_name", " comment_number", " comment"), *rows, sign="|")
    )
    return Truth(unlabelled(paths))


@kept
def beauty_scores(painter: Painter) -> Truth:
    """SCUT-FBP5500: train.txt and test.txt give each face a score such as 2.683;
    a score is no class.
    """
    paths = painter.paint_all("Images/CF{}.jpg", 9, first=1)
    rows = [f"{name_of(path)} {2 + 0.217 * place:.6f}" for place, path in enumerate(paths)]
    painter.write("train_test_files/train.txt", lines(rows[:6]))
    painter.write("train_test_files/test.txt", lines(rows[6:]))
    splits = all_in(paths[:6], "train") | all_in(paths[6:], "test")
    return Truth(unlabelled(paths), splits=splits)


# own sets: how programs and people write tables ---------------------------------------------------


@kept
def species_in_batches(painter: Painter) -> Truth:
    """A field study: photos in the folders of each delivery,
    observations.csv with file,observer,species.
    """
    paths = painter.paint_all("batch_1/{:03}.jpg", 5) + painter.paint_all("batch_2/{:03}.jpg", 5)
    classes = dealt(paths, ["lynx", "marten", "roe deer"])
    rows = ((path, "ab", name) for path, name in classes.items())
    painter.write("observations.csv", table(("file", "observer", "species"), *rows))
    return Truth(classes)


@kept
def breeds_by_bare_name(painter: Painter) -> Truth:
    """A shelter's export: photos in the folders of two rooms,
    animals.csv with photo,breed and no folders.
    """
    paths = painter.paint_all("room_a/P{:04}.jpg", 5) + painter.paint_all(
        "room_b/P{:04}.jpg", 5, first=50
    )
    classes = dealt(paths, ["collie", "mixed", "pug"])
    painter.write("animals.csv", table(("photo", "breed"), *by_name(classes, name_of)))
    return Truth(classes)


@kept
def categories_without_endings(painter: Painter) -> Truth:
    """A museum's export: objects.csv has inventory,category,
    and files are called by the inventory number.
    """
    paths = painter.paint_all("scans/INV-{:05}.jpg", 9, first=120)
    classes = dealt(paths, ["coin", "medal", "seal"])
    painter.write("objects.csv", table(("inventory", "category"), *by_name(classes, stem)))
    return Truth(classes)


@kept
def column_y(painter: Painter) -> Truth:
    """A course on scikit-learn: data.csv has image_path and y,
    numbers from 0 of which 1 has no image.
    """
    paths = painter.paint_all("imgs/{}.png", 9)
    classes = dealt(paths, ["0", "2", "3"])
    painter.write("data.csv", table(("image_path", "y"), *classes.items()))
    return Truth(classes, numbers=counted_from_0("023"))


@kept
def column_target_of_words(painter: Painter) -> Truth:
    """A notebook: frame.csv of pandas with its index first, then filepath, width, target."""
    paths = painter.paint_all("crops/{}.jpg", 8)
    classes = dealt(paths, ["defect", "ok"])
    rows = ((place, path, 16, name) for place, (path, name) in enumerate(classes.items()))
    painter.write("frame.csv", table(("", "filepath", "width", "target"), *rows))
    return Truth(classes)


@kept
def archive_beside_its_table(painter: Painter) -> Truth:
    """Hubs and university servers: images.tar with one folder, labels.csv beside it."""
    stream = io.BytesIO()
    paths = []
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for number in range(9):
            path = f"images/{number:03}.jpg"
            content = painter.encode(path)
            member = tarfile.TarInfo(path)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
            paths.append(path)
    painter.write("images.tar", stream.getvalue())
    classes = dealt(paths, ["cherry", "plum", "sloe"])
    painter.write("labels.csv", table(("file", "label"), *by_name(classes, name_of)))
    return Truth(classes)


@kept
def table_without_header(painter: Painter) -> Truth:
    """A shell script's output: list.csv has file,class in each line and no header;
    the files lie in two folders.
    """
    paths = painter.paint_all("a/{}.jpg", 4) + painter.paint_all("b/{}.jpg", 4, first=10)
    classes = dealt(paths, ["bus", "tram"])
    painter.write("list.csv", table(*classes.items()))
    return Truth(classes)


@kept
def numbers_of_folders(painter: Painter) -> Truth:
    """Masterful's guide: class folders, and train.csv of "dandelion/1.jpg, 1" without a header."""
    names = ["roses", "dandelion", "tulips"]
    classes = paint_classes(painter, "{name}/{number}_n.jpg", names, 4)
    painter.write(
        "train.csv", lines(f"{path}, {names.index(name)}" for path, name in classes.items())
    )
    return Truth(classes, numbers=numbered(names), splits=all_in(classes, "train"))


@kept
def paths_of_another_machine(painter: Painter) -> Truth:
    """A colleague's table: train.csv has /home/mia/data/birds/img/1.jpg,
    and the folder came without /home/mia.
    """
    paths = painter.paint_all("img/{}.jpg", 9)
    classes = dealt(paths, ["robin", "swift", "wren"])
    rows = ((f"/home/mia/data/birds/{path}", name) for path, name in classes.items())
    painter.write("train.csv", table(("path", "label"), *rows))
    return Truth(classes)


@kept
def paths_of_another_machine_twice(painter: Painter) -> Truth:
    """A copy from a cluster: /scratch/u17/set/day1/1.jpg and day2/1.jpg;
    only the last folders tell them apart.
    """
    paths = painter.paint_all("day1/{}.jpg", 5) + painter.paint_all("day2/{}.jpg", 5)
    classes = dealt(paths, ["calm", "rough", "storm"])
    rows = ((f"/scratch/u17/set/{path}", name) for path, name in classes.items())
    painter.write("labels.csv", table(("filename", "class"), *rows))
    return Truth(classes)


@kept
def paths_of_windows(painter: Painter) -> Truth:
    """A laboratory's PC: C:\\Data\\Slides\\A\\1.jpg with backslashes,
    and CR LF at the ends of lines.
    """
    paths = painter.paint_all("A/{}.jpg", 5) + painter.paint_all("B/{}.jpg", 5)
    classes = dealt(paths, ["benign", "malignant"])
    rows = [("File", "Label")]
    for path, name in classes.items():
        windows = path.replace("/", "\\")
        rows.append((f"C:\\Data\\Slides\\{windows}", name))
    painter.write("slides.csv", table(*rows).replace("\n", "\r\n"))
    return Truth(classes)


@kept
def a_table_for_each_split(painter: Painter) -> Truth:
    """A thesis: train.csv, val.csv and test.csv on one folder img;
    val and test lack the class that comes first.
    """
    paths = painter.paint_all("img/{:03}.jpg", 14)
    parts = {"train": paths[:8], "val": paths[8:11], "test": paths[11:]}
    classes: dict[str, str] = {}
    splits: dict[str, str] = {}
    for name, part in parts.items():
        kinds = ["ash", "birch", "cedar", "elm"] if name == "train" else ["birch", "elm"]
        dealt_out = dealt(part, kinds)
        painter.write(
            f"{name}.csv",
            table(("filename", "label"), *((name_of(path), dealt_out[path]) for path in part)),
        )
        classes |= dealt_out
        splits |= all_in(part, {"val": "validation"}.get(name, name))
    return Truth(classes, splits=splits)


@kept
def numbers_for_each_split(painter: Painter) -> Truth:
    """A thesis: train.txt and val.txt of "path number";
    val begins at 2, and a number means one class in both.
    """
    paths = painter.paint_all("img/{:03}.jpg", 12)
    train, val = dealt(paths[:8], ["0", "1", "2", "3"]), dealt(paths[8:], ["2", "3"])
    painter.write("train.txt", table(*train.items(), sign=" "))
    painter.write("val.txt", table(*val.items(), sign=" "))
    splits = all_in(train, "train") | all_in(val, "validation")
    return Truth(train | val, splits=splits, numbers=counted_from_0("0123"))


@kept
def folders_called_crosswise(painter: Painter) -> Truth:
    """A relabelling gone half: labels.csv calls every image of folder cat
    a dog and those of dog a cat.
    """
    folders = paint_classes(painter, "{name}/{number}.jpg", ["cat", "dog"], 5)
    swapped = renamed(folders, {"cat": "dog", "dog": "cat"})
    painter.write("labels.csv", table(("file", "label"), *swapped.items()))
    return Truth(swapped, must_ask=True, choices=[Truth(folders)])


@kept
def species_or_breed(painter: Painter) -> Truth:
    """A course on pets: the folders are cat and dog,
    labels.csv gives each image a breed in its column label.
    """
    folders = paint_classes(painter, "{name}/{number}.jpg", ["cat", "dog"], 6)
    breeds = {"cat": ["siamese", "sphynx"], "dog": ["boxer", "pug"]}
    classes = {path: breeds[name][place % 2] for place, (path, name) in enumerate(folders.items())}
    painter.write("labels.csv", table(("file", "label"), *classes.items()))
    return Truth(classes, must_ask=True, choices=[Truth(folders)])


@kept
def a_tenth_relabelled(painter: Painter) -> Truth:
    """A review of labels: relabelled.csv names every image,
    and two of them get another class than their folder's.
    """
    folders = paint_classes(painter, "{name}/{number}.jpg", ["car", "van"], 8)
    changed = {**folders, "car/3.jpg": "van", "van/7.jpg": "car"}
    painter.write("relabelled.csv", table(("path", "label"), *changed.items()))
    return Truth(changed, must_ask=True, choices=[Truth(folders)])


@kept
def two_annotators(painter: Painter) -> Truth:
    """A study of agreement: labels_anna.csv and labels_ben.csv name all
    images and differ on two.
    """
    paths = painter.paint_all("img/{}.png", 9)
    anna = dealt(paths, ["mild", "none", "severe"])
    ben = {**anna, paths[0]: "severe", paths[4]: "mild"}
    for name, classes in (("anna", anna), ("ben", ben)):
        rows = ((name_of(path), label) for path, label in classes.items())
        painter.write(f"labels_{name}.csv", table(("file", "label"), *rows))
    return Truth(anna, must_ask=True, choices=[Truth(ben)])


@kept
def coarse_and_fine(painter: Painter) -> Truth:
    """A taxonomy in columns: table.csv has file,order,family,species; which level is the class?"""
    paths = painter.paint_all("img/{}.jpg", 12)
    species = dealt(paths, ["Apis mellifera", "Bombus terrestris", "Vespa crabro", "Pieris rapae"])
    family = renamed(
        species,
        {
            **dict.fromkeys(species.values(), "Apidae"),
            "Vespa crabro": "Vespidae",
            "Pieris rapae": "Pieridae",
        },
    )
    order = {
        path: "Lepidoptera" if name == "Pieridae" else "Hymenoptera"
        for path, name in family.items()
    }
    rows = ((name_of(path), order[path], family[path], species[path]) for path in paths)
    painter.write("table.csv", table(("file", "order", "family", "species"), *rows))
    return Truth(species, must_ask=True, choices=[Truth(family), Truth(order)])


@kept
def predictions_beside_labels(painter: Painter) -> Truth:
    """A project folder: labels.csv, and predictions.csv of an old model with
    predicted,confidence for every image.
    """
    paths = painter.paint_all("images/{}.jpg", 9)
    classes = dealt(paths, ["lake", "river", "sea"])
    painter.write("labels.csv", table(("file", "label"), *by_name(classes, name_of)))
    rows = ((name_of(path), "lake", 0.51) for path in paths)
    painter.write("predictions.csv", table(("file", "predicted", "confidence"), *rows))
    return Truth(classes)


@kept
def synology_thumbnails_beside_a_table(painter: Painter) -> Truth:
    """A table of images kept on a Synology: @eaDir lies beside the images,
    with a folder of each image's name.
    """
    classes = dealt(painter.paint_all("img/{:02}.jpg", 9), ["crow", "jay", "owl"])
    painter.paint("img/@eaDir/01.jpg/SYNOFILE_THUMB_M.jpg")
    painter.write("labels.csv", table(("image", "label"), *by_name(classes, name_of)))
    return Truth(classes)


@kept
def semicolons_of_a_german_excel(painter: Painter) -> Truth:
    """Excel in German: a byte order mark, semicolons and CR LF;
    the columns are Datei and Klasse.
    """
    paths = painter.paint_all("Bilder/{}.jpg", 8)
    classes = dealt(paths, ["Gr\u00fcnfink", "Kohlmeise", "Star"])
    rows = ((name_of(path), name) for path, name in classes.items())
    painter.write(
        "Klassen.csv", "\ufeff" + table(("Datei", "Klasse"), *rows, sign=";").replace("\n", "\r\n")
    )
    return Truth(classes)


@kept
def unicode_text_of_excel(painter: Painter) -> Truth:
    """Excel's "Unicode text": tabs in UTF-16, with columns file and label."""
    paths = painter.paint_all("{}.jpg", 8)
    classes = dealt(paths, ["caf\u00e9", "th\u00e9"])
    painter.write(
        "labels.txt", table(("file", "label"), *classes.items(), sign="\t").encode("utf-16")
    )
    return Truth(classes)


@kept
def split_column(painter: Painter) -> Truth:
    """Many own sets: dataset.csv has filename,label,split with train, val and test."""
    paths = painter.paint_all("images/{:03}.jpg", 12)
    classes = dealt(paths, ["glioma", "meningioma", "none"])
    words = {
        path: ("train", "train", "val", "test")[place // 3] for place, path in enumerate(paths)
    }
    rows = ((name_of(path), classes[path], words[path]) for path in paths)
    painter.write("dataset.csv", table(("filename", "label", "split"), *rows))
    return Truth(
        classes,
        splits={path: {"val": "validation"}.get(word, word) for path, word in words.items()},
    )


@kept
def split_column_with_empty_cells(painter: Painter) -> Truth:
    """A set under work: labels.csv has filename,label,split,
    and no split yet for the last three images.
    """
    paths = painter.paint_all("images/{:02}.jpg", 12)
    classes = dealt(paths, ["a", "b", "c"])
    splits = all_in(paths[:6], "train") | all_in(paths[6:9], "test")
    rows = ((name_of(path), classes[path], splits.get(path, "")) for path in paths)
    painter.write("labels.csv", table(("filename", "label", "split"), *rows))
    return Truth(classes, splits=splits, left_out=paths[9:])


@kept
def numbers_of_splits_beside_those_of_classes(painter: Painter) -> Truth:
    """As CelebA's partition, in the table of the classes: both columns have 0, 1 and 2."""
    paths = painter.paint_all("images/{:02}.jpg", 12)
    classes = dealt(paths, ["0", "1", "2"])
    parts = dict(zip(paths, [0] * 6 + [1] * 3 + [2] * 3, strict=True))
    painter.write(
        "labels.csv",
        table(
            ("file", "label", "partition"),
            *((name_of(path), classes[path], parts[path]) for path in paths),
        ),
    )
    names = ("train", "validation", "test")
    return Truth(classes, splits={path: names[part] for path, part in parts.items()})


@kept
def set_column_of_other_words(painter: Painter) -> Truth:
    """A registry's export: set is TRN, VAL or TST; the class is called species."""
    paths = painter.paint_all("images/{:03}.jpg", 12)
    classes = dealt(paths, ["cod", "hake", "ling"])
    words = {path: ("TRN", "TRN", "VAL", "TST")[place // 3] for place, path in enumerate(paths)}
    rows = ((name_of(path), classes[path], words[path]) for path in paths)
    painter.write("fish.csv", table(("image", "species", "set"), *rows))
    meaning = {"TRN": "train", "VAL": "validation", "TST": "test"}
    return Truth(classes, splits=renamed(words, meaning))


@kept
def is_valid_column(painter: Painter) -> Truth:
    """fast.ai's data blocks: labels.csv has fname,label,is_valid with True and False."""
    paths = painter.paint_all("train/{:03}.jpg", 10)
    classes = dealt(paths, ["3", "7"])
    valid = {path: place >= 7 for place, path in enumerate(paths)}
    painter.write(
        "labels.csv",
        table(
            ("fname", "label", "is_valid"), *((path, classes[path], valid[path]) for path in paths)
        ),
    )
    splits = {path: "validation" if late else "train" for path, late in valid.items()}
    by_value = Truth(classes, splits=splits, numbers={"3": 3, "7": 7})
    return Truth(classes, splits=splits, numbers={"3": 0, "7": 1}, choices=[by_value])


@kept
def fold_column(painter: Painter) -> Truth:
    """Notebooks on Kaggle: train_folds.csv has image_id,label,fold;
    a fold is no split and no class.
    """
    paths = painter.paint_all("train/{:03}.jpg", 10)
    classes = dealt(paths, ["ok", "rust"])
    rows = ((name_of(path), classes[path], place % 5) for place, path in enumerate(paths))
    painter.write("train_folds.csv", table(("image_id", "label", "fold"), *rows))
    last = {path: "validation" if place % 5 == 4 else "train" for place, path in enumerate(paths)}
    return Truth(classes, splits=all_in(classes, "train"), choices=[Truth(classes, splits=last)])


@kept
def minus_one_is_no_class(painter: Painter) -> Truth:
    """Semi-supervised sets (STL-10, Hugging Face):
    labels.csv has 0, 1, 2, and -1 for images without a class.
    """
    paths = painter.paint_all("img/{:03}.png", 12)
    cells = dealt(paths, ["0", "1", "2", "-1"])
    painter.write("labels.csv", table(("file", "label"), *by_name(cells, name_of)))
    classes = {path: None if key == "-1" else key for path, key in cells.items()}
    return Truth(classes, numbers=counted_from_0("012"))


@kept
def numbers_from_one(painter: Painter) -> Truth:
    """MATLAB users' tables: labels.csv counts the classes from 1, and no class is 0."""
    paths = painter.paint_all("img/{:03}.png", 10)
    classes = dealt(paths, ["1", "2", "3", "4", "5"])
    painter.write("labels.csv", table(("file", "label"), *by_name(classes, name_of)))
    as_written = Truth(classes, numbers={key: int(key) for key in "12345"})
    return Truth(classes, numbers=counted_from_1("12345"), choices=[as_written])


@kept
def json_of_paths(painter: Painter) -> Truth:
    """Own scripts: labels.json is one object, the class of each path."""
    classes = dealt(painter.paint_all("images/{}.jpg", 8), ["apple", "pear"])
    painter.write("labels.json", json.dumps(classes, indent=2))
    return Truth(classes)


@kept
def json_of_numbers(painter: Painter) -> Truth:
    """StyleGAN's dataset.json: {"labels": [["00000/img00000000.png", 6], ...]}."""
    paths = painter.paint_all("00000/img{:08}.png", 9)
    classes = dealt(paths, ["6", "0", "2"])
    painter.write(
        "dataset.json", json.dumps({"labels": [[path, int(key)] for path, key in classes.items()]})
    )
    return Truth(classes, numbers=counted_from_0("026"))


@kept
def json_of_classes(painter: Painter) -> Truth:
    """Own scripts: classes.json has the list of files of each class."""
    classes = dealt(painter.paint_all("images/{}.jpg", 8), ["brick", "tile"])
    members = {
        name: [name_of(path) for path in classes if classes[path] == name]
        for name in ("brick", "tile")
    }
    painter.write("classes.json", json.dumps(members))
    return Truth(classes)


@kept
def json_list_of_objects(painter: Painter) -> Truth:
    """Web tools' export: annotations.json is a list of {"image": ..., "label": ...}."""
    classes = dealt(painter.paint_all("images/{}.jpg", 8), ["day", "night"])
    rows = [{"image": name_of(path), "label": name, "user": 7} for path, name in classes.items()]
    painter.write("annotations.json", json.dumps(rows))
    return Truth(classes)


@kept
def fiftyone_labels(painter: Painter) -> Truth:
    """FiftyOne's ImageClassificationDataset: data/,
    and labels.json with classes and the number of each id.
    """
    paths = painter.paint_all("data/{:06}.jpg", 9, first=1)
    names = ["zebra", "horse", "okapi"]
    classes = dealt(paths, names)
    labels = {stem(path): names.index(name) for path, name in classes.items()}
    painter.write("labels.json", json.dumps({"classes": names, "labels": labels}))
    return Truth(classes, numbers=numbered(names))


@kept
def sagemaker_manifest(painter: Painter) -> Truth:
    """Amazon SageMaker Ground Truth: output.manifest, JSON lines with an S3 address,
    a number and its class-name.
    """
    paths = painter.paint_all("images/{}.jpg", 8)
    names = ["truck", "car"]
    classes = dealt(paths, names)
    rows = []
    for path, name in classes.items():
        facts = {"class-name": name, "confidence": 0.9, "human-annotated": "yes"}
        row = {"source-ref": f"s3://bucket/{path}", "job": names.index(name), "job-metadata": facts}
        rows.append(json.dumps(row))
    painter.write("output.manifest", lines(rows))
    return Truth(classes, numbers=numbered(names))


@kept
def auto_ml_table(painter: Painter) -> Truth:
    """Google's AutoML Vision: import.csv without a header:
    TRAIN, the address in a bucket, the class.
    """
    paths = painter.paint_all("flowers/{:03}.jpg", 12)
    classes = dealt(paths, ["daisy", "rose", "tulip"])
    words = {
        path: ("TRAIN", "TRAIN", "VALIDATION", "TEST")[place // 3]
        for place, path in enumerate(paths)
    }
    painter.write(
        "import.csv",
        table(*((words[path], f"gs://my-bucket/{path}", classes[path]) for path in paths)),
    )
    return Truth(classes, splits={path: word.lower() for path, word in words.items()})


@kept
def mxnet_lists(painter: Painter) -> Truth:
    """MXNet's im2rec: train.lst and val.lst with a number,
    the class as 2.000000 and the path, between tabs.
    """
    paths = painter.paint_all("images/{:03}.jpg", 12)
    classes = dealt(paths, ["0", "1", "2"])
    splits = {path: "train" if place < 8 else "validation" for place, path in enumerate(paths)}
    for name, split in (("train", "train"), ("val", "validation")):
        part = [path for path in paths if splits[path] == split]
        rows = ((place, f"{classes[path]}.000000", path) for place, path in enumerate(part))
        painter.write(f"{name}.lst", table(*rows, sign="\t"))
    return Truth(classes, splits=splits, numbers=counted_from_0("012"))


@kept
def roboflow_classes(painter: Painter) -> Truth:
    """Roboflow's multi-label export: train/_classes.csv and valid/_classes.csv,
    columns of 0 and 1 after blanks.
    """
    names = ["crack", "dent", "scratch"]
    cells = ["crack", "dent scratch", "scratch", "crack dent"]
    classes, splits = {}, {}
    for folder, split, count in (("train", "train", 8), ("valid", "validation", 4)):
        rows = []
        for place, path in enumerate(
            painter.paint_all(f"{folder}/part_{{}}_jpg.rf.0a1b2c.jpg", count)
        ):
            classes[path], splits[path] = tuple(cells[place % 4].split()), split
            rows.append((name_of(path), *(f" {int(name in classes[path])}" for name in names)))
        painter.write(
            f"{folder}/_classes.csv", table(("filename", *(f" {name}" for name in names)), *rows)
        )
    painter.write("README.roboflow.txt", "The dataset includes 12 images.\n")
    return Truth(classes, splits=splits, numbers=numbered(names))


@kept
def true_and_false_columns(painter: Painter) -> Truth:
    """A survey's export: tags.csv has a column for each tag with True and False;
    an image can have several or none.
    """
    paths = painter.paint_all("photos/{}.jpg", 9)
    names = ["indoor", "people", "text"]
    cells = dealt(paths, ["indoor", "indoor people", "text people"])
    classes = {path: tuple(cell.split()) for path, cell in cells.items()}
    rows = ((name_of(path), *(name in classes[path] for name in names)) for path in paths)
    painter.write("tags.csv", table(("photo", *names), *rows))
    return Truth(classes, numbers=numbered(names))


@kept
def lists_in_cells(painter: Painter) -> Truth:
    """pandas with lists in cells: genres.csv has "['Comedy',
    'Drama']" in the column Genre (film posters).
    """
    paths = painter.paint_all("Images/tt00{:05}.jpg", 9, first=86425)
    lists = [("Comedy", "Drama"), ("Action",), ("Drama",)]
    classes = {path: lists[place % 3] for place, path in enumerate(paths)}
    rows = ((stem(path), f'"{list(names)}"') for path, names in classes.items())
    painter.write("train.csv", table(("Id", "Genre"), *rows))
    return Truth(classes)


@kept
def text_beside_each_image(painter: Painter) -> Truth:
    """A labelling script of one's own: 12.txt beside 12.jpg holds one word, the class."""
    classes = dealt(painter.paint_all("shots/{}.jpg", 9), ["goal", "miss", "save"])
    for path, name in classes.items():
        painter.write(path.replace(".jpg", ".txt"), f"{name}\n")
    return Truth(classes)


@kept
def a_list_for_each_class(painter: Painter) -> Truth:
    """Old lab folders: car.txt and bus.txt list the files of their class,
    the images lie in one folder.
    """
    classes = dealt(painter.paint_all("jpg/{:04}.jpg", 8), ["bus", "car"])
    for name in ("bus", "car"):
        painter.write(
            f"{name}.txt", lines(name_of(path) for path in classes if classes[path] == name)
        )
    return Truth(classes)


@kept
def labels_in_the_order_of_files(painter: Painter) -> Truth:
    """ILSVRC's validation way: val_ground_truth.txt has one number from 1 a line,
    in the order of the files' names.
    """
    paths = painter.paint_all("val/ILSVRC2012_val_{:08}.JPEG", 9, first=1)
    classes = dealt(paths, ["2", "3", "1"])
    painter.write("val_ground_truth.txt", lines(classes.values()))
    as_written = Truth(classes, numbers={key: int(key) for key in "123"})
    return Truth(classes, numbers=counted_from_1("123"), choices=[as_written])


@kept
def patients_with_a_diagnosis(painter: Painter) -> Truth:
    """A clinic's folders: a folder of slices for each patient,
    patients.csv has patient,age,diagnosis.
    """
    diagnoses = {"P001": "AD", "P002": "CN", "P003": "MCI", "P004": "CN"}
    folders = paint_classes(painter, "scans/{name}/slice_{number:02}.png", diagnoses, 3)
    rows = (
        (name, 60 + place, diagnosis) for place, (name, diagnosis) in enumerate(diagnoses.items())
    )
    painter.write("patients.csv", table(("patient", "age", "diagnosis"), *rows))
    return Truth(renamed(folders, diagnoses))


@kept
def more_rows_than_files(painter: Painter) -> Truth:
    """A set of links of which a third is dead: labels.csv names twelve images, eight are there."""
    paths = painter.paint_all("images/{:03}.jpg", 8)
    classes = dealt(paths, ["barn", "mill"])
    rows = by_name(classes, name_of)
    rows += [(f"{number:03}.jpg", "barn") for number in range(8, 12)]
    painter.write("labels.csv", table(("filename", "label"), *rows))
    return Truth(classes)


@kept
def more_files_than_rows(painter: Painter) -> Truth:
    """A labelling under way: labels.csv names eight of the twelve images in a folder."""
    paths = painter.paint_all("images/{:03}.jpg", 12)
    classes = dealt(paths[:8], ["fen", "moor"])
    painter.write("labels.csv", table(("filename", "label"), *by_name(classes, name_of)))
    return Truth(classes, left_out=paths[8:])


@kept
def rows_that_come_twice(painter: Painter) -> Truth:
    """Two exports in one file: labels.csv has the first rows once more, with the same classes."""
    classes = dealt(painter.paint_all("images/{:03}.jpg", 8), ["dry", "wet"])
    rows = by_name(classes, name_of)
    painter.write("labels.csv", table(("filename", "label"), *rows, *rows[:3]))
    return Truth(classes)


@kept
def endings_of_another_case(painter: Painter) -> Truth:
    """A camera's files: DSC_0001.JPG on the disk is DSC_0001.jpg in the table."""
    classes = dealt(painter.paint_all("photos/DSC_{:04}.JPG", 8, first=1), ["left", "right"])
    painter.write(
        "labels.csv",
        table(("file", "label"), *((f"{stem(path)}.jpg", name) for path, name in classes.items())),
    )
    return Truth(classes)


@kept
def endings_before_a_conversion(painter: Painter) -> Truth:
    """Files that were converted: the table names 0001.dcm or 0001.bmp, the folder has 0001.png."""
    classes = dealt(painter.paint_all("png/{:04}.png", 8, first=1), ["Lung_Opacity", "Normal"])
    painter.write(
        "labels.csv",
        table(("file", "label"), *((f"{stem(path)}.dcm", name) for path, name in classes.items())),
    )
    return Truth(classes)


# names of ids, beside folders ---------------------------------------------------------------------


@kept
def flowers_cat_to_name(painter: Painter) -> Truth:
    """Udacity's flower classifier: train/21, valid/21, test/21,
    and cat_to_name.json with the name of each number.
    """
    names = {
        "1": "pink primrose",
        "2": "hard-leaved pocket orchid",
        "10": "globe thistle",
        "21": "fire lily",
    }
    train = paint_classes(painter, "train/{name}/image_{number:05}.jpg", names, 3)
    valid = paint_classes(painter, "valid/{name}/image_{number:05}.jpg", ["1", "21"], 2, first=60)
    test = paint_classes(painter, "test/{name}/image_{number:05}.jpg", ["2", "10"], 2, first=80)
    painter.write("cat_to_name.json", json.dumps(dict(reversed(names.items()))))
    splits = all_in(train, "train") | all_in(valid, "validation") | all_in(test, "test")
    numbers = {name: int(key) - 1 for key, name in names.items()}
    in_order = Truth(
        renamed(train | valid | test, names), splits=splits, numbers=numbered(names.values())
    )
    return Truth(
        renamed(train | valid | test, names), splits=splits, numbers=numbers, choices=[in_order]
    )


@kept
def ten_monkeys(painter: Painter) -> Truth:
    """Kaggle, 10 Monkey Species: training/training/n0,
    and monkey_labels.txt with Latin and common names.
    """
    names = {"n0": "mantled_howler", "n1": "patas_monkey", "n2": "bald_uakari"}
    latin = {"n0": "alouatta_palliata", "n1": "erythrocebus_patas", "n2": "cacajao_calvus"}
    train = paint_classes(painter, "training/training/{name}/{name}0{number}.jpg", names, 4)
    valid = paint_classes(
        painter, "validation/validation/{name}/{name}0{number}.jpg", names, 2, first=0
    )
    rows = (
        (f"{key:<5}", f" {latin[key]}\t", f" {name:<25}", " 131", " 26")
        for key, name in names.items()
    )
    header = ("Label", " Latin Name", " Common Name", " Train Images", " Validation Images")
    painter.write("monkey_labels.txt", table(header, *rows))
    splits = all_in(train, "train") | all_in(valid, "validation")
    other = [Truth(renamed(train | valid, latin), splits=splits, numbers=numbered(latin.values()))]
    other.append(Truth(train | valid, splits=splits))
    return Truth(
        renamed(train | valid, names),
        splits=splits,
        numbers=numbered(names.values()),
        choices=other,
    )


@kept
def wnids_with_synset_mapping(painter: Painter) -> Truth:
    """Parts of ImageNet (Kaggle's ImageNet-100):
    wnid folders, and Labels.json with the name of each wnid.
    """
    names = {
        "n01440764": "tench, Tinca tinca",
        "n01871265": "tusker",
        "n02123045": "tabby, tabby cat",
    }
    train = paint_classes(
        painter, "train.X1/{name}/{name}_{number}.JPEG", ["n01440764", "n01871265"], 3
    )
    train |= paint_classes(painter, "train.X2/{name}/{name}_{number}.JPEG", ["n02123045"], 3)
    val = paint_classes(painter, "val.X/{name}/ILSVRC2012_val_{name}_{number}.JPEG", names, 1)
    painter.write("Labels.json", json.dumps(names))
    splits = all_in(train, "train") | all_in(val, "validation")
    return Truth(renamed(train | val, names), splits=splits, numbers=numbered(names.values()))


@kept
def imagenet_class_index(painter: Painter) -> Truth:
    """Keras' imagenet_class_index.json beside wnid folders: {"0": ["n01440764", "tench"], ...}."""
    names = {"n01440764": "tench", "n01443537": "goldfish", "n02123045": "tabby"}
    classes = paint_classes(painter, "images/{name}/{name}_{number}.jpg", names, 4)
    index = {number: [wnid, name] for number, (wnid, name) in enumerate(names.items())}
    painter.write("imagenet_class_index.json", json.dumps(index))
    return Truth(renamed(classes, names), numbers=numbered(names.values()))


@kept
def idx_to_class(painter: Painter) -> Truth:
    """PyTorch users: folders 0, 1, 2, and idx_to_class.json with a name for each number."""
    names = {"0": "stop", "1": "yield", "2": "no entry"}
    classes = paint_classes(painter, "data/{name}/{number:03}.png", names, 4)
    painter.write("idx_to_class.json", json.dumps(names))
    return Truth(renamed(classes, names), numbers=numbered(names.values()))


@kept
def class_indices_of_keras(painter: Painter) -> Truth:
    """Keras users: class_indices.json from an old run, {"dog": 0, "cat":
    1, "ape": 2}, beside class folders.
    """
    classes = paint_classes(painter, "images/{name}/{number:03}.png", ["dog", "cat", "ape"], 4)
    painter.write("class_indices.json", json.dumps({"dog": 0, "cat": 1, "ape": 2}))
    return Truth(classes, numbers=numbered(["dog", "cat", "ape"]))


@kept
def classes_txt_in_its_order(painter: Painter) -> Truth:
    """Own sets for a camera: classes.txt lists the folders in the order of the device's numbers."""
    classes = paint_classes(painter, "data/{name}/{number:03}.png", ["red", "amber", "green"], 4)
    painter.write("classes.txt", lines(["red", "amber", "green"]))
    return Truth(classes, numbers=numbered(["red", "amber", "green"]), choices=[Truth(classes)])


@kept
def classes_txt_beside_splits(painter: Painter) -> Truth:
    """Own sets for a camera: classes.txt beside train and val,
    in the order of the device's numbers.
    """
    train = paint_classes(painter, "train/{name}/{number}.jpg", ["owl", "tit", "ant"], 3)
    val = paint_classes(painter, "val/{name}/{number}.jpg", ["owl", "tit", "ant"], 2, first=7)
    painter.write("classes.txt", lines(["tit", "owl", "ant"]))
    splits = all_in(train, "train") | all_in(val, "validation")
    return Truth(train | val, splits=splits, numbers=numbered(["tit", "owl", "ant"]))


@kept
def classes_txt_of_one_more(painter: Painter) -> Truth:
    """A part of a set: classes.txt lists a class, crow, whose folder isn't there;
    the others keep their numbers.
    """
    classes = paint_classes(painter, "{name}/{number}.jpg", ["owl", "tit", "ant"], 3)
    painter.write("classes.txt", lines(["owl", "crow", "tit", "ant"]))
    return Truth(classes, numbers=numbered(["owl", "crow", "tit", "ant"]))


@kept
def classes_txt_beside_a_table_of_words(painter: Painter) -> Truth:
    """A labelling tool's export: labels.csv has words,
    and classes.txt says in which order they are numbered.
    """
    classes = dealt(painter.paint_all("img/{}.jpg", 9), ["yak", "bee", "cow"])
    painter.write("labels.csv", table(("file", "label"), *by_name(classes, name_of)))
    painter.write("classes.txt", lines(["yak", "cow", "bee"]))
    return Truth(classes, numbers=numbered(["yak", "cow", "bee"]))


@kept
def label_map_pbtxt(painter: Painter) -> Truth:
    """TensorFlow's object detection users: label_map.pbtxt has id and name from 1;
    the folders are the ids.
    """
    names = {"1": "helmet", "2": "head", "3": "person"}
    classes = paint_classes(painter, "crops/{name}/{number:03}.jpg", names, 4)
    items = (f"item {{\n  id: {key}\n  name: '{name}'\n}}\n" for key, name in names.items())
    painter.write("label_map.pbtxt", "".join(items))
    return Truth(renamed(classes, names), numbers=numbered(names.values()))


@kept
def imagenet_a(painter: Painter) -> Truth:
    """ImageNet-A: wnid folders, and a README.txt that has sentences,
    then a line of wnid and name for each class.
    """
    names = {"n01498041": "stingray", "n01531178": "goldfinch", "n01534433": "junco"}
    classes = paint_classes(painter, "imagenet-a/{name}/0.00{number}_x_0.jpg", names, 4)
    painter.write(
        "imagenet-a/README.txt",
        "Natural adversarial examples.\n\n" + table(*names.items(), sign=" "),
    )
    return Truth(
        renamed(classes, names), numbers=numbered(names.values()), choices=[Truth(classes)]
    )


# Hugging Face's imagefolder -----------------------------------------------------------------------


@kept
def imagefolder_metadata(painter: Painter) -> Truth:
    """Hugging Face's imagefolder: a metadata.csv with file_name,label,age
    in each folder of a split.
    """
    classes: dict[str, str] = {}
    splits: dict[str, str] = {}
    for folder, split, count in (("train", "train", 8), ("test", "test", 4)):
        files = dealt(painter.paint_all(f"{folder}/{{:04}}.jpg", count), ["cat", "dog"])
        rows = ((name_of(path), name, 3) for path, name in files.items())
        painter.write(f"{folder}/metadata.csv", table(("file_name", "label", "age"), *rows))
        classes |= files
        splits |= all_in(files, split)
    return Truth(classes, splits=splits)


@kept
def imagefolder_captions(painter: Painter) -> Truth:
    """Hugging Face's imagefolder: train/metadata.jsonl with file_name and text (Pokemon captions);
    no classes.
    """
    paths = painter.paint_all("train/{:04}.png", 8)
    rows = (
        json.dumps({"file_name": name_of(path), "text": f"a drawing of {stem(path)}"})
        for path in paths
    )
    painter.write("train/metadata.jsonl", lines(rows))
    return Truth(unlabelled(paths), splits=all_in(paths, "train"))


@kept
def imagefolder_numbers(painter: Painter) -> Truth:
    """Hugging Face's hub: images/ and a metadata.jsonl above it,
    labels as numbers, names in README.md's YAML.
    """
    paths = painter.paint_all("images/{:04}.png", 9)
    names = ["angular_leaf_spot", "bean_rust", "healthy"]
    classes = dealt(paths, names)
    rows = (
        json.dumps({"file_name": path, "label": names.index(name)})
        for path, name in classes.items()
    )
    painter.write("metadata.jsonl", lines(rows))
    listed = "".join(f"          '{place}': {name}\n" for place, name in enumerate(names))
    head = (
        "---\ndataset_info:\n  features:\n  - name: label\n    dtype:\n      class_label:\n     "
        "   names:\n"
    )
    painter.write("README.md", f"{head}{listed}---\n# Beans\n")
    by_number = {path: str(names.index(name)) for path, name in classes.items()}
    return Truth(
        classes, numbers=numbered(names), choices=[Truth(by_number, numbers=counted_from_0("012"))]
    )


@kept
def kohya_captions(painter: Painter) -> Truth:
    """Diffusion trainers (kohya): img/10_mychar/1.png with 1.txt of tags beside;
    10 is a repeat, no class.
    """
    paths = painter.paint_all("img/10_mychar woman/{}.png", 8)
    for path in paths:
        painter.write(path.replace(".png", ".txt"), f"mychar, standing, outdoors, {stem(path)}")
    return Truth(unlabelled(paths), choices=[Truth(dict.fromkeys(paths, "10_mychar woman"))])


@kept
def table_of_camera_facts(painter: Painter) -> Truth:
    """A photographer's export: exif.csv has file, aperture, iso, shutter; no column is a class."""
    paths = painter.paint_all("2021/{:04}.jpg", 5) + painter.paint_all(
        "2022/{:04}.jpg", 5, first=50
    )
    rows = (
        (path, 2.8 + place % 3, 100 * (1 + place % 4), f"1/{60 + place}")
        for place, path in enumerate(paths)
    )
    painter.write("exif.csv", table(("file", "aperture", "iso", "shutter"), *rows))
    return Truth(unlabelled(paths))
