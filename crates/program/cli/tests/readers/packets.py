"""Reads packet files with ccsdspy and space_packet_parser: packets.py FILE...

Prints one JSON object: by reader, what it finds in each file, in the order given: the bytes of all packets, the digest
of them one after the other, and by APID the sequence count and the length in bytes of each packet.
"""

import hashlib
import json
import pathlib
import sys
from collections import defaultdict

from ccsdspy.utils import iter_packet_bytes, read_primary_headers
from space_packet_parser.generators import ccsds_generator

# Primary header, and the one that the length field leaves out (CCSDS 133.0-B-2 4.1.3.5.3).
BEYOND_LENGTH_FIELD = 7


def found(packets):
    """Of (APID, sequence count, length field, bytes) of each packet."""
    digest, size, apids = hashlib.sha256(), 0, defaultdict(list)
    for apid, count, length, data in packets:
        digest.update(data)
        size += len(data)
        apids[int(apid)].append((int(count), int(length) + BEYOND_LENGTH_FIELD))
    return {"bytes": size, "sha256": digest.hexdigest(), "apids": apids}


def by_ccsdspy(path):
    headers = read_primary_headers(str(path))
    fields = [headers[f"CCSDS_{name}"] for name in ("APID", "SEQUENCE_COUNT", "PACKET_LENGTH")]
    return found(zip(*fields, iter_packet_bytes(str(path)), strict=True))


def by_space_packet_parser(path):
    with path.open("rb") as file:
        packets = ccsds_generator(file)
        return found((packet.apid, packet.sequence_count, packet.data_length, packet) for packet in packets)


def main(paths):
    readers = {"ccsdspy": by_ccsdspy, "space_packet_parser": by_space_packet_parser}
    json.dump({name: [read(path) for path in paths] for name, read in readers.items()}, sys.stdout)


if __name__ == "__main__":
    main([pathlib.Path(argument) for argument in sys.argv[1:]])
