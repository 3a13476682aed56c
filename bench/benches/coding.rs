//! What channel coding costs, by set of instructions: derandomising, checking, correcting and
//! encoding Reed-Solomon blocks of E = 16 in the dual basis, at the interleave depths of near-Earth
//! downlinks.
//!
//! Throughput counts bytes of channel access data units, markers and check symbols included. The
//! blocks stay in the processor's cache.

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use skyhaul_bench::draw;
use skyhaul_coding::gf::Kernel;
use skyhaul_coding::{
    Basis, BatchDecoder, BatchEncoder, Correction, Decoded, Parameters, Randomiser, ReedSolomon,
    Sequence,
};

/// Units that are worked on at a time: half a megabyte.
const UNITS: usize = 512;

/// Bytes before each block.
const MARKER: usize = 4;

/// A downlink in memory.
struct Downlink {
    code: ReedSolomon,
    sequence: Sequence,
    stride: usize,
    /// Units with no wrong symbol, not randomised.
    clean: Vec<u8>,
    /// The same with 1 to 16 wrong symbols in every codeword.
    damaged: Vec<u8>,
}

impl Downlink {
    fn new(interleave: usize) -> Self {
        let parameters = Parameters {
            correction: Correction::E16,
            basis: Basis::Dual,
            interleave,
            virtual_fill: 0,
        };
        let code = ReedSolomon::new(parameters).expect("a depth of the standard");
        let stride = MARKER + code.block_len();
        let mut draw = draw();
        let mut clean: Vec<u8> = (0..UNITS * stride).map(|_| draw(256) as u8).collect();
        BatchEncoder::new(&code).encode(&mut clean[MARKER..], stride);
        let mut damaged = clean.clone();
        for unit in damaged.chunks_exact_mut(stride) {
            for codeword in 0..interleave {
                let mut places: Vec<usize> = (0..255).collect();
                for _ in 0..=draw(16) {
                    let place = places.swap_remove(draw(places.len()));
                    unit[MARKER + place * interleave + codeword] ^= 1 + draw(255) as u8;
                }
            }
        }
        let sequence = Randomiser::Ccsds255.sequence(code.block_len());
        Self { code, sequence, stride, clean, damaged }
    }

    fn randomised(&self) -> Vec<u8> {
        let mut units = self.clean.clone();
        self.derandomise(&mut units, Kernel::best());
        units
    }

    fn derandomise(&self, units: &mut [u8], kernel: Kernel) {
        for unit in units.chunks_exact_mut(self.stride) {
            self.sequence.apply_with(kernel, 0, &mut unit[MARKER..]);
        }
    }
}

fn coding(c: &mut Criterion) {
    for interleave in [4, 5] {
        let downlink = Downlink::new(interleave);
        let Downlink { code, stride, .. } = &downlink;
        let mut group = c.benchmark_group(format!("coding, I = {interleave}"));
        group.throughput(Throughput::Bytes(downlink.clean.len() as u64));
        for kernel in Kernel::available() {
            let id = |what| BenchmarkId::new(what, kernel.name());
            let mut decoder = BatchDecoder::with_kernel(code, kernel);
            let mut encoder = BatchEncoder::with_kernel(code, kernel);
            let mut units = downlink.clean.clone();
            group.bench_function(id("derandomise"), |b| {
                b.iter(|| downlink.derandomise(&mut units, kernel))
            });
            units.copy_from_slice(&downlink.clean);
            group.bench_function(id("check clean"), |b| {
                b.iter(|| {
                    let decoded = decoder.decode(&mut units[MARKER..], *stride);
                    assert!(decoded.iter().all(Decoded::is_clean));
                });
            });
            let randomised = downlink.randomised();
            group.bench_function(id("derandomise and check clean"), |b| {
                let receive = |units: &mut Vec<u8>| {
                    let decoded =
                        decoder.receive(&mut units[MARKER..], *stride, Some(&downlink.sequence));
                    assert!(decoded.iter().all(Decoded::is_clean));
                };
                b.iter_batched_ref(|| randomised.clone(), receive, BatchSize::LargeInput);
            });
            group.bench_function(id("correct 1-16 errors in every codeword"), |b| {
                let correct = |units: &mut Vec<u8>| {
                    let decoded = decoder.decode(&mut units[MARKER..], *stride);
                    assert!(decoded.iter().all(Decoded::is_good));
                };
                b.iter_batched_ref(|| downlink.damaged.clone(), correct, BatchSize::LargeInput);
            });
            group.bench_function(id("encode"), |b| {
                b.iter(|| encoder.encode(&mut units[MARKER..], *stride))
            });
        }
        group.finish();
    }
}

fn single(c: &mut Criterion) {
    let downlink = Downlink::new(4);
    let code = &downlink.code;
    let block = |units: &[u8]| units[MARKER..downlink.stride].to_vec();
    let (mut clean, damaged) = (block(&downlink.clean), block(&downlink.damaged));
    let mut group = c.benchmark_group("one block, I = 4");
    group.throughput(Throughput::Bytes(downlink.stride as u64));
    group.bench_function("check a clean one", |b| b.iter(|| code.is_clean(&clean)));
    group.bench_function("correct 1-16 errors in every codeword", |b| {
        b.iter_batched_ref(|| damaged.clone(), |block| code.decode(block), BatchSize::SmallInput);
    });
    group.bench_function("encode", |b| {
        let (data, check) = clean.split_at_mut(code.data_len());
        b.iter(|| code.encode(data, check));
    });
    group.finish();
}

criterion_group!(benches, coding, single);
criterion_main!(benches);
