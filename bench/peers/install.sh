#!/usr/bin/env bash
# Installs what `make bench-net` and `make compare` compare with, as far as Debian and its relatives have it: iperf3, socat, UDT,
# SRT, and the compiler for the small programs that drive the two libraries; `ip` for emulated links. With a folder as its argument,
# builds these programs there as skyhaul-peer-udt and skyhaul-peer-srt. With --apps instead, what `make compare-apps` compares with; an
# sshd is not installed, since it would be started. Says what cannot be had; the comparison skips that.
#
#   bench/peers/install.sh [--apps | FOLDER]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"
    elif command -v sudo >/dev/null; then sudo "$@"
    else printf 'peers: "%s" needs root, and there is no sudo\n' "$*" >&2; exit 3
    fi
}

build() { # NAME LIBRARY PACKAGE
    if version=$(dpkg-query -W -f '${Version}' "$3" 2>/dev/null) &&
        g++ -O2 "-DWITH_$1" "-DPEER_VERSION=\"$version\"" -o "$folder/skyhaul-peer-${1,,}" "$here/library.cpp" "-l$2" -lpthread
    then
        printf 'peers: skyhaul-peer-%s built in %s\n' "${1,,}" "$folder"
    else
        printf 'peers: skyhaul-peer-%s cannot be built here\n' "${1,,}"
    fi
}

command -v apt-get >/dev/null || { printf 'peers: there is no apt-get: install iperf3, libudt and libsrt by hand\n' >&2; exit 3; }
refreshed=no
packages="iproute2 iperf3 socat g++ libudt-dev libsrt-gnutls-dev"
if [ "${1:-}" = --apps ]; then
    packages="iproute2 procps openssh-client rsync rclone aria2 lftp"
    shift
fi
for package in $packages; do
    if dpkg -s "$package" >/dev/null 2>&1; then
        printf 'peers: %s is there\n' "$package"
        continue
    fi
    [ $refreshed = yes ] || as_root apt-get update -qq
    refreshed=yes
    if as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$package" >/dev/null 2>&1
    then
        printf 'peers: %s installed\n' "$package"
    else
        printf 'peers: %s cannot be had here\n' "$package"
    fi
done

if [ $# -gt 0 ]; then
    folder=$1
    mkdir -p "$folder"
    build UDT udt libudt-dev
    build SRT srt-gnutls libsrt-gnutls-dev
fi
