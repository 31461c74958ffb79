"""Folders as people keep them: none comes out wrong, most take two commands,
refusals name a command that is right.
"""

from __future__ import annotations

from pathlib import Path

import kept_annotated
import kept_by_folder
import kept_in_archives
import kept_in_tables
import pytest
from kept_folders import KNOWN
from kept_trial import ASKED, REFUSED, RIGHT, try_folder

LISTS = (kept_by_folder, kept_in_tables, kept_annotated, kept_in_archives)

QUESTIONS: frozenset[str] = frozenset(
    (
        "a_tenth_relabelled",
        "arrays_of_other_names",
        "blood_cells",
        "brain_tumor_twice",
        "breakhis",
        "breeds_by_bare_name",
        "caffe_lists",
        "caltech_101",
        "caltech_256",
        "camera_card",
        "caption_lists",
        "car_object_detection",
        "cats_and_dogs_filtered",
        "chest_xray_twice",
        "chexpert",
        "classes_and_boxes_of_other_names",
        "coarse_and_fine",
        "coco_with_tests_of_no_boxes",
        "compressed_tar_beside_a_table",
        "compressed_tar_of_classes",
        "compressed_tfrecords",
        "deep_fashion",
        "deepglobe_roads",
        "dogs_vs_cats",
        "dogs_vs_cats_zips",
        "facades",
        "fashion_products",
        "ffhq",
        "fgvc_aircraft",
        "flat_val_by_numbers",
        "flickr_30k",
        "folders_called_crosswise",
        "folders_of_days",
        "frames_of_one_video",
        "global_wheat",
        "global_wheat_2021",
        "google_landmarks",
        "happy_whale",
        "hyper_kvasir",
        "imagenette_noisy",
        "images_and_depth",
        "img2dataset_files",
        "inaturalist_2017",
        "kitti_with_tests",
        "kohya_captions",
        "kvasir_seg",
        "look_into_person",
        "malaria_cells",
        "more_files_than_rows",
        "more_rows_than_files",
        "mura",
        "mvtec_bottle",
        "numbers_of_splits_beside_those_of_classes",
        "office_31",
        "office_home",
        "omniglot_background",
        "oxford_pets_lists",
        "part_of_a_split_archive",
        "paths_of_windows",
        "patients_with_a_diagnosis",
        "pawpularity",
        "penn_fudan",
        "pets_by_file_name",
        "pictures_and_masks_of_another_count",
        "plant_village",
        "rsna_pneumonia",
        "severstal_steel",
        "siim_isic_2020",
        "species_or_breed",
        "split_column_with_empty_cells",
        "splits_of_two_cases",
        "stanford_products",
        "sun397",
        "table_of_camera_facts",
        "table_without_header",
        "tar_of_class_folders_with_a_table",
        "tar_with_a_table_in_it",
        "two_annotators",
        "two_kinds_of_masks",
        "two_sets_of_medmnist",
        "utkface",
        "vggface_2",
        "voc_lists_of_images_without_annotations",
        "voc_of_some_images",
        "voc_segmentation_with_lists",
        "voc_without_a_list_of_tests",
        "web_with_masks",
        "wider_face",
        "wiki_art",
        "yolo_and_voc_of_other_classes",
        "yolo_rotated",
        "yolo_without_names",
    )
)
"""Folders that can be read in several ways, or need a word of their owner:
a command that init names is right.
"""

UNREAD: frozenset[str] = frozenset(
    (
        "busi_ultrasound",
        "div2k",
        "ground_truth_boxes",
        "gtsrb_official",
        "idrid_grading",
        "json_lines_of_base64",
        "json_of_base64",
        "labels_in_the_order_of_files",
        "market_1501",
        "not_mnist",
        "oxford_flowers_102",
        "oxford_pets_as_unpacked",
        "pacs_lists",
        "pickled_object_array",
        "rgbd_objects",
        "sagemaker_manifest",
        "stanford_cars",
        "table_of_addresses",
        "text_beside_each_image",
        "tfrecords_of_raw_pixels",
        "torch_tensors",
        "tsv_of_base64",
        "udacity_autti",
        "visdrone",
    )
)
"""Folders that init refuses and for which it knows no command that is right."""


@pytest.mark.parametrize("name", KNOWN)
def test_a_folder_is_read_as_a_person_reads_it(tmp_path: Path, name: str) -> None:
    """Labels, numbers, splits, boxes and masks of every record;
    or the question that leads to them.
    """
    outcome, why = try_folder(KNOWN[name], tmp_path)
    expected = ASKED if name in QUESTIONS else REFUSED if name in UNREAD else RIGHT
    assert outcome == expected, f"{KNOWN[name].__doc__}\n{why}"


def test_most_take_two_commands() -> None:
    """At least 150 folders, 60% of them right in two commands."""
    assert len(KNOWN) >= 150
    assert not (QUESTIONS | UNREAD) - KNOWN.keys()
    assert len(KNOWN) - len(QUESTIONS | UNREAD) >= 0.6 * len(KNOWN)
