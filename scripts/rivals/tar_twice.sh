#!/bin/sh
# Image folders by tar, as every guide has it: the archive, then each archive that was in it. Validation stays flat.
# sh tar_twice.sh TRAIN.tar VALIDATION.tar OUT
set -eu
mkdir -p "$3/train" "$3/validation"
tar xf "$1" -C "$3/train"
for inner in "$3"/train/*.tar; do
    mkdir "${inner%.tar}"
    tar xf "$inner" -C "${inner%.tar}"
    rm "$inner"
done
tar xf "$2" -C "$3/validation"
