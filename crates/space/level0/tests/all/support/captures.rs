//! Real captures to frames, without the capture pipeline: the recordings have no errors and do not
//! slip, so that finding the first marker is enough.

use skyhaul_ccsds::mission::{Mission, MissionSet};
use skyhaul_ccsds::quality::{BitPosition, CapturedFrame, FrameVerdict, Quality};
use skyhaul_coding::Randomiser;
use skyhaul_units::{Duration, Utc};

/// Recordings of one downlink, with the mission's name.
pub const CAPTURES: [(&str, &str); 3] = [
    ("npp.20241206T173815.dat", "suomi-npp"),
    ("aqua.20241206T175646.dat", "aqua"),
    ("metopb.20241206T152751.dat", "metop-b"),
];

pub fn mission(name: &str) -> Mission {
    MissionSet::built_in().by_name(name).unwrap().clone()
}

/// The whole frames of a recording at 15 Mbit/s, derandomised, received from `start` on.
pub fn frames(recording: &[u8], start: Utc) -> Vec<CapturedFrame> {
    let at = |bit: usize| {
        let word: [u8; 5] = recording[bit / 8..][..5].try_into().unwrap();
        (u64::from_be_bytes([0, 0, 0, word[0], word[1], word[2], word[3], word[4]])
            >> (8 - bit % 8)) as u32
    };
    let first =
        (0..8 * CADU).find(|bit| at(*bit) == MARKER && at(bit + 8 * CADU) == MARKER).unwrap();
    let whole = (recording.len() * 8 - first) / (8 * CADU);
    let sequence = Randomiser::Ccsds255.sequence(FRAME);
    (0..whole)
        .map(|cadu| {
            let bit = first + cadu * 8 * CADU;
            assert_eq!(at(bit), MARKER, "the recording slips");
            let body = bit + 32;
            let pair = |byte: usize| {
                u16::from_be_bytes([recording[byte], *recording.get(byte + 1).unwrap_or(&0)])
            };
            let mut bytes: Vec<u8> =
                (0..FRAME).map(|byte| (pair(body / 8 + byte) >> (8 - body % 8)) as u8).collect();
            sequence.apply(0, &mut bytes);
            CapturedFrame {
                received: start + Duration::from_micros(cadu as u64 * 546),
                position: BitPosition::from_bits(bit as u64),
                quality: Quality { verdict: FrameVerdict::Clean, ..Quality::NOT_CHECKED },
                set_aside: None,
                bytes: bytes.into(),
                check_symbols: bytes::Bytes::new(),
            }
        })
        .collect()
}

const MARKER: u32 = 0x1ACF_FC1D;
const CADU: usize = 1_024;
const FRAME: usize = 892;
