"""The interface of asyncio."""

import asyncio
import unittest

import skyhaul
from ends import HERE, WAIT, ends, key


class Asyncio(unittest.IsolatedAsyncioTestCase):
    async def test_blocks_go_both_ways_while_others_wait(self) -> None:
        async with (
            skyhaul.Node("far", key(2), bind=HERE, trust=key(1).fingerprint) as far,
            skyhaul.Node("near", key(1), bind=HERE) as near,
        ):
            session, called = await asyncio.gather(
                near.connect_async(far.addresses[0], key(2).fingerprint), far.accept_async()
            )

            async def take() -> list[bytes]:
                return [bytes(block) async for block in called]

            taking = asyncio.create_task(take())
            async with session:
                sent = [await session.send_async(skyhaul.Block(n.to_bytes(2) * 500)) for n in range(200)]
                names = await asyncio.gather(*(one.name_async() for one in sent))
                self.assertEqual([name.seq for name in names], list(range(200)))
                # Several may wait for one.
                fates = await asyncio.gather(*(outcome(one) for one in sent + sent))
                self.assertEqual(set(fates), {skyhaul.Outcome.DELIVERED})
            blocks = await asyncio.wait_for(taking, WAIT)
            self.assertEqual([int.from_bytes(block[:2]) for block in blocks], list(range(200)))
            self.assertIsNone(await called.recv_async())

    async def test_a_sender_waits_for_a_slow_receiver_and_the_loop_goes_on(self) -> None:
        with ends(window=64 << 10) as (near, far):
            sending = asyncio.create_task(self.send_all(near))
            turns = 0
            while not near.stats()["blocks_taken"]:
                await asyncio.sleep(0)
                turns += 1
            total = 0
            while total < 4 << 20:
                total += len(await far.recv_async())
            self.assertEqual((await asyncio.wait_for(sending, WAIT), total), (256, 4 << 20))

    async def send_all(self, session: skyhaul.Session) -> int:
        for _ in range(256):
            await session.send_async(skyhaul.Block(bytes(16 << 10)))
        return 256

    async def test_what_is_given_up_takes_nothing_with_it(self) -> None:
        with ends() as (near, far):
            for _ in range(20):
                with self.assertRaises(TimeoutError):
                    await asyncio.wait_for(far.recv_async(), 0.001)
            await near.send_async(skyhaul.Block(b"still there"))
            self.assertEqual(bytes(await asyncio.wait_for(far.recv_async(), WAIT)), b"still there")

    async def test_errors_come_out_where_one_awaits(self) -> None:
        with skyhaul.Node("near", key(1), bind=HERE) as near:
            with self.assertRaisesRegex(skyhaul.ClosedError, "no path"):
                await near.connect_async([], key(2).fingerprint)
        with self.assertRaises(skyhaul.ClosedError):
            await near.accept_async()

    def test_without_a_loop_nothing_is_begun(self) -> None:
        with ends() as (near, _):
            with self.assertRaisesRegex(RuntimeError, "no running event loop"):
                near.recv_async()


async def outcome(sent: skyhaul.Sent) -> skyhaul.Outcome:
    return await sent
