"""Runs the steps of the Dockerfile in an empty root folder, then its program: where there is no
docker. Takes root, debootstrap and a mirror of Debian; a minute or two.

    python scripts/image_steps.py [FOLDER]      default: a temporary folder, removed at the end
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
SETTINGS = ("/etc/resolv.conf", "/etc/hosts", "/etc/apt/apt.conf.d")
"""How this machine reaches mirrors of packages; a container of docker gets it from its host."""

CERTIFICATES = "/etc/host-certificates.crt"
"""In the root folder: the certificates that this machine trusts, such as those of its proxy."""


def read_steps(dockerfile: Path) -> list[tuple[str, str]]:
    """The instructions of a Dockerfile in their order, each with its arguments."""
    lines = dockerfile.read_text().replace("\\\n", " ").splitlines()
    steps = [line.split(maxsplit=1) for line in lines if line and not line.startswith("#")]
    return [(instruction, arguments) for instruction, arguments in steps]


def make_root(folder: Path, image: str) -> None:
    """Make the base system of an image such as debian:bookworm-slim."""
    system, _, tag = image.partition(":")
    if system != "debian":
        sys.exit(f"expected an image of Debian, got {image}")
    if not shutil.which("debootstrap"):
        subprocess.run(["apt-get", "install", "--yes", "-qq", "debootstrap"], check=True)
    release = tag.removesuffix("-slim")
    subprocess.run(["debootstrap", "--variant=minbase", release, folder], check=True)
    folder.chmod(0o755)  # a temporary folder is closed to the user of the image
    for name in SETTINGS:
        source, target = Path(name), folder / name.lstrip("/")
        if source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True)
        elif source.is_file():
            shutil.copyfile(source, target)
    trusted = Path(os.environ.get("SSL_CERT_FILE", "/etc/ssl/certs/ca-certificates.crt"))
    if trusted.is_file():
        shutil.copyfile(trusted, folder / CERTIFICATES.lstrip("/"))


def copy_source(target: Path) -> None:
    """The files that git has, as `docker build` copies them."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    for name in listed.split("\0"):
        source = ROOT / name
        if name and source.is_symlink():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            (target / name).symlink_to(source.readlink())
        elif name and source.is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target / name)


def call(folder: Path, user: str, path: str, *words: str) -> None:
    """Run a command in the root folder, as a user, with an environment of its own."""
    home = "/root" if user == "root" else f"/home/{user}"
    environment = {"PATH": path, "HOME": home, "DEBIAN_FRONTEND": "noninteractive"}
    if (folder / CERTIFICATES.lstrip("/")).is_file():
        environment["PIP_CERT"] = CERTIFICATES
    chroot = shutil.which("chroot") or "chroot"
    command = [chroot, f"--userspec={user}", folder, *words]
    print("$", shlex.join(words), flush=True)
    subprocess.run(command, check=True, env=environment)


def build_and_run(folder: Path) -> None:
    """Do each step, then run the program of the image on a demo."""
    user, path = "root", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    program = ""
    for instruction, arguments in read_steps(ROOT / "Dockerfile"):
        if instruction == "FROM":
            make_root(folder, arguments)
        elif instruction == "RUN":
            call(folder, user, path, "sh", "-c", arguments)
        elif instruction == "COPY":
            copy_source(folder / arguments.split()[1].lstrip("/"))
        elif instruction == "ENV":
            path = arguments.partition("PATH=")[2]
        elif instruction == "USER":
            user = arguments
        elif instruction == "ENTRYPOINT":
            program = arguments.strip('[]"')
    call(folder, user, path, program, "--help")
    call(folder, user, path, program, "demo", f"/home/{user}/demo", "--classes", "2", "--quiet")


def main() -> None:
    """Run the steps in a folder that is given, or in a temporary one."""
    if sys.argv[1:]:
        build_and_run(Path(sys.argv[1]))
        return
    with tempfile.TemporaryDirectory() as name:
        build_and_run(Path(name))


if __name__ == "__main__":
    main()
