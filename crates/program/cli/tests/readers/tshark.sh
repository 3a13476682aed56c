#!/bin/sh
# Prints the path of tshark, installed on first use where that can be done: Debian's package, as root. Exits with 77 where
# it cannot. Several tests may ask at once: one installs, the others wait for it.
set -eu
lock="${TMPDIR:-/tmp}/skyhaul-tshark.lock"
exec 9>"$lock"
flock 9
if ! command -v tshark >/dev/null; then
    export DEBIAN_FRONTEND=noninteractive
    { apt-get update -q && apt-get install -q -y --no-install-recommends tshark; } >/dev/null 2>&1 || {
        echo "cannot install tshark: apt-get refused" >&2
        exit 77
    }
fi
command -v tshark
