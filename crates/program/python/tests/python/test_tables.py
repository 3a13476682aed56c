"""Tables hold what the program prints, and what independent decoders found."""

import hashlib
import json
import os
import pathlib
import subprocess
import tempfile
import unittest
import warnings

import numpy
import pandas
import skyhaul

CAPTURES = pathlib.Path(os.environ["SKYHAUL_TESTDATA"]) / "cadu"
EXPECTED = json.loads((CAPTURES.parent / "expected.json").read_text())
PROGRAM = os.environ.get("SKYHAUL_PROGRAM", "")


def program(*arguments: str) -> str:
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, check=True).stdout


class Captures(unittest.TestCase):
    def test_frames_and_packets_are_those_that_independent_decoders_found(self) -> None:
        names = ["npp.20241206T173815.dat", "aqua.20241206T175646.dat", "metopb.20241206T152751.dat"]
        for name in names:
            known = EXPECTED[f"cadu/{name}"]
            frames, packets, account = skyhaul.decode(CAPTURES / name, data=True)
            good = frames["set_aside"] == ""
            self.assertEqual(good.sum(), known["frames_total"], name)
            whole = b"".join(frames["data"][good])
            self.assertEqual(hashlib.sha256(whole).hexdigest(), known["frames_sha256"], name)
            for vcid, channel in known["vcids"].items():
                self.assertEqual((frames["vcid"][good] == int(vcid)).sum(), channel["frames"], name)
                mine = packets["vcid"] == int(vcid)
                apids, counts = numpy.unique(packets["apid"][mine], return_counts=True)
                self.assertEqual(mine.sum(), channel.get("packets", 0), name)
                self.assertEqual({str(a): c for a, c in zip(apids.tolist(), counts.tolist())}, channel.get("apids", {}))
                if mine.any():
                    packed = b"".join(packets["data"][mine])
                    self.assertEqual(hashlib.sha256(packed).hexdigest(), channel["packets_sha256"], name)
            self.assertEqual(account[0]["good_frames"], good.sum())

    def test_frames_set_aside_are_rows_too(self) -> None:
        frames = skyhaul.frames(CAPTURES / "npp_rs_errors.dat")
        aside = frames["set_aside"] != ""
        self.assertTrue(aside.any() and (frames["scid"][aside] == -1).all())
        self.assertTrue((frames["verdict"][aside] == "uncorrectable").all())
        self.assertGreater(frames["corrected_symbols"].sum(), 0)
        self.assertEqual(frames["scid"].dtype, numpy.int32)
        self.assertFalse(frames["position"].flags.writeable)
        frame = pandas.DataFrame(frames)
        self.assertEqual(len(frame), len(aside))
        self.assertEqual(frame.groupby("verdict").size().sum(), len(aside))

    def test_the_account_is_that_of_the_program(self) -> None:
        self.needs_the_program()
        for capture in sorted(CAPTURES.glob("*.dat")):
            theirs = json.loads(program("decode", str(capture), "--json"))["files"]
            for one in theirs:
                one.pop("notes", None)
                one.pop("begins_at_byte", None)
            self.assertEqual(skyhaul.decode(capture).account, theirs)

    def test_packet_files_have_the_rows_that_the_program_prints(self) -> None:
        self.needs_the_program()
        with tempfile.TemporaryDirectory() as folder:
            program("decode", str(CAPTURES / "npp.20241206T173815.dat"), "--packets-out", folder)
            (file,) = pathlib.Path(folder).iterdir()
            table = skyhaul.packets(file, data=True)
            theirs = [json.loads(line) for line in program("packets", str(file), "--json", "--bytes").splitlines()]
            self.assertEqual(len(table["apid"]), len(theirs))
            for name in ("offset", "length", "apid", "count", "grouping", "telecommand", "secondary_header"):
                self.assertEqual(table[name].tolist(), [one[name] for one in theirs], name)
            times = [numpy.datetime64(one["time"].rstrip("Z"), "ns") if one["time"] else numpy.datetime64("NaT") for one in theirs]
            numpy.testing.assert_array_equal(table["time"], numpy.array(times, dtype="datetime64[ns]"))
            self.assertEqual(b"".join(table["data"]), file.read_bytes())
            # Damage costs no packet behind it, and is told.
            damaged = pathlib.Path(folder) / "damaged.packets"
            damaged.write_bytes(bytes(100) + file.read_bytes())
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                again = skyhaul.packets(damaged, mission="suomi-npp")
            self.assertEqual(again["apid"].tolist(), table["apid"].tolist())
            self.assertEqual([one.category for one in caught], [skyhaul.DamageWarning])
            self.assertIn("at byte 0, 100 bytes", str(caught[0].message))

    def test_what_is_no_such_file_is_told(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "noise"
            file.write_bytes(bytes(range(256)) * 512)
            for read in (skyhaul.frames, skyhaul.gaps, skyhaul.lab_results, skyhaul.lab_bars):
                with self.assertRaises(skyhaul.DataError) as error:
                    read(file)
                self.assertIn(str(file), str(error.exception))
                self.assertTrue(error.exception.what and error.exception.help)
            with self.assertRaises(FileNotFoundError):
                skyhaul.packets(file.with_name("none"))
            with self.assertRaisesRegex(skyhaul.DataError, "level0/gaps"):
                skyhaul.gaps(folder)
            file.write_bytes(b"")
            for read in (skyhaul.frames, skyhaul.packets, skyhaul.gaps, skyhaul.lab_results):
                with self.assertRaises(skyhaul.DataError):
                    read(file)
        with self.assertRaisesRegex(ValueError, "no mission `apollo`"):
            skyhaul.frames(CAPTURES / "npp_rs_errors.dat", mission="apollo")
        with self.assertRaisesRegex(ValueError, "no format `film`"):
            skyhaul.frames(CAPTURES / "npp_rs_errors.dat", format="film")

    def needs_the_program(self) -> None:
        if not PROGRAM:
            self.skipTest("the program is not built beside the tests")


class Results(unittest.TestCase):
    def test_a_ledger_of_gaps_is_a_table_from_a_folder_and_from_what_is_printed(self) -> None:
        # A ledger as a centre keeps it is made by the test that starts this one.
        state = pathlib.Path(os.environ["SKYHAUL_STATE"])
        gaps = skyhaul.gaps(state)
        self.assertEqual(gaps["station"].tolist(), ["polar"])
        self.assertEqual((gaps["first"].tolist(), gaps["missed"].tolist(), gaps["missing"].tolist()), ([11], [9], [9]))
        self.assertEqual((gaps["scid"].tolist(), gaps["vcids"].tolist(), gaps["apid"].tolist()), ([157], ["16"], [-1]))
        self.assertEqual((gaps["state"].tolist(), gaps["mission"].tolist()), (["open"], ["suomi-npp"]))
        self.assertEqual(gaps["from"][0], numpy.datetime64("2024-12-06T17:38:20", "ns"))
        printed = {
            "counts": {},
            "gaps": [
                {
                    "station": "polar", "flow": 7, "channel": "x", "mission": "suomi-npp", "scid": None, "vcids": [16, 17],
                    "apid": 802, "first": 3, "missed": 2, "missing": None, "asked": 0, "from": "2024-12-06T17:38:20Z",
                    "to": "2024-12-06T17:38:21.500000Z", "state": "unrecoverable", "why": "the spacecraft did not send it",
                }
            ],
        }
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "gaps.json"
            file.write_text(json.dumps(printed))
            table = skyhaul.gaps(file)
            self.assertEqual((table["scid"][0], table["apid"][0], table["missing"][0]), (-1, 802, -1))
            self.assertEqual((table["vcids"][0], table["why"][0]), ("16 17", "the spacecraft did not send it"))
            self.assertEqual(len(pandas.DataFrame(table)), 1)

    def test_lab_results_are_a_row_for_each_run_and_each_bar(self) -> None:
        outcome = {
            "name": "line",
            "cells": [
                {"loss": "1 %", "seed": 1, "goodput_bps": 90_000_000, "latency_s": {"p50": 0.08, "p99": None}},
                {"loss": "5 %", "seed": 1, "broken": "it did not get to its end"},
            ],
            "bars": [{"text": "at least 0.97", "reached": 0.98, "outcome": "pass", "at_least": 0.97, "at_most": None}],
        }
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "lab.json"
            file.write_text(json.dumps(outcome) + "\n" + json.dumps({**outcome, "name": "other"}) + "\n")
            runs = skyhaul.lab_results(file)
            self.assertEqual(runs["scenario"].tolist(), ["line", "line", "other", "other"])
            self.assertEqual(runs["seed"].tolist(), [1] * 4)
            self.assertEqual(runs["latency_s.p50"][0], 0.08)
            self.assertTrue(numpy.isnan(runs["goodput_bps"][1]))
            self.assertEqual(runs["broken"][1], "it did not get to its end")
            bars = skyhaul.lab_bars(file)
            self.assertEqual(bars["outcome"].tolist(), ["pass", "pass"])
            self.assertEqual(len(pandas.DataFrame(runs)), 4)
