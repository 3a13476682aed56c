"""Reads Level-0 products with ccsdspy and libera_utils: read.py FOLDER

Prints one JSON object: for each construction record in the folder its figures as libera_utils reads them, and the
packets of the packet file beside it as ccsdspy counts them.
"""

import json
import pathlib
import sys
from collections import Counter

from ccsdspy.utils import read_primary_headers
from libera_utils.io.pds import ConstructionRecord


def iso(time):
    return time.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def apid(entry):
    return {
        "scid": entry.scid,
        "apid": entry.apid,
        "vcids": [vcid.vcid for vcid in entry.vcids_list],
        "first_offset": entry.apid_byte_offset,
        "packets": entry.count_in_the_data_set,
        "bytes": entry.apid_size_octets,
        "corrected_packets": entry.vcdu_error_packet_count,
        "first": iso(entry.first_packet_utc_time),
        "last": iso(entry.last_packet_utc_time),
        "gaps": [
            {
                "first_missing": gap.apid_gap_first_missing_ssc_packet,
                "missed": gap.apid_num_ssc_packets_missed,
                "offset": gap.apid_gap_byte_offset,
                "preceding": iso(gap.apid_preceding_packet_utc),
                "following": iso(gap.apid_following_packet_utc),
            }
            for gap in entry.apid_ssc_gaps_list
        ],
        "fill": [
            [fill.ssc_with_generated_data, fill.filled_byte_offset, fill.index_to_fill_octet]
            for fill in entry.edos_generated_fill_data_list
        ],
        "fill_octets": entry.edos_generated_octet_count,
        "length_discrepancies": [
            discrepancy.ssc_length_discrepancy for discrepancy in entry.ssc_length_discrepancy_list
        ],
    }


def record(path):
    read = ConstructionRecord.from_file(path)
    return {
        "id": read.cr_id,
        "packets": read.pds_packet_count,
        "bytes": read.pds_size,
        "gaps": read.pds_discontinuities_count,
        "corrected_packets": read.pds_rs_corrected_count,
        "fill_octets": read.pds_num_bytes_fill_data,
        "length_discrepancies": read.pds_packet_length_mismatch_count,
        "first": iso(read.pds_first_packet_utc_time),
        "last": iso(read.pds_last_packet_utc_time),
        "opened": iso(read.scs_start_stop_times_list[0].scs_start_time_utc),
        "closed": iso(read.scs_start_stop_times_list[0].scs_stop_time_utc),
        "files": [file.filename for file in read.pds_files_list],
        "apids": [apid(entry) for entry in read.apid_data_list],
    }


def main(folder):
    products = {}
    for path in sorted(folder.glob("P*00.PDS")):
        packets = path.with_name(path.name[:34] + "01.PDS")
        counts = Counter(int(value) for value in read_primary_headers(str(packets))["CCSDS_APID"])
        products[path.name] = {"record": record(path), "apids": {str(key): count for key, count in counts.items()}}
    json.dump(products, sys.stdout)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
