"""The seeds of the corpus: for every target a few inputs as they should be, made by the demo's own
generator.

``python scripts/fuzzing/seeds.py`` writes them to tests/corpus/<target>/seed-NN. What else lies
there was found by fuzzing, and is kept.
"""

from __future__ import annotations

import gzip
import io
import itertools
import json
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from mutations import seal
from PIL import Image
from target import CORPUS, HOME
from targets import TARGETS

sys.path.append(str(CORPUS.parent))

from made_tars import in_memory, pack

from imagenet_prep.demo.photographs import TINY_SIZE, Kind, encode, photograph
from imagenet_prep.storage.layout import Layout
from imagenet_prep.tfrecord import example as examples
from imagenet_prep.tfrecord import framing as tfrecord
from imagenet_prep.tfrecord.example import BytesList, FloatList, Int64List

_XML = b"""<annotation><folder>n01440764</folder><filename>n01440764_1</filename>
<source><database>ImageNet database</database></source>
<size><width>500</width><height>375</height><depth>3</depth></size>
<segmented>0</segmented>%s</annotation>"""
_OBJECT = b"""<object><name>n01440764</name><pose>Unspecified</pose><truncated>0</truncated><difficult>0</difficult>
<bndbox><xmin>%d</xmin><ymin>8</ymin><xmax>200</xmax><ymax>120</ymax></bndbox></object>"""

_RECIPES = (
    "source: {folders: images}\nrecord: inception\nshards: 8\n",
    "source: {files: ['a/**/*.png', b/*.tif]}\nlabels: {file: labels.csv, path: file, label: "
    "class, missing: ignore}\n"
    "record:\n  image: encoded\n  label: {from: label, type: int64}\n  x: {from: extra, "
    "optional: true}\n"
    "splits: {train: 0.9, test: 0.1}\nshards: {train: 4, test: 1}\ncompression: gzip\nseed: 7\n",
    "input_file_pattern: data/*.npy\noutput_file_prefix: out/set\nnum_shards: 2\nmin_val: "
    "0\nmax_val: 1.5e3\n"
    "content: array\n",
    "source: {tar: photos.tar, tar_folders: true}\nresize: 256\nmax_side: 512\nquality: "
    "90\ncheck: decode\n"
    "classes: {cat: a cat, dog: a dog}\nfirst_label: 1\nshard_size: 100MB\non_damaged: skip\n",
    "source: {imagenet: true}\nvalidation_boxes: true\nallow_incomplete: true\n",
    (
        "source: {manifest: list.txt}\nsplits: {train: {folder: a}, test: {files: "
        "'b/*'}}\ncontent: "
        "pixels\n"
    ),
)


def _jpegs() -> list[bytes]:
    small = photograph(1, TINY_SIZE)
    images = [encode(small, kind) for kind in Kind if kind is not Kind.PNG]
    return [*images, encode(photograph(2, (40, 24)), Kind.ROTATED)]


def _pngs() -> list[bytes]:
    small = photograph(3, TINY_SIZE)
    wide = Image.fromarray(np.arange(256, dtype="u2").reshape(16, 16) * 257)
    forms = [
        small,
        small.convert("L"),
        small.convert("P"),
        small.convert("1"),
        small.convert("RGBA"),
        wide,
    ]
    return [_saved(form, "PNG") for form in [*forms, small.convert("LA")]]


def _tiffs() -> list[bytes]:
    small = photograph(4, TINY_SIZE)
    plain = [_saved(form, "TIFF") for form in (small, small.convert("L"), small.convert("1"))]
    packed = [
        _saved(small, "TIFF", compression=name)
        for name in ("tiff_lzw", "tiff_adobe_deflate", "packbits")
    ]
    return [*plain, *packed]


def _saved(image: Image.Image, form: str, **options: object) -> bytes:
    return in_memory(lambda file: image.save(file, form, **options))


def _tar(members: dict[str, bytes], form: int = tarfile.USTAR_FORMAT) -> bytes:
    content = pack(members, form)
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        end = max(each.offset_data + each.size for each in archive)
    return content[: end + -end % 512] + bytes(1024)  # without the padding to 10,240 bytes


def _zips() -> list[bytes]:
    """Stored and deflated, in the fields of 32 bits and of 64,
    with sizes behind the data, with a comment.
    """
    found = []
    for method, is_wide in itertools.product(
        (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED), (False, True)
    ):
        buffer = io.BytesIO()
        with zipfile.ZipFile(
            buffer if not is_wide else _Unseekable(buffer), "w", method
        ) as archive:
            archive.comment = b"a comment" * is_wide
            for name, content in (
                ("a/n01440764_1.JPEG", _jpegs()[0]),
                ("a/", b""),
                ("a/2.xml", b"x" * 200),
            ):
                info = zipfile.ZipInfo(name)  # with the time of the format's beginning
                info.compress_type = method
                with archive.open(info, "w", force_zip64=is_wide) as entry:
                    entry.write(content)
        found.append(buffer.getvalue())
    return found


class _Unseekable(io.RawIOBase):
    """What zipfile writes to in one go."""

    def __init__(self, file: io.BytesIO) -> None:
        self._file = file

    def writable(self) -> bool:
        """It is."""
        return True

    def write(self, data: Any) -> int:
        """Pass it on."""
        return self._file.write(data)


def _tars() -> list[bytes]:
    image = _jpegs()[0]
    inner = _tar({"n01440764_1.JPEG": image, "n01440764_2.JPEG": b"x"})
    forms = (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT)
    long = {f"{'folder/' * 20}{'é' * 30}.jpg": b"content", "short": b""}
    return [
        _tar({"n01440764.tar": inner}),
        *(_tar(long, form) for form in forms if form != forms[0]),
        bytes(1024),
    ]


def _annotations() -> list[bytes]:
    several = b"".join(_OBJECT % x for x in (1, 90, -1, 300))
    return [
        _XML % b"",
        _XML % (_OBJECT % 10),
        _XML % several,
        b"<?xml version='1.0'?>\n" + _XML % (_OBJECT % 0),
    ]


def _annotation_archives() -> list[bytes]:
    files = {
        f"n01440764/n01440764_{number}.xml": content
        for number, content in enumerate(_annotations())
    }
    return [_tar(files), gzip.compress(_tar(files), mtime=0)]


def _arrays() -> list[bytes]:
    kinds = (
        np.arange(6, dtype="f4").reshape(2, 3),
        np.arange(8, dtype=">i2"),
        np.asfortranarray(np.eye(3)),
    )
    plain = (*kinds, np.zeros((), "u1"), np.array([True, False]))
    found = [in_memory(lambda file, array=array: np.save(file, array)) for array in plain]  # type: ignore[misc]
    for save in (np.savez, np.savez_compressed):
        for arrays in ({"a": kinds[0], "b": kinds[1]}, {"a": kinds[0]}):
            found.append(in_memory(lambda file, save=save, arrays=arrays: save(file, **arrays)))  # type: ignore[misc]
    return found


def _examples() -> list[bytes]:
    features = {
        "a": Int64List((0, 127, 128, 16_383, 16_384, -1)),
        "b": FloatList((0.5, float("nan"))),
    }
    return [
        examples.encode_example({**features, "c": BytesList((b"x", b"", "é".encode())), "d": None}),
        examples.encode_example(
            {"label": Int64List((3,)), "image/encoded": BytesList((_jpegs()[0],))}
        ),
        examples.encode_example({}),
    ]


def _sequences() -> list[bytes]:
    steps = (Int64List((1,)), None, FloatList((1.0, 2.0)), BytesList((b"word",)))
    return [
        examples.encode_sequence_example({"id": BytesList((b"a",))}, {"words": steps, "none": ()}),
        *_examples(),
    ]


def _records(*data: bytes) -> bytes:
    return b"".join(
        header + each + footer for each in data for header, footer, _ in [tfrecord.frame(each)]
    )


def _shards(layout: Layout) -> list[bytes]:
    return [
        layout.shard_path(name).read_bytes()
        for name in sorted(layout.find_shards({"train", "validation"}))
    ]


def _inception(layout: Layout) -> list[bytes]:
    return [
        bytes(record.data)
        for shard in _shards(layout)
        for record in tfrecord.iter_records(memoryview(shard))
    ]


def _index(layout: Layout) -> Iterator[bytes]:
    for name in sorted(layout.find_shards({"train"})):
        index, listing = layout.index_paths(name)
        yield index.read_bytes() + b"\n" + listing.read_bytes()


def _replies() -> list[bytes]:
    ranged = b'206\nContent-Range: bytes 0-1023/6744924160\nETag: "6a1c"\nLast-Modified: Thu, 14 Jun 2012 00:00:00 GMT\n\n'
    return [
        ranged + bytes(1024),
        b"200\nContent-Length: 6744924160\nContent-Type: application/x-tar\n\n" + bytes(100),
        b"200\nContent-Type: text/html; charset=utf-8\n\n<!DOCTYPE html><html>",
        b"503\nRetry-After: 120\n\n",
        b"429\nRetry-After: Wed, 21 Oct 2015 07:28:00 GMT\n\n",
        b"416\nContent-Range: bytes */100\n\n",
        b"302\nLocation: /other?key=secret\nContent-Length: 3\n\nabc",
        b"200\nTransfer-Encoding: chunked\nSet-Cookie: a=b; Path=/\n\n5\nhello\n0\n\n",
    ]


_PAGES = (
    b"<html><body><form action='/login' method=post><input type=hidden name=csrf value=1><input "
    b"name=user>"
    b"<input type=password name=pass><input type=checkbox name=stay checked><button "
    b"name=go>Sign in</button></form>",
    b"<form><input name=q></form><form action='https://other.org/x'><INPUT TYPE='PASSWORD' "
    b"NAME=a&amp;b></form>"
    b"<!-- x -->",
)
_STATE = {
    "url": "https://image-net.org/data/ILSVRC/2012/ILSVRC2012_img_val.tar",
    "total": 6_744_924_160,
    "etag": '"6a1c"',
    "last_modified": "Thu, 14 Jun 2012 00:00:00 GMT",
    "done": [[0, 100], [200, 1000]],
}
_MD5 = {
    "size": 10_240,
    "mtime_ns": 1_339_545_600_000_000_000,
    "md5": "29b22e2961454d5413ddabcf34fc5622",
}
_LINES = (b"a/1.png:0\nb/2.png:1\n", b"x y.jpg : cat\r\n\r\nC:\\z.png:dog\n", "é.jpg:ö\n".encode())
_CSV = (
    b"path,label,age\na.jpg,cat,3\nb.jpg,dog,\n",
    b'file,class\n"a,b.jpg","x\ny"\n',
    b"image,x,y\n1.png,0.5,nan\n",
)
_JSONL = (
    b'{"path": "a.jpg", "label": 1, "box": [0.1, 0.2]}\n{"path": "b.jpg", "label": 2, "box": []}\n',
    b'{"file": "a", "class": "cat", "t": null}\n\n{"file": "b", "class": "dog", "t": true}\n',
)
_PATTERNS = (
    b"a/**/*.png\na/b/c/d.png",
    b"images/[!a-c]?*.jpg\nimages/d1.jpg",
    b"**\nx/y",
    b".*/[]]-*\n.a/]-b",
)
_COOKIES = (
    b"# Netscape HTTP Cookie File\n.image-net.org\tTRUE\t/\tTRUE\t0\tsession\tabc\n"
    b"image-net.org\tFALSE\t/\tFALSE\t1999999999\ta\tb\n",
)
_NETRC = (
    b"machine image-net.org\n  login me\n  password secret\ndefault login a password b\n",
    b"macdef x\n  y\n\n",
)
_NAMES = (
    b"train-00000-of-01024",
    b"ILSVRC2012_val_00000001.JPEG",
    b"n01440764_1.JPEG",
    b"flowers-test-00001-of-00002",
)
_CLASS_FILES = (b"cat\ta small cat\ndog\n\n", "é\tö\n".encode())


def seeds() -> dict[str, list[bytes]]:
    """The seeds of every target, by its name."""
    layout = HOME.layout
    tables = [table.replace(b",", b"\t") for table in _CSV]
    manifests = [json.loads(layout.manifest_path.read_bytes()), _recipe_manifest(layout)]
    state = [layout.manifest_path.read_bytes(), *(json.dumps(each).encode() for each in manifests)]
    frames = [_records(*_examples()), _records(b"", b"x" * 100), _records(*_sequences()[:1]), b""]
    exif = [image for image in _jpegs() if b"Exif" in image]
    checked = {"ILSVRC2012_img_val.tar": _MD5, "ILSVRC2012_img_train.tar": {**_MD5, "md5": None}}
    return {
        **dict.fromkeys(("tar", "tar_stream", "tar_of_a_recipe"), _tars()),
        "zip_directory": _zips(),
        **{"annotation_archive": _annotation_archives(), "annotation_xml": _annotations()},
        **{"jpeg_markers": _jpegs(), "exif_orientation": exif, "png_header": _pngs()},
        **{
            "image_samples": [*_pngs(), *_tiffs(), *_jpegs()[:2]],
            "image_prepared": [*_jpegs(), *_pngs()[:3]],
        },
        **{
            "array": _arrays(),
            "labels_lines": list(_LINES),
            "labels_csv": list(_CSV),
            "labels_tsv": tables,
        },
        **{
            "labels_jsonl": list(_JSONL),
            "file_pattern": list(_PATTERNS),
            "class_file": list(_CLASS_FILES),
        },
        "boxes_table": [
            b"n00007846_64193.JPEG,0.0060,0.2620,0.7545,0.9940\n" * 2,
            layout.boxes_csv.read_bytes()[:2000],
        ],
        "file_list": [b"a/b.jpg\n./c.jpg\r\n\n/data/set/d.jpg\n", "\ufeffé.png\n".encode()],
        "recipe": [text.encode() for text in _RECIPES],
        **{
            "example": _examples(),
            "sequence_example": _sequences(),
            "inception_record": _inception(layout)[:6],
        },
        **{
            "record_seen": [*_examples(), *_inception(layout)[:2]],
            "tfrecord_framing": frames,
            "records_read": frames,
        },
        "compressed_framing": [
            *(gzip.compress(each, mtime=0) for each in frames),
            zlib.compress(frames[0]),
            frames[1],
        ],
        **{"shard": _shards(layout), "shard_index": list(_index(layout)), "manifest_json": state},
        "journal_lines": [layout.journal_path.read_bytes()],
        "verdict_json": [
            layout.verdict_path.read_bytes(),
            json.dumps(_verdict_with_problems(layout)).encode(),
        ],
        "plan_json": [layout.plan_path.read_bytes()],
        "checked_json": [json.dumps(checked).encode()],
        **{"annotate_json": [layout.annotate_path.read_bytes()], "http_reply": _replies()},
        "redirect": [
            b"/other?key=secret&a=b",
            b"https://user:pass@cdn.org:8443/x#y",
            b"//host/..",
            b"ftp://a",
        ],
        "partial_state": [json.dumps(_STATE).encode()],
        **{
            "sign_in_page": list(_PAGES),
            "cookies_file": list(_COOKIES),
            "netrc_file": list(_NETRC),
        },
        "names": list(_NAMES),
    }


def _recipe_manifest(layout: Layout) -> dict[str, object]:
    features = {"label": {"kind": "int64", "optional": False, "values": 1}}
    settings = {"format": 1, "compression": "none", "record": {"label": {"from": "label"}}}
    info = {
        "name": "a-00000-of-00001",
        "fingerprint": "0" * 64,
        "records": 2,
        "size": 90,
        "digest": "0" * 64,
    }
    value: dict[str, object] = {
        **json.loads(layout.manifest_path.read_bytes()),
        **{"version": "0.1.0", "settings": settings, "sources": {"a": {"images": 2}}},
        "totals": {"a": {"images": 2, "expected": 2, "classes": 0, "boxes": 0, "shards": 1}},
        "shards": {"a-00000-of-00001": {**info, "set_aside": [], "repairs": []}},
        "dataset": {
            "kind": "recipe",
            "name": "flowers",
            "splits": ["a"],
            "features": features,
            "turned": {},
        },
    }
    seal(value)
    return value


def _verdict_with_problems(layout: Layout) -> dict[str, object]:
    verdict: dict[str, object] = json.loads(layout.verdict_path.read_bytes())
    problem = {
        "kind": "bad-crc",
        "subject": "train-00000-of-00002",
        "detail": "x",
        "remedy": "",
        "record": 1,
        "offset": 9,
    }
    more = {"image": "", "expected": "", "got": "", "count": 1}
    return {
        **verdict,
        "problems": [{**problem, **more}],
        "faulty": {"train-00000-of-00002": ["bad-crc"]},
    }


def main() -> int:
    """Write the seeds; fail where a target has none, or one is longer than its target's limit."""
    found = seeds()
    missing = TARGETS.keys() ^ found.keys()
    long = [name for name, inputs in found.items() if max(map(len, inputs)) > TARGETS[name].limit]
    if missing or long:
        print(f"no seeds, or no target: {missing}; too long: {long}", file=sys.stderr)
        return 1
    for name, inputs in found.items():
        folder = CORPUS / name
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("seed-*"):
            old.unlink()
        for number, content in enumerate(inputs):
            (folder / f"seed-{number:02d}").write_bytes(content)
    return 0


if __name__ == "__main__":
    sys.exit(main())
