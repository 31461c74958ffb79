"""Folders whose classes stand in tables and lists: competitions, published data sets and exports of programs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from kept_by_folder import (
    all_in,
    base,
    numbered,
    paint_classes,
    renamed,
    stem,
    table,
    unlabelled,
)
from kept_folders import Painter, Truth, kept


def dealt(paths: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """Classes dealt to images in turn, as cards are."""
    return {path: names[place % len(names)] for place, path in enumerate(paths)}


def counted_from_0(names: Iterable[str]) -> dict[str, int]:
    """Classes whose names are their numbers."""
    return {name: int(name) for name in sorted(set(names))}


def counted_from_1(names: Iterable[str]) -> dict[str, int]:
    """Classes whose names are their numbers, the first of which is 1."""
    return {name: int(name) - 1 for name in sorted(set(names))}


def ids(paths: Iterable[str], prefix: str = "") -> list[tuple[str, ...]]:
    """A row of each image with its name without the ending."""
    return [(prefix + stem(path),) for path in paths]


def lines(rows: Iterable[str]) -> str:
    """A list of a line each."""
    return "".join(f"{row}\n" for row in rows)


# competitions: a table of ids beside a folder of images ---------------------------------------------------------


@kept
def dog_breed_identification(painter: Painter) -> Truth:
    """Kaggle, Dog Breed Identification: labels.csv has id,breed without the ending .jpg; test has a submission."""
    train = painter.paint_all("train/000bec18{:04x}cbe3.jpg", 9)
    test = painter.paint_all("test/00a3edd2{:04x}ff1a.jpg", 4)
    breeds = ["beagle", "boston_bull", "dingo"]
    classes = dealt(train, breeds)
    painter.write("labels.csv", table(("id", "breed"), *((stem(path), name) for path, name in classes.items())))
    guesses = ((stem(path), 0.33, 0.33, 0.33) for path in test)
    painter.write("sample_submission.csv", table(("id", *breeds), *guesses))
    return Truth(classes, splits=all_in(train, "train"), left_out=test)


@kept
def cassava(painter: Painter) -> Truth:
    """Kaggle, Cassava Leaf Disease: numbers in train.csv, their names in label_num_to_disease_map.json."""
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
    painter.write("train.csv", table(("image_id", "label"), *((base(path), key) for path, key in numbers.items())))
    painter.write("label_num_to_disease_map.json", json.dumps(names))
    painter.write("sample_submission.csv", table(("image_id", "label"), *((base(path), 4) for path in test)))
    splits = all_in(train, "train")
    classes = renamed(numbers, names)
    return Truth(classes, splits=splits, numbers=numbered(names.values()), left_out=test)


@kept
def plant_pathology_2020(painter: Painter) -> Truth:
    """Kaggle, Plant Pathology 2020: train.csv has a column of 0 and 1 for each class, and ids without the ending."""
    train = painter.paint_all("images/Train_{}.jpg", 9)
    test = painter.paint_all("images/Test_{}.jpg", 4)
    columns = ["healthy", "multiple_diseases", "rust", "scab"]
    classes = dealt(train, columns)
    rows = ((stem(path), *(int(name == column) for column in columns)) for path, name in classes.items())
    painter.write("train.csv", table(("image_id", *columns), *rows))
    painter.write("test.csv", table(("image_id",), *ids(test)))
    painter.write("sample_submission.csv", table(("image_id", *columns), *((stem(path), *[0.25] * 4) for path in test)))
    return Truth(classes, splits=all_in(train, "train"), numbers=numbered(columns), left_out=test)


@kept
def plant_pathology_2021(painter: Painter) -> Truth:
    """Kaggle, Plant Pathology 2021: the column labels has one or several words with blanks between them."""
    train = painter.paint_all("train_images/800113bb{:04}.jpg", 10)
    cells = ["healthy", "scab frog_eye_leaf_spot complex", "scab", "rust complex", "frog_eye_leaf_spot"]
    texts = dealt(train, cells)
    painter.write("train.csv", table(("image", "labels"), *((base(path), cell) for path, cell in texts.items())))
    classes = {path: tuple(cell.split()) for path, cell in texts.items()}
    return Truth(classes, splits=all_in(train, "train"))


@kept
def aptos_2019(painter: Painter) -> Truth:
    """Kaggle, APTOS 2019: train.csv has id_code,diagnosis, a grade from 0 to 4; grade 3 has no image here."""
    train = painter.paint_all("train_images/000c1434d8{:02}.png", 8)
    test = painter.paint_all("test_images/0005cfc8af{:02}.png", 3)
    classes = dealt(train, ["2", "4", "1", "0"])
    painter.write("train.csv", table(("id_code", "diagnosis"), *((stem(path), key) for path, key in classes.items())))
    painter.write("test.csv", table(("id_code",), *ids(test)))
    painter.write("sample_submission.csv", table(("id_code", "diagnosis"), *((stem(path), 0) for path in test)))
    return Truth(classes, splits=all_in(train, "train"), numbers=counted_from_0("0124"), left_out=test)


@kept
def diabetic_retinopathy(painter: Painter) -> Truth:
    """Kaggle, Diabetic Retinopathy 2015: trainLabels.csv names 10_left without .jpeg, its class is called level."""
    train = [painter.paint(f"train/{number}_{eye}.jpeg") for number in range(10, 15) for eye in ("left", "right")]
    classes = dealt(train, ["0", "1", "2", "3", "4"])
    painter.write("trainLabels.csv", table(("image", "level"), *((stem(path), key) for path, key in classes.items())))
    return Truth(classes, splits=all_in(train, "train"), numbers=counted_from_0("01234"))


@kept
def histopathologic_cancer(painter: Painter) -> Truth:
    """Kaggle, Histopathologic Cancer Detection: train/ID.tif, and train_labels.csv with id,label of 0 and 1."""
    train = painter.paint_all("train/f38a6374c348f90b587e046aac{:014x}.tif", 8)
    test = painter.paint_all("test/00006537328c33e284c973d7b3{:014x}.tif", 3)
    classes = dealt(train, ["0", "1"])
    painter.write("train_labels.csv", table(("id", "label"), *((stem(path), key) for path, key in classes.items())))
    painter.write("sample_submission.csv", table(("id", "label"), *((stem(path), 0) for path in test)))
    return Truth(classes, splits=all_in(train, "train"), numbers=counted_from_0("01"), left_out=test)


@kept
def cifar_10_kaggle(painter: Painter) -> Truth:
    """Kaggle, CIFAR-10: ids 1, 2, 3 name files of train, and test has files of these names too."""
    train = painter.paint_all("train/{}.png", 9, first=1)
    test = painter.paint_all("test/{}.png", 12, first=1)
    classes = dealt(train, ["frog", "truck", "deer"])
    painter.write("trainLabels.csv", table(("id", "label"), *((stem(path), name) for path, name in classes.items())))
    painter.write("sampleSubmission.csv", table(("id", "label"), *((stem(path), "cat") for path in test)))
    return Truth(classes, splits=all_in(train, "train"), left_out=test)


@kept
def humpback_whales(painter: Painter) -> Truth:
    """Kaggle, Humpback Whale Identification: in train.csv the column Id is the class, and new_whale is one of them."""
    train = painter.paint_all("train/0000e88a{:02}.jpg", 9)
    test = painter.paint_all("test/00028a00{:02}.jpg", 3)
    classes = dealt(train, ["w_f48451c", "new_whale", "w_c3d896a"])
    painter.write("train.csv", table(("Image", "Id"), *((base(path), name) for path, name in classes.items())))
    rows = ((base(path), "new_whale w_23a388d w_9b5109b") for path in test)
    painter.write("sample_submission.csv", table(("Image", "Id"), *rows))
    return Truth(classes, splits=all_in(train, "train"), left_out=test)


@kept
def happy_whale(painter: Painter) -> Truth:
    """Kaggle, Happywhale: train.csv has image,species,individual_id; which is the class?"""
    train = painter.paint_all("train_images/00021adfb7{:02}.jpg", 9)
    species = dealt(train, ["beluga", "minke_whale", "orca"])
    individuals = {path: f"cadddb16{place // 2:02x}" for place, path in enumerate(train)}
    rows = ((base(path), species[path], individuals[path]) for path in train)
    painter.write("train.csv", table(("image", "species", "individual_id"), *rows))
    splits = all_in(train, "train")
    return Truth(individuals, splits=splits, must_ask=True, choices=[Truth(species, splits=splits)])


@kept
def planet_amazon(painter: Painter) -> Truth:
    """Kaggle, Planet: train_v2.csv has image_name,tags: train_0 without an ending, and words with blanks between."""
    train = painter.paint_all("train-jpg/train_{}.jpg", 10)
    test = painter.paint_all("test-jpg/test_{}.jpg", 3)
    texts = dealt(train, ["haze primary", "agriculture clear primary water", "clear primary", "cloudy"])
    painter.write("train_v2.csv", table(("image_name", "tags"), *((stem(path), cell) for path, cell in texts.items())))
    guesses = ((stem(path), "primary clear") for path in test)
    painter.write("sample_submission_v2.csv", table(("image_name", "tags"), *guesses))
    classes = {path: tuple(cell.split()) for path, cell in texts.items()}
    return Truth(classes, splits=all_in(train, "train"), left_out=test)


@kept
def imet_collection(painter: Painter) -> Truth:
    """Kaggle, iMet: attribute_ids are numbers with blanks between them, labels.csv has the names of the numbers."""
    train = painter.paint_all("train/1000483014d9186{:x}.png", 8)
    names = {"0": "culture::abruzzi", "1": "culture::american", "2": "tag::men", "3": "tag::women", "4": "tag::trees"}
    texts = dealt(train, ["0 2", "1", "3 4", "1 2 3"])
    painter.write("train.csv", table(("id", "attribute_ids"), *((stem(path), cell) for path, cell in texts.items())))
    painter.write("labels.csv", table(("attribute_id", "attribute_name"), *names.items()))
    classes = {path: tuple(names[key] for key in cell.split()) for path, cell in texts.items()}
    return Truth(classes, splits=all_in(train, "train"), numbers=numbered(names.values()))


@kept
def google_landmarks(painter: Painter) -> Truth:
    """Kaggle, Google Landmarks 2020: ids lie in train/0/0/0; a landmark's number has great gaps."""
    train = [painter.paint(f"train/{key[0]}/{key[1]}/{key[2]}/{key}.jpg") for key in _LANDMARK_IDS]
    classes = dealt(train, ["1", "7", "27"])
    painter.write("train.csv", table(("id", "landmark_id"), *((stem(path), key) for path, key in classes.items())))
    return Truth(classes, splits=all_in(train, "train"), numbers=counted_from_0(["1", "7", "27"]))


_LANDMARK_IDS = (
    *("17660ef415d37059", "92b6290d571448f6", "cd41bf948edc0340", "1a6cb1deed46bb17", "9ea4d1d3a8c1b2f0"),
    *("cd0012aa34bb56cc", "17fedcba98765432", "92aaaabbbbccccdd", "9e00000000000001"),
)


@kept
def leaf_classification(painter: Painter) -> Truth:
    """Kaggle, Leaf Classification: train.csv and test.csv share one folder images, and have columns of numbers."""
    paths = painter.paint_all("images/{}.jpg", 14, first=1)
    train, test = paths[:9], paths[9:]
    classes = dealt(train, ["Acer_Opalus", "Pterocarya_Stenoptera", "Quercus_Hartwissiana"])
    rows = ((stem(path), name, 0.007812, 0.023438) for path, name in classes.items())
    painter.write("train.csv", table(("id", "species", "margin1", "margin2"), *rows))
    painter.write("test.csv", table(("id", "margin1", "margin2"), *((stem(path), 0.0195, 0.0097) for path in test)))
    return Truth(classes, splits=all_in(train, "train"), left_out=test)


@kept
def state_farm_drivers(painter: Painter) -> Truth:
    """Kaggle, State Farm: imgs/train/c0, and driver_imgs_list.csv with subject,classname,img, which agrees."""
    classes = paint_classes(painter, "imgs/train/{name}/img_{name}{number}.jpg", ["c0", "c1", "c2"], 4)
    test = painter.paint_all("imgs/test/img_{}.jpg", 4)
    rows = ((f"p{place % 3:03}", name, base(path)) for place, (path, name) in enumerate(classes.items()))
    painter.write("driver_imgs_list.csv", table(("subject", "classname", "img"), *rows))
    return Truth(classes, splits=all_in(classes, "train"), left_out=test)


@kept
def siim_isic_2020(painter: Painter) -> Truth:
    """Kaggle, SIIM-ISIC 2020: train.csv has diagnosis, benign_malignant and target; which is the class?"""
    train = painter.paint_all("jpeg/train/ISIC_00{:05}.jpg", 9, first=15719)
    test = painter.paint_all("jpeg/test/ISIC_00{:05}.jpg", 3, first=52060)
    diagnosis = dealt(train, ["nevus", "unknown", "melanoma"])
    kind = {path: "malignant" if name == "melanoma" else "benign" for path, name in diagnosis.items()}
    target = {path: str(int(name == "malignant")) for path, name in kind.items()}
    header = ("image_name", "patient_id", "sex", "age_approx", "diagnosis", "benign_malignant", "target")
    facts = {path: (f"IP_{place // 2:07}", "female", 45 + 5 * (place % 4)) for place, path in enumerate(train)}
    rows = ((stem(path), *facts[path], diagnosis[path], kind[path], target[path]) for path in train)
    painter.write("train.csv", table(header, *rows))
    painter.write("test.csv", table(header[:4], *((stem(path), "IP_3579794", "male", 70) for path in test)))
    splits = all_in(train, "train")
    other = [Truth(each, splits=splits, left_out=test) for each in (kind, diagnosis)]
    numbers = counted_from_0("01")
    return Truth(target, splits=splits, numbers=numbers, left_out=test, must_ask=True, choices=other)


@kept
def fashion_products(painter: Painter) -> Truth:
    """Kaggle, Fashion Product Images (Small): styles.csv has five columns that may be the class, and lost images."""
    paths = painter.paint_all("images/{}.jpg", 10, first=15970)
    kinds = dealt(paths, ["Topwear", "Bottomwear", "Watches"])
    masters = {path: "Accessories" if kind == "Watches" else "Apparel" for path, kind in kinds.items()}
    articles = dealt(paths, ["Shirts", "Jeans", "Watches"])
    header = ("id", "gender", "masterCategory", "subCategory", "articleType", "productDisplayName")
    rows = [
        (stem(path), "Men", masters[path], kinds[path], articles[path], f"Brand Men {articles[path]}") for path in paths
    ]
    rows.append(("39403", "Men", "Apparel", "Topwear", "Shirts", "Brand Men Shirt whose image is lost"))
    painter.write("styles.csv", table(header, *rows))
    return Truth(articles, must_ask=True, choices=[Truth(masters), Truth(kinds)])


@kept
def pawpularity(painter: Painter) -> Truth:
    """Kaggle, PetFinder Pawpularity: columns of 0 and 1 are facts on each photograph, and the target is a score."""
    train = painter.paint_all("train/0007de18844b0dbbb5e1f607da{:06x}.jpg", 10)
    header = ("Id", "Subject Focus", "Eyes", "Face", "Near", "Blur", "Pawpularity")
    rows = ((stem(path), 0, 1, 1, place % 2, 0, 20 + 7 * place) for place, path in enumerate(train))
    painter.write("train.csv", table(header, *rows))
    scores = {path: str(20 + 7 * place) for place, path in enumerate(train)}
    return Truth(unlabelled(train), splits=all_in(train, "train"), choices=[Truth(scores)], must_ask=True)


@kept
def shopee_matching(painter: Painter) -> Truth:
    """Kaggle, Shopee: posting_id,image,image_phash,title,label_group; the group is the class, titles have commas."""
    train = painter.paint_all("train_images/0000a68812bc7e98c42888dfb1{:06x}.jpg", 8)
    classes = dealt(train, ["249114794", "2937985045", "2395904891"])
    rows = []
    for place, (path, group) in enumerate(classes.items()):
        rows.append((f"train_{place}", base(path), "94974f937d4c2433", f'"Paper bag, brown, No {place}"', group))
    painter.write("train.csv", table(("posting_id", "image", "image_phash", "title", "label_group"), *rows))
    return Truth(classes, splits=all_in(train, "train"))


# medical and face sets -----------------------------------------------------------------------------------------


@kept
def ham_10000(painter: Painter) -> Truth:
    """HAM10000: images in HAM10000_images_part_1 and part_2; the class is dx, and ids have no ending."""
    paths = painter.paint_all("HAM10000_images_part_1/ISIC_00{:05}.jpg", 6, first=24306)
    paths += painter.paint_all("HAM10000_images_part_2/ISIC_00{:05}.jpg", 6, first=29306)
    classes = dealt(paths, ["bkl", "mel", "nv"])
    header = ("lesion_id", "image_id", "dx", "dx_type", "age", "sex", "localization")
    rows = []
    for place, (path, name) in enumerate(classes.items()):
        rows.append((f"HAM_{place // 2:07}", stem(path), name, "histo", 80.0, "male", "scalp"))
    painter.write("HAM10000_metadata.csv", table(header, *rows))
    painter.write("hmnist_8_8_L.csv", table([f"pixel{place:04}" for place in range(8)] + ["label"], [169] * 8 + [2]))
    return Truth(classes)


@kept
def isic_2019(painter: Painter) -> Truth:
    """ISIC 2019: the ground truth has 1.0 in the column of its class; a second table has age and site."""
    paths = painter.paint_all("ISIC_2019_Training_Input/ISIC_00{:05}.jpg", 10)
    columns = ["MEL", "NV", "BCC", "AK", "UNK"]
    classes = dealt(paths, columns[:4])
    rows = ((stem(path), *(float(name == column) for column in columns)) for path, name in classes.items())
    painter.write("ISIC_2019_Training_GroundTruth.csv", table(("image", *columns), *rows))
    header = ("image", "age_approx", "anatom_site_general", "lesion_id", "sex")
    facts = ((stem(path), 55.0, "anterior torso", "", "female") for path in paths)
    painter.write("ISIC_2019_Training_Metadata.csv", table(header, *facts))
    painter.write("ISIC_2019_Training_Input/ATTRIBUTION.txt", "CC-BY-NC 4.0\n")
    return Truth(classes, numbers=numbered(columns))


@kept
def chest_xray_14(painter: Painter) -> Truth:
    """NIH ChestX-ray14: images_001/images, findings with bars between them, and two lists that split the images."""
    paths = [painter.paint(f"images_001/images/{number:08}_000.png") for number in range(1, 7)]
    paths += [painter.paint(f"images_002/images/{number:08}_000.png") for number in range(1336, 1342)]
    texts = dealt(paths, ["No Finding", "Cardiomegaly|Effusion", "Hernia", "Effusion"])
    header = ("Image Index", "Finding Labels", "Follow-up #", "Patient ID", "Patient Age", "Patient Gender")
    rows = ((base(path), cell, 0, int(stem(path)[:8]), 58, "M") for path, cell in texts.items())
    painter.write("Data_Entry_2017.csv", table(header, *rows))
    train, test = paths[::2], paths[1::2]
    painter.write("train_val_list.txt", lines(map(base, train)))
    painter.write("test_list.txt", lines(map(base, test)))
    classes = {path: tuple(cell.split("|")) for path, cell in texts.items()}
    splits = all_in(train, "train") | all_in(test, "test")
    return Truth(classes, splits=splits, choices=[Truth(classes)])


@kept
def chexpert(painter: Painter) -> Truth:
    """CheXpert: Path starts with the folder's own name; findings are 1.0, 0.0, -1.0 (uncertain) or empty."""
    columns = ["No Finding", "Cardiomegaly", "Edema", "Pleural Effusion"]
    cells = [("1.0", "", "", ""), ("", "1.0", "-1.0", ""), ("", "0.0", "1.0", "1.0")]
    classes: dict[str, tuple[str, ...]] = {}
    bold: dict[str, tuple[str, ...]] = {}
    splits = {}
    for split, folder, count in (("train", "train", 6), ("validation", "valid", 3)):
        rows = []
        for place in range(count):
            path = painter.paint(f"CheXpert-v1.0-small/{folder}/patient{place:05}/study1/view1_frontal.jpg")
            values = dict(zip(columns, cells[place % 3], strict=True))
            classes[path] = tuple(name for name, value in values.items() if value == "1.0")
            bold[path] = tuple(name for name, value in values.items() if value in ("1.0", "-1.0"))
            splits[path] = split
            rows.append((path, "Female", 68, "Frontal", "AP", *values.values()))
        header = ("Path", "Sex", "Age", "Frontal/Lateral", "AP/PA", *columns)
        painter.write(f"CheXpert-v1.0-small/{folder}.csv", table(header, *rows))
    return Truth(classes, splits=splits, choices=[Truth(bold, splits=splits)])


@kept
def mura(painter: Painter) -> Truth:
    """MURA: study1_positive in the path, and train_labeled_studies.csv labels folders, not files, without a header."""
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
        painter.write(f"MURA-v1.1/{split}_image_paths.csv", lines(path for name, path in files if name == split))
        painter.write(f"MURA-v1.1/{split}_labeled_studies.csv", lines(row for name, row in studies if name == split))
    return Truth(classes, splits=splits, numbers={"negative": 0, "positive": 1})


@kept
def idrid_grading(painter: Painter) -> Truth:
    """IDRiD: folders "a. Training Set" and "b. Testing Set", a CSV for each with empty columns at the end of lines."""
    names = {"a. Training Set": ("train", 8), "b. Testing Set": ("test", 4)}
    classes, splits = {}, {}
    for folder, (split, count) in names.items():
        rows = []
        for path in painter.paint_all(f"1. Original Images/{folder}/IDRiD_{{:03}}.jpg", count, first=1):
            classes[path], splits[path] = str(len(rows) % 5), split
            rows.append((stem(path), classes[path], len(rows) % 3, "", ""))
        title = f"{folder[:2]} IDRiD_Disease Grading_{folder[3:].replace(' Set', '')} Labels.csv"
        header = ("Image name", "Retinopathy grade", "Risk of macular edema ", "", "")
        painter.write(f"2. Groundtruths/{title}", table(header, *rows))
    return Truth(classes, splits=splits, numbers=counted_from_0("01234"))


@kept
def celeba_csv(painter: Painter) -> Truth:
    """Kaggle, CelebA: attributes of 1 and -1 in one CSV, the splits 0, 1 and 2 in another, in a doubled folder."""
    paths = painter.paint_all("img_align_celeba/img_align_celeba/{:06}.jpg", 12, first=1)
    return _celeba(painter, paths, "list_attr_celeba.csv", "list_eval_partition.csv", ",")


@kept
def celeba_txt(painter: Painter) -> Truth:
    """CelebA as published: Anno/list_attr_celeba.txt begins with a count, then names; Eval has the splits 0, 1, 2."""
    paths = painter.paint_all("Img/img_align_celeba/{:06}.jpg", 12, first=1)
    return _celeba(painter, paths, "Anno/list_attr_celeba.txt", "Eval/list_eval_partition.txt", " ")


def _celeba(painter: Painter, paths: list[str], attributes: str, partition: str, sign: str) -> Truth:
    columns = ["Bald", "Eyeglasses", "Male", "Smiling"]
    classes: dict[str, tuple[str, ...]] = {}
    splits: dict[str, str] = {}
    rows: list[tuple[str, ...]] = []
    parts: list[tuple[str, int]] = []
    for place, path in enumerate(paths):
        values = dict.fromkeys(columns, "-1") | {columns[place % 4]: "1", columns[place // 2 % 4]: "1"}
        classes[path] = tuple(name for name, value in values.items() if value == "1")
        part = 0 if place < 6 else 1 if place < 9 else 2
        splits[path] = ("train", "validation", "test")[part]
        rows.append((base(path), *values.values()))
        parts.append((base(path), part))
    if sign == ",":
        painter.write(attributes, table(("image_id", *columns), *rows))
        painter.write(partition, table(("image_id", "partition"), *parts))
    else:
        painter.write(attributes, f"{len(paths)}\n{' '.join(columns)} \n" + table(*rows, sign="  "))
        painter.write(partition, table(*parts, sign=" "))
    numbers = numbered(columns)
    bare = [Truth(unlabelled(paths), splits=splits), Truth(unlabelled(paths)), Truth(classes, numbers=numbers)]
    return Truth(classes, splits=splits, numbers=numbers, choices=bare)


@kept
def vggface_2(painter: Painter) -> Truth:
    """VGGFace2: n000002 is an identity of train, test has others; identity_meta.csv has the name of each."""
    names = {"n000001": "Dalai_Lama", "n000002": "A_Fine_Frenzy", "n000009": "A_R_Rahman", "n000003": "A._A._Gill"}
    train = paint_classes(painter, "train/{name}/{number:04}_01.jpg", ["n000002", "n000003"], 5)
    test = paint_classes(painter, "test/{name}/{number:04}_01.jpg", ["n000001", "n000009"], 3)
    rows = [(key, f' "{name}"', " 5", " 1", " m") for key, name in sorted(names.items())]
    painter.write("identity_meta.csv", table(("Class_ID", " Name", " Sample_Num", " Flag", " Gender"), *rows))
    painter.write("train_list.txt", lines(path.removeprefix("train/") for path in train))
    painter.write("test_list.txt", lines(path.removeprefix("test/") for path in test))
    splits = all_in(train, "train") | all_in(test, "test")
    numbers = numbered(name for _, name in sorted(names.items()))
    ids_alone = Truth(train | test, splits=splits)
    return Truth(renamed(train | test, names), splits=splits, numbers=numbers, choices=[ids_alone])


# published data sets: lists of paths and numbers ----------------------------------------------------------------


@kept
def food_101(painter: Painter) -> Truth:
    """Food-101 unpacked: images of class folders, meta/train.txt with apple_pie/1005649 and no ending, train.json."""
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
    return Truth(classes, splits=all_in(train, "train") | all_in(test, "test"))


@kept
def cub_200(painter: Painter) -> Truth:
    """CUB-200-2011 without boxes: numbers of images in images.txt, of classes and of splits in three more lists."""
    names = ["001.Black_footed_Albatross", "002.Laysan_Albatross", "003.Sooty_Albatross"]
    classes = paint_classes(painter, "images/{name}/Bird_{number:04}.jpg", names, 4)
    paths = list(classes)
    painter.write("images.txt", table(*((row, path[7:]) for row, path in enumerate(paths, 1)), sign=" "))
    keys = ((row, int(classes[path][:3])) for row, path in enumerate(paths, 1))
    painter.write("image_class_labels.txt", table(*keys, sign=" "))
    painter.write("train_test_split.txt", table(*((row, row % 2) for row in range(1, 13)), sign=" "))
    painter.write("classes.txt", table(*((row, name) for row, name in enumerate(names, 1)), sign=" "))
    train, test = paths[::2], paths[1::2]
    splits = all_in(train, "train") | all_in(test, "test")
    return Truth(classes, splits=splits, numbers=numbered(names))


@kept
def tiny_imagenet(painter: Painter) -> Truth:
    """Tiny ImageNet as published: val/val_annotations.txt, test/images without classes, words.txt names the ids."""
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
            f"train/{wnid}/{wnid}_boxes.txt", table(*((f"{wnid}_{n}.JPEG", 0, 0, 9, 9) for n in range(4)), sign="\t")
        )
    for place, path in enumerate(painter.paint_all("val/images/val_{}.JPEG", 6)):
        val[path] = list(names)[place % 3]
    rows = ((base(path), wnid, 0, 0, 9, 9) for path, wnid in val.items())
    painter.write("val/val_annotations.txt", table(*rows, sign="\t"))
    test = painter.paint_all("test/images/test_{}.JPEG", 3)
    painter.write("wnids.txt", lines(names))
    painter.write("words.txt", table(("n00001740", "entity"), *names.items(), sign="\t"))
    classes = renamed(train | val, names)
    splits = all_in(train, "train") | all_in(val, "validation")
    return Truth(classes, splits=splits, numbers=numbered(names.values()), left_out=test)


@kept
def places_365_val(painter: Painter) -> Truth:
    """Places365's validation set: places365_val.txt has names and numbers, categories_places365.txt what they are."""
    paths = painter.paint_all("val_256/Places365_val_{:08}.jpg", 9, first=1)
    names = {"0": "/a/airfield", "1": "/a/airplane_cabin", "2": "/b/barn"}
    keys = dealt(paths, ["2", "0", "1"])
    painter.write("places365_val.txt", table(*((base(path), key) for path, key in keys.items()), sign=" "))
    painter.write("categories_places365.txt", table(*((name, key) for key, name in names.items()), sign=" "))
    return Truth(renamed(keys, names), numbers=numbered(names.values()))


@kept
def describable_textures(painter: Painter) -> Truth:
    """DTD: class folders, and ten ways to split them: labels/train1.txt, val1.txt, test1.txt, train2.txt and so on."""
    classes = paint_classes(painter, "images/{name}/{name}_{number:04}.jpg", ["banded", "dotted", "woven"], 6)
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
    return Truth(classes, splits=first.splits, choices=[second, Truth(classes)])


@kept
def oxford_pets_lists(painter: Painter) -> Truth:
    """Oxford-IIIT Pets' list.txt: comments, then a name without ending, the breed's number from 1, species, breed."""
    breeds = ["Abyssinian", "Bengal", "american_bulldog", "beagle"]
    paths = paint_classes(painter, "images/{name}_{number}.jpg", breeds, 4)
    species = {"Abyssinian": "1", "Bengal": "1", "american_bulldog": "2", "beagle": "2"}
    rows = {path: (stem(path), breeds.index(name) + 1, species[name], 1) for path, name in paths.items()}
    notes = "#Image CLASS-ID SPECIES BREED ID\n#ID: 1:37 Class ids\n#SPECIES: 1:Cat 2:Dog\n"
    painter.write("annotations/list.txt", notes + table(*rows.values(), sign=" "))
    train = [path for path in paths if path.endswith(("1.jpg", "2.jpg"))]
    test = [path for path in paths if path not in train]
    for name, part in (("trainval", train), ("test", test)):
        painter.write(f"annotations/{name}.txt", table(*(rows[path] for path in part), sign=" "))
    splits = all_in(train, "train") | all_in(test, "test")
    by_number = {path: str(breeds.index(name) + 1) for path, name in paths.items()}
    bare = [Truth(by_number, splits=splits, numbers=counted_from_1(by_number.values()))]
    bare += [Truth(by_number, numbers=counted_from_1(by_number.values())), Truth(paths)]
    return Truth(paths, splits=splits, numbers=numbered(breeds), choices=bare)


@kept
def resisc_45_splits(painter: Painter) -> Truth:
    """RESISC45 in torchgeo: class folders, and resisc45-train.txt, -val.txt and -test.txt with bare names of files."""
    pattern = "NWPU-RESISC45/{name}/{name}_{number:03}.jpg"
    classes = paint_classes(painter, pattern, ["airplane", "beach", "harbor"], 6)
    splits = {path: ("train", "validation", "test")[place % 3] for place, path in enumerate(classes)}
    for name, split in (("train", "train"), ("val", "validation"), ("test", "test")):
        painter.write(f"resisc45-{name}.txt", lines(base(path) for path in classes if splits[path] == split))
    return Truth(classes, splits=splits)


@kept
def domain_net(painter: Painter) -> Truth:
    """DomainNet: clipart/aircraft_carrier; clipart_train.txt has the path and the number of the class."""
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
    """PACS: art_painting/dog, and lists such as art_painting_train_kfold.txt whose numbers count from 1."""
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
    return Truth(classes, splits=splits, numbers=numbered(names), choices=[Truth(classes)])


@kept
def stanford_products(painter: Painter) -> Truth:
    """Stanford Online Products: Ebay_train.txt has image, class and super class by number, then the path."""
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
    other = [Truth(supers, splits=splits), Truth(supers), Truth(products, numbers=numbers)]
    return Truth(products, splits=splits, numbers=numbers, must_ask=True, choices=other)


@kept
def deep_fashion(painter: Painter) -> Truth:
    """DeepFashion: Anno/list_category_img.txt begins with a count and a header; Eval/list_eval_partition.txt splits."""
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
    painter.write("Eval/list_eval_partition.txt", f"{len(paths)}\nimage_name  evaluation_status\n{rows}")
    numbers = counted_from_1(names)
    by_number = Truth(keys, splits=splits, numbers=numbers)
    return Truth(renamed(keys, names), splits=splits, numbers=numbered(names.values()), choices=[by_number])


@kept
def fgvc_aircraft(painter: Painter) -> Truth:
    """FGVC-Aircraft: lists of the variant, family and maker, a file for each split; names with blanks, no endings."""
    paths = painter.paint_all("data/images/{:07}.jpg", 12, first=34309)
    variants = dealt(paths, ["A340-300", "Boeing 707-320", "Cessna 172"])
    makers = {path: {"A": "Airbus", "B": "Boeing", "C": "Cessna"}[name[0]] for path, name in variants.items()}
    splits = {path: ("train", "validation", "test")[place // 3 % 3] for place, path in enumerate(paths)}
    for level, classes in (("variant", variants), ("manufacturer", makers)):
        for name, split in (("train", "train"), ("val", "validation"), ("test", "test")):
            rows = (f"{stem(path)} {classes[path]}" for path in paths if splits[path] == split)
            painter.write(f"data/images_{level}_{name}.txt", lines(rows))
        painter.write(f"data/{level}s.txt", lines(sorted(set(classes.values()))))
    for name, split in (("train", "train"), ("val", "validation"), ("test", "test")):
        painter.write(f"data/images_{name}.txt", lines(stem(path) for path in paths if splits[path] == split))
    return Truth(variants, splits=splits, must_ask=True, choices=[Truth(makers, splits=splits)])


@kept
def caffe_lists(painter: Painter) -> Truth:
    """Caffe's ImageNet example: train.txt and val.txt of "path number", synset_words.txt in their order."""
    names = {"n01440764": "tench, Tinca tinca", "n01443537": "goldfish", "n01484850": "great white shark"}
    wnids = list(names)
    train = paint_classes(painter, "train/{name}/{name}_{number}.JPEG", wnids, 4)
    val = dealt(painter.paint_all("val/ILSVRC2012_val_{:08}.JPEG", 6, first=1), [wnids[2], wnids[0], wnids[1]])
    for folder, files in (("train", train), ("val", val)):
        rows = ((path.removeprefix(f"{folder}/"), wnids.index(wnid)) for path, wnid in files.items())
        painter.write(f"{folder}.txt", table(*rows, sign=" "))
    painter.write("synset_words.txt", table(*names.items(), sign=" "))
    painter.write("synsets.txt", lines(wnids))
    splits = all_in(train, "train") | all_in(val, "validation")
    return Truth(renamed(train | val, names), splits=splits, numbers=numbered(names.values()))


@kept
def wiki_art(painter: Painter) -> Truth:
    """WikiArt: CSV files without a header of style and genre, one for each split; the folder is the style."""
    styles = ["Baroque", "Cubism", "Realism"]
    by_style = paint_classes(painter, "wikiart/{name}/painter_{number}.jpg", styles, 4)
    genres = dealt(list(by_style), ["landscape", "portrait"])
    splits = {path: "test" if path.endswith("4.jpg") else "train" for path in by_style}
    for kind, classes, names in (("style", by_style, styles), ("genre", genres, ["landscape", "portrait"])):
        for name, split in (("train", "train"), ("val", "test")):
            paths = [path for path in by_style if splits[path] == split]
            rows = ((path.removeprefix("wikiart/"), names.index(classes[path])) for path in paths)
            painter.write(f"wikiart_csv/{kind}_{name}.csv", table(*rows))
        painter.write(f"wikiart_csv/{kind}_class.txt", table(*enumerate(names), sign=" "))
    val = {path: "validation" if split == "test" else split for path, split in splits.items()}
    other = [Truth(genres, splits=val), Truth(genres), Truth(by_style)]
    return Truth(by_style, splits=val, must_ask=True, choices=other)


@kept
def animals_with_attributes(painter: Painter) -> Truth:
    """AwA2: classes.txt numbers the folders of JPEGImages from 1; trainclasses.txt and testclasses.txt split them."""
    names = ["antelope", "bat", "beaver", "chimpanzee"]
    classes = paint_classes(painter, "JPEGImages/{name}/{name}_1000{number}.jpg", names, 4)
    rows = ((f"{place:>8}", name) for place, name in enumerate(names, 1))
    painter.write("classes.txt", table(*rows, sign="\t"))
    painter.write("trainclasses.txt", lines(names[:3]))
    painter.write("testclasses.txt", lines(names[3:]))
    splits = {path: "test" if name == "chimpanzee" else "train" for path, name in classes.items()}
    numbers = numbered(names)
    return Truth(classes, numbers=numbers, choices=[Truth(classes, splits=splits, numbers=numbers)])


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
    """Pascal VOC without its XML: ImageSets/Main/cat_train.txt has 1, -1 or 0 for each image of the split."""
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
    """Kaggle, GTSRB: Train/0 to Train/42, Test flat, Train.csv and Test.csv with sizes, boxes, ClassId and Path."""
    train = paint_classes(painter, "Train/{name}/000{name}_00000_{number:05}.png", ["0", "1", "2", "10"], 3)
    test = dealt(painter.paint_all("Test/{:05}.png", 5), ["10", "1", "2", "0"])
    header = ("Width", "Height", "Roi.X1", "Roi.Y1", "Roi.X2", "Roi.Y2", "ClassId", "Path")
    for name, files in (("Train", train), ("Test", test)):
        rows = ((16, 12, 1, 1, 14, 10, key, path) for path, key in files.items())
        painter.write(f"{name}.csv", table(header, *rows))
    signs = painter.paint_all("Meta/{}.png", 3)
    painter.write("Meta.csv", table(("Path", "ClassId", "ShapeId"), *((path, stem(path), 0) for path in signs)))
    splits = all_in(train, "train") | all_in(test, "test")
    numbers = counted_from_0(["0", "1", "2", "10"])
    return Truth(train | test, splits=splits, numbers=numbers, left_out=signs)


@kept
def gtsrb_official(painter: Painter) -> Truth:
    """GTSRB as published: Final_Training/Images/00000 has PPM files and a GT-00000.csv with semicolons."""
    classes: dict[str, str] = {}
    for key in ("00000", "00001", "00002"):
        start = f"GTSRB/Final_Training/Images/{key}"
        paths = painter.paint_all(f"{start}/00000_{{:05}}.ppm", 4)
        header = ("Filename", "Width", "Height", "Roi.X1", "Roi.Y1", "Roi.X2", "Roi.Y2", "ClassId")
        rows = ((base(path), 16, 12, 1, 1, 14, 10, int(key)) for path in paths)
        painter.write(f"{start}/GT-{key}.csv", table(header, *rows, sign=";"))
        classes |= dict.fromkeys(paths, key)
    plain = {path: str(int(key)) for path, key in classes.items()}
    numbers = {key: int(key) for key in classes.values()}
    return Truth(classes, numbers=numbers, choices=[Truth(plain, numbers=counted_from_0("012"))])


@kept
def stanford_cars_kaggle(painter: Painter) -> Truth:
    """Kaggle, Stanford Cars: class folders in train and test, anno_train.csv without a header: name, box, class."""
    names = ["AM General Hummer SUV 2000", "Acura RL Sedan 2012", "Acura TL Sedan 2012"]
    both: dict[str, str] = {}
    splits: dict[str, str] = {}
    for split, first in (("train", 1), ("test", 51)):
        files: dict[str, str] = {}
        for place, name in enumerate(names):
            start = first + 10 * place
            files |= paint_classes(painter, f"car_data/car_data/{split}/{{name}}/{{number:05}}.jpg", [name], 3, start)
        rows = ((base(path), 1, 2, 15, 11, names.index(name) + 1) for path, name in files.items())
        painter.write(f"anno_{split}.csv", table(*rows))
        both |= files
        splits |= all_in(files, split)
    painter.write("names.csv", lines(names))
    return Truth(both, splits=splits, numbers=numbered(names))


@kept
def eurosat_kaggle(painter: Painter) -> Truth:
    """Kaggle, EuroSAT: class folders, train.csv, validation.csv and test.csv with Label and ClassName, a JSON map."""
    names = ["AnnualCrop", "Forest", "River"]
    classes = paint_classes(painter, "EuroSAT/{name}/{name}_{number}.jpg", names, 6)
    splits = {path: ("train", "validation", "test")[place % 3] for place, path in enumerate(classes)}
    for split in ("train", "validation", "test"):
        paths = [path for path in classes if splits[path] == split]
        rows = []
        for place, path in enumerate(paths):
            name = classes[path]
            rows.append((place, path.removeprefix("EuroSAT/"), names.index(name), name))
        painter.write(f"EuroSAT/{split}.csv", table(("", "Filename", "Label", "ClassName"), *rows))
    painter.write("EuroSAT/label_map.json", json.dumps(numbered(names)))
    return Truth(classes, splits=splits, numbers=numbered(names), choices=[Truth(classes)])


@kept
def mini_imagenet(painter: Painter) -> Truth:
    """mini-ImageNet (Ravi and Larochelle): one folder images; train.csv, val.csv and test.csv share no class."""
    parts = {"train": ["n01532829", "n01558993"], "val": ["n01855672", "n02091244"], "test": ["n01930112", "n01981276"]}
    classes: dict[str, str] = {}
    splits: dict[str, str] = {}
    for split, wnids in parts.items():
        files = paint_classes(painter, "images/{name}0000{number:04}.jpg", wnids, 3)
        painter.write(f"{split}.csv", table(("filename", "label"), *((base(path), key) for path, key in files.items())))
        classes |= files
        splits |= all_in(files, {"val": "validation"}.get(split, split))
    return Truth(classes, splits=splits, numbers=numbered(sorted(set(classes.values()))))


@kept
def sports_classification(painter: Painter) -> Truth:
    """Kaggle, 100 Sports: folders of splits and classes, and sports.csv with class id, filepaths, labels, data set."""
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
    """Kaggle, 140k Real and Fake Faces: folders of splits, a CSV each with a path of another machine."""
    classes: dict[str, str] = {}
    splits: dict[str, str] = {}
    for folder, split in (("train", "train"), ("valid", "validation"), ("test", "test")):
        start = f"real_vs_fake/real-vs-fake/{folder}"
        files = paint_classes(painter, f"{start}/{{name}}/{{number:05}}.jpg", ["fake", "real"], 3)
        rows = []
        for place, (path, name) in enumerate(files.items()):
            other = f"/kaggle/input/flickrfaceshq-dataset-nvidia-resized-256px/resized/{base(path)}"
            short = path.removeprefix("real_vs_fake/real-vs-fake/")
            rows.append((place, other, stem(path), int(name == "real"), name, short))
        painter.write(f"{folder}.csv", table(("", "original_path", "id", "label", "label_str", "path"), *rows))
        classes |= files
        splits |= all_in(files, split)
    return Truth(classes, splits=splits, numbers=numbered(["fake", "real"]))


@kept
def garbage_classification(painter: Painter) -> Truth:
    """Kaggle, Garbage Classification: class folders; one list counts the classes from 1, another from 0."""
    names = ["glass", "paper", "cardboard", "plastic"]
    pattern = "Garbage classification/Garbage classification/{name}/{name}{number}.jpg"
    classes = paint_classes(painter, pattern, names, 4)
    for name, first in (("one-indexed-files", 1), ("zero-indexed-files", 0)):
        rows = ((base(path), names.index(kind) + first) for path, kind in classes.items())
        painter.write(f"{name}.txt", table(*rows, sign=" "))
    return Truth(classes, numbers=numbered(names), choices=[Truth(classes)])


@kept
def caption_lists(painter: Painter) -> Truth:
    """Flickr8k: captions.txt has two lines of text for each image, with a header; there are no classes."""
    paths = painter.paint_all("Images/1000268201_693b08cb{:02}.jpg", 8)
    rows = []
    for path in paths:
        rows += [(base(path), f'"A child, number {stem(path)[-2:]} ."'), (base(path), "A girl goes in .")]
    painter.write("captions.txt", table(("image", "caption"), *rows))
    return Truth(unlabelled(paths))


@kept
def flickr_30k(painter: Painter) -> Truth:
    """Flickr30k on Kaggle: results.csv with bars: image_name| comment_number| comment; there are no classes."""
    paths = painter.paint_all("flickr30k_images/1000092{:03}.jpg", 8)
    rows = []
    for path in paths:
        rows += [(base(path), " 0", " Two young guys ."), (base(path), " 1", " Two men outside .")]
    painter.write("results.csv", table(("image_name", " comment_number", " comment"), *rows, sign="|"))
    return Truth(unlabelled(paths))


@kept
def beauty_scores(painter: Painter) -> Truth:
    """SCUT-FBP5500: train.txt and test.txt give each face a score such as 2.683; a score is no class."""
    paths = painter.paint_all("Images/CF{}.jpg", 9, first=1)
    rows = [f"{base(path)} {2 + 0.217 * place:.6f}" for place, path in enumerate(paths)]
    painter.write("train_test_files/train.txt", lines(rows[:6]))
    painter.write("train_test_files/test.txt", lines(rows[6:]))
    splits = all_in(paths[:6], "train") | all_in(paths[6:], "test")
    return Truth(unlabelled(paths), splits=splits, choices=[Truth(unlabelled(paths))])
