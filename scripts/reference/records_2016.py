"""Shards of 2016, by an independent reading of the published algorithm, and their comparison with
others.

Runs under Python 2.7 with TensorFlow 0.12.1 and NumPy 1.16, started by compare.py; it imports
nothing of this project.

    python2.7 records_2016.py write FOLDER OUT TRAIN_SHARDS VALIDATION_SHARDS
    python2.7 records_2016.py compare OUT OTHER

FOLDER has train/<wnid>/<name>.JPEG and validation/<wnid>/<name>.JPEG, and the tables synsets.txt,
words.txt, boxes.csv.
"""

import json
import os
import random
import struct
import sys

import numpy as np
import tensorflow as tf

SEED = 12345
LANES = 8
FRAMES = frozenset([0xC0, 0xC1, 0xC2, 0xC3, 0xC5, 0xC6, 0xC7, 0xC9, 0xCA, 0xCB, 0xCD, 0xCE, 0xCF])


class Coder(object):
    """TensorFlow's decoders and encoder."""

    def __init__(self):
        self.session = tf.Session()
        self.data = tf.placeholder(tf.string)
        self.png_as_jpeg = self._encoded(tf.image.decode_png(self.data, channels=3))
        self.cmyk_as_jpeg = self._encoded(tf.image.decode_jpeg(self.data, channels=0))
        self.pixels = tf.image.decode_jpeg(self.data, channels=3)

    def _encoded(self, image):
        return tf.image.encode_jpeg(image, format="rgb", quality=100)

    def run(self, tensor, data):
        """The value of one of the tensors for an image's bytes."""
        return self.session.run(tensor, {self.data: data})

    def rgb_jpeg(self, data):
        """The image's bytes for a record, its height and its width."""
        if data[:8] == b"\x89PNG\r\n\x1a\n":
            data = self.run(self.png_as_jpeg, data)
        elif count_components(data) == 4:
            data = self.run(self.cmyk_as_jpeg, data)
        height, width, channels = self.run(self.pixels, data).shape
        assert channels == 3
        return data, height, width


def count_components(data):
    """The number of components of a JPEG. The scripts of 2016 had a list of 22 names instead."""
    position = 2
    while ord(data[position + 1]) not in FRAMES:
        position += 2 + struct.unpack(">H", data[position + 2 : position + 4])[0]
    return ord(data[position + 9])


# a set of shards ----------------------------------------------------------------------------------


def write_set(folder, out, train_shards, validation_shards):
    """Write the shards of both splits."""
    with open(os.path.join(folder, "synsets.txt")) as lines:
        synsets = lines.read().split()
    with open(os.path.join(folder, "words.txt")) as lines:
        words = dict(line.rstrip("\n").split("\t") for line in lines)
    boxes = read_boxes(os.path.join(folder, "boxes.csv"))
    coder = Coder()
    for split, shards in (("train", int(train_shards)), ("validation", int(validation_shards))):
        images = list_images(os.path.join(folder, split), synsets)
        for number, rows in enumerate(cut(len(images), shards)):
            name = "%s-%05d-of-%05d" % (split, number, shards)
            writer = tf.python_io.TFRecordWriter(os.path.join(out, name))
            for row in rows:
                path, label, synset = images[row]
                writer.write(
                    make_record(
                        coder, path, label, synset, words[synset], boxes
                    ).SerializeToString()
                )
            writer.close()


def read_boxes(path):
    """The boxes (xmin, ymin, xmax, ymax) of each image, by file name."""
    boxes = {}
    with open(path) as lines:
        for line in lines:
            parts = line.strip().split(",")
            boxes.setdefault(parts[0], []).append([float(part) for part in parts[1:]])
    return boxes


def list_images(folder, synsets):
    """Every image of a split as (path, label, synset): shuffled, from a sorted listing."""
    images = []
    for label, synset in enumerate(synsets, 1):
        class_folder = os.path.join(folder, synset)
        names = sorted(os.listdir(class_folder)) if os.path.isdir(class_folder) else []
        images += [(os.path.join(class_folder, name), label, synset) for name in names]
    order = list(range(len(images)))
    random.seed(SEED)
    random.shuffle(order)
    return [images[index] for index in order]


def cut(images, shards):
    """The rows of each shard: lanes of equal size, and shards of equal size within each."""
    lanes = LANES if shards % LANES == 0 else 1
    edges = np.linspace(0, images, lanes + 1).astype(int)
    for start, stop in zip(edges[:-1], edges[1:]):
        within = np.linspace(start, stop, shards // lanes + 1).astype(int)
        for first, end in zip(within[:-1], within[1:]):
            yield range(first, end)


def make_record(coder, path, label, synset, words, boxes):
    """The Example of an image."""
    name = os.path.basename(path)
    with open(path, "rb") as image:
        encoded, height, width = coder.rgb_jpeg(image.read())
    corners = list(zip(*boxes.get(name, []))) or [()] * 4
    features = {
        "image/height": integers([height]),
        "image/width": integers([width]),
        "image/colorspace": text(b"RGB"),
        "image/channels": integers([3]),
        "image/class/label": integers([label]),
        "image/class/synset": text(synset),
        "image/class/text": text(words),
        "image/object/bbox/xmin": numbers(corners[0]),
        "image/object/bbox/ymin": numbers(corners[1]),
        "image/object/bbox/xmax": numbers(corners[2]),
        "image/object/bbox/ymax": numbers(corners[3]),
        "image/object/bbox/label": integers([label] * len(corners[0])),
        "image/format": text(b"JPEG"),
        "image/filename": text(name),
        "image/encoded": text(encoded),
    }
    return tf.train.Example(features=tf.train.Features(feature=features))


def integers(values):
    """A feature of integers."""
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def numbers(values):
    """A feature of floats."""
    return tf.train.Feature(float_list=tf.train.FloatList(value=values))


def text(value):
    """A feature of one byte string."""
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))


# comparison ---------------------------------------------------------------------------------------


def compare_sets(out, other):
    """Print how many records are equal, feature by feature,
    and the differences, as a line of JSON.
    """
    shards = sorted(name for name in os.listdir(out) if "-of-" in name)
    others = sorted(name for name in os.listdir(other) if "-of-" in name)
    differences = (
        [] if shards == others else ["the names of the shards differ: %s, %s" % (shards, others)]
    )
    records = equal = 0
    for shard in shards if shards == others else []:
        ours, theirs = (
            list(tf.python_io.tf_record_iterator(os.path.join(place, shard)))
            for place in (other, out)
        )
        if len(ours) != len(theirs):
            differences.append("%s has %d records, expected %d" % (shard, len(ours), len(theirs)))
        records += max(len(ours), len(theirs))
        for number, (one, expected) in enumerate(zip(ours, theirs)):
            names = list_differences(
                tf.train.Example.FromString(one), tf.train.Example.FromString(expected)
            )
            equal += not names
            if names:
                differences.append("record %d of %s: %s" % (number, shard, ", ".join(names)))
    print(json.dumps({"records": records, "equal": equal, "differences": differences}))


def list_differences(one, expected):
    """The names of the features that differ between two Examples."""
    one, expected = one.features.feature, expected.features.feature
    names = sorted(set(one) | set(expected))
    return [
        name
        for name in names
        if name not in one or name not in expected or one[name] != expected[name]
    ]


if __name__ == "__main__":
    {"write": write_set, "compare": compare_sets}[sys.argv[1]](*sys.argv[2:])
