"""Reads JPSS Raw Data Record files with h5py: rdr.py FILE...

Prints one JSON list: for each file its attributes, and for each granule what its references lead to, its attributes and
what an own small reader of Common RDRs finds in it.
"""

import hashlib
import json
import struct
import sys

import h5py
import numpy


def attributes(thing):
    found = {}
    for name, value in thing.attrs.items():
        assert isinstance(value, numpy.ndarray) and value.ndim == 2 and value.shape[1] == 1, (name, value)
        values = [v.decode("ascii") if isinstance(v, bytes) else v.item() for v in value[:, 0]]
        found[name] = {"type": value.dtype.str, "values": values}
    return found


def fixed(text):
    return text.split(b"\0")[0].decode("ascii")


def common_rdr(blob):
    satellite, sensor, kind = (fixed(text) for text in struct.unpack(">4s16s16s", blob[:36]))
    apids, first_apid, first_tracker, storage, used = struct.unpack(">5I", blob[36:56])
    start, end = struct.unpack(">2Q", blob[56:72])
    assert first_apid == 72 and first_tracker == 72 + 32 * apids and storage + used == len(blob)
    kinds, received, times, missing = {}, {}, [], 0
    taken = set()
    for place in range(apids):
        entry = blob[first_apid + 32 * place :][:32]
        name, (apid, first, reserved, count) = fixed(entry[:16]), struct.unpack(">4I", entry[16:])
        kinds[name] = {"apid": apid, "reserved": reserved, "received": count}
        packets = []
        for tracker in range(first, first + reserved):
            assert tracker not in taken
            taken.add(tracker)
            time, sequence, size, offset, fill = struct.unpack(">q4i", blob[first_tracker + 24 * tracker :][:24])
            if offset == -1:
                missing += 1
                continue
            packet = blob[storage + offset :][:size]
            head, order, length = struct.unpack(">3H", packet[:6])
            assert (head & 0x7FF, order & 0x3FFF, length + 7, fill) == (apid, sequence, size, 0)
            times.append(time)
            packets.append(packet)
        assert len(packets) == count
        if packets:
            received[apid] = hashlib.sha256(b"".join(packets)).hexdigest()
    assert first_tracker + 24 * len(taken) == storage
    return {
        "satellite": satellite,
        "sensor": sensor,
        "kind": kind,
        "start": start,
        "end": end,
        "kinds": kinds,
        "sha256": received,
        "not_received": missing,
        "first": min(times),
        "last": max(times),
    }


def granule(file, name, place):
    dataset = file[f"Data_Products/{name}/{name}_Gran_{place}"]
    assert dataset.shape == (1,)
    region = dataset[0]
    packets = file[region]
    assert packets.name == f"/All_Data/{name}_All/RawApplicationPackets_{place}"
    assert packets.dtype == numpy.uint8 and packets.ndim == 1
    referred = h5py.h5r.get_region(region, packets.id)
    assert referred.get_select_npoints() == packets.shape[0]
    return {"attributes": attributes(dataset), "common_rdr": common_rdr(packets[()].tobytes())}


def collection(file, name):
    group = file["Data_Products"][name]
    aggregate = group[f"{name}_Aggr"]
    assert file[aggregate[0]].name == f"/All_Data/{name}_All"
    number = len(file[f"All_Data/{name}_All"])
    assert len(group) == number + 1
    return {
        "attributes": attributes(group),
        "aggregate": attributes(aggregate),
        "granules": [granule(file, name, place) for place in range(number)],
    }


def read(path):
    with h5py.File(path, "r") as file:
        assert sorted(file) == ["All_Data", "Data_Products"]
        names = list(file["Data_Products"])
        assert sorted(f"{name}_All" for name in names) == sorted(file["All_Data"])
        return {"attributes": attributes(file), "collections": {name: collection(file, name) for name in names}}


json.dump([read(path) for path in sys.argv[1:]], sys.stdout)
