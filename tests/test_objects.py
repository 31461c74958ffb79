"""Sets in an object store, on a real S3 server: the same bytes,
resumed after kills, read at random, no secret told.
"""

from __future__ import annotations

import os
import pickle
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import running
from bounded import kill_group
from command_server import PATIENCE
from existing import existing
from made_sets import make_flowers
from msgspec.structs import replace
from object_server import CANARY, KEY, Fault, ObjectServer, Proxy, each_in_turn, run_proxy, times
from running import error_lines

import imagenet_prep
from imagenet_prep import ConvertOptions, Layout
from imagenet_prep.demo import photographs
from imagenet_prep.demo.archives import MadeSet, make
from imagenet_prep.engines.threads import ThreadEngine
from imagenet_prep.state.manifest import load_manifest
from imagenet_prep.storage.files import save_bytes
from imagenet_prep.storage.location import AnyPath, locate
from imagenet_prep.storage.object_store import PART as PART_BYTES

PART = (
    "--allow-incomplete",
    "--train-shards",
    "3",
    "--validation-shards",
    "2",
    "--workers",
    "2",
    "--quiet",
)
OPTIONS = ConvertOptions(allow_incomplete=True, train_shards=3, validation_shards=2)
IMAGES = 288  # of train
TINY = photographs.tiny
START_OF_JPEG = b"\xff\xd8"


def prep(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command line to its end; nothing that it says holds the secret."""
    done = running.prep(*arguments, **environment)
    assert CANARY not in done.stdout + done.stderr
    assert KEY not in done.stdout + done.stderr
    return done


def right(*arguments: object, **environment: str) -> str:
    """The same, ended with 0; what it printed."""
    done = prep(*arguments, **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A DATA_DIR here, whose shards are larger than a part of an upload:
    what every other one must be like.
    """
    data_dir = tmp_path_factory.mktemp("local")
    raw_dir = Layout(data_dir).raw_dir
    raw_dir.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(photographs, "tiny", large_file)
        make(raw_dir, classes=6, per_class=IMAGES // 6, validation=24, tiny=True)
    right("annotate", data_dir, "--quiet")
    right("convert", data_dir, *PART)
    assert max(path.stat().st_size for path in existing(data_dir, "train-*")) > PART_BYTES
    return data_dir


def large_file(seed: int, kind: photographs.Kind) -> bytes:
    """A tiny image with comments of 100 kB that can't be compressed: a JPEG as large as a
    photograph, of which little must be decoded.
    """
    content = TINY(seed, kind)
    if not content.startswith(START_OF_JPEG):
        return content
    noise = random.Random(seed).randbytes(50_000)
    comment = b"\xff\xfe" + (len(noise) + 2).to_bytes(2, "big") + noise
    return START_OF_JPEG + 2 * comment + content.removeprefix(START_OF_JPEG)


def upload(folder: Path, to: AnyPath) -> None:
    """Put every file below a folder into the store."""
    for path in existing(folder, "**/*"):
        if path.is_file():
            save_bytes(to / path.relative_to(folder), path.read_bytes())


def contents(folder: AnyPath) -> dict[str, bytes]:
    """The shards and their indexes by name, and the manifest."""
    state = Layout(folder).state_dir
    found = [*folder.glob("*-of-*"), *(state / "index").glob("*"), state / "manifest.json"]
    return {path.name: path.read_bytes() for path in found}


def refuse_leftovers(url: str) -> None:
    """No secret is in any object of ours."""
    state = Layout(locate(url)).state_dir
    for path in [*state.glob("*.json"), *state.glob("*.jsonl")]:
        content = path.read_bytes()
        assert CANARY.encode() not in content
        assert KEY.encode() not in content


# there and back -----------------------------------------------------------------------------------


def test_the_same_shards_in_a_store(objects: ObjectServer, local: Path, tmp_path: Path) -> None:
    """To a store, from one to another, and from one to here:
    the same shards, indexes and manifest, byte for byte.
    """
    expected = contents(local)
    first, second, third = objects.new_bucket(), objects.new_bucket(), tmp_path / "here"
    (tmp_path / "tmp").mkdir()
    temporary = {"TMPDIR": str(tmp_path / "tmp")}
    right("convert", local, "--output", first, *PART, **temporary)
    assert contents(locate(first)) == expected
    upload(local / "raw-data", locate(second) / "raw-data")
    right("convert", second, *PART, **temporary)
    assert contents(locate(second)) == expected
    with run_proxy(objects) as proxy:
        environment = {**temporary, **objects.environment_by(proxy.port)}
        right("convert", third, "--raw", f"{second}/raw-data", *PART, **environment)
    assert contents(third) == expected
    asked = sum(method == "GET" and "img_train.tar" in path for method, path in proxy.seen)
    assert asked < 1.25 * IMAGES, "each image once, and the headers of many of them in one request"
    assert list((tmp_path / "tmp").iterdir()) == []
    for url in (first, second):
        refuse_leftovers(url)
        assert "incomplete: the shards of ILSVRC2012 hold" in right(
            "verify", url, "--workers", "2", **temporary
        )
        assert re.search(r"convert +done", right("status", url))
    name = "validation-00001-of-00002"
    assert right("show", f"{first}/{name}", "--record", "2") == right(
        "show", local / name, "--record", "2"
    )
    right("report", first, "--samples", "4", "--workers", "2", "--quiet", **temporary)
    assert b"</html>" in Layout(locate(first)).report_path.read_bytes()
    assert list((tmp_path / "tmp").iterdir()) == []


def test_recipes_put_shards_there_and_read_here(objects: ObjectServer, tmp_path: Path) -> None:
    """Shards of a recipe are made in a store, byte for byte;
    its images are refused in one, however named.
    """
    url, folder = objects.new_bucket(), tmp_path / "flowers"
    make_flowers(folder, 1)
    recipe = tmp_path / "flowers.yaml"
    recipe.write_text("source:\n  folders: flowers\nrecord: inception\n")
    right("convert", tmp_path / "here", "--config", recipe, "--quiet")
    right("convert", url, "--config", recipe, "--quiet")
    assert len(expected := contents(tmp_path / "here")) >= 4
    assert contents(locate(url)) == expected
    refused = prep("convert", tmp_path / "there", "--config", recipe, "--raw", url)
    assert refused.returncode == 2, refused.stderr
    assert len(error_lines(refused)) == 3
    recipe.write_text(f"source:\n  folders: {url}\nrecord: inception\n")
    refused = prep("convert", tmp_path / "there", "--config", recipe)
    assert refused.returncode == 4, refused.stderr
    assert "line 2:" in refused.stderr
    assert not (tmp_path / "there").exists()


@pytest.fixture
def stored(objects: ObjectServer, local: Path) -> str:
    """A finished set in the store with its raw data: the one made here, copied once."""
    if local not in _stored:
        _stored[local] = objects.new_bucket()
        upload(local, locate(_stored[local]))
    return _stored[local]


_stored: dict[Path, str] = {}


def test_an_archive_that_was_replaced_is_called_so(
    objects: ObjectServer, made_tiny: MadeSet, tmp_path: Path
) -> None:
    """An object with a new time was put again; nobody copied it without its times."""
    raw = locate(objects.new_bucket())
    upload(made_tiny.archives["train"].parent, raw)
    right("convert", tmp_path / "out", "--raw", raw, *PART)
    time.sleep(1.1)  # times in a store are seconds
    archive = raw / "ILSVRC2012_img_train.tar"
    content = archive.read_bytes()
    archive.unlink()
    save_bytes(archive, content)
    done = prep("convert", tmp_path / "out", "--raw", raw, *PART)
    assert done.returncode == 2, done.stderr
    assert f"{archive} was replaced by another object" in done.stderr


def test_what_is_wrong_is_found_and_made_again(objects: ObjectServer, local: Path) -> None:
    """A flipped bit, a shard that is gone and an index that is another:
    verify names them, repair makes them again.
    """
    stored = objects.new_bucket()
    upload(local, locate(stored))
    expected, layout = contents(local), Layout(locate(stored))
    flipped, gone, other = (layout.shard_path(f"train-0000{k}-of-00003") for k in range(3))
    content = bytearray(flipped.read_bytes())
    content[5_000_000] ^= 1
    save_bytes(flipped, bytes(content))
    gone.unlink()
    index = layout.index_path(other.name)
    save_bytes(index, b"0 1\n")
    found = prep("verify", stored, "--workers", "2")
    assert found.returncode == 3
    assert re.search(rf"bad-crc: {flipped.name}: record \d+ at byte", found.stdout)
    assert f"missing-shard: {gone.name}" in found.stdout
    assert f"bad-index: {other.name}" in found.stdout
    right("repair", stored, "--workers", "2", "--quiet")
    assert contents(locate(stored)) == expected
    refuse_leftovers(stored)


def test_records_are_read_at_random(objects: ObjectServer, local: Path, stored: str) -> None:
    """300 records by chance, all of them in order, from a pickled set, and the raw data:
    as they are here.
    """
    here, there = imagenet_prep.open(local, "train"), imagenet_prep.open(stored, "train")
    assert len(there) == len(here)
    draw = random.Random(7)
    for number in (draw.randrange(len(here)) for _ in range(300)):
        assert there[number].data == here[number].data
        assert there[number].filename == here[number].filename
    assert [bytes(record.data) for record in there] == [bytes(record.data) for record in here]
    packed = pickle.dumps(there)
    assert CANARY.encode() not in packed
    assert pickle.loads(packed)[3].data == here[3].data
    with pytest.warns(UserWarning, match="a part of ILSVRC2012"):
        raw = imagenet_prep.open(stored, "train", source="raw", options=OPTIONS)
    assert raw[11].data == here[11].data


# kills --------------------------------------------------------------------------------------------


def test_a_kill_in_mid_upload(objects: ObjectServer, local: Path) -> None:
    """Killed while the second part is on its way: what is left is no object,
    and the next run ends with the same bytes.
    """
    url = objects.new_bucket()
    command = [sys.executable, "-m", "imagenet_prep", "convert", str(local), "--output", url, *PART]
    with run_proxy(objects) as proxy:
        proxy.fault = lambda method, path: "stall" if proxy.parts() > 1 else None
        environment = {**os.environ, **objects.environment_by(proxy.port)}
        process = subprocess.Popen(
            command, start_new_session=True, stderr=subprocess.DEVNULL, env=environment
        )
        try:
            until(lambda: proxy.parts() >= 2 or process.poll() is not None)
        finally:
            kill_group(process)
        assert process.returncode == -signal.SIGKILL
    right("convert", local, "--output", url, *PART)
    assert contents(locate(url)) == contents(local)
    refuse_leftovers(url)


def until(condition: object) -> None:
    """Wait until something holds, as long as a command may take on a busy machine."""
    assert callable(condition)
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_one_of_several_sets_claims_a_place(
    objects: ObjectServer, made_tiny: MadeSet, tmp_path: Path
) -> None:
    """Of two converts with other seeds into one URL, at once or in turn,
    one is refused unless it may overwrite.
    """
    url = objects.new_bucket()

    def call(seed: int) -> list[str]:
        raw = made_tiny.archives["train"].parent
        folders = tmp_path / str(seed), "--raw", raw, "--output", url
        return list(map(str, ("convert", *folders, *PART, "--set", f"seed={seed}")))

    run = [sys.executable, "-m", "imagenet_prep"]
    both = [
        subprocess.Popen([*run, *call(seed)], stderr=subprocess.PIPE, text=True) for seed in (1, 2)
    ]
    said = [each.communicate(timeout=PATIENCE)[1] for each in both]
    assert sorted(each.returncode for each in both) == [0, 2], said
    (other,) = (seed for seed, each in zip((1, 2), both, strict=True) if each.returncode)
    right("verify", url, "--quiet")
    first = Layout(locate(url))
    manifest = load_manifest(first.manifest_path)
    replace(manifest, settings={**manifest.settings, "seed": other}).save(first.manifest_path)
    for verb, status in (("verify", 3), ("repair", 4)):
        found = prep(verb, url, "--quiet")
        assert found.returncode == status
        assert (
            f"other settings or images than {first.plan_path}: these differ: seed"
            in found.stdout + found.stderr
        )
    manifest.save(first.manifest_path)
    right("verify", url, "--quiet")
    for path in (*locate(url).glob("*-of-*"), *Layout(locate(url)).state_dir.glob("journal*")):
        path.unlink()
    refused = prep(*call(other))
    assert refused.returncode == 2
    assert "is for a set with other images or settings" in refused.stderr
    assert "these differ: seed" in refused.stderr
    right(*call(other), "--overwrite")
    right(*call(other))


# what a worker holds, and tells -------------------------------------------------------------------

MEASURED = """
import logging, resource, sys
from pathlib import Path
from imagenet_prep.engines.processes import ProcessEngine
from imagenet_prep.ilsvrc2012.settings import ConvertOptions
from imagenet_prep.stages.convert import convert
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import Location, locate

if __name__ == "__main__":
    logging.basicConfig(level=logging.DEBUG)
    locate(sys.argv[1]).is_dir()  # an engine that comes later can't fork
    options = ConvertOptions(allow_incomplete=True, train_shards=1, validation_shards=2)
    convert(Layout(sys.argv[1], output=sys.argv[2]), ProcessEngine(1), options)
    print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def test_memory_and_secrets_of_a_worker(objects: ObjectServer, stored: str, tmp_path: Path) -> None:
    """A worker holds at most 300 MB of any shard;
    no log tells a secret, at any level, nor a command line.
    """
    script = tmp_path / "measured.py"
    script.write_text(MEASURED)
    command = [sys.executable, str(script), stored, objects.new_bucket()]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    seen: set[bytes] = set()
    while process.poll() is None:
        seen |= set(command_lines())
        time.sleep(0.05)
    said = process.communicate()[0]
    assert process.returncode == 0, said
    assert int(said.split()[-1]) << 10 <= 300_000_000
    assert any(b"measured.py" in each for each in seen)
    assert any(b"multiprocessing" in each for each in seen)
    for each in (said.encode(), *seen):
        assert CANARY.encode() not in each
        assert KEY.encode() not in each


def command_lines() -> Iterator[bytes]:
    """What every process of this machine was called with."""
    for path in list(Path("/proc").glob("[0-9]*/cmdline")):
        try:
            yield path.read_bytes()
        except OSError:
            continue


def test_no_secret_in_a_task(
    objects: ObjectServer, stored: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What goes to a worker, pickled, holds the URL and neither key nor secret,
    also once it was used.
    """
    tasks: list[bytes] = []

    class Noting(ThreadEngine):
        def map(self, function, tasks_of):  # type: ignore[no-untyped-def]
            def noted():  # type: ignore[no-untyped-def]
                for task in tasks_of:
                    tasks.append(pickle.dumps((function, task)))
                    yield task

            yield from super().map(function, noted())

    url = objects.new_bucket()
    imagenet_prep.convert(Layout(Path(stored), output=Path(url)), Noting(2), OPTIONS)
    made = [
        each
        for each in tasks
        if url.encode() in each or url[5:].encode() in each or b"Location" in each
    ]
    assert len(made) >= 5
    assert not [each for each in tasks if CANARY.encode() in each or KEY.encode() in each]


FORKED_TOO_LATE = """
import os, sys
from imagenet_prep.errors import UsageError
from imagenet_prep.storage.location import locate

assert locate(sys.argv[1]).is_dir()
if not os.fork():
    try:
        locate(sys.argv[1]).is_dir()
    except UsageError as error:
        os.write(1, str(error).encode())
    finally:
        os._exit(0)
os.wait()
"""


def test_a_forked_process_refuses(objects: ObjectServer, stored: str) -> None:
    """Its requests would wait for ever: it says so at once, and what to do."""
    done = subprocess.run(
        [sys.executable, "-c", FORKED_TOO_LATE, stored],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert "forked" in done.stdout, done.stderr
    assert "spawn" in done.stdout


# a store or a network that fails ------------------------------------------------------------------


@pytest.fixture
def proxy(objects: ObjectServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    """A proxy before the server, and the environment that leads to it."""
    with run_proxy(objects) as running:
        for name, value in objects.environment_by(running.port).items():
            monkeypatch.setenv(name, value)
        yield running


HEALED: list[tuple[int, Fault, str, str]] = [
    (6, "503", "PUT", "partNumber="),
    (4, "503", "PUT", "-of-00002$"),
    (3, "503", "POST", "uploadId="),
    (6, "503", "GET", ""),
    (3, "reset", "PUT", "partNumber="),
    (4, "reset", "GET", "img_train.tar"),
    (4, "truncate", "GET", "img_train.tar"),
    (2, "truncate", "GET", "list-type=2"),
    (1, "truncate", "GET", "plan.json"),
    (2, 1.5, "PUT", "partNumber="),
]


def test_what_passes_is_got_over(
    proxy: Proxy, objects: ObjectServer, local: Path, stored: str
) -> None:
    """503, connections that break, bodies cut short, slow answers:
    tried again, and the bytes are right.
    """
    url = objects.new_bucket()
    proxy.fault = each_in_turn([times(*each) for each in HEALED])
    right("convert", stored, "--output", url, *PART)
    assert contents(locate(url)) == contents(local)
    refuse_leftovers(url)


@pytest.mark.parametrize(
    ("fault", "where", "reason"),
    [
        ("503", ("PUT", "-of-"), "status 503"),
        ("stall", ("PUT", "-of-"), "the server was silent for too long"),
        ("truncate", ("GET", "list-type=2"), "the answer was cut short"),
    ],
)
def test_what_stays_is_an_error(
    proxy: Proxy,
    objects: ObjectServer,
    local: Path,
    fault: Fault,
    where: tuple[str, str],
    reason: str,
) -> None:
    """A store that never answers well ends the run with status 5 and three lines, which name the
    fault.

    Each answer may take as long as requests are tried again: on a busy machine a sound one takes
    more than a second.
    """
    proxy.fault = times(10**6, fault, *where)
    done = prep(
        "convert", local, "--output", objects.new_bucket(), *PART, IMAGENET_PREP_RETRY_SECONDS="6"
    )
    assert done.returncode == 5, done.stderr
    said = error_lines(done)
    assert len(said) == 3
    assert reason in said[1]


def test_what_the_environment_lacks(objects: ObjectServer, stored: str) -> None:
    """A wrong secret, none, a bucket or a set that is not there, a server that is none:
    each in words of its own.
    """
    wrong = prep("verify", stored, AWS_SECRET_ACCESS_KEY="another")
    assert (wrong.returncode, wrong.stderr.splitlines()[0]) == (6, error_lines(wrong)[0])
    assert "no access to s3://" in wrong.stderr
    assert (
        "the store refuses these credentials, or they lack the right to read objects"
        in wrong.stderr
    )
    none = {
        name: value
        for name, value in os.environ.items()
        if KEY not in value and CANARY not in value
    }
    command = [sys.executable, "-m", "imagenet_prep", "verify", stored]
    missing = subprocess.run(command, env=none, capture_output=True, text=True)
    assert missing.returncode == 6, missing.stderr
    assert "no credentials for s3://" in missing.stderr
    none["AWS_SKIP_SIGNATURE"] = "true"
    unsigned = subprocess.run(command, env=none, capture_output=True, text=True)
    assert unsigned.returncode == 6, unsigned.stderr
    assert (
        "no credentials were given, the store refuses them, or they lack the right"
        in unsigned.stderr
    )
    bucket = prep("verify", "s3://no-such-bucket-here/x")
    assert bucket.returncode in (2, 4)
    assert len(error_lines(bucket)) <= 3
    nobody = prep(
        "verify", stored, AWS_ENDPOINT_URL="http://127.0.0.1:9", IMAGENET_PREP_RETRY_SECONDS="1"
    )
    assert nobody.returncode == 5, nobody.stderr
    assert len(error_lines(nobody)) == 3
    odd = prep("verify", stored, IMAGENET_PREP_RETRY_SECONDS="soon")
    assert odd.returncode == 2
