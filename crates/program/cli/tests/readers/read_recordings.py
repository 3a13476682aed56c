"""Reads recordings and what a sink has of them: read_recordings.py VDIF SINK LOST MARK5B SINK LOST

Says how many frames there are and which are invalid. All others must hold the same samples, and all the same headers but for the
mark of invalid data.
"""

import sys

import numpy as np
from baseband import mark5b, vdif


def frames_of_vdif(name):
    with vdif.open(name, "rb") as file:
        while True:
            try:
                yield file.read_frame()
            except EOFError:
                return


def frames_of_mark5b(name):
    with mark5b.open(name, "rb", nchan=8, bps=2, kday=56000) as file:
        while True:
            try:
                yield file.read_frame()
            except EOFError:
                return


def fields(header):
    return {key: header[key] for key in header.keys() if key != "invalid_data"}


def compare(name, read, recorded, came):
    recorded, came = list(read(recorded)), list(read(came))
    assert len(recorded) == len(came), (len(recorded), len(came))
    invalid = []
    for number, (one, other) in enumerate(zip(recorded, came)):
        assert fields(one.header) == fields(other.header), number
        if other.valid:
            assert np.array_equal(one.payload.words, other.payload.words), number
        else:
            invalid.append(str(number))
    print(f"{name}: {len(came)} frames, {' '.join(invalid)} invalid")


compare("vdif", frames_of_vdif, *sys.argv[1:3])
compare("mark5b", frames_of_mark5b, *sys.argv[4:6])
