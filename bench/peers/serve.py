#!/usr/bin/env python3
"""Goodput of the server of products over loopback, with TLS and without; the cost of slow readers.

Run with the built program's path. A node makes products of a simulated downlink and serves them.
BENCH_CLIENTS (64) copies of curl take the largest file again and again for BENCH_SECONDS (20):
printed are the goodput of all of them together, the least, median and greatest share of a client,
and the processor time of the node. Then BENCH_SLOW (2000) clients read 1 kB a second each, without
TLS, while another one takes a whole file again and again: printed are its times with the slow ones
and without them, and the node's memory. Ends with 1 where a file is not the one that was
published.
"""

import hashlib
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import nodes
from nodes import PATIENCE, until
from process_use import cpu, memory
from slow_readers import SlowReaders, raise_limit

CLIENTS = int(os.environ.get("BENCH_CLIENTS", "64"))
SECONDS = float(os.environ.get("BENCH_SECONDS", "20"))
SLOW = int(os.environ.get("BENCH_SLOW", "2000"))
FRAMES = int(os.environ.get("BENCH_FRAMES", "200000"))

skyhaul = str(pathlib.Path(sys.argv[1]).resolve())
raise_limit()


def run(folder, *arguments):
    command = [skyhaul, *arguments]
    return subprocess.run(
        command, cwd=folder, check=True, capture_output=True, text=True
    ).stdout


def status(folder):
    return nodes.status(skyhaul, folder, "centre.toml")


def node(folder, serve):
    """The node with products, and the address of its server."""
    text = pathlib.Path(folder, "centre.part").read_text() + serve
    pathlib.Path(folder, "centre.toml").write_text(text)
    log = open(pathlib.Path(folder, "centre.log"), "a")
    process = subprocess.Popen([skyhaul, "run", "centre.toml"], cwd=folder, stdout=log, stderr=log)
    return process, until(lambda: status(folder).get("serve", {}).get("address"))


def products(folder):
    keys = [run(folder, "keygen", name).strip() for name in ("c.key", "s.key")]
    part = '[node]\nname = "c"\nkey = "c.key"\nstate = "state"\n[[listen]]\nbind = "127.0.0.1:0"\n[[peer]]\nname = "s"\n'
    part += f'fingerprints = ["{keys[1]}"]\n[products]\ndir = "products"\n'
    pathlib.Path(folder, "centre.part").write_text(part)
    run(folder, "generate", "--mission", "noaa-21", "--frames", str(FRAMES), "--output", "x.dat")
    process, _ = node(folder, '[serve]\nbind = "127.0.0.1:0"\n')
    address = status(folder)["centre"]["address"]
    pathlib.Path(folder, "station.toml").write_text(
        '[node]\nname = "s"\nkey = "s.key"\nstate = "spool"\n[[destination]]\nto = "node:c"\n[[peer]]\nname = "c"\n'
        f'addresses = ["{address}"]\nfingerprints = ["{keys[0]}"]\n[[channel]]\nname = "x"\ninput = "file:x.dat"\n'
    )
    run(folder, "run", "station.toml", "--until-sent")
    until(lambda: [one for one in status(folder)["centre"]["contacts"] if one["state"] == "done"])
    stop(process)


def stop(process):
    process.send_signal(signal.SIGTERM)
    process.wait(PATIENCE)


def largest(folder):
    file = max((path for path in pathlib.Path(folder, "products").iterdir() if path.is_file()),
               key=lambda path: path.stat().st_size)
    return file, file.stat().st_size, hashlib.sha256(file.read_bytes()).hexdigest()


def address_of(base, file, headers):
    command = ["curl", "-sk", *headers, f"{base}/stac/search?limit=1000"]
    found = subprocess.run(command, capture_output=True, check=True).stdout
    for item in json.loads(found)["features"]:
        if file.name in item["assets"]:
            return f"{base}/products/{item['id']}/{file.name}"
    raise SystemExit(f"{file.name} is not served")


def goodput(folder, name, serve, scheme, headers):
    process, address = node(folder, serve)
    file, size, digest = largest(folder)
    url = address_of(f"{scheme}://{address}", file, headers)
    taken = subprocess.run(["curl", "-sk", *headers, url], capture_output=True, check=True).stdout
    if hashlib.sha256(taken).hexdigest() != digest:
        raise SystemExit("the file is another one")
    counts, end, before = [0] * CLIENTS, time.monotonic() + SECONDS, cpu(process.pid)

    def client(nth):
        # One connection for many answers, as a mirror has it.
        while time.monotonic() < end:
            command = ["curl", "-sk", *headers, "-w", "%{size_download}\n"]
            command += ["-o", "/dev/null", url] * 8
            done = subprocess.run(command, capture_output=True, text=True)
            counts[nth] += sum(int(count) for count in done.stdout.split())

    began = time.monotonic()
    threads = [threading.Thread(target=client, args=(nth,)) for nth in range(CLIENTS)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    took, spent = time.monotonic() - began, cpu(process.pid) - before
    rate = sum(counts) * 8 / took / 1e9
    shares = sorted(count * CLIENTS / max(sum(counts), 1) for count in counts)
    print(f"{name}: {rate:.2f} Gbit/s to {CLIENTS} clients; file of {size / 1e6:.0f} MB; "
          f"shares {shares[0]:.2f} / {statistics.median(shares):.2f} / {shares[-1]:.2f} of the "
          f"mean; node {spent / took * 100:.0f} % of a core, {memory(process.pid):.0f} MB")
    stop(process)


def timed(url, count):
    times = []
    for _ in range(count):
        began = time.monotonic()
        subprocess.run(["curl", "-s", "-o", "/dev/null", url], check=True)
        times.append(time.monotonic() - began)
    return f"median {statistics.median(times) * 1e3:.0f} ms, worst {max(times) * 1e3:.0f} ms"


def slow(folder):
    most = SLOW + 100
    table = f'[serve]\nbind = "127.0.0.1:0"\nconnections = {most}\n'
    process, address = node(folder, f"{table}connections_per_address = {most}\n")
    file, _, _ = largest(folder)
    url = address_of(f"http://{address}", file, [])
    alone = timed(url, 20)
    readers = SlowReaders(url, SLOW)
    until(lambda: status(folder)["serve"]["connections"] >= SLOW)
    beside = timed(url, 20)
    print(f"{SLOW} slow readers: a file takes {beside}; without them {alone}; "
          f"node {memory(process.pid):.0f} MB")
    readers.stop()
    stop(process)


with tempfile.TemporaryDirectory() as folder:
    products(folder)
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-days", "1", "-subj", "/CN=127.0.0.1",
         "-keyout", "tls.key", "-out", "tls.pem"],
        cwd=folder, check=True, stderr=subprocess.DEVNULL)
    accounts = str(pathlib.Path(folder, "accounts.toml"))
    token = run(folder, "serve", "token", "add", "bench", "--accounts", accounts).strip()
    plain = '[serve]\nbind = "127.0.0.1:0"\n'
    secured = plain + 'certificate = "tls.pem"\nkey = "tls.key"\naccounts = "accounts.toml"\n'
    goodput(folder, "TLS", secured, "https", ["-H", f"Authorization: Bearer {token}"])
    goodput(folder, "no TLS", plain, "http", [])
    slow(folder)
