"""What all tests share: the small ImageNet, data folders holding it,
a guard around the tester's credentials, rules.
"""

from __future__ import annotations

import contextlib
import gc
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import unsynced
from hypothesis import settings

unsynced.install()  # before modules of the package import what it replaces

from imagenet_prep.demo.archives import MadeSet, make  # noqa: E402
from imagenet_prep.storage.layout import Layout  # noqa: E402

if TYPE_CHECKING:
    from object_server import ObjectServer

MAY_SKIP = os.environ.get("IMAGENET_PREP_SKIPS")
"""Set in CI, where no test is skipped without a word:
those that may be, by the beginning of their ids.
"""

NOWHERE = "http://127.0.0.1:9"
"""Where nobody answers: no test asks an object store but its own."""

SAME_EVERYWHERE = """
annotation_formats annotations broken_recipes catalog census class_numbers content copies crops
damaged_loaders data_files demo_images detection devkit diff dividing evidence example_recipes
exchanged export_tfds folder_evidence folders fuzz grades growing guards hints huggingface imports
impossible_boxes init kept_folders labels_file large_sets structures looks manifest_crc mask_pixels
odd_json part_sets patterns planning raw_set recipe_pages recipe_places recipe_sets recorders
refusals regroup remedies repaired_bytes segmentation setting_values shard_writer show sites status
table_page terminal toy_format toy_source trust twice universal_table upright voc whole_inputs
wording init_messages misread_folders path_parts recipe_notes words_of_commands words_of_findings
words_of_reports array_faults rare_annotations words_of_recipes words_of_downloads jpeg order pixels
same_records raw_elsewhere file_lists object_lists boxes_of_samples planned_sets shards_done
set_state_units empty_labels folders_named_instead
"""
"""Tests of what no Python changes, by the names of their modules: a second Python is spared them.

They ask what is listed, labelled, counted, said or decoded: that is code of ours, or of NumPy,
Pillow and msgspec. What reads zips, tars, mail headers or processes by the standard library runs on
each Python.
"""

LONG = 3600  # seconds that one of the exhaustive tests may take

# Containers often set PYTHONDONTWRITEBYTECODE. Then each of the thousands of processes that tests
# start compiles the whole package again, and each worker of pytest-xdist all modules of tests: half
# of the suite's processor time.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

gc.set_threshold(100_000)  # collection, too, makes 100,000s of objects that live on

signal.signal(
    signal.SIGINT, signal.default_int_handler
)  # a shell in the background has it ignored, for children too
sys.dont_write_bytecode = False

# Programs that tests start train tiny networks while other tests run: more threads only wait for
# each other, and they wait by spinning.
for _variable in ("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"):
    os.environ.setdefault(_variable, "1")

settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")

_skipped: list[str] = []


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what takes TensorFlow or a browser by the fixtures it asks for,
    and give the exhaustive tests their time.
    """
    for item in items:
        for name, mark in (
            ("tf", "tensorflow"),
            ("load_tensorflow", "tensorflow"),
            ("browser", "browser"),
            ("torch", "torch"),
            ("objects", "objects"),
            ("ray_cluster", "ray"),
        ):
            if name in getattr(item, "fixturenames", ()):
                item.add_marker(mark)
        if item.path.stem.removeprefix("test_") in SAME_EVERYWHERE.split():
            item.add_marker("once")
        if item.get_closest_marker("exhaustive"):
            item.add_marker(pytest.mark.timeout(LONG))
    _bring_together(items)


def _bring_together(items: list[pytest.Item]) -> None:
    """Put first the modules that start clusters of Ray, then those that load TensorFlow, then those
    with PyTorch: each takes seconds, or half a minute, of each process of tests.

    pytest-xdist gives a process a run of neighbours, of which others later take the last ones: so
    one starts the clusters, one or two load TensorFlow, and none has a long test at the end.
    """
    loading = {
        mark: {item.path for item in items if item.get_closest_marker(mark)}
        for mark in ("ray", "tensorflow", "torch")
    }
    items.sort(key=lambda item: [item.path not in paths for paths in loading.values()])


def pytest_collection_finish() -> None:
    """Spare the collector of garbage what lives as long as the process: 9,000 tests and all modules.

    With TensorFlow and PyTorch a collection takes half a second, and a forked child would copy what
    it looks at. Few later objects die in cycles: to look for them a hundred times less often spares
    a tenth of a test's processor time.
    """
    gc.collect()
    gc.freeze()


def pytest_runtest_logreport(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Note what is skipped: a test, or a module as a whole."""
    if MAY_SKIP is None or not report.skipped or hasattr(report, "wasxfail"):
        return
    if not report.nodeid.startswith(tuple(MAY_SKIP.split())):
        _skipped.append(
            f"{report.nodeid}: {report.longrepr[2] if isinstance(report.longrepr, tuple) else ''}"
        )


pytest_collectreport = pytest_runtest_logreport


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail where a test was skipped and none may be."""
    if _skipped and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name the tests that should not have been skipped."""
    if _skipped:
        terminalreporter.section("skipped, and not in IMAGENET_PREP_SKIPS")
        for line in _skipped:
            terminalreporter.write_line(line)


@pytest.fixture(scope="session", autouse=True)
def _no_credentials(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the tester's own account, cache and settings out of every test and of every process that
    a test starts.

    Programs that tests start keep what they print in a buffer, as is usual.
    """
    with pytest.MonkeyPatch.context() as patch:
        for name in ("IMAGENET_USERNAME", "IMAGENET_ACCESS_KEY", "DATAPATH", "PYTHONUNBUFFERED"):
            patch.delenv(name, raising=False)
        for name in [each for each in os.environ if each.startswith(("AWS_", "GOOGLE_", "AZURE_"))]:
            patch.delenv(name)
        patch.setenv("AWS_ENDPOINT_URL", NOWHERE)
        patch.setenv("AWS_METADATA_ENDPOINT", NOWHERE)
        patch.setenv("IMAGENET_PREP_RETRY_SECONDS", "1")
        patch.setenv("NETRC", str(tmp_path_factory.getbasetemp() / "no-netrc"))
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))
        yield
    if "command_server" in sys.modules:
        sys.modules["command_server"].close()


@pytest.fixture(scope="session")
def torch() -> Any:
    """The torch module, with one thread: tests run beside others."""
    import torch

    torch.set_num_threads(1)
    gc.freeze()
    return torch


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> MadeSet:
    """72 photographs in 6 classes, all odd images and annotation quirks among them.
    Read only: work in ``data_dir``.
    """
    return make(tmp_path_factory.mktemp("made"), classes=6, per_class=8, validation=24)


@pytest.fixture(scope="session")
def made_tiny(tmp_path_factory: pytest.TempPathFactory) -> MadeSet:
    """380 images of 16x16 pixels in 10 classes. Read only: work in ``tiny_data_dir``."""
    return make(
        tmp_path_factory.mktemp("made-tiny"), classes=10, per_class=30, validation=80, tiny=True
    )


@pytest.fixture(scope="session")
def sound(tmp_path_factory: pytest.TempPathFactory, made_tiny: MadeSet) -> Layout:
    """8 shards of train and 8 of validation of ``made_tiny``, boxes and all;
    raw data lies elsewhere. Read only.
    """
    from made_sets import annotated

    return annotated(tmp_path_factory.mktemp("sound") / "data", made_tiny)


@pytest.fixture
def layout(tmp_path: Path, sound: Layout) -> Layout:
    """The test's own copy of ``sound``."""
    return Layout(Path(shutil.copytree(sound.data_dir, tmp_path / "data")))


@pytest.fixture
def small_disk(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A file system of 1 MB, or of what the parameter says,
    where this machine lets a test mount one.
    """
    disk, size = tmp_path / "my disk", getattr(request, "param", "1m")
    disk.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", disk], capture_output=True
    ).returncode:
        pytest.skip("mounting a tmpfs takes root")
    yield disk
    subprocess.run(["umount", "--lazy", disk], check=True)


@pytest.fixture(scope="session")
def object_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectServer]:
    """A server of objects of our own, as S3 is one; a bucket a test."""
    from object_server import run_object_server

    with run_object_server(tmp_path_factory.mktemp("objects")) as server:
        yield server


@pytest.fixture
def objects(object_server: ObjectServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectServer]:
    """The same, with what reaches it in the environment."""
    for name, value in object_server.environment.items():
        monkeypatch.setenv(name, value)
    with stores_for_a_while():
        yield object_server


@contextlib.contextmanager
def stores_for_a_while() -> Iterator[None]:
    """Stores are asked anew, and afterwards this process may be forked again."""
    from imagenet_prep.storage.object_store import client

    client.cache_clear()
    yield
    _forget_requests()


@pytest.fixture(autouse=True)
def _no_requests_left() -> Iterator[None]:
    """No test runs in a process that has asked a store in an earlier one: its workers would be
    spawned, not forked. They take a third of a second each, and know nothing of what a test patched.
    """
    yield
    first_request = sys.modules.get("imagenet_prep.storage.first_request")
    if first_request is not None and first_request.is_made():
        _forget_requests()


def _forget_requests() -> None:
    """Let this process be forked again as if it had asked no store, and end the workers that an
    engine forked before the first request.
    """
    from imagenet_prep.engines.processes import _end
    from imagenet_prep.storage import first_request
    from imagenet_prep.storage.object_store import client

    client.cache_clear()
    first_request._state.is_made = False
    for engine in list(first_request._engines.values()):
        _end(engine._kept, os.getpid())
        engine._kept.clear()


@pytest.fixture
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, and the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def data_dir(tmp_path: Path, made: MadeSet) -> Iterator[Path]:
    """A DATA_DIR whose raw-data holds the test's own copies of the archives of ``made``."""
    yield from _data_dir(tmp_path / "data", made)


@pytest.fixture
def tiny_data_dir(tmp_path: Path, made_tiny: MadeSet) -> Iterator[Path]:
    """A DATA_DIR whose raw-data holds the test's own copies of the archives of ``made_tiny``."""
    yield from _data_dir(tmp_path / "tiny-data", made_tiny)


def _data_dir(data_dir: Path, made: MadeSet) -> Iterator[Path]:
    # Copies and not hard links: a test that damages its archive must not damage everyone's.
    raw_dir = Layout(data_dir).raw_dir
    raw_dir.mkdir(parents=True)
    copies = [Path(shutil.copy2(path, raw_dir)) for path in made.archives.values()]
    yield data_dir
    for path in copies:  # pytest keeps the folders of three runs; megabytes a test would add up
        path.unlink(missing_ok=True)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium without a window."""
    from browsing import missing

    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        missing("there is no chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing("there is no playwright")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=program, args=["--no-sandbox", "--disable-gpu"]
        )
        yield chromium
        chromium.close()
