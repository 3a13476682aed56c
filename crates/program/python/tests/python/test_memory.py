"""Nothing is copied between Python and the transport: the same memory is seen on both sides."""

import gc
import threading
import time
import unittest

import numpy
import skyhaul
from ends import WAIT, ends


def address(data: object) -> int:
    return numpy.frombuffer(data, dtype=numpy.uint8).__array_interface__["data"][0]  # type: ignore[call-overload]


class Memory(unittest.TestCase):
    def test_what_is_sent_is_held_where_it_is_until_it_has_settled(self) -> None:
        with ends() as (near, far):
            data = bytearray(b"x" * 1_000_000)
            sent = near.send(skyhaul.Block(data), WAIT)
            # What is shared cannot be resized; what was copied could.
            with self.assertRaises(BufferError):
                data.append(0)
            self.assertEqual(bytes(far.recv(WAIT)), bytes(data))
            self.assertEqual(sent.wait(WAIT), skyhaul.Outcome.DELIVERED)
            near.close()
            self.assertIsNone(far.recv(WAIT))
            self.assertTrue(self.becomes_free(data), "nobody needs it any more")

    def becomes_free(self, data: bytearray) -> bool:
        until = time.monotonic() + WAIT
        while time.monotonic() < until:
            try:
                data.append(0)
                return True
            except BufferError:
                # Whoever holds it may need the interpreter to let go of it.
                threading.Event().wait(0.01)
        return False

    def test_arrays_of_any_type_are_sent_as_they_lie_in_memory(self) -> None:
        with ends() as (near, far):
            table = numpy.zeros(100, dtype=[("time", ">f8"), ("count", "u2")])
            table["count"] = range(100)
            grid = numpy.arange(12, dtype=">i4").reshape(3, 4)
            for array in (table, grid, numpy.ones(7, dtype=bool)):
                near.send(skyhaul.Block(array), WAIT)
                back = numpy.frombuffer(far.recv(WAIT), dtype=array.dtype).reshape(array.shape)
                self.assertEqual(back.tobytes(), array.tobytes())
            with self.assertRaisesRegex(skyhaul.BlockError, "ascontiguousarray"):
                near.send(skyhaul.Block(grid.T))
            with self.assertRaisesRegex(skyhaul.BlockError, "shape is null"):
                near.send(skyhaul.Block(numpy.array(3.5)))

    def test_what_arrives_is_read_where_it_is_and_lives_as_long_as_somebody_reads(self) -> None:
        with ends() as (near, far):
            near.send(skyhaul.Block(numpy.arange(1_000, dtype=numpy.float64)), WAIT)
            block = far.recv(WAIT)
            array = numpy.frombuffer(block, dtype=numpy.float64)
            self.assertEqual(address(block), address(memoryview(block)))
            self.assertEqual(address(block), array.__array_interface__["data"][0])
            self.assertFalse(array.flags.writeable)
            del block
            gc.collect()
            self.assertEqual(array.sum(), 499_500)

