#!/usr/bin/env python3
"""A stream of VDIF over a long, lossy line and over loopback: what is lost, how late, and how fast.

    sudo bench/peers/stream.py target/release/skyhaul

The line: 1.25 Gbit/s, 160 ms round trip, 1 % lost at random towards the sink, packets of 9000 bytes. 1 Gbit/s of VDIF for BENCH_SECONDS (600) with a
lateness bound of half the one-way delay, so that a frame is there within 1.5 times the one-way delay, and nothing can be sent again in it. Then as
much as goes over loopback for BENCH_LOOPBACK_SECONDS (10), with packets of 65,000 bytes. Prints the accounts with pacing error and loss map. The
emulated line is made in user space and takes a part of the processors; all run at real-time priority (BENCH_PRIORITY, 5; 0 for none), so that
they wait for each other and for nothing else. Of each second in which frames lacked it is told for how long the processors themselves
stood still. Ends with 1 where a bar is missed: 1e-4 lost; 4 Gbit/s over loopback.
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time

LAB = "stream"
# Seconds.
STILL = 0.003
SECONDS = float(os.environ.get("BENCH_SECONDS", "600"))
LOOPBACK = float(os.environ.get("BENCH_LOOPBACK_SECONDS", "10"))
RATE = os.environ.get("BENCH_RATE", "1gbit")
PRIORITY = int(os.environ.get("BENCH_PRIORITY", "5"))
SERVER, NODE = "198.18.0.2", 4750
LINK = """
seed = 1
[[link]]
name = "ground"
mtu = 9000
up = { rate = "1.25 Gbit/s", one_way_delay = "80 ms", queue = "25 MB", loss = { kind = "independent", probability = "1 %" } }
down = { rate = "1.25 Gbit/s", one_way_delay = "80 ms", queue = "25 MB" }
"""


def start(command, **pipes):
    return subprocess.Popen([str(word) for word in command], start_new_session=True, stdin=subprocess.DEVNULL, **pipes)


def stop(process, which=signal.SIGKILL):
    """Ends what was started, with all that it started."""
    try:
        os.killpg(process.pid, which)
    except ProcessLookupError:
        pass
    process.wait()


class Pauses(threading.Thread):
    """When the machine itself stood still: a thread of a processor, above all others, that only sleeps was woken late."""

    def __init__(self, processor):
        super().__init__(daemon=True)
        self.processor, self.over, self.found = processor, False, []

    def run(self):
        os.sched_setaffinity(0, {self.processor})
        if PRIORITY > 0:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY + 1))
        due = time.monotonic()
        while not self.over:
            due = max(due + 0.002, time.monotonic())
            time.sleep(max(due - time.monotonic(), 0))
            late = time.monotonic() - due
            if late > STILL:
                self.found.append((due, late))

    def within(self, begin, end):
        return max((late for due, late in self.found if due < end and due + late > begin), default=0)


def carried(program, at, ends, source, seconds, flags):
    """The account of a stream that is ended after so many seconds, the places that it names, and the seconds in which frames lacked."""
    near, far = ends
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    pauses = [Pauses(processor) for processor in os.sched_getaffinity(0)]
    for processor in pauses:
        processor.start()
    serving = start([*far, program, "stream", "serve", "--bind", at, "--insecure-test", "--insecure-beyond-loopback", "--allow", "null", "--json", *flags], **quiet)
    try:
        time.sleep(1)
        command = [*near, program, "stream", "--from", source[0], "--to", "far:null", "--node", f"far={at}", "--insecure-test", "--insecure-beyond-loopback", "--json"]
        sending = start([*command, *flags, *source[1:]], stdout=subprocess.PIPE)
        end = time.monotonic() + seconds
        lines, looks, before = [], [], 0
        for line in sending.stdout:
            lines.append(json.loads(line))
            if lines[-1]["event"] == "stats":
                counters = lines[-1]["counters"]
                missing = counters["late"] + counters["lost"]
                if missing > before:
                    # Blocks are told of after the way and back, and when they can no longer come.
                    now = time.monotonic()
                    looks.append((lines[-1]["elapsed_s"], missing - before, [processor.within(now - 1.5, now) for processor in pauses]))
                before = missing
            if time.monotonic() >= end:
                os.killpg(sending.pid, signal.SIGINT)
                end = float("inf")
        sending.wait()
    finally:
        stop(serving)
        for processor in pauses:
            processor.over = True
    if not lines or lines[-1].get("event") != "summary":
        sys.exit(f"the stream ended with {sending.returncode} and without an account")
    return lines[-1], [line for line in lines if line["event"] == "missing"], looks


def show(name, account, places, looks):
    counters, source = account["counters"], account["source"]
    print(f"{name}: {account['elapsed_s']:.1f} s, {account['rate_bps'] / 1e9:.3f} Gbit/s at the sink")
    fates = ", ".join(f"{counters[fate]} {fate}" for fate in ("sent", "received", "repaired", "late", "lost"))
    print(f"  {fates}; {source['unsent']} dropped here; missing {account['missing']:.2e}, S/N x {account['snr_factor']:.6f}")
    print(f"  pacing error {source['pacing_mean_us']} us in the mean, {source['pacing_max_us']} us at most; runs {counters['runs']}")
    for second, missing, stood in looks:
        words = " and ".join(f"{late * 1e3:.0f}" for late in stood)
        print(f"  {missing} missing at {second:.0f} s, when the processors stood still for {words} ms")
    for place in places:
        print(f"  missing: {place['second']} thread {place['thread']} numbers {place['first']} to {place['last']}")
    if account["places"] > len(places):
        print(f"  and at {account['places'] - len(places)} more places")


def main():
    program = str(pathlib.Path(sys.argv[1]).resolve())
    if PRIORITY > 0:
        # What is started from here on has it too.
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(PRIORITY))
    failed = []
    with tempfile.TemporaryDirectory() as folder:
        config = pathlib.Path(folder) / "line.toml"
        config.write_text(LINK)
        subprocess.run([program, "lab", "up", "--lab", LAB, config], check=True, stdout=subprocess.DEVNULL)
        try:
            inside = {place: [program, "lab", "exec", "--lab", LAB, place, "--"] for place in "ab"}
            source = [f"vdif:{RATE},8000,8", "--lateness", "40ms"]
            line = ["--mtu", "9000B", "--cc", "line", "--rate", "1250mbit"]
            found = carried(program, f"{SERVER}:{NODE}", (inside["a"], inside["b"]), source, SECONDS, line)
        finally:
            subprocess.run([program, "lab", "down", "--kill", "--lab", LAB], stdout=subprocess.DEVNULL)
    show(f"{RATE} over the emulated line at 1 % loss, within 1.5 x one-way delay", *found)
    if found[0]["missing"] > 1e-4:
        failed.append("more than 1e-4 lost")
    flags = ["--mtu", "65000B", "--cc", "line", "--rate", "20gbit"]
    found = carried(program, f"127.0.0.1:{NODE}", ([], []), ["vdif:max,8000,8"], LOOPBACK, flags)
    show("loopback", *found)
    if found[0]["rate_bps"] < 4e9:
        failed.append("less than 4 Gbit/s over loopback")
    print("missed: " + "; ".join(failed) if failed else "all bars are held")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
