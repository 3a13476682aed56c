"""A program as a type checker sees it: run by nobody, checked by test_stubs."""

import skyhaul


async def relay(node: skyhaul.Node, peer: str) -> int:
    total = 0
    async with await node.connect_async([skyhaul.Path("192.0.2.1:4710"), "192.0.2.2:4710"], peer) as session:
        async for block in session:
            sent: skyhaul.Sent = await session.send_async(skyhaul.Block(block, deadline=1.5, expendable=True))
            outcome: skyhaul.Outcome = await sent
            name: skyhaul.BlockId | None = await sent.name_async()
            if outcome is skyhaul.Outcome.DELIVERED and name is not None:
                total += len(memoryview(block)) + name.seq
    return total


def count(path: str) -> int:
    decoded = skyhaul.decode(path)
    table = skyhaul.packets(path, "suomi-npp")
    return len(table["apid"]) + len(decoded.frames["vcid"]) + len(decoded.account)


def one(node: skyhaul.Node) -> bytes:
    session = node.accept(timeout=5)
    if session is None:
        return b""
    session.hint_rate(0, "2 Mbit/s", lasts=5.0)
    session.hint_loss(0, 0.02, 5)
    session.withdraw_hints(0)
    for block in session:
        return bytes(block)
    return session.peer_name.encode()
