"""docs/train: each page's program runs as it stands, and the loss of its network falls."""

from __future__ import annotations

import contextlib
import json
import re
import runpy
import shlex
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tf_fixture
from existing import existing
from made_sets import annotated, flip
from running import command_here

from imagenet_prep.demo import photographs
from imagenet_prep.demo.archives import make

pytestmark = [
    pytest.mark.project,
    pytest.mark.torch,
    pytest.mark.timeout(1800),
]  # no limit that busy machines reach

tf = tf_fixture.tf

PAGES = Path(__file__).parents[1] / "docs" / "train"


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """72 photographs of 4 classes, with boxes, small ones: networks see 64 pixels of them."""
    folder = tmp_path_factory.mktemp("classes")
    with small_photographs():
        source = make(folder / "made", classes=4, per_class=18, validation=8)
    return annotated(folder / "data", source).data_dir


@contextlib.contextmanager
def small_photographs() -> Iterator[None]:
    """Photographs are drawn with 120x90 pixels: to draw them takes a tenth of the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(photographs, "photograph_size", lambda seed: (120, 90))
        yield


def programs(page: str, data_dir: Path) -> list[str]:
    """The Python of a page that is a program, with the folder of the test."""
    found = re.findall(
        r"^```python\n(.*?)^```", (PAGES / f"{page}.md").read_text(), flags=re.DOTALL | re.MULTILINE
    )
    return [each.replace("/data/imagenet", str(data_dir)) for each in found if "import " in each]


def printed(program: str, folder: Path) -> str:
    """What a program prints, run by itself."""
    (folder / "train.py").write_text(program)
    done = subprocess.run([sys.executable, "train.py"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_network_of_jax_learns(classes: Path, tmp_path: Path) -> None:
    """Its loss falls from that of 1,000 classes that are equally likely to that of a handful."""
    check_losses(printed(programs("jax", classes)[0], tmp_path))


def check_losses(out: str) -> None:
    """Six losses that fall, each in a line of an epoch."""
    losses = [float(loss) for loss in re.findall(r"^epoch \d+: loss ([\d.]+)$", out, re.M)]
    assert len(losses) == 6
    assert losses[0] > 2.5
    assert losses[-1] < 0.6 * losses[0]


def test_a_network_of_pytorch_learns_and_its_workers_end(classes: Path, tmp_path: Path) -> None:
    """Trained again with the options of the page, no worker is alive when the Loader is gone,
    so PyTorch waits 5 s for none at the end.
    """
    program = programs("pytorch", classes)[0]
    options = "num_workers=3, pin_memory=True, persistent_workers=True"
    assert options.partition(",")[2] in (PAGES / "pytorch.md").read_text()
    again = program.replace("range(6)", "range(2)").replace("num_workers=2", options)
    again = again.replace("epoch {epoch}", "again {epoch}")
    again += (
        "    import multiprocessing, time\n    print(len(multiprocessing.active_children()), "
        "time.time())\n"
    )
    out = printed(program + again, tmp_path)
    check_losses(out)
    assert len(re.findall("^again", out, re.M)) == 2
    workers, ended = out.split()[-2:]
    assert workers == "0"
    assert time.time() - float(ended) < 12


def test_the_source_for_grain_goes_on(classes: Path, tmp_path: Path) -> None:
    """The second program of JAX's page leaves out a record with a flipped bit, and counts it."""
    folder = Path(shutil.copytree(classes, tmp_path / "damaged"))
    flip(sorted(folder.glob("train-*"))[0], 500)
    assert printed(programs("jax", folder)[1], tmp_path) == "Counter({'checksum': 1})\n"


def test_two_hosts_share_a_global_batch_of_jax(classes: Path, tmp_path: Path) -> None:
    """Two processes on the CPU: both see 32 images a batch, and the same mean of both parts;
    parts are disjoint.
    """
    *_, program = programs("jax", classes)
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    call, started = "jax.distributed.initialize()", []
    assert program.count(call) == 1
    program += "    print('own', float(np.asarray(images.addressable_shards[0].data).mean()))\n"
    for rank in range(2):
        path = tmp_path / f"rank{rank}.py"
        path.write_text(
            program.replace(call, f"jax.distributed.initialize('{address}', 2, {rank})")
        )
        started.append(
            subprocess.Popen(
                [sys.executable, path], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
        )
    try:
        done = [process.communicate() for process in started]
    finally:
        for process in started:
            process.kill()
    assert [process.returncode for process in started] == [0, 0], done
    means = [
        re.findall(rf"^rank {rank}: \(32, 32, 32, 3\), mean ([\d.]+)$", done[rank][0], re.M)
        for rank in range(2)
    ]
    own = [[float(each) for each in re.findall(r"^own ([\d.]+)$", out, re.M)] for out, _ in done]
    assert means[0] == means[1]
    assert len(means[0]) == 2  # of 72, in parts of 36
    assert all(first != second for first, second in zip(*own, strict=True))
    for mean, *parts in zip(means[0], *own, strict=True):
        assert float(mean) == pytest.approx(sum(parts) / 2, abs=1e-4)


def printed_here(program: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """What a program prints, run in this process, which has the framework: its import takes most of
    the time.
    """
    (folder / "train.py").write_text(program)
    runpy.run_path(str(folder / "train.py"), run_name="__main__")
    return capsys.readouterr().out


def test_a_network_of_tensorflow_learns(
    classes: Path, tmp_path: Path, tf: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """As those of the other pages do."""
    check_losses(printed_here(programs("tensorflow", classes)[0], tmp_path, capsys))


def test_a_pipeline_of_ones_own(
    classes: Path, tmp_path: Path, tf: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """The second program of TensorFlow's page tells what a record holds."""
    _, program = programs("tensorflow", classes)
    first, second = printed_here(program, tmp_path, capsys).splitlines()
    assert re.fullmatch(r"\d+ \(\d+, 4\) True", first)
    assert second == "['image/channels', 'image/class/label', 'image/class/synset']"


def test_every_page_has_a_test() -> None:
    """No program stands there that nobody runs."""
    assert [path.stem for path in existing(PAGES, "*.md")] == [
        "frameworks",
        "jax",
        "pytorch",
        "tensorflow",
    ]


def test_the_tutorial_runs(inside: Path, torch: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """The cells of the notebook, which are the blocks of the page: each ends with status 0, except
    the verify of a damaged shard, 3.
    """
    text = (PAGES.parent / "tutorial.md").read_text()
    notebook = json.loads((PAGES.parent / "tutorial.ipynb").read_text())
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert len(cells) == len(re.findall(r"^```(?:sh|python)$", text, re.M))
    for cell in cells:
        if not cell.startswith(("!", "%")):
            assert cell.count("range(6)") == 1  # two epochs show as much
            out = printed_here(cell.replace("range(6)", "range(2)"), inside, capsys)
            losses = [float(each) for each in re.findall(r"loss ([\d.]+)", out)]
            assert len(losses) == 2
            assert losses[-1] < losses[0]
            continue
        script = re.sub(r"^%pip install .*\n", "", cell + "\n")
        script = re.sub(r"^!", "", script, flags=re.M)
        if "demo demo-data" in script:
            done = made_demo(script)
            verdict = re.search(r"^```\n(.*)\n```$", text, re.M)
            assert verdict
            assert verdict[1] in done.stdout
            continue
        script = script.replace("imagenet-prep ", f"{sys.executable} -m imagenet_prep ")
        done = subprocess.run(["bash", "-ec", script], cwd=inside, capture_output=True, text=True)
        assert done.returncode == (3 if "dd of" in script else 0), done.stderr


def made_demo(script: str) -> subprocess.CompletedProcess[str]:
    """What the command that makes the demo prints, with small photographs."""
    program, *words = shlex.split(script)
    assert program == "imagenet-prep"
    with small_photographs():
        return command_here(*words)
