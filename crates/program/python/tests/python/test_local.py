"""Sessions through the block service of a node."""

import asyncio
import datetime
import os
import select
import unittest

import skyhaul
from ends import WAIT

SOCKET = os.environ["SKYHAUL_BLOCKS"]


class Local(unittest.TestCase):
    def test_blocks_go_through_the_service_and_a_session_can_be_polled(self) -> None:
        with (
            skyhaul.LocalNode(SOCKET, "screen") as screen,
            skyhaul.LocalNode(SOCKET, "camera") as camera,
        ):
            screen.listen()
            with camera.connect("mirror", "screen", WAIT) as near, screen.accept(WAIT) as far:
                frame = skyhaul.Block(
                    b"q" * 100_000, flow=3, deadline=60, expendable=True, class_name="urgent"
                )
                sent = near.send(frame, WAIT)
                self.assertTrue(select.select([far], [], [], WAIT)[0])
                block = far.recv(WAIT)
                self.assertEqual((len(block), block.id.flow), (100_000, 3))
                self.assertEqual(sent.wait(WAIT), skyhaul.Outcome.DELIVERED)
                self.assertEqual(near.peer_name, "mirror")
                with self.assertRaisesRegex(ValueError, "name one of usual, urgent"):
                    near.send(skyhaul.Block(b"x", class_name="no such"), WAIT)

    def test_hints_go_to_the_node_which_may_refuse_them(self) -> None:
        with (
            skyhaul.LocalNode(SOCKET, "far") as far,
            skyhaul.LocalNode(SOCKET, "modem") as modem,
        ):
            far.listen()
            with modem.connect("mirror", "far", WAIT) as session:
                session.hint_rate(0, "2 Mbit/s", lasts=5)
                session.hint_loss(1, 0.02, datetime.timedelta(seconds=5))
                session.withdraw_hints(1)
                with self.assertRaisesRegex(skyhaul.HintRefused, "there is no path 2 to mirror"):
                    session.hint_rate(2, 2_000_000)
                with self.assertRaisesRegex(ValueError, "a share of 2 is none"):
                    session.hint_loss(0, 2.0, 5)

    def test_what_cannot_be_is_said(self) -> None:
        with self.assertRaises(skyhaul.SocketError):
            skyhaul.LocalNode("/nowhere/blocks.sock", "camera")
        with skyhaul.LocalNode(SOCKET, "lonely") as node:
            refused = "no program listens there as `nobody`"
            with self.assertRaisesRegex(skyhaul.ClosedError, refused):
                node.connect("mirror", "nobody", WAIT)
            with self.assertRaisesRegex(skyhaul.ClosedError, "its peers are mirror"):
                node.connect("elsewhere", "nobody", WAIT)
            with self.assertRaises(skyhaul.ConfigError):
                skyhaul.LocalNode(SOCKET, "")

    def test_asyncio(self) -> None:
        async def exchange() -> None:
            async with (
                skyhaul.LocalNode(SOCKET, "there") as there,
                skyhaul.LocalNode(SOCKET, "here") as here,
            ):
                there.listen()
                near = await here.connect_async("mirror", "there")
                far = await there.accept_async()
                async with near, far:
                    sent = await near.send_async(skyhaul.Block(b"all of it"))
                    self.assertEqual(bytes(await far.recv_async()), b"all of it")
                    self.assertEqual(await sent, skyhaul.Outcome.DELIVERED)

        asyncio.run(exchange())
