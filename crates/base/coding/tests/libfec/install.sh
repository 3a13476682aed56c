#!/usr/bin/env bash
# Makes a program that uses libfec: install.sh FOLDER [SOURCE.c], by default decode.c beside this script. Needs no root and
# changes nothing outside the folder: Debian's package is taken apart there. Prints the program's path; exits with 77 where
# that cannot be done.
set -euo pipefail
source=$(realpath "${2:-$(dirname "$0")/decode.c}")
name=$(basename "$source" .c)
cannot() { printf 'libfec cannot be had: %s\n' "$1" >&2; exit 77; }

mkdir -p "$1"
cd "$1"
if [ ! -x "$name" ] || [ "$source" -nt "$name" ]; then
    command -v cc >/dev/null || cannot "there is no C compiler"
    if ! compgen -G 'package/usr/lib/*/libfec.a' >/dev/null; then
        command -v apt-get >/dev/null || cannot "there is no apt-get"
        apt-get download libfec-dev >apt.log 2>&1 || cannot "apt-get download libfec-dev fails: $(tail -n 1 apt.log)"
        dpkg-deb -x libfec-dev_*.deb package
    fi
    cc -O2 -I package/usr/include -o "$name.new" "$source" package/usr/lib/*/libfec.a >cc.log 2>&1 ||
        cannot "compiling fails: $(tail -n 1 cc.log)"
    mv "$name.new" "$name"
fi
printf '%s\n' "$PWD/$name"
