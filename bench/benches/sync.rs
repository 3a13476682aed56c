//! What finding frames in symbols and bits costs, by set of instructions: the search for markers at every bit, bit
//! realignment, and the Viterbi decoder.
//!
//! Throughput counts bytes: of the bit stream for search and realignment, of decoded data for the Viterbi decoder. The
//! search goes through 256 MiB that hold no marker, more than a processor's second cache; realignment is shown there and
//! within it.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use skyhaul_coding::align::{self, Polarity};
use skyhaul_coding::convolutional::{Code, Decoder, Encoder, Rate};
use skyhaul_coding::gf::Kernel;
use skyhaul_coding::marker::{Finder, Marker};
use std::hint::black_box;
use std::time::Duration;

const LARGE: usize = 256 << 20;

/// What lies in the second cache together with its copy.
const SMALL: usize = 512 << 10;

/// Bytes that look random and are the same each time (xorshift64*).
fn noise(len: usize) -> Vec<u8> {
    let mut state = 0x5EEDu64;
    let mut bytes = vec![0; len];
    for chunk in bytes.chunks_mut(8) {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        chunk.copy_from_slice(&state.wrapping_mul(0x2545_F491_4F6C_DD1D).to_be_bytes()[..chunk.len()]);
    }
    bytes
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

fn search(c: &mut Criterion) {
    let marker = Marker::Bits32(0x1ACF_FC1D);
    let bytes = without_markers(noise(LARGE), marker);
    let mut group = c.benchmark_group("marker search");
    group.sample_size(10).warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2));
    for (place, bytes) in [("256 MiB", &bytes[..]), ("512 KiB", &bytes[..SMALL])] {
        group.throughput(Throughput::Bytes(bytes.len() as u64));
        for errors in [0, 1, 3] {
            for kernel in Kernel::available() {
                let finder = Finder::with_kernel(marker, errors, kernel);
                let what = format!("at most {errors} wrong, {place}");
                group.bench_function(BenchmarkId::new(what, kernel.name()), |b| {
                    b.iter(|| assert!(finder.find(black_box(bytes), 0..usize::MAX).is_none()));
                });
            }
        }
    }
    group.finish();
}

fn realign(c: &mut Criterion) {
    let bytes = noise(LARGE);
    let mut out = vec![0; LARGE - 1];
    let mut group = c.benchmark_group("bit realignment");
    group.sample_size(10).warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2));
    for (place, len) in [("256 MiB", LARGE - 1), ("512 KiB", SMALL)] {
        group.throughput(Throughput::Bytes(len as u64));
        for kernel in Kernel::available() {
            group.bench_function(BenchmarkId::new(place, kernel.name()), |b| {
                b.iter(|| {
                    align::copy_with(kernel, black_box(&bytes), 3, Polarity::Inverted, &mut out[..len]);
                    black_box(&mut out);
                });
            });
        }
    }
    group.finish();
}

fn viterbi(c: &mut Criterion) {
    let data = noise(1 << 20);
    let mut group = c.benchmark_group("Viterbi, K = 7, soft");
    group.sample_size(10).warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2));
    group.throughput(Throughput::Bytes(data.len() as u64));
    for rate in [Rate::Half, Rate::SevenEighths] {
        let code = Code::new(rate);
        let mut hiss = noise(4 * data.len() * 8).into_iter();
        let mut symbols = Vec::new();
        // The sum of four evenly distributed bytes: noise of deviation 37, as at 5 dB for rate 1/2.
        Encoder::new(code).encode(&data, |bit| {
            let noise: i32 = hiss.by_ref().take(4).map(i32::from).sum::<i32>() - 510;
            let symbol = if bit { 60 } else { -60 } + noise / 4;
            symbols.push(symbol.clamp(-127, 127) as i8);
        });
        for kernel in Kernel::available() {
            group.bench_function(BenchmarkId::new(format!("{rate:?}"), kernel.name()), |b| {
                let mut out = Vec::with_capacity(data.len());
                b.iter(|| {
                    out.clear();
                    let mut decoder = Decoder::with_kernel(code, kernel);
                    black_box(&symbols).chunks(1 << 18).for_each(|symbols| decoder.push(symbols, &mut out));
                    decoder.finish(&mut out);
                });
            });
        }
    }
    group.finish();
}

criterion_group!(benches, search, realign, viterbi);
criterion_main!(benches);
