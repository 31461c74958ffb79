"""Broken recipes and inputs: one message that names file, line or path;
the right exit status; nothing written.
"""

from __future__ import annotations

import codecs
import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from existing import existing
from made_folders import array, picture
from made_tars import pack, save

from imagenet_prep.engines import make_engine
from imagenet_prep.errors import InputError, PrepError, UsageError
from imagenet_prep.recipes.annotation_files import read_text
from imagenet_prep.recipes.class_names import read_names
from imagenet_prep.recipes.classes import Classes, _read_classes, refuse_below_first
from imagenet_prep.recipes.loading import load, read
from imagenet_prep.recipes.recipe_file import read_recipe
from imagenet_prep.recipes.rules import is_imagenet
from imagenet_prep.registry import imagenet_options

FOLDERS = "source: {folders: flowers}\n"
FILES = "source: {files: 'arrays/*.npy'}\n"
IMAGENET = "source: {imagenet: true}\n"
BEYOND = FILES + "labels: less2.txt\nclasses: [a]\nrecord: {l: label}\n"
PAIR = "manifest_file: pair.txt\nsplits: {a: 0.5, b: 0.5}\n"
ROSES = FOLDERS + "splits: {train: {folder: rose}, test: %s}\n"

# Recipe, and what its message must hold; each is wrong usage.
RECIPES = {
    "unknown key": (
        "seed: 1\nnum_shard: 3\n" + FILES,
        "line 2: num_shard: no such key",
        "num_shards, perhaps",
    ),
    "unknown inner key": (
        "source:\n  folder: x\n",
        "line 2: source.folder: no such key",
        "folders, perhaps",
    ),
    "wrong type": (FILES + "num_shards: many\n", "line 2: num_shards: 'many'", "a whole number"),
    "no choice": (FILES + "compression: zip\n", "line 2: compression: 'zip'", "none, gzip or zlib"),
    "out of range": (FILES + "num_shards: 0\n", "line 2: num_shards: 0", ">= 1"),
    "a control character": ("seed: 1\nx: \x07\n", "line 2: not valid YAML", "U+0007 after 'x:'\n"),
    "a control character in a name": (
        "source:\n  folders: flower\x02photos\n",
        "line 2: not valid YAML",
        "U+0002 after 'flower'\nwrite the character that belongs there in its place",
    ),
    "a control character first": (
        "\x02seed: 1\n",
        "line 1: not valid YAML",
        "U+0002 at its start\n",
    ),
    "key twice": ("seed: 1\n" + FILES + "seed: 2\n", "line 3: seed is in line 1", "once"),
    "no YAML": (FILES + "record: {a: [}\n", "line 2: not valid YAML", ""),
    "quote without an end": (FILES + 'strip: "x\n', "line 2: not valid YAML", "no quotation mark"),
    "an unknown escape": (
        FILES + 'strip: "\\q"\n',
        "line 2: not valid YAML",
        "in single quotes: 'a",
    ),
    "half an escape": (
        FILES + 'strip: "\\xZZ"\n',
        "line 2: not valid YAML",
        "in single quotes: 'a",
    ),
    "an escape of no character": (
        FILES + 'strip: "\\UFFFFFFFF"\n',
        "is not valid YAML",
        r"is no character: expected at most \U0010FFFF",
    ),
    "a null character in a path": (
        FILES + 'splits: {a: 0.5, b: 0.5}\nmanifest_file: "list\\0.txt"\n',
        "line 3: a text has a null character\nin double quotes, YAML reads \\0 as one\nput a text that holds",
        "in single quotes: 'a",
    ),
    "a null character in an entry": (
        'source:\n  files:\n    - a\n    - "b\\u0000"\n',
        "line 4: a text has a null character",
        "",
    ),
    "a null character in a key": (
        FILES + 'record: {"a\\x00": path}\n',
        "line 2: a key has a null character",
        "",
    ),
    "half of a surrogate pair": (
        FILES + 'manifest_file: "\\ude00\\ud83d"\n',
        "line 2: a text holds half of a surrogate pair",
        "",
    ),
    "a text that starts as a block": (
        FILES + "strip: |x\n",
        "line 2: not valid YAML",
        "put a text that starts with | or > in quotes",
    ),
    "a tag without an end": (FILES + "strip: !<x\n", "line 2: not valid YAML", "'*.jpg'"),
    "a bracket without an end": (FILES + "classes: [1\n", "line 2: not valid YAML", "brackets"),
    "a split of no file": (
        FILES + "labels: {file: {a: x, check: 5}}\n",
        "labels.file.check: 5",
        "",
    ),
    "a class of no name": (FILES + "class_names: {check: 5}\n", "class_names.check: 5", "text"),
    "no file of labels": (
        FILES + "labels: {}\n",
        "labels: it has no key `file`",
        "expected labels: {file: FILE}",
    ),
    "an entry of a list": (FILES + "classes: [a, true]\n", "classes, entry 2: true", "text"),
    "tag": (FILES + "seed: !!python/object/apply:os.getpid []\n", "line 2: the tag", "plain"),
    "alias": ("seed: &a 1\nnum_shards: *a\n", "line 1: the anchor", "plain"),
    "a pattern without quotes": (
        "source:\n  files: *.jpg\n",
        "line 2: not valid YAML",
        "in quotes: '*.jpg'",
    ),
    "a word like an alias": (
        "source:\n  files: *train\n",
        "line 2: the alias *train",
        "in quotes: '*.jpg'",
    ),
    "two documents": (
        FILES + "---\nseed: 1\n",
        "line 2: a second YAML document starts here",
        "one document in a file",
    ),
    "a key further left": (
        "source:\n  files: a\n tar: b\n",
        "line 3: not valid YAML",
        "check the brackets, quotes and indentation",
    ),
    "no mapping": ("- source\n", "is not a recipe", "got a list"),
    "not UTF-8": (b"seed: 1\n# \xff\n", "line 2: not UTF-8", ""),
    "not UTF-8, after a mark": (b"\xef\xbb\xbfseed: 1\n\xff\n", "line 2: not UTF-8", ""),
    "nested without end": ("[" * 5000 + "]" * 5000, "nested too deep", ""),
    "no source": ("seed: 1\n", "recipe.yaml has no key source", "source: {folders: FOLDER}"),
    "two sources": (
        FILES + "input_file_pattern: '*.npy'\n",
        "line 1: source: input_file_pattern is a source already",
        "only one source",
    ),
    "class folders of files": (
        "source: {files: x, class_folder: inner}\n",
        "it can't be combined with files",
        "or tar",
    ),
    "no file": ("source: {files: []}\n", "line 1: source.files: it is empty", "a pattern"),
    "an empty mapping of files of labels": (
        FILES + "labels: {file: {}}\n",
        "labels.file: it is empty",
        "a path",
    ),
    "no file of boxes": (
        FILES + "boxes: {coco: {train: []}}\n",
        "boxes.coco.train: it is empty",
        "a path",
    ),
    "no folder of masks": (FILES + "mask: {folder: []}\n", "mask.folder: it is empty", "a path"),
    "no file of a split": (
        "source:\n  tfrecord:\n    train: []\n",
        "line 3: source.tfrecord.train: it is empty",
        "a pattern",
    ),
    "no split of files": (
        "source: {parquet: {}}\n",
        "line 1: source.parquet: it is empty",
        "a pattern",
    ),
    "a word for a split": (
        FOLDERS + "splits: {train: true}\n",
        "splits.train: it is true",
        "such as {folder: train}",
    ),
    "two sources in one": (
        "source:\n  files: a\n  tar: b\n",
        "line 1: source: it has files and tar",
        "one of",
    ),
    "shards twice": (
        FILES + "num_shards: 2\nshard_size: 1MB\n",
        "line 3: shard_size: num_shards decides",
        "one of",
    ),
    "shard size": (
        FILES + "shard_size: 100 megabytes\n",
        "line 2: shard_size: '100 megabytes'",
        "100MB",
    ),
    "half a range": (FILES + "min_val: 0\n", "line 2: min_val: it requires max_val", "both"),
    "endless range": (
        FILES + "min_val: 0\nmax_val: 1e999\n",
        "line 3: max_val: it is inf",
        "two finite numbers",
    ),
    "empty range": (
        FILES + "min_val: 1\nmax_val: 1\n",
        "line 3: max_val: it is 1",
        "above min_val",
    ),
    "fractions": (
        FOLDERS + "splits:\n  train: 0.8\n  test: 0.1\n",
        "line 2: splits: the fractions sum to 0.9",
        "1",
    ),
    "fraction": (FOLDERS + "splits: {train: 1.2, test: -0.2}\n", "splits.train: 1.2", "fraction"),
    "mixed splits": (
        FOLDERS + "splits: {train: 0.8, test: {folder: x}}\n",
        "splits: fractions for train, and none for test",
        "fractions for all splits, or files (such as a manifest) for all",
    ),
    "no place": (
        FOLDERS + "splits:\n  train: {}\n",
        "line 3: splits.train: it is empty",
        "one of folder",
    ),
    "fractions of a little more than 1": (
        FOLDERS + "splits: {train: 0.7, val: 0.15, test: 0.150002}\n",
        "the fractions sum to 1.000002",
        "expected a sum of 1",
    ),
    "fractions of a list of files": (
        "manifest_file: m.txt\nsplits: {a: 0.5, b: 0.5}\nstratified: true\n",
        "line 3: stratified: it can't be combined with manifest_file",
        "one of the two",
    ),
    "split's first sign": (
        FOLDERS + "splits: {-x: 1}\n",
        "splits.-x: it can't be the name of a split",
        "the first a letter, a digit or _",
    ),
    "split's name": (
        FOLDERS + "splits: {'a/b': 1}\n",
        "splits.a/b: it can't be the name of a split",
        "letters",
    ),
    "prefix": (
        FILES + "output_file_prefix: ../x\n",
        "line 2: output_file_prefix: '../x'",
        "a path without ..",
    ),
    "prefix of other signs": (
        FILES + "output_file_prefix: x/-y\n",
        "line 2: output_file_prefix: 'x/-y'",
        "the first a letter, a digit or _",
    ),
    "prefix of a growth": (
        FILES + "output_file_prefix: a-grown2\n",
        "output_file_prefix: 'a-grown2'",
        "like -grown2",
    ),
    "layout": (FILES + "record: imagenet\n", "no kind of record is called 'imagenet'", "inception"),
    "inception of numbers": (
        FILES + "content: array\nrecord: inception\n",
        "line 3: record: it can't be combined with content: array",
        "as a JPEG",
    ),
    "no column": (
        FOLDERS + "record:\n  a: encoded\n  b: hight\n",
        "line 4: record.b: no column 'hight'",
        "height",
    ),
    "column of other content": (
        FOLDERS + "record: {a: raw}\n",
        "record.a: no column 'raw'",
        "records of content: pixels have the column raw; here content is image",
    ),
    "column of no labels": (
        FILES + "record: {a: label}\n",
        "record.a: no column 'label'",
        "these files have no labels: `source: {folders: ...}`",
    ),
    "column of a labels file with a prefix": (
        FILES + "labels: splits.csv\nrecord: {a: labels.part}\n",
        "record.a: no column 'labels.part'\nexpected part",
        "",
    ),
    "column of no boxes": (
        FILES + "record: {a: boxes.xmin}\n",
        "record.a: no column 'boxes.xmin'",
        "`boxes` in the recipe gives the columns boxes.NAME",
    ),
    "column's type": (
        FOLDERS + "record: {a: {from: encoded, type: int64}}\n",
        "the column encoded can't be of type int64",
        "bytes",
    ),
    "feature's type": (
        FOLDERS + "record: {a: {from: width, type: int}}\n",
        "record.a.type: 'int'",
        "int64 or float",
    ),
    "feature's key": (
        FOLDERS + "record:\n  a: {form: width}\n",
        "line 3: record.a.form: no such key",
        "from, perhaps",
    ),
    "no features": (FOLDERS + "record: {}\n", "line 2: record: no features", ""),
    "feature of nothing": (
        FOLDERS + "record: {a: }\n",
        "line 2: record.a: no column is named",
        "its name",
    ),
    "feature of a list": (
        FOLDERS + "record: {a: [width]}\n",
        "line 2: record.a: ['width'] is not the name of a column",
        "its name",
    ),
    "array of images": (
        FOLDERS + "array: x\nresize: 8\n",
        "line 3: resize: `array` says that the files are arrays",
        "resize works with images only\nleave resize out",
    ),
    "a split without a value": (
        FILES + "labels: {file: splits.csv, split: part}\nsplits: {test: {folder: x}}\n",
        "line 3: splits.test: {folder: x} can't be used with labels.split, which takes the splits "
        "from the column part",
        "expected {value: ...} with a value of that column: x, y",
    ),
    "words that are none": (
        FOLDERS + "classes: {daisy: , rose: flower}\n",
        "line 2: classes.daisy: no text describes the class daisy",
        "names alone: classes: [a, b]",
    ),
    "words that are a number": (
        FOLDERS + "classes: {daisy: 3, rose: flower}\n",
        "line 2: classes.daisy: the description of the class daisy is not a text",
        "names alone: classes: [a, b]",
    ),
    "no classes": (FOLDERS + "classes: []\n", "classes: no class is named", "at least one"),
    "a class three times in a file": (
        FOLDERS + "classes: roses.txt\n",
        "roses.txt: the class rose occurs 3 times",
        "once",
    ),
    "a file without classes": (
        FOLDERS + "classes: empty.txt\n",
        "empty.txt: no class is named",
        "at least one",
    ),
    "images of arrays": (
        FILES + "resize: 8\n",
        "line 2: resize: some files have names of arrays, and none has that of an image",
        "resize works with images only\nleave resize out; or, if the files are images, write content",
    ),
    "Inception's records of arrays": (
        FILES + "record: inception\n",
        "record: some files have names of arrays",
        "record: inception works with images only\nleave record out; or, if the files are images,",
    ),
    "split of shards": (
        FOLDERS + "shards:\n  test: 2\n",
        "line 3: shards.test: there is no split test",
        "train",
    ),
    "class twice": (
        FOLDERS + "classes: [a, b, a]\n",
        "line 2: classes: the class a occurs 2 times",
        "once",
    ),
    "classes of nothing": (
        FILES + "classes: [a, b]\n",
        "line 2: classes: it requires labels, and there are none",
        "labels",
    ),
    "first label of nothing": (
        FILES + "first_label: 1\n",
        "line 2: first_label: it requires labels, and there are none",
        "labels",
    ),
    "inception without labels": (
        "source: {files: 'flowers/*/*'}\nrecord: inception\n",
        "line 2: record",
        "labels",
    ),
    "labels of ImageNet": (
        IMAGENET + "labels: x\n",
        "line 2: labels: no such key",
        "relabel, perhaps",
    ),
    "splits of ImageNet": (
        IMAGENET + "shards: {test: 3}\n",
        "shards.test: no such key",
        "train, validation",
    ),
    "ImageNet's only": (
        FOLDERS + "allow_incomplete: true\n",
        "line 2: allow_incomplete: no such key",
        "",
    ),
    "long pattern": (
        f"source: {{files: 'ab{'*' * 3000}'}}\n",
        f"'ab{'*' * 58}...' is not a pattern",
        "nothing else between its slashes",
    ),
    "pattern": (
        "source: {files: 'arrays/[x'}\n",
        "line 1: source.files: 'arrays/[x' is not a pattern",
        "closed",
    ),
}

# Recipe, and what its message must hold; each is an input that is not there, or contradicts the
# recipe.
INPUTS = {
    "no folder": ("source: {folders: gone}\n", "line 1: ", "gone is not there"),
    "a file for a folder": (
        "source:\n  folders: labels.txt\n",
        "line 2: ",
        "labels.txt is not a folder",
    ),
    "a broken link for a folder": (
        "source: {folders: broken}\n",
        "line 1: ",
        "broken is a broken link",
    ),
    "hidden files alone": (
        "source: {folders: hidden}\n",
        "line 1: no file in ",
        "skipped: rose/.0.png (hidden)\na name that starts with a dot is hidden: rename",
    ),
    "hidden files of macOS": (
        "source: {folders: of_macos}\n",
        "line 1: no file in ",
        "skipped: rose/._0.png (hidden)\nmacOS writes such files (._0.png) next to images",
    ),
    "masks in a file": (
        FOLDERS + "mask: {folder: labels.txt}\n",
        "labels.txt is not a folder",
        "expected the folder of masks",
    ),
    "masks that are not there": (
        FOLDERS + "mask: {folder: gone}\n",
        "gone is not there",
        "relative paths start at --raw",
    ),
    "two masks of an image": (
        FOLDERS + "mask: {folder: twins}\n",
        "several masks fit daisy/0.png: twins/daisy/0.bmp, twins/daisy/0.png",
        "one mask for each image",
    ),
    "one mask of JPEG": (
        FOLDERS + "mask: {folder: jpegs}\n",
        "1 mask is a JPEG by its name, and",
        "threshold",
    ),
    "no match": ("source: {files: 'arrays/*.npz'}\n", "line 1: no file matches", "arrays/*.npz"),
    "no manifest": ("source: {manifest: gone.txt}\n", "gone.txt can't be read", "No such file"),
    "no manifest, no pattern": ("manifest_file: gone.txt\n", "line 1: ", "gone.txt is not there"),
    "one manifest of two, and a pattern": (
        f"{PAIR}input_file_pattern: 'arrays/*.npy'\n",
        "pair-b.txt is not there, but pair-a.txt exists",
        "for each split, or no list\nadd this list; or remove ",
    ),
    "one manifest of two, and no pattern": (
        PAIR,
        "pair-b.txt is not there, but pair-a.txt exists",
        "expected a list of files for each split\nadd this list",
    ),
    "a manifest that leads out": (
        "manifest_file: out.txt\n",
        "out.txt, line 2: ../x is not written as a path below",
        "",
    ),
    "an absolute manifest": (
        "manifest_file: absolute.txt\n",
        "absolute.txt, line 1: /etc/passwd is not written as a path",
        "--raw",
    ),
    "a manifest of a split that leads out": (
        FOLDERS + "splits: {train: {manifest: out.txt}}\n",
        "out.txt, line 2: ../x is not the name of a file that the recipe's `source` can list",
        "expected the name of a file, such as ",
    ),
    "a manifest of a split that leads out of a manifest": (
        "manifest_file: pair-a.txt\nsplits: {train: {manifest: out.txt}}\n",
        "out.txt, line 2: ../x is not the name of a file that the recipe's `manifest_file` can list",
        "expected the name of a file, such as arrays/0.npy",
    ),
    "a manifest that leads out of the folder of a pattern": (
        "manifest_file: absolute.txt\ninput_file_pattern: ../*/arrays/*.npy\n",
        "absolute.txt, line 1: /etc/passwd is not written as a path",
        "change the folder where paths start, in `input_file_pattern`",
    ),
    "a manifest of what is gone": (
        "manifest_file: gone-line.txt\n",
        "gone-line.txt, line 3: ",
        "1.npx is not there",
    ),
    "a manifest with a line twice": (
        "manifest_file: twice.txt\n",
        "twice.txt, line 2",
        "is already in line 1",
    ),
    "an empty manifest": ("manifest_file: empty.txt\n", "empty.txt names no file", ""),
    "no labels": (FILES + "labels: gone.csv\n", "line 2: ", "gone.csv is not there"),
    "labels without a colon": (
        FILES + "labels: bad.txt\n",
        "bad.txt, line 2: expected path:label",
        "",
    ),
    "labels with a row too short": (
        FILES + "labels: short.csv\n",
        "short.csv, line 3: 2 columns expected",
        "1 found",
    ),
    "labels without paths": (
        FILES + "labels: nopath.csv\n",
        "nopath.csv, line 1: no column has a usual name for the paths of files",
        "name, label\nname it in the recipe: labels: {file: ..., path: COLUMN}; ",
    ),
    "labels with a column that the recipe misspells": (
        FILES + "labels: {file: nopath.csv, path: Name}\n",
        "the recipe's labels.path names the column Name, which the file lacks: expected one of name",
        "\ncorrect the name in the recipe, or in the file",
    ),
    "labels with a cell too many": (
        FILES + "labels: long.csv\n",
        "long.csv, line 3: 1 column expected, 2 found",
        "",
    ),
    "labels with a name twice": (
        FILES + "labels: names.csv\n",
        "names.csv, line 1: columns 2 and 4 have the same name, 'label'",
        "",
    ),
    "labels with a column of no name": (
        FILES + "labels: unnamed.csv\n",
        "unnamed.csv, line 1: column 2 has no name",
        "",
    ),
    "labels with an open quotation mark": (
        FILES + "labels: open.csv\n",
        "open.csv, line 3: a quotation mark opens a cell here, and none closes it",
        "",
    ),
    "labels that are damaged UTF-16": (
        FILES + "labels: wide.csv\n",
        "wide.csv, line 2: it starts as UTF-16, and is not UTF-16 here",
        "",
    ),
    "labels of what is gone": (
        FILES + "labels: more.txt\n",
        "more.txt: 1 path is not that of one file in the source",
        "2.npy (line 3)",
    ),
    "labels of other files": (
        FILES + "labels: {file: others.txt, unlabelled: skip}\n",
        "others.txt: no path is that of one file in the source: q/5.npy (line 1)",
        "expected paths such as arrays/0.npy",
    ),
    "two lines of one file": (
        FILES + "labels: same.txt\n",
        "same.txt: 1 path means the same file as a later one: arrays/0.npy (line 1)",
        "expected every file once",
    ),
    "files without labels": (
        FILES + "labels: less.txt\n",
        "1 file has no label in",
        "arrays/1.npy",
    ),
    "labels twice": (
        FILES + "labels: doubled.txt\n",
        "doubled.txt, line 2: '0.npy' is in line 1",
        "",
    ),
    "labels of an entry twice": (
        FILES + "labels: twice.json\n",
        "twice.json, entry 3: '0.npy' is in entry 1 already",
        "",
    ),
    "JSON without paths": (
        FILES + "labels: nopath.jsonl\n",
        "no column has a usual name for the paths of files: expected one of path, filename, file, image, got name\n",
        "\nname it in the recipe: labels: {file: ..., path: COLUMN}",
    ),
    "a column of splits and paths": (
        FILES + "labels: {file: nosplit.csv, split: path}\n",
        "nosplit.csv, line 1: the recipe's `labels` names 'path' as the column of the splits and of the paths",
        "",
    ),
    "columns of classes without paths": (
        FILES + "labels: {file: hot.csv, one_hot: true}\n",
        "hot.csv, line 1: no column has a usual name for the paths of files: expected one of path, filename, file, "
        "image, got name, a, b\n",
        "",
    ),
    "JSON of no file": (
        FILES + "labels: nofile.json\n",
        "nofile.json names no file",
        "",
    ),
    "labels without paths, below a comment": (
        FILES + "labels: comment.csv\n",
        "comment.csv, line 2: no column has a usual name for the paths of files",
        "name, label",
    ),
    "labels in one of two files": (
        FILES + "labels: {file: {train: less.csv, test: nolabel.csv}}\n",
        "nolabel.csv has none\n",
        "in every file, or in none",
    ),
    "labels of two files, and one that is not there": (
        FILES + "labels: {file: {train: less.csv, test: more.csv}}\n",
        "less.csv, ",
        "more.csv: 1 path is not that of one file in the source: 2.npy (",
    ),
    "no labels in two files": (
        FILES + "labels: {file: {train: less.csv, test: less3.csv}}\n",
        "1 file has no label in ",
        "less3.csv: arrays/1.npy",
    ),
    "values of splits": (
        FILES + "labels: {file: splits.csv, split: part}\n",
        "splits.csv: the column part has x, y, which are not names of splits",
        "splits: {NAME: {value: x}, NAME: {value: y}}",
    ),
    "values of splits that YAML would read otherwise": (
        FILES + "labels: {file: words.csv, split: part}\n",
        "words.csv: the column part has a: b, true, which are not names of splits",
        'splits: {NAME: {value: "a: b"}, NAME: {value: "true"}}',
    ),
    "a value of no split": (
        FILES + "labels: {file: splits.csv, split: part}\nsplits: {train: {value: x}}\n",
        "the column part has y, but no split in ",
        "add a split to `splits`: NAME: {value: y}",
    ),
    "a column of splits without a value": (
        FILES + "labels: {file: empties.csv, split: part}\n",
        "empties.csv: the column part has no value",
        "expected the split of each file",
    ),
    "a number that is no class": (
        FILES + "labels: less2.txt\nclasses: [10, 20]\nrecord: {l: label}\n",
        "less2.txt, line 1: the label 0 is not among the classes of the recipe: 10, 20",
        "",
    ),
    "no value for a file": (
        FILES + "labels: some.csv\nrecord: {a: size}\n",
        "some.csv, line 3: the column size has no value for arrays/1.npy",
        "expected a value for each file, and 1 file has none\nfill in the value, or write in `record` of ",
    ),
    "no value in a column whose name needs quotes": (
        FILES + "labels: empties.csv\nrecord: {'my s': 'a, b'}\n",
        "empties.csv, line 2: the column a, b has no value for arrays/0.npy",
        '"my s": {from: "a, b", optional: true}',
    ),
    "no value in a column of a type": (
        FILES + "labels: some.csv\nrecord: {a: {from: size, type: float}}\n",
        "some.csv, line 3: the column size has no value for arrays/1.npy",
        ": a: {from: size, type: float, optional: true}",
    ),
    "names that are nested too deep": (
        FOLDERS + "class_names: deep.json\n",
        "deep.json can't be read: its JSON is nested too deep",
        "",
    ),
    "names that are no JSON": (
        FOLDERS + "class_names: broken.json\n",
        "broken.json can't be read, line 1: not JSON: ",
        "",
    ),
    "names of half a character": (
        FOLDERS + "class_names: half-name.json\n",
        "half-name.json can't be read, line 2: a text holds half of a surrogate pair",
        "",
    ),
    "a class of a box of half a character": (
        "source: {table: half-box.csv}\n",
        "half-box.csv, line 2: the column objects, which is read as boxes: a text holds half of a surrogate pair",
        "",
    ),
    "two names of a class": (
        FOLDERS + "class_names: of-classes.csv\n",
        "of-classes.csv names the class rose twice: Rose and Tulip",
        "one name for each id",
    ),
    "names in other bytes": (
        FOLDERS + "class_names: latin.txt\n",
        "latin.txt is not UTF-8, at byte 3",
        "expected a text in UTF-8\nsave it as UTF-8",
    ),
    "names in a huge cell": (
        FOLDERS + "class_names: huge.csv\n",
        "huge.csv can't be read as a CSV, line 2: field larger than field limit",
        "",
    ),
    "classes in other bytes": (
        FOLDERS + "classes: latin.txt\n",
        "latin.txt is not UTF-8, at byte 3",
        "expected a text in UTF-8\nsave it as UTF-8",
    ),
    "labels that are no JSON": (
        FILES + "labels: bad.jsonl\n",
        "bad.jsonl, line 2: not JSON: Expecting value, and there is no more text\n",
        "",
    ),
    "a document that is no JSON": (
        FILES + "labels: bad.json\n",
        "bad.json, line 2: not JSON: Expecting ':' delimiter, at character 9\n",
        "",
    ),
    "a document of half a character": (
        FILES + "labels: half.json\n",
        "half.json, line 2: a text holds half of a surrogate pair",
        "",
    ),
    "a document that is nested too deep": (
        FILES + "labels: deep.json\n",
        "deep.json: its JSON is nested too deep",
        "",
    ),
    "labels with fractions": (
        FILES + "labels: half.txt\n",
        "half.txt, line 2: the label 0.5 is not a whole number, so it is no class",
        "labels: {file: ..., label: false}",
    ),
    "a table of images with fractions": (
        "source: {table: fractions.csv}\n",
        "fractions.csv, line 3: the label 0.5 is not a whole number, so it is no class",
        "write source: {..., label: false}",
    ),
    "a table of images with two signs": (
        "source: {table: signs.csv}\n",
        "signs.csv, line 3: the labels are -1 and 1",
        "write the classes in the file as 0 and 1, or by their names",
    ),
    "two signs, one of them in a list": (
        FILES + "labels: signs.jsonl\n",
        "signs.jsonl, line 1: the labels are -1 and 1",
        "if -1 is no label, write labels: {file: ..., unlabelled: keep}",
    ),
    "a mask of two images": (
        "source: {files: 'pair/*'}\nmask: {folder: pair-masks}\n",
        "the mask pair-masks/0.png fits pair/0.bmp and pair/0.png",
        "expected one image for each mask",
        "give each image its own mask, or move one image away",
    ),
    "labels of values for names": (
        FILES + "labels: ones.csv\n",
        "ones.csv, line 1: columns 2 and 3 have the same name, '1'",
        "a file without a header needs labels: {file: ..., header: false}",
    ),
    "a class that is not listed": (
        FOLDERS + "classes: [daisy]\n",
        "rose/0.png is in rose",
        "recipe.yaml",
    ),
    "a label beyond the classes": (
        BEYOND,
        "less2.txt, line 2: the label is 1, but the only class has the number 0",
        "correct the label, or add the missing classes to the recipe",
    ),
    "a file beside class folders": (
        "source: {folders: loose}\n",
        "x.png is in no class folder",
        "loose/CLASS/FILE",
    ),
    "no class folder at all": (
        "source: {folders: flowers/rose}\n",
        "0.png is in no class folder",
        "rose/CLASS/FILE",
    ),
    "a PPM": (
        "source: {folders: ppms}\n",
        "1 file is not recognised as an image: rose/0.ppm\n",
        ".jpg, .jpeg, .png",
    ),
    "a link of a folder": (
        "source: {folders: linked}\n",
        "linked/rose is a link to another folder",
        "",
    ),
    "a link to nowhere": (
        "source: {folders: nowhere}\n",
        "nowhere/rose/0.png can't be read",
        "No such file",
    ),
    "a tar that is cut": ("source: {tar: cut.tar}\n", "cut.tar is damaged at byte", ""),
    "a tar that is compressed": (
        "source: {tar: small.tar.gz}\n",
        "small.tar.gz is compressed with gzip",
        "gzip -dc -- ",
    ),
    "a tar that leads out": (
        "source: {tar: out.tar}\n",
        "out.tar holds a file whose path leads out",
        "../x.png",
    ),
    "no such split": (ROSES % "{folder: lily}", "line 2: split test is empty", ""),
    "a file in two splits": (
        ROSES % "{files: '*/*'}",
        "rose/0.png is in the splits train and test",
        "change `splits` in the recipe: only one of these splits may have it",
    ),
    "a folder of a split within another one": (
        "source: {files: 'flowers/*/*'}\nsplits: {train: {folder: [flowers, flowers/rose]}}\n",
        "the folders flowers/ and flowers/rose/ of split train both have flowers/rose/0.png",
        "remove flowers/rose/ from `splits` in the recipe: flowers/ includes it",
    ),
    "a name of two files in a manifest of a split": (
        FOLDERS + "splits: {train: {manifest: bare.txt}}\n",
        "bare.txt: 0.png (line 1) may be daisy/0.png, rose/0.png",
        "write the names with their folders, such as daisy/0.png",
    ),
    "a label of two files": (
        "source: {files: 'flowers/*/*'}\nlabels: bare.csv\n",
        "bare.csv: 0.png (line 2) may be flowers/daisy/0.png, flowers/rose/0.png",
        "expected names that mean one file each\nwrite the names with their folders, such as",
    ),
    "a name of odd bytes": (
        "source: {folders: odd}\n",
        r"a name that can't be used: 'rose/\xff.png'",
        "UTF-8",
    ),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Everything that the recipes above speak of; a recipe changes nothing of it."""
    tmp_path = tmp_path_factory.mktemp("folder")
    for name in ("flowers/daisy/0", "flowers/rose/0", "loose/rose/0", "loose/x", "ppms/rose/1"):
        save(tmp_path / f"{name}.png", picture("x.png"))
    save(tmp_path / "ppms/rose/0.ppm", picture("x.ppm"))
    for number in range(2):
        save(tmp_path / "arrays" / f"{number}.npy", array(3))
    same = "arrays/0.npy:0\n./arrays/0.npy:1\narrays/1.npy:1\n"
    save(tmp_path / "same.txt", same.encode())
    save(tmp_path / "others.txt", b"q/5.npy:0\n")
    save(tmp_path / "nosplit.csv", b"path,label\n0.npy,a\n1.npy,b\n")
    save(tmp_path / "nofile.json", b'{"cat": []}')
    for name in ("linked", "nowhere/rose", "odd/rose"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "linked/rose").symlink_to(tmp_path / "flowers/rose")
    (tmp_path / "nowhere/rose/0.png").symlink_to("gone.png")
    (tmp_path / "broken").symlink_to("gone")
    save(tmp_path / "hidden/rose/.0.png", picture("x.png"))
    save(tmp_path / "of_macos/rose/._0.png", b"\0\5\x16\7")
    save(tmp_path / "jpegs/daisy/0.jpg", picture("x.jpg"))
    for ending in ("png", "bmp"):
        save(tmp_path / f"twins/daisy/0.{ending}", picture("x.png"))
        save(tmp_path / f"pair/0.{ending}", picture("x.png"))
    save(tmp_path / "pair-masks/0.png", picture("x.png"))
    save(tmp_path / "wide.csv", codecs.BOM_UTF16_LE + "path\n".encode("utf-16-le") + b"\x00\xd8x")
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/odd/rose/\xff.png")).write_bytes(b"")
    texts = {
        "out.txt": "arrays/0.npy\n../x\n",
        "absolute.txt": "/etc/passwd\n",
        "gone-line.txt": "arrays/0.npy\n\narrays/1.npx\n",
        "twice.txt": "arrays/0.npy\n./arrays/0.npy\n",
        "empty.txt": "\n",
        "labels.txt": "0.npy:1\n1.npy:2\n",
        "bad.txt": "0.npy:1\n1.npy 2\n",
        "short.csv": "path,label\n0.npy,1\n1.npy\n",
        "nopath.csv": "name,label\n0.npy,1\n",
        "hot.csv": "name,a,b\n0.npy,0,1\n1.npy,1,0\n",
        "comment.csv": "# by hand\nname,label\n0.npy,1\n",
        "long.csv": "path\n0.npy\n1.npy,1\n",
        "names.csv": "path,label,size,label\n",
        "unnamed.csv": "path,,label\n",
        "open.csv": 'path,label\n0.npy,1\n"1.npy,2\n2.npy,3\n3.npy,4\n',
        "bad.json": '{"0.npy": 1,\n"1.npy" 2}\n',
        "half.json": '{"0.npy": 1,\n"1.npy\\ud800": 2}\n',
        "deep.json": "[" * 100_000,
        "half-name.json": '{"rose": "Rose",\n"daisy": "\\ud800"}\n',
        "half-box.csv": "file_name;objects\nflowers/rose/0.png;"
        '{"bbox": [[0, 0, 4, 4]], "categories": ["\\ud800"]}\n',
        "more.txt": "0.npy:1\n1.npy:2\n2.npy:3\n",
        "less.txt": "0.npy:1\n",
        "less2.txt": "0.npy:0\n1.npy:1\n",
        "doubled.txt": "0.npy:1\n0.npy:2\n",
        "bad.jsonl": '{"path": "0.npy"}\n{"path": \n',
        "half.txt": "0.npy:1\n1.npy:0.5\n",
        "fractions.csv": "file_name,label\nflowers/rose/0.png,1\nflowers/daisy/0.png,0.5\n",
        "signs.jsonl": '{"path": "0.npy", "label": -1}\n{"path": "1.npy", "label": [1]}\n',
        "signs.csv": "file_name,label\nflowers/rose/0.png,1\nflowers/daisy/0.png,-1\n",
        "ones.csv": "0.npy,1,1\n1.npy,2,2\n",
        "pair-a.txt": "arrays/0.npy\n",
        "words.csv": "path,label,part\n0.npy,1,true\n1.npy,2,a: b\n",
        "nan.csv": "path,label,size\n0.npy,1,nan\n1.npy,2,0.5\n",
        "bare.txt": "0.png\n",
        "bare.csv": "path,label\n0.png,1\n",
        "splits.csv": "path,label,part\n0.npy,1,x\n1.npy,2,y\n",
        "roses.txt": "daisy\nrose\nrose\nrose\n",
        "twice.json": '[["0.npy", 1],\n["1.npy", 2], ["0.npy", 3]]',
        "nopath.jsonl": '{"name": "0.npy"}\n',
        "less.csv": "path,label\n0.npy,1\n",
        "less3.csv": "path,label\n0.npy,1\n",
        "nolabel.csv": "path,size\n1.npy,2\n",
        "more.csv": "path,label\n1.npy,2\n2.npy,3\n",
        "empties.csv": 'path,label,part,"a, b"\n0.npy,1,,\n1.npy,2,,5\n',
        "some.csv": "path,label,size\n0.npy,1,5\n1.npy,2,\n",
        "broken.json": '{"rose": ',
        "of-classes.csv": "id,name\nrose,Rose\nrose,Tulip\n",
        "huge.csv": f"id,name\nrose,{'x' * 200_000}\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9\n")
    image = (tmp_path / "flowers/rose/0.png").read_bytes()
    whole = pack({"daisy/0.png": image, "rose/0.png": image})
    tars = {
        "cut.tar": whole[:700],
        "small.tar.gz": gzip.compress(whole),
        "out.tar": pack({"../x.png": image}),
    }
    for name, content in tars.items():
        (tmp_path / name).write_bytes(content)
    return tmp_path


def contents(folder: Path) -> dict[str, int]:
    """Every path below a folder with its time of change."""
    return {os.fspath(path): path.lstat().st_mtime_ns for path in existing(folder, "**/*")}


def take(path: Path) -> object:
    """What convert makes of a recipe, of ILSVRC2012's too."""
    file = read(path)
    return (
        imagenet_options(file) if is_imagenet(file) else load(file, None, make_engine("threads", 1))
    )


def refused(folder: Path, recipe: str | bytes) -> PrepError:
    """The error of a recipe, after a look that nothing was written."""
    path = folder / "recipe.yaml"
    path.write_bytes(recipe if isinstance(recipe, bytes) else recipe.encode())
    before = contents(folder)
    with pytest.raises(PrepError) as caught:
        take(path)
    assert contents(folder) == before
    return caught.value


@pytest.mark.parametrize("name", RECIPES)
def test_a_broken_recipe_is_one_message(folder: Path, name: str) -> None:
    """It names the file, the line and the key, in three lines at most, and is wrong usage."""
    recipe, *expected = RECIPES[name]
    error = refused(folder, recipe)
    assert isinstance(error, UsageError)
    assert f"{folder / 'recipe.yaml'}" in error.what
    assert all(part in str(error) for part in expected), str(error)
    assert len(str(error).splitlines()) <= 3


@pytest.mark.parametrize("name", INPUTS)
def test_a_broken_input_is_one_message(folder: Path, name: str) -> None:
    """It names the path, and the line where there is one, in three lines at most,
    and is a fault of the input.
    """
    recipe, *expected = INPUTS[name]
    error = refused(folder, recipe)
    assert isinstance(error, InputError), str(error)
    assert all(part in str(error) for part in expected), str(error)
    assert len(str(error).splitlines()) <= 3


def test_two_features_hold_one_column_with_nan(folder: Path) -> None:
    """NaN is not equal to itself: the column is the same."""
    path = folder / "recipe.yaml"
    path.write_text(FILES + "labels: nan.csv\nrecord: {a: size, b: {from: size}}\n")
    take(path)


def test_a_number_below_those_of_other_sets_has_its_own_hint(folder: Path) -> None:
    """Another first label would contradict the other sets."""
    path = folder / "recipe.yaml"
    path.write_text(FOLDERS)
    classes = Classes(("0",), ("0",), (0,), 1, is_numbered=True)
    with pytest.raises(
        InputError, match="the first label of all sets in this folder is 1"
    ) as caught:
        refuse_below_first(read(path), classes, is_shared=True)
    assert "first_label" not in caught.value.hint


def test_a_recipe_that_is_not_there(tmp_path: Path) -> None:
    """A missing recipe is an input that can't be read."""
    with pytest.raises(InputError, match=r"gone\.yaml can't be read"):
        read(tmp_path / "gone.yaml")


def test_a_surrogate_pair_is_one_character(tmp_path: Path) -> None:
    """A recipe may be JSON, and Python's json.dumps writes an emoji as two escapes."""
    path = tmp_path / "r.yaml"
    names = {"cat 😀": "die 😀 Katze"}
    path.write_text(json.dumps({"source": {"files": "a"}, "class_names": names}))
    assert read_recipe(path).recipe.class_names == names


def test_numbers_and_words_are_read_as_yaml_1_2_has_them(tmp_path: Path) -> None:
    """1e-3 is a number, no and on are texts, true is not; a quoted number is a text."""
    path = tmp_path / "r.yaml"
    path.write_text(
        "min_val: 1e-3\nmax_val: +.5\nclasses: [no, on, 7, '8']\non_damaged: skip\nseed: ~\n"
    )
    recipe = read_recipe(path).recipe
    assert (recipe.min_val, recipe.max_val, recipe.classes) == (0.001, 0.5, ["no", "on", 7, "8"])
    assert (recipe.on_damaged, recipe.seed) == ("skip", 12345)


@pytest.mark.parametrize(
    "read",
    [read_text, _read_classes, lambda path: read_names(path, path.read_bytes())],
    ids=["annotations", "classes", "class names"],
)
def test_a_byte_order_mark_is_counted(tmp_path: Path, read: Callable[[Path], object]) -> None:
    """The byte that is not UTF-8 is at that place of the file."""
    path = tmp_path / "names.txt"
    path.write_bytes(codecs.BOM_UTF8 + b"cat\n\xff\n")
    with pytest.raises(InputError, match=r"not UTF-8.* byte 7"):
        read(path)
