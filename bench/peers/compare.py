#!/usr/bin/env python3
"""Goodput and processor time of skyhaul and its peers over loopback, one after the other, as a table.

Run by `make bench-net` with the built program's path. BENCH_SECONDS sets each run's length (5), BENCH_RUNS how many are made of
each (3); the table shows the fastest, for all alike, and the slowest beside it. What is not installed is named and skipped; bench/peers/install.sh
installs it. Each process is started here and ended here, by its handle.
"""

import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
SECONDS = float(os.environ.get("BENCH_SECONDS", "5"))
RUNS = max(int(os.environ.get("BENCH_RUNS", "3")), 1)

LINE = ("--cc", "line", "--rate", "40 Gbit/s")
OVER_TCP = ("--transport", "tcp")


class Row:
    """One run: bytes in seconds, and the processor time of both ends."""

    def __init__(self, name, packet, amount, seconds, send, receive):
        self.name, self.packet = name, packet
        self.gbps = amount * 8 / seconds / 1e9
        gigabytes = max(amount, 1) / 1e9
        self.send, self.receive = send / gigabytes, receive / gigabytes


def port():
    """A port that is free now, for TCP and UDP alike."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def output(process, seconds=60):
    """What a process printed; it is ended if it does not end by itself."""
    try:
        return process.communicate(timeout=seconds)[0]
    except subprocess.TimeoutExpired:
        process.kill()
        return process.communicate()[0]


def skyhaul(program, mtu, name, flags=(), seconds=SECONDS):
    shared = ["--mtu", f"{mtu} B", "--insecure-test", "--insecure-beyond-loopback"]
    serving = subprocess.Popen(
        [program, "perf", "serve", "--bind", "127.0.0.1:0", "--tcp", "--once", *shared],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )
    try:
        address = serving.stdout.readline().split()[-1]
        sent = subprocess.run(
            [program, "perf", "send", "--to", address, "--duration", f"{seconds} s", "--json", *shared, *flags],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True, timeout=seconds + 60,
        )
    finally:
        serving.terminate()
        output(serving)
    result = json.loads(sent.stdout.splitlines()[-1])
    cpu = result["cpu_s"]
    return Row("skyhaul " + name, mtu, result["bytes"], result["seconds"], cpu["send"], cpu["receive"])


def iperf3(mss, packet):
    at = port()
    serving = subprocess.Popen(
        ["iperf3", "-s", "-1", "-B", "127.0.0.1", "-p", str(at)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        time.sleep(0.3)
        size = ["-M", str(mss)] if mss else []
        ran = subprocess.run(
            ["iperf3", "-c", "127.0.0.1", "-p", str(at), "-t", str(int(max(SECONDS, 1))), "-J", *size],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True, timeout=SECONDS + 60,
        )
    finally:
        serving.terminate()
        output(serving)
    end = json.loads(ran.stdout)["end"]
    received, used = end["sum_received"], end["cpu_utilization_percent"]
    spent = [used[key] / 100 * received["seconds"] for key in ("host_total", "remote_total")]
    return Row("iperf3 TCP", packet, received["bytes"], received["seconds"], *spent)


def library(name, folder, flag, libraries, phrase=None):
    program = pathlib.Path(folder) / flag
    if not program.exists():
        build = ["g++", "-O2", f"-DWITH_{flag}", "-o", str(program), str(HERE / "library.cpp"), *libraries, "-lpthread"]
        subprocess.run(build, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    at = str(port())
    environment = {**os.environ, **({"PEER_PHRASE": phrase} if phrase else {})}
    receiving = subprocess.Popen([program, "receive", at], stdout=subprocess.PIPE, text=True, env=environment)
    try:
        time.sleep(0.3)
        sent = subprocess.run(
            [program, "send", at, str(SECONDS), "1500"],
            stdout=subprocess.PIPE, text=True, check=True, env=environment, timeout=SECONDS + 60,
        )
        got = output(receiving, 30)
    finally:
        receiving.kill()
        receiving.wait()
    used = float(sent.stdout.split()[2])
    amount, seconds, cpu = (float(word) for word in got.split())
    return Row(name, 1500, amount, seconds, used, cpu)


def runs(program, folder):
    """Each run's name and what makes it."""
    for name, flags, mtu in (("adaptive", (), 1500), ("line", LINE, 1500), ("over TCP", OVER_TCP, 1500),
                             ("adaptive", (), 9000), ("line", LINE, 9000)):
        yield "skyhaul", None, lambda name=name, flags=flags, mtu=mtu: skyhaul(program, mtu, name, flags)
    yield "iperf3", bool(shutil.which("iperf3")), lambda: iperf3(1448, 1500)
    yield "iperf3", bool(shutil.which("iperf3")), lambda: iperf3(8948, 9000)
    udt = pathlib.Path("/usr/include/udt/udt.h")
    yield "UDT", udt.exists(), lambda: library("UDT 4", folder, "UDT", ["-ludt"])
    srt = pathlib.Path("/usr/include/srt/srt.h")
    libraries = ["-lsrt-gnutls"]
    yield "SRT", srt.exists(), lambda: library("SRT, file mode", folder, "SRT", libraries)
    yield "SRT", srt.exists(), lambda: library("SRT, AES-128", folder, "SRT", libraries, "only for this run")


def main():
    program = sys.argv[1]
    rows, skipped = [], []
    with tempfile.TemporaryDirectory() as folder:
        for name, there, run in runs(program, folder):
            if there is not None and not there:
                skipped.append(f"{name}: not installed (bench/peers/install.sh)")
                continue
            try:
                of = [run() for _ in range(RUNS)]
                rows.append(max(of, key=lambda row: row.gbps))
                rows[-1].slowest = min(row.gbps for row in of)
            except (subprocess.SubprocessError, ValueError, KeyError, IndexError) as error:
                skipped.append(f"{name}: failed ({error})")
    ours = rows[0] if rows else None
    print(f"the fastest of {RUNS}, {SECONDS:g} s each, over loopback; {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}")
    print("| what | IP packet | Gbit/s | slowest | s/GB sending | s/GB receiving | speed ÷ ours | processor time ÷ ours |")
    print("|---|---|---|---|---|---|---|---|")
    for row in rows:
        speed = row.gbps / ours.gbps
        work = (row.send + row.receive) / (ours.send + ours.receive)
        print(
            f"| {row.name} | {row.packet} | {row.gbps:.2f} | {row.slowest:.2f} | {row.send:.2f} | {row.receive:.2f} | {speed:.2f} | {work:.2f} |"
        )
    for line in dict.fromkeys(skipped):
        print(f"skipped: {line}")
    return 0 if ours else 1


if __name__ == "__main__":
    sys.exit(main())
