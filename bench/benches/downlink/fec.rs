//! What the crate fec takes for the same: an open decoder in Rust. As with libfec, codewords lie
//! one by one in the cache, and interleaving, derandomising and packets are left out.

use crate::recording::Downlink;
use crate::{MARKER, Turn, damage};
use fec::reed_solomon::{Decoder, Encoder};

/// Codewords of a turn.
const WORDS: usize = 400;
const LENGTH: usize = 255;
const DATA: usize = 223;

/// Codewords of the downlink one by one, with 1 to 16 errors each if wanted, and the bytes of units
/// that they stand for.
fn words(downlink: &Downlink, damaged: bool) -> (Vec<u8>, usize) {
    let interleave = downlink.interleave();
    let (code, mut units, stride) = downlink.units(WORDS.div_ceil(interleave));
    if damaged {
        damage(&code, &mut units, stride);
    }
    let mut words = Vec::new();
    for unit in units.chunks_exact(stride) {
        for codeword in 0..interleave {
            words.extend(unit[MARKER + codeword..].iter().step_by(interleave).take(LENGTH));
        }
    }
    (words, units.len())
}

/// Checking codewords without errors.
pub fn check(downlink: &Downlink) -> Box<dyn FnMut() -> Turn> {
    decoding(words(downlink, false))
}

/// Correcting codewords with 1 to 16 errors.
pub fn correct(downlink: &Downlink) -> Box<dyn FnMut() -> Turn> {
    decoding(words(downlink, true))
}

fn decoding((words, bytes): (Vec<u8>, usize)) -> Box<dyn FnMut() -> Turn> {
    let mut decoder = Decoder::new_ccsds();
    let mut message = [0; DATA];
    Box::new(move || {
        Turn::of(bytes, || {
            for word in words.chunks_exact(LENGTH) {
                decoder.decode_ccsds_dual(word, &mut message).expect("it has at most 16 errors");
            }
        })
    })
}

/// Computing check symbols.
pub fn encode(downlink: &Downlink) -> Box<dyn FnMut() -> Turn> {
    let (words, bytes) = words(downlink, false);
    let mut encoder = Encoder::new_ccsds();
    let mut check = [0; LENGTH - DATA];
    Box::new(move || {
        Turn::of(bytes, || {
            for data in words.chunks_exact(LENGTH) {
                encoder
                    .encode_ccsds_dual(&data[..DATA], &mut check)
                    .expect("the lengths are the code's");
            }
        })
    })
}
