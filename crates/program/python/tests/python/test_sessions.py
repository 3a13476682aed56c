"""The blocking interface, and what it says of what cannot be."""

import datetime
import os
import pathlib
import signal
import tempfile
import threading
import unittest

import skyhaul
from ends import HERE, WAIT, ends, key


class Sessions(unittest.TestCase):
    def test_blocks_go_both_ways_and_their_fates_are_told(self) -> None:
        with ends() as (near, far):
            first = near.send(skyhaul.Block(b"p" * 60_000, flow=1, deadline=60, expendable=True), WAIT)
            name = first.name(WAIT)
            self.assertEqual(name, skyhaul.BlockId(1, 0))
            frame = skyhaul.Block(b"q" * 6_000, flow=1, deadline=datetime.timedelta(minutes=1), expendable=True, depends_on=name)
            second = near.send(frame, WAIT)
            received = {bytes(far.recv(WAIT))[:1] for _ in range(2)}
            self.assertEqual(received, {b"p", b"q"})
            self.assertEqual([one.wait(WAIT) for one in (first, second, first)], [skyhaul.Outcome.DELIVERED] * 3)
            answer = far.send(skyhaul.Block(b"all of it", priority=0, redundant=True), WAIT)
            block = near.recv(WAIT)
            self.assertEqual((bytes(block), len(block), block.id), (b"all of it", 9, skyhaul.BlockId(0, 0)))
            self.assertEqual(answer.wait(WAIT), skyhaul.Outcome.DELIVERED)
            self.assertEqual((near.peer_name, far.peer_name), ("far", "near"))
            self.assertEqual(near.peer, key(2).fingerprint)
            self.assertEqual([path.state for path in near.paths()], ["active"])
            self.assertGreaterEqual(near.stats()["blocks_taken"], 2)

    def test_what_is_known_of_a_path_is_said_and_withdrawn(self) -> None:
        with ends() as (near, far):
            near.hint_loss(0, 0.25, 600)
            self.assertGreaterEqual(near.paths()[0].loss, 0.25)
            near.hint_rate(0, "80 Mbit/s", lasts=600)
            near.withdraw_hints(0)
            near.send(skyhaul.Block(b"x"), WAIT)
            self.assertEqual(bytes(far.recv(WAIT)), b"x")
            self.assertLess(near.paths()[0].loss, 0.25)
            with self.assertRaisesRegex(skyhaul.HintRefused, "no path 7"):
                near.withdraw_hints(7)
            with self.assertRaisesRegex(skyhaul.HintRefused, "a rate of 1 bit/s is out of range"):
                near.hint_rate(0, "1 bit/s")
            with self.assertRaisesRegex(skyhaul.HintRefused, "a loss of 95 % is out of range"):
                near.hint_loss(0, 0.95, 5)
            near.close()
            with self.assertRaises(skyhaul.ClosedError):
                near.withdraw_hints(0)

    def test_a_session_that_is_let_go_ends_once_its_blocks_have_met_their_fate(self) -> None:
        with ends() as (near, far):
            sent = [near.send(skyhaul.Block(bytes([n]) * 1_000), WAIT) for n in range(50)]
            near.close()
            self.assertEqual([bytes(block)[0] for block in far], list(range(50)))
            self.assertIsNone(far.recv(WAIT))
            self.assertEqual({one.wait(WAIT) for one in sent}, {skyhaul.Outcome.DELIVERED})
            self.assertIsNotNone(far.closed)
            with self.assertRaises(skyhaul.ClosedError) as closed:
                near.send(skyhaul.Block(b"late"))
            self.assertEqual(closed.exception.reason, "it was closed here")

    def test_classes_share_the_line_and_are_known_by_name(self) -> None:
        classes = [skyhaul.Class("frames", guarantee="2 Mbit/s"), skyhaul.Class("bulk", ceiling=80_000_000, priority=7)]
        with ends(classes=classes, window=1 << 20, line="1 Gbit/s") as (near, far):
            near.send(skyhaul.Block(b"x", class_name="bulk"), WAIT)
            self.assertEqual(bytes(far.recv(WAIT)), b"x")
            with self.assertRaisesRegex(ValueError, "name one of frames, bulk"):
                near.send(skyhaul.Block(b"x", class_name="other"))

    def test_what_is_no_block_is_refused(self) -> None:
        with ends() as (near, _):
            for block, word in [
                (skyhaul.Block(b""), "0 bytes"),
                (skyhaul.Block(bytes(1 << 24)), "16777216 bytes"),
                (skyhaul.Block(b"x", expendable=True), "deadline"),
                (skyhaul.Block(memoryview(b"abcd")[::2]), "holes"),
            ]:
                with self.assertRaisesRegex(skyhaul.BlockError, word):
                    near.send(block)
            with self.assertRaises(TypeError):
                near.send(skyhaul.Block("text"))  # type: ignore[arg-type]
            with self.assertRaisesRegex(ValueError, "no span of time"):
                near.send(skyhaul.Block(b"x", deadline=-1))

    def test_what_cannot_be_a_node_is_told(self) -> None:
        for options, kind, word in [
            ({"bind": "nowhere"}, ValueError, "nowhere"),
            ({"bind": "192.0.2.1:0"}, skyhaul.SocketError, "cannot be bound"),
            ({"trust": "SHA256:00"}, ValueError, "SHA256:00"),
            ({"line": "fast"}, ValueError, "fast"),
            ({"packet": 200}, skyhaul.ConfigError, "172"),
            ({"classes": [skyhaul.Class("a", parent="nobody")]}, skyhaul.ConfigError, "nobody"),
            ({"colour": "red"}, TypeError, "no `colour`"),
        ]:
            with self.assertRaisesRegex(kind, word):
                skyhaul.Node("one", key(1), **options)
        with self.assertRaises(OSError):
            skyhaul.Node("one", key(1), bind="192.0.2.1:0")
        with self.assertRaisesRegex(skyhaul.IdentityError, "PRIVATE KEY"):
            skyhaul.Identity.from_pem("no key")

    def test_a_call_that_leads_nowhere_is_told(self) -> None:
        far = skyhaul.Node("far", key(2), bind=HERE, trust=key(1).fingerprint)
        near = skyhaul.Node("near", key(1), bind=HERE)
        with self.assertRaisesRegex(skyhaul.ClosedError, "no path"):
            near.connect([], key(2).fingerprint)
        with self.assertRaisesRegex(skyhaul.ClosedError, "key"):
            near.connect(far.addresses[0], key(3).fingerprint)
        with self.assertRaises(ValueError):
            near.connect("far", key(2).fingerprint)
        session = near.connect([far.addresses[0], skyhaul.Path(far.addresses[0], socket=7)], key(2).fingerprint, WAIT)
        accepted = far.accept(WAIT)
        # The second path leaves from a socket that is not there: once the session has met the far end, that is known.
        session.send(skyhaul.Block(b"x"), WAIT).wait(WAIT)
        self.assertEqual(len(session.refused_paths()), 1)
        self.assertEqual(bytes(accepted.recv(WAIT)), b"x")
        far.close()
        self.assertIsNone(accepted.recv(WAIT))
        with self.assertRaises(skyhaul.ClosedError):
            far.accept()
        near.close()

    def test_a_key_is_the_same_in_a_file_and_as_text(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "node.key"
            file.write_text(key(1).to_pem())
            self.assertEqual(skyhaul.Identity.load(file).fingerprint, key(1).fingerprint)
            with self.assertRaises(FileNotFoundError):
                skyhaul.Identity.load(file.with_name("none.key"))

    def test_waiting_ends_after_a_time_and_by_an_interrupt_and_lets_other_threads_run(self) -> None:
        with ends() as (near, far):
            with self.assertRaises(TimeoutError):
                far.recv(0)
            with self.assertRaises(TimeoutError):
                far.recv(timeout=datetime.timedelta(milliseconds=60))
            # A program that was started in the background may ignore interrupts.
            before = signal.signal(signal.SIGINT, signal.default_int_handler)
            self.addCleanup(signal.signal, signal.SIGINT, before)
            # Another thread can only do this while this one waits without holding the interpreter.
            threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
            with self.assertRaises(KeyboardInterrupt):
                far.recv()
            threading.Timer(0.1, lambda: near.send(skyhaul.Block(b"after all"))).start()
            self.assertEqual(bytes(far.recv(WAIT)), b"after all")
