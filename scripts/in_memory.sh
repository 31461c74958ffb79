#!/bin/sh
# Run a command whose temporary files are in memory, if it has room for them. Else they are where they always are.
#   scripts/in_memory.sh COMMAND [ARGUMENT]...
# The tests write thousands of small files: on a disk, their processes wait for it.
memory=/dev/shm
needed=$((8 * 1024 * 1024)) # kB: what the files of all tests take at most, and as much again

room=$(df --output=avail -k "$memory" 2>/dev/null | tail -n 1)
free=$(awk '/^MemAvailable:/ { print $2 }' /proc/meminfo 2>/dev/null)
if [ -n "$TMPDIR" ] || [ "${room:-0}" -lt "$needed" ] || [ "${free:-0}" -lt $((2 * needed)) ]; then
  exec "$@"
fi

TMPDIR=$(mktemp -d "$memory/imagenet-prep-XXXXXX") || exec "$@"
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
trap 'exit 130' INT # the command got the signal, too
trap 'exit 143' TERM
"$@"
