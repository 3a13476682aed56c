"""Reads USLP frames of variable length with spacepackets: uslp.py FILE TRUNCATED

The frames stand one after the other, truncated ones of TRUNCATED bytes among them, with error control of 16 bits. Prints one JSON
object: the number of frames, and of truncated ones, and by virtual channel the lengths of the frames, the last count, and the
digest of the packets that came whole, put together again by the construction rules.
"""

import hashlib
import json
import pathlib
import sys

from spacepackets.uslp.frame import FrameType, TfdzConstructionRules, TransferFrame, VarFrameProperties
from spacepackets.uslp.frame import UslpProtocolIdentifier

HEADER = 6


def main(path, truncated_len):
    stream = pathlib.Path(path).read_bytes()
    properties = VarFrameProperties(has_insert_zone=False, has_fecf=True, truncated_frame_len=truncated_len)
    channels, truncated, frames = {}, 0, 0
    while stream:
        is_truncated = stream[3] & 1 == 1
        length = truncated_len if is_truncated else int.from_bytes(stream[4:6], "big") + 1
        raw, stream = stream[:length], stream[length:]
        frame = TransferFrame.unpack(raw, FrameType.VARIABLE, properties)
        frames += 1
        channel = channels.setdefault(frame.header.vcid, {"lengths": [], "count": None, "packets": 0, "data": b"", "open": b""})
        channel["lengths"].append(length)
        truncated += is_truncated
        if not is_truncated:
            channel["count"] = int(frame.header.vcf_count)
        if frame.tfdf.uslp_ident != UslpProtocolIdentifier.SPACE_PACKETS_ENCAPSULATION_PACKETS:
            continue
        rule, zone = frame.tfdf.tfdz_contr_rules, bytes(frame.tfdf.tfdz)
        if rule in (TfdzConstructionRules.VpNoSegmentation, TfdzConstructionRules.VpStartingSegment):
            channel["open"] = b""
        channel["open"] += zone
        while len(channel["open"]) >= HEADER:
            size = int.from_bytes(channel["open"][4:6], "big") + 1 + HEADER
            if len(channel["open"]) < size:
                break
            channel["data"] += channel["open"][:size]
            channel["open"] = channel["open"][size:]
            channel["packets"] += 1
    for channel in channels.values():
        del channel["open"]
        channel["packets_sha256"] = hashlib.sha256(channel.pop("data")).hexdigest()
    print(json.dumps({"frames": frames, "truncated": truncated, "vcids": channels}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
