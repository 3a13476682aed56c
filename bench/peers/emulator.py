#!/usr/bin/env python3
"""How exact emulated links are on this machine, by tools that know nothing of them: kernel time stamps and iperf3.

    sudo bench/peers/emulator.py target/release/skyhaul [--json]

Delay: datagrams of 1500-byte IP packets while iperf3 sends 300 Mbit/s beside them; kernel time stamp of the arrival less the time
of sending, less the delay that was asked for. Rate: what arrives where iperf3 offers twice the rate. Loss: what iperf3 misses
where a share is lost by chance. Ceiling: TCP without a rate, and datagrams of 1500-byte IP packets without one.
"""

import ctypes
import json
import math
import os
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

LAB = "accuracy"
SO_TIMESTAMPNS = 35
CLONE_NEWNET = 0x40000000
PAYLOAD = 1472
IP_PACKET = 1500
SPAN = 8


def lab(program, *words, **more):
    return subprocess.run([program, "lab", *words], check=True, capture_output=True, text=True, **more).stdout


def inside(program, place, *command):
    return [program, "lab", "exec", "--lab", LAB, place, "--", *command]


class Lab:
    def __init__(self, program, both):
        self.program, self.both = program, both

    def __enter__(self):
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write(f"seed = 1\n[[link]]\nname = \"one\"\nboth = {{ {self.both} }}\n")
            file.flush()
            lab(self.program, "up", "--lab", LAB, file.name)
        return self

    def __exit__(self, *_):
        lab(self.program, "down", "--kill", "--lab", LAB)

    def iperf3(self, *arguments):
        server = subprocess.Popen(inside(self.program, "b", "chrt", "-r", "1", "iperf3", "-s", "-1", "-J"), stdout=subprocess.DEVNULL)
        time.sleep(0.5)
        client = inside(self.program, "a", "iperf3", "-c", "198.18.0.2", "-J", "-t", str(SPAN), "-O", "1", *arguments)
        said = subprocess.run(client, capture_output=True, text=True, timeout=60 + SPAN)
        server.wait(timeout=30)
        return json.loads(said.stdout)["end"]

    def receiver_drops(self):
        """Datagrams that came to the far end, where the receiving program was not quick enough to take them."""
        table = subprocess.run(inside(self.program, "b", "cat", "/proc/net/snmp"), check=True, capture_output=True, text=True).stdout
        names, values = (line.split() for line in table.splitlines() if line.startswith("Udp:"))
        return int(values[names.index("RcvbufErrors")])


def enter(namespace):
    if ctypes.CDLL(None, use_errno=True).setns(namespace, CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")


def socket_in(place):
    """A socket of a namespace stays in it, wherever its owner goes."""
    here = os.open("/proc/self/ns/net", os.O_RDONLY)
    there = os.open(f"/run/netns/skyhaul-{LAB}-{place}", os.O_RDONLY)
    enter(there)
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    enter(here)
    os.close(here)
    os.close(there)
    return made


def delays(asked, count):
    """Seconds that datagrams took beyond what was asked for, by the kernel's time stamps."""
    to, source = socket_in("b"), socket_in("a")
    to.bind(("198.18.0.2", 0))
    to.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    to.settimeout(2)
    arrived = {}

    def receive():
        while len(arrived) < count:
            try:
                payload, ancillary, _, _ = to.recvmsg(2000, 100)
            except TimeoutError:
                return
            seconds, nanos = struct.unpack("qq", ancillary[0][2])
            number, sent = struct.unpack("qq", payload[:16])
            arrived[number] = seconds * 1_000_000_000 + nanos - sent

    receiver = threading.Thread(target=receive)
    receiver.start()
    for number in range(count):
        source.sendto(struct.pack("qq", number, time.time_ns()) + bytes(PAYLOAD - 16), to.getsockname())
        time.sleep(0.002)
    receiver.join()
    return sorted(value / 1e9 - asked for value in arrived.values())


def measure(program):
    found = {}
    with Lab(program, 'one_way_delay = "40 ms"') as line:
        load = threading.Thread(target=line.iperf3, args=("-u", "-b", "300M", "-l", str(PAYLOAD)))
        load.start()
        time.sleep(2)
        late = delays(0.040, 2000)
        load.join()
        found["delay"] = {
            "samples": len(late),
            "earliest_ms": late[0] * 1e3,
            "median_ms": late[len(late) // 2] * 1e3,
            "p99_ms": late[len(late) * 99 // 100] * 1e3,
        }
    with Lab(program, 'rate = "300 Mbit/s", queue = "4 MiB"') as line:
        end = line.iperf3("-u", "-b", "600M", "-l", str(PAYLOAD))
        received = end["sum_received"]
        rate = received["bits_per_second"] * IP_PACKET / PAYLOAD
        found["rate"] = {"asked_mbps": 300, "received_mbps": rate / 1e6, "off": rate / 300e6 - 1}
    with Lab(program, 'loss = { kind = "independent", probability = "1 %" }') as line:
        # With the first second counted: the kernel counts it too.
        received = line.iperf3("-u", "-b", "300M", "-l", str(PAYLOAD), "-O", "0", "-w", "4M")["sum_received"]
        dropped = line.receiver_drops()
        packets, lost = received["packets"], received["lost_packets"] - dropped
        deviation = math.sqrt(packets * 0.01 * 0.99)
        found["loss"] = {"packets": packets, "lost": lost, "dropped_by_receiver": dropped, "deviations": (lost - packets * 0.01) / deviation}
    with Lab(program, "") as line:
        found["ceiling"] = {"tcp_mbps": line.iperf3()["sum_received"]["bits_per_second"] / 1e6}
        sums = line.iperf3("-u", "-b", "0", "-l", str(PAYLOAD), "-O", "0")["sum_received"]
        found["ceiling"]["udp_packets_per_s"] = (sums["packets"] - sums["lost_packets"]) / SPAN
    return found


def main():
    program = os.path.realpath(sys.argv[1])
    found = measure(program)
    if "--json" in sys.argv:
        print(json.dumps(found))
        return
    delay, rate, loss, ceiling = (found[key] for key in ("delay", "rate", "loss", "ceiling"))
    print(f"delay    beyond 40 ms, beside 300 Mbit/s: median {delay['median_ms']:.3f} ms (0.3), "
          f"99 of 100 {delay['p99_ms']:.3f} ms (1), least {delay['earliest_ms']:.3f} ms, {delay['samples']} samples")
    print(f"rate     300 Mbit/s: {rate['received_mbps']:.2f} Mbit/s arrive, {rate['off']:+.2%} (0.5 %)")
    print(f"loss     1 % of {loss['packets']}: {loss['lost']} lost, {loss['deviations']:+.1f} standard deviations; "
          f"{loss['dropped_by_receiver']} more came, but the receiver was too slow for them")
    print(f"ceiling  TCP {ceiling['tcp_mbps']:.0f} Mbit/s, datagrams {ceiling['udp_packets_per_s']:.0f} a second")


if __name__ == "__main__":
    main()
