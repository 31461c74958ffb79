"""Times each command, its lower limit and the obvious alternatives in one run, and prints a table.

python scripts/bench.py [--images 10000] [--repeat 5] [--only as-is,decode] [--against CHECKOUT]

All figures are of whole processes, from start to end, on a warm page cache. Within a row the
commands take turns: ours, the limit, the rivals, and again. Before each one the outputs are removed
and the disk is synced. A ratio is the median of the rounds' ratios, so other load on the machine
affects both sides of it.

ray: its start, which takes seconds, included.
growth: as-is on a tenth and on a third of the images, and with more and more workers.
rehearsal: tiny images, 13 for each requested one: the cost of planning and of each image without
its bytes. --against: another checkout of this project, such as an earlier version, is the only
rival of each row, on its own shards. It runs in the same environment, so only the code differs.
Without --only: as-is, verify, rehearsal and help.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench_data import image_count, make_input

# Neither Pillow nor TensorFlow is imported here: this process's memory when it starts another one
# would count towards the other one's peak.

PROJECT = Path(__file__).resolve().parent.parent
CPUS = len(os.sched_getaffinity(0))
WORKERS = sorted({CPUS, *(1 << power for power in range(CPUS.bit_length()))})

ENVIRONMENT = {
    name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
}
"""Settings for every command: with this one set, Python compiles all modules at each start,
unlike installed ones.
"""


@dataclass(frozen=True, slots=True)
class Run:
    """A command to compare ours with, and its name in the table.
    Words in braces: see ``places``.
    """

    name: str
    command: str
    needs_tensorflow: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the table.

    Args:
        name: its name; ``--only`` selects it by the first word.
        ours: our command.
        limit: a lower bound for any such command: the same bytes moved, the same codec calls made.
        rivals: other ways to the same result.
        on: the data set that it uses: "images", "annotations", "rehearsal", or "" for none.
        part: 10 if it runs on a tenth of the images.
        workers: their number, if the row is about that.
        before: a command that makes ``{shards}``, run once before the first round.
    """

    name: str
    ours: str
    limit: Run | None = None
    rivals: tuple[Run, ...] = ()
    on: str = "images"
    part: int = 1
    workers: int | None = None
    before: str = ""


BOXES = "ILSVRC2012_bbox_train_v2.tar.gz"
CONVERT = (
    "{prep} convert {data} --output {out} --allow-incomplete --train-shards {train_shards}"
    " --validation-shards {validation_shards} --workers {workers} --quiet"
)
AS_IS = f"{CONVERT} --check header"
AS_IS_SHARDS = AS_IS.replace("{out}", "{shards}")
DECODE = f"{CONVERT} --check decode"
REHEARSAL = CONVERT.replace("{data}", "{out} --raw {data}/raw-data")
VERIFY = "{prep} verify {shards} --workers {workers} --quiet"
CAT = Run("cat", """sh -c 'cat "$1"/*-of-* > /dev/null' sh {shards}""")
COPY = Run(
    "cp and sync", """sh -c 'cp "$1" "$2" "$3" && sync -f "$3"' sh {train} {validation} {out}"""
)
TF_LOOP = Run(
    "TensorFlow loop",
    "{python} {rivals}/tf_loop.py {train} {validation} {out} --train-shards {train_shards}"
    " --validation-shards {validation_shards}",
    needs_tensorflow=True,
)
TF_NO_DECODE = Run("the same, no decode", f"{TF_LOOP.command} --no-decode", needs_tensorflow=True)
TF_COUNT = Run("tf.data count", "{python} {rivals}/count_tf.py {shards}", needs_tensorflow=True)
ONE = Run("1 worker", AS_IS.replace("{workers}", "1"))
CODEC = "{python} {rivals}/codec_loop.py %s {train} {validation} --workers {workers}"
TAR_TWICE = (
    """sh -c 'sh "$@" && sync -f "$4"' sh {rivals}/tar_twice.sh {train} {validation} {out}"""
)
ELEMENT_TREE = """sh -c 'tar xzf "$1" -C "$2" && "$3" "$4" "$2" "$2/boxes.csv"' sh
    {boxes} {out} {python} {rivals}/annotate_elementtree.py"""

ROWS = (
    Row("as-is", AS_IS, limit=COPY, rivals=(TF_LOOP, TF_NO_DECODE)),
    Row("decode", DECODE, limit=Run("bare codec loop", CODEC % "decode"), rivals=(TF_LOOP,)),
    Row(
        "resize",
        f"{CONVERT} --resize 256 --quality 90",
        limit=Run("bare codec loop", CODEC % "resize"),
    ),
    Row(
        "untar",
        "{prep} untar {out} --raw {data}/raw-data --workers {workers} --quiet",
        rivals=(Run("tar xf twice, sync", TAR_TWICE),),
    ),
    Row(
        "annotate",
        "{prep} annotate {out} --boxes {boxes} --workers {workers} --quiet",
        limit=Run("gzip -dc", """sh -c 'gzip -dc "$1" | cat > /dev/null' sh {boxes}"""),
        rivals=(Run("tar xzf, ElementTree", ELEMENT_TREE),),
        on="annotations",
    ),
    Row(
        "verify",
        VERIFY,
        limit=CAT,
        rivals=(TF_COUNT,),
        before=AS_IS_SHARDS,
    ),
    Row(
        "rehearsal, annotate",
        "{prep} annotate {out} --raw {data}/raw-data --workers {workers} --quiet",
        limit=Run(
            "gzip -dc",
            """sh -c 'gzip -dc "$1" | cat > /dev/null' sh {data}/raw-data/{boxes_name}""",
        ),
        on="rehearsal",
    ),
    Row("rehearsal, convert", REHEARSAL, limit=COPY, on="rehearsal"),
    Row(
        "rehearsal, verify",
        VERIFY,
        limit=CAT,
        on="rehearsal",
        before=REHEARSAL.replace("{out}", "{shards}"),
    ),
    Row(
        "report",
        "{prep} report {shards} --workers {workers} --output {out}/page.html --quiet",
        limit=CAT,
        before=AS_IS_SHARDS,
    ),
    Row("ray", f"{DECODE} --engine ray", limit=Run("the local engine", DECODE)),
    Row("help", "{prep} --help", limit=Run("python -c pass", "{python} -c pass"), on=""),
    *(Row(f"growth, 1/{part}", AS_IS, limit=COPY, part=part) for part in (10, 3, 1)),
    *(
        Row(f"growth, workers {n}", AS_IS, limit=COPY, rivals=(ONE,) if n > 1 else (), workers=n)
        for n in WORKERS
    ),
)

COMPARED = ["as-is", "verify", "rehearsal", "help"]
"""The default rows for another version."""


def main() -> None:
    """Make the inputs, time the rows, print the table."""
    given = parse_arguments()
    rows = [row for row in ROWS if not given.only or group(row) in given.only]
    make_inputs(rows, given)
    results = []
    for row in rows:
        results.append(time_row(row, given))
        print("  ".join(results[-1].cells(given.images)), file=sys.stderr)
    print(table([HEADINGS, *(result.cells(given.images) for result in results)]))
    print(f"\n{about(given)}\n\n{machine()}")
    if given.against:
        print("\n".join(["", *(result.against() for result in results)]))


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--dir",
        type=Path,
        default=PROJECT / ".bench",
        help="for inputs (kept) and outputs (removed)",
    )
    parser.add_argument(
        "--images", type=int, default=10_000, help="10,000 are 1.0 GB, made once within minutes"
    )
    parser.add_argument("--repeat", type=int, default=5, help="rounds")
    parser.add_argument(
        "--warm-up", type=int, default=1, help="rounds before them that don't count"
    )
    parser.add_argument(
        "--only", type=lambda text: text.split(","), metavar="ROW,ROW", help=", ".join(groups())
    )
    parser.add_argument(
        "--workers", type=int, default=CPUS, help="of our commands and of the codec loops"
    )
    parser.add_argument(
        "--against", type=Path, metavar="CHECKOUT", help="an earlier version, as the only rival"
    )
    parser.add_argument(
        "--no-tensorflow", action="store_true", help="leave out the rivals that need it"
    )
    given = parser.parse_args()
    if unknown := set(given.only or ()) - set(groups()):
        parser.error(f"no row {', '.join(sorted(unknown))}: expected some of {', '.join(groups())}")
    if given.images < 10 or given.repeat < 1 or given.workers < 1 or given.warm_up < 0:
        parser.error("expected at least 10 images, 1 round, 1 worker")
    given.dir = given.dir.resolve()
    if given.against:
        given.only = given.only or COMPARED
        if not (given.against / "imagenet_prep").is_dir():
            parser.error(f"{given.against} is not a checkout of this project")
    return given


def group(row: Row) -> str:
    """The word that selects a row with ``--only``."""
    return row.name.partition(",")[0]


def groups() -> list[str]:
    """All such words, in the order of the table."""
    return list(dict.fromkeys(map(group, ROWS)))


# timing -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Took:
    """The cost of a process: seconds, user and system seconds with its children,
    MB of the largest of them.
    """

    seconds: float
    cpu: float
    peak: float


@dataclass(frozen=True, slots=True)
class Result:
    """The rounds of a row, each with the cost of our command,
    then of the limit (if any) and the rivals.
    """

    row: Row
    rivals: tuple[Run, ...]
    rounds: list[list[Took]]

    def seconds(self, column: int = 0) -> float:
        """The duration of a command: the median of the rounds."""
        return median(each[column].seconds for each in self.rounds)

    def ratio(self, column: int, to: int) -> float:
        """The duration of a command relative to another: the median of the rounds' ratios."""
        return median(each[column].seconds / each[to].seconds for each in self.rounds)

    def against(self) -> str:
        """Our wall and processor time relative to the other version's."""
        wall = 1 / self.ratio(-1, 0)
        cpu = median(each[0].cpu / each[-1].cpu for each in self.rounds)
        return (
            f"{self.row.name}: {wall:.3f} of the earlier version's wall time, "
            f"{cpu:.3f} of its processor time"
        )

    def times(self, column: int) -> str:
        """A rival's duration relative to ours; near 1 the second digit counts."""
        ratio = self.ratio(column, 0)
        return f"{ratio:.2f}" if ratio < 2 else f"{ratio:.1f}"

    def cells(self, images: int) -> tuple[str, ...]:
        """The row's cells, in the order of HEADINGS."""
        limit, first = self.row.limit, 2 if self.row.limit else 1
        rivals = list(enumerate(self.rivals, first))
        converted = image_count(images // self.row.part)
        return (
            self.row.name,
            f"{self.ratio(0, 1):.2f} {limit.name}" if limit else "-",
            "; ".join(f"{self.times(column)} {rival.name}" for column, rival in rivals) or "-",
            f"{self.seconds():.3f}",
            f"{self.seconds(1):.3f}" if limit else "-",
            "; ".join(f"{self.seconds(column):.3f}" for column, _ in rivals) or "-",
            f"{median(each[0].cpu for each in self.rounds):.3f}",
            f"{median(each[0].peak for each in self.rounds):.0f}",
            f"{1e6 * self.seconds() / converted:.0f}" if self.row.on == "images" else "-",
        )


def time_row(row: Row, given: argparse.Namespace) -> Result:
    """Run the commands of a row in turn, round by round."""
    rivals = [rival for rival in row.rivals if not (rival.needs_tensorflow and given.no_tensorflow)]
    ours = row.ours
    preparations = [row.before] if row.before else []
    if given.against:
        preparations += [earlier_version(command, given.against) for command in preparations]
        rivals = [Run("earlier version", earlier_version(ours, given.against))]
        ours = version(ours, PROJECT)
    runs = [ours]
    if row.limit:
        runs.append(row.limit.command)
    runs += [rival.command for rival in rivals]
    words = places(row, given)
    commands = [fill(command, words) for command in runs]
    folders = [Path(words[name]) for name in ("out", "shards", "earlier")]
    out, *prepared = folders
    for command, folder in zip(preparations, prepared, strict=False):
        timed(fill(command, words), folder)
    rounds = [
        [timed(command, out) for command in commands] for _ in range(given.warm_up + given.repeat)
    ]
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(trash_dir(folder), ignore_errors=True)
    return Result(row, tuple(rivals), rounds[given.warm_up :])


def version(command: str, checkout: Path) -> str:
    """Our command with the code of a checkout."""
    return command.replace(
        "{prep}", f"env PYTHONPATH={shlex.quote(str(checkout.resolve()))} {{prep}}"
    )


def earlier_version(command: str, checkout: Path) -> str:
    """Our command with the code of an earlier checkout, on shards of its own."""
    return version(command, checkout).replace("{shards}", "{earlier}")


def places(row: Row, given: argparse.Namespace) -> dict[str, str]:
    """The values for the words in braces in a row's commands."""
    data, images = input_dir(row, given), given.images // row.part
    return {
        "prep": str(Path(sysconfig.get_path("scripts"), "imagenet-prep")),
        "python": sys.executable,
        "rivals": str(PROJECT / "scripts" / "rivals"),
        "workers": str(row.workers or given.workers),
        "train_shards": str(
            max(8, images * 64 // 10_000)
        ),  # in proportion: a shard has some 150 images
        "validation_shards": str(max(1, images * 8 // 10_000)),
        "data": str(data),
        "train": str(data / "raw-data" / "ILSVRC2012_img_train.tar"),
        "validation": str(data / "raw-data" / "ILSVRC2012_img_val.tar"),
        "boxes": str(data / BOXES),
        "boxes_name": BOXES,
        "out": str(given.dir / "out"),
        "shards": str(given.dir / "shards"),
        "earlier": str(given.dir / "earlier"),
    }


def fill(command: str, where: dict[str, str]) -> list[str]:
    """A command's words; each place is filled in after splitting,
    since paths may contain blanks.
    """
    return [word.format_map(where) for word in shlex.split(command)]


def timed(command: Sequence[str], out: Path) -> Took:
    """Run a command as a whole process, with ``out`` empty and no pending writes."""
    clear(out)
    os.sync()
    with tempfile.TemporaryFile() as errors:
        begin = time.perf_counter()
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=errors, env=ENVIRONMENT
        )
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            errors.seek(0)
            said = errors.read().decode(errors="replace")
            sys.exit(f"{shlex.join(command)}\nended with {process.returncode}:\n{said}")
    return Took(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def clear(out: Path) -> None:
    """Make ``out`` an empty folder. Its former content is emptied, and removed only when the row
    ends.

    ext4 does not reuse an inode within minutes of its removal, and skips such inodes one by one:
    10,000 files made right after 10,000 were removed need two more seconds, with any program. For
    the same reason untar comes before annotate, whose rival leaves 54,454 files per round.
    """
    if out.exists():
        files = [path for path in out.rglob("*") if path.is_file() and not path.is_symlink()]
        with ThreadPoolExecutor(
            16
        ) as threads:  # a disk may discard freed blocks at once: each removal waits
            list(threads.map(lambda path: os.truncate(path, 0), files))
        trash_dir(out).mkdir(exist_ok=True)
        out.rename(trash_dir(out) / str(time.monotonic_ns()))
    out.mkdir(parents=True)


def trash_dir(out: Path) -> Path:
    """The folder for outputs of a row's earlier commands until their removal."""
    return out.with_name(f"{out.name}.trash")


# inputs -------------------------------------------------------------------------------------------


def make_inputs(rows: Sequence[Row], given: argparse.Namespace) -> None:
    """Make the missing data sets of the rows, each in a process of its own."""
    wanted = {(row.on, given.images // row.part, input_dir(row, given)) for row in rows if row.on}
    missing = sorted(each for each in wanted if not each[-1].exists())
    with ProcessPoolExecutor(CPUS) as pool:
        for *_, folder in missing:
            print(f"making {folder}: once, some 15 ms per image", file=sys.stderr)
        for making in [pool.submit(make_input, *each) for each in missing]:
            making.result()


def input_dir(row: Row, given: argparse.Namespace) -> Path:
    """The folder of a row's data set."""
    return Path(given.dir, f"{row.on}-{given.images // row.part}")


# the table ----------------------------------------------------------------------------------------

HEADINGS = (
    "row",
    "ours / limit",
    "rival / ours",
    "ours s",
    "limit s",
    "rival s",
    "user+sys s",
    "peak MB",
    "us per image",
)


def table(lines: Sequence[Sequence[str]]) -> str:
    """The table, which is Markdown that a terminal shows well too."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    first, *others = (f"| {' | '.join(map(str.ljust, line, widths))} |" for line in lines)
    return "\n".join([first, f"| {' | '.join('-' * width for width in widths)} |", *others])


def about(given: argparse.Namespace) -> str:
    """The settings of the run, and how to read it."""
    return (
        f"{image_count(given.images):,} images; medians; rounds: {given.repeat}. ours / limit: "
        "our duration relative to"
        " the limit's; rival / ours: the rival's duration relative to ours."
    )


def machine() -> str:
    """Processor, memory, system and versions."""
    processors = Path("/proc/cpuinfo").read_text().splitlines()
    model = next(
        (line.partition(":")[2].strip() for line in processors if line.startswith("model name")),
        "unknown",
    )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    names = ("crc32c", "pillow", "simplejpeg", "numpy", "tensorflow")
    libraries = ", ".join(f"{name} {version_of(name)}" for name in names)
    return (
        f"- Processor: {model}, {CPUS} CPUs usable; {memory:.0f} GiB of memory\n"
        f"- System: {platform.system()} {platform.release()}; Python {platform.python_version()}\n"
        f"- Libraries: {libraries}"
    )


def version_of(name: str) -> str:
    """The version of an installed library."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


if __name__ == "__main__":
    main()
