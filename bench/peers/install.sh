#!/usr/bin/env bash
# Installs what `make bench-net` compares with, as far as Debian and its relatives have it: iperf3, UDT, SRT, and the
# compiler for the small programs that drive the two libraries. Says what cannot be had; the comparison skips that.
set -euo pipefail

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"
    elif command -v sudo >/dev/null; then sudo "$@"
    else printf 'peers: "%s" needs root, and there is no sudo\n' "$*" >&2; exit 3
    fi
}

command -v apt-get >/dev/null || { printf 'peers: there is no apt-get: install iperf3, libudt and libsrt by hand\n' >&2; exit 3; }
as_root apt-get update -qq
for package in iperf3 g++ libudt-dev libsrt-gnutls-dev; do
    if dpkg -s "$package" >/dev/null 2>&1; then
        printf 'peers: %s is there\n' "$package"
    elif as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$package" >/dev/null 2>&1
    then
        printf 'peers: %s installed\n' "$package"
    else
        printf 'peers: %s cannot be had here\n' "$package"
    fi
done
