//! Finding frames in bits and symbols: the search for markers at every bit, bit realignment, and
//! the Viterbi decoder.

use crate::{Candidate, Row, Turn, libfec};
use fec::convolutional;
use skyhaul_coding::align::{self, Polarity};
use skyhaul_coding::convolutional::{Code, ConvolutionalEncoder, Rate, ViterbiDecoder};
use skyhaul_coding::gf::Kernel;
use skyhaul_coding::marker::{Finder, Marker};
use std::hint::black_box;
use std::sync::Arc;

/// What is searched: more than a processor's caches hold.
const STREAM: usize = 256 << 20;
/// What the Viterbi decoder decodes in a turn.
const DECODED: usize = 1 << 20;
/// What it is given at a time.
const PUSH: usize = 1 << 18;

/// All lines about bits and symbols.
pub fn rows() -> Vec<Row> {
    let marker = Marker::Bits32(0x1ACF_FC1D);
    let stream = Arc::new(without_markers(noise(STREAM), marker));
    let mut rows = vec![
        search(&stream, marker, 0, &[("gfni-avx512", 40.0), ("avx2", 15.0), ("portable", 2.0)]),
        search(&stream, marker, 3, &[("gfni-avx512", 5.0), ("avx2", 2.0), ("portable", 0.3)]),
        realign(&stream),
    ];
    rows.extend([Rate::Half, Rate::SevenEighths].map(viterbi));
    rows
}

/// Bytes that look random and are the same each time.
fn noise(len: usize) -> Vec<u8> {
    let mut draw = skyhaul_bench::draw();
    (0..len).map(|_| draw(256) as u8).collect()
}

/// Breaks up what is taken for the marker, so that a search goes through to the end.
fn without_markers(mut bytes: Vec<u8>, marker: Marker) -> Vec<u8> {
    let finder = Finder::new(marker, 3);
    let mut from = 0;
    while let Some(hit) = finder.find(&bytes, from..usize::MAX) {
        bytes[hit.position / 8 + 1..][..2].iter_mut().for_each(|byte| *byte ^= 0x55);
        from = hit.position.saturating_sub(64);
    }
    bytes
}

fn search(
    stream: &Arc<Vec<u8>>,
    marker: Marker,
    errors: u32,
    bars: &'static [(&'static str, f64)],
) -> Row {
    let candidates = Kernel::available().map(|kernel| {
        let (stream, finder) = (stream.clone(), Finder::with_kernel(marker, errors, kernel));
        let turn = Box::new(move || {
            Turn::of(stream.len(), || {
                assert!(finder.find(black_box(&stream), 0..usize::MAX).is_none())
            })
        });
        Candidate { name: kernel.name(), turn }
    });
    let what =
        if errors == 0 { "exact".to_owned() } else { format!("at most {errors} wrong bits") };
    Row {
        name: format!("marker search at every bit, {what}, 256 MiB"),
        bars,
        candidates: candidates.collect(),
        libfec: None,
        fec: None,
    }
}

fn realign(stream: &Arc<Vec<u8>>) -> Row {
    let candidates = Kernel::available().map(|kernel| {
        let (stream, mut out) = (stream.clone(), vec![0; STREAM - 1]);
        let turn = Box::new(move || {
            Turn::of(out.len(), || {
                align::copy_with(kernel, black_box(&stream), 3, Polarity::Inverted, &mut out);
                black_box(&out);
            })
        });
        Candidate { name: kernel.name(), turn }
    });
    let name = "bit realignment, 256 MiB".into();
    Row { name, bars: &[], candidates: candidates.collect(), libfec: None, fec: None }
}

/// Soft symbols with noise of deviation 37 to a size of 60, 5 dB at rate 1/2.
fn viterbi(rate: Rate) -> Row {
    let code = Code::new(rate);
    let data = noise(DECODED);
    let mut draw = skyhaul_bench::draw();
    let mut symbols = Vec::new();
    ConvolutionalEncoder::new(code).encode(&data, |bit| {
        // The sum of four evenly distributed bytes.
        let noise = (0..4).map(|_| draw(256) as i32).sum::<i32>() - 510;
        let symbol = if bit { 60 } else { -60 } + noise / 4;
        symbols.push(symbol.clamp(-127, 127) as i8);
    });
    let symbols = Arc::new(symbols);
    let candidates = Kernel::available().map(|kernel| {
        let (symbols, mut out) = (symbols.clone(), Vec::with_capacity(DECODED));
        let turn = Box::new(move || {
            out.clear();
            Turn::of(DECODED, || {
                let mut decoder = ViterbiDecoder::with_kernel(code, kernel);
                symbols.chunks(PUSH).for_each(|symbols| decoder.push(symbols, &mut out));
                decoder.finish(&mut out);
            })
        });
        Candidate { name: kernel.name(), turn }
    });
    let (name, bars, peer): (_, &[_], _) = match rate {
        Rate::Half => {
            let bars = &[("gfni-avx512", 0.35), ("avx2", 0.15), ("portable", 0.02)];
            ("1/2", bars, Some(libfec::Work::Viterbi))
        }
        _ => ("7/8", &[], None),
    };
    Row {
        name: format!("Viterbi decoder, K = 7, rate {name}, soft"),
        bars,
        candidates: candidates.collect(),
        libfec: peer,
        fec: peer.map(|_| other()),
    }
}

/// The same by fec, of symbols of its own encoder, with the noise of ours.
fn other() -> Box<dyn FnMut() -> Turn> {
    const LENGTH: usize = 2_048;
    const CONNECTIONS: [u16; 2] = [0o155, 0o117];
    let data = noise(LENGTH);
    let mut encoder = convolutional::Encoder::new(2, 7, &CONNECTIONS);
    let bits = convolutional::encoded_len_bits(2, 7, LENGTH);
    let mut sent = vec![0; bits.div_ceil(8)];
    encoder.encode(&data, &mut sent).expect("there is room");
    let mut draw = skyhaul_bench::draw();
    let mut symbol = |bit: usize| {
        let noise = (0..4).map(|_| draw(256) as i32).sum::<i32>() - 510;
        let size = if sent[bit / 8] >> (7 - bit % 8) & 1 == 1 { 60 } else { -60 };
        (128 + size + noise / 4).clamp(0, 255) as u8
    };
    let symbols: Vec<u8> = (0..bits).map(&mut symbol).collect();
    let mut decoder = convolutional::Decoder::new(2, 7, &CONNECTIONS);
    let mut out = vec![0; LENGTH + 8];
    Box::new(move || {
        Turn::of(LENGTH, || {
            decoder
                .decode_soft(black_box(&symbols), &mut out)
                .expect("the length is the encoder's");
        })
    })
}
