#!/usr/bin/env python3
"""Ten thousand connections of applications at a time through `skyhaul forward`, over loopback: whether all are served, how long a
round of answers takes, and what memory both ends need.

Run with the built program's path. BENCH_CONNECTIONS sets how many (10000), BENCH_ROUNDS how often each of them asks (3). In a round
every connection sends 100 bytes at once and waits for its answer, which a server beyond the far end sends back. A second part counts
the delay that forwarding adds: one connection, a message at a time, beside one without forwarding. Ends with 1 where an answer is
missing or wrong.
"""

import asyncio
import multiprocessing
import os
import resource
import signal
import socket
import statistics
import subprocess
import sys
import time

COUNT = int(os.environ.get("BENCH_CONNECTIONS", "10000"))
ROUNDS = max(int(os.environ.get("BENCH_ROUNDS", "3")), 1)
ECHOES = 2000
PATIENCE = 300
# Connections being made at a time: the listen queue of the system has room for so many.
AT_ONCE = 500


def port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def serve(address):
    """Sends everything back."""

    class Echo(asyncio.Protocol):
        def connection_made(self, transport):
            transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.transport = transport

        def data_received(self, data):
            self.transport.write(data)

    async def run():
        server = await asyncio.get_running_loop().create_server(Echo, *address, backlog=4096)
        await server.serve_forever()

    asyncio.run(run())


async def connect(address, gate):
    async with gate:
        for attempt in range(20):
            try:
                return await asyncio.open_connection(*address)
            except OSError:
                await asyncio.sleep(0.1 * (attempt + 1))
    raise SystemExit(f"{address} does not accept any more")


async def ask(connection, number):
    reader, writer = connection
    message = number.to_bytes(8, "big") + bytes(92)
    writer.write(message)
    if await reader.readexactly(len(message)) != message:
        raise SystemExit("a connection got another one's answer")


async def rounds(address):
    gate = asyncio.Semaphore(AT_ONCE)
    began = time.monotonic()
    connections = await asyncio.gather(*(connect(address, gate) for _ in range(COUNT)))
    print(f"{COUNT} connections made in {time.monotonic() - began:.1f} s", flush=True)
    for _ in range(ROUNDS):
        began = time.monotonic()
        await asyncio.gather(*(ask(each, number) for number, each in enumerate(connections)))
        print(f"{COUNT} answers in {time.monotonic() - began:.2f} s", flush=True)
    return connections


def echo(address):
    """Median and 99 % of a message and its answer, in milliseconds."""
    with socket.create_connection(address) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        took = []
        for _ in range(ECHOES):
            began = time.perf_counter()
            connection.sendall(b"x" * 100)
            left = 100
            while left:
                left -= len(connection.recv(left))
            took.append((time.perf_counter() - began) * 1e3)
            time.sleep(0.001)
    took.sort()
    return statistics.median(took), took[len(took) * 99 // 100]


def peak(process):
    """Most memory that a process had, in MiB."""
    with open(f"/proc/{process.pid}/status") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))


def main():
    program = sys.argv[1]
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    target, line, near = (("127.0.0.1", port()) for _ in range(3))
    server = multiprocessing.Process(target=serve, args=(target,), daemon=True)
    server.start()
    allowed = f"{target[0]}:{target[1]}"
    ends = [
        subprocess.Popen([program, "forward", "serve", "--bind", f"{line[0]}:{line[1]}", "--insecure-test", "--insecure-beyond-loopback", "--allow", allowed]),
        subprocess.Popen(
            [program, "forward", "--node", f"far={line[0]}:{line[1]}", "--insecure-test", "--insecure-beyond-loopback", "-L", f"{near[1]}=far:{allowed}"]
        ),
    ]
    try:
        asyncio.run(asyncio.wait_for(once(near), 60))
        direct, through = echo(target), echo(near)
        print(f"a message of 100 bytes and its answer: {direct[0]:.3f} ms directly, {through[0]:.3f} ms forwarded in the median;")
        print(f"{direct[1]:.3f} and {through[1]:.3f} ms for 99 of 100", flush=True)
        asyncio.run(asyncio.wait_for(rounds(near), PATIENCE))
        print(f"most memory: {peak(ends[1]):.0f} MiB at the calling end, {peak(ends[0]):.0f} MiB at the far end")
    except (TimeoutError, OSError, asyncio.IncompleteReadError) as error:
        print(f"not all were served: {error!r}")
        return 1
    finally:
        for end in ends:
            end.send_signal(signal.SIGINT)
            end.wait(20)
        server.terminate()
    return 0


async def once(address):
    """Waits until the far end answers."""
    gate = asyncio.Semaphore(1)
    while True:
        try:
            return await ask(await connect(address, gate), 0)
        except (OSError, asyncio.IncompleteReadError):
            await asyncio.sleep(0.1)


if __name__ == "__main__":
    sys.exit(main())
