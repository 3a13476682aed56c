//! What repair costs: encoding and decoding of groups that lose 5 %, beside a known library for the
//! same field.
//!
//! Throughput counts source bytes. The peer is `reed-solomon-erasure` with its vector code.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use reed_solomon_erasure::galois_8::ReedSolomon;
use skyhaul_coding::erasure::{Recovery, repair};
use skyhaul_coding::gf::Kernel;
use std::hint::black_box;

const SYMBOL: usize = 1_280;

/// Sources, and as many repairs as are lost at 5 %; the last is what a flow with a tight deadline
/// takes.
const GROUPS: &[(usize, usize)] = &[(32, 2), (64, 4), (200, 10), (222, 32)];

fn sources(count: usize) -> Vec<Vec<u8>> {
    (0..count).map(|at| (0..SYMBOL).map(|place| (at * 31 + place * 7) as u8).collect()).collect()
}

fn slices(symbols: &[Vec<u8>]) -> Vec<&[u8]> {
    symbols.iter().map(Vec::as_slice).collect()
}

fn encode(c: &mut Criterion) {
    let mut group = c.benchmark_group("erasure encode");
    for (count, repairs) in GROUPS.iter().copied() {
        let name = format!("{count}+{repairs}");
        let sources = sources(count);
        let slices = slices(&sources);
        group.throughput(Throughput::Bytes((count * SYMBOL) as u64));
        group.bench_function(BenchmarkId::new("ours", &name), |b| {
            b.iter(|| {
                (0..repairs)
                    .map(|index| repair(index as u8, black_box(&slices), SYMBOL))
                    .collect::<Vec<_>>()
            });
        });
        let peer = ReedSolomon::new(count, repairs).expect("a group the peer knows");
        let mut parity = vec![vec![0; SYMBOL]; repairs];
        group.bench_function(BenchmarkId::new("reed-solomon-erasure", &name), |b| {
            b.iter(|| peer.encode_sep(black_box(&slices), &mut parity));
        });
    }
    group.finish();
}

fn decode(c: &mut Criterion) {
    let mut group = c.benchmark_group("erasure decode");
    for (count, repairs) in GROUPS.iter().copied() {
        let name = format!("{count}+{repairs}");
        let lost = count.div_ceil(20).min(repairs);
        let missing: Vec<u8> = (0..lost).map(|at| (at * count / lost) as u8).collect();
        let sources = sources(count);
        let whole = slices(&sources);
        let symbols: Vec<Vec<u8>> =
            (0..lost).map(|index| repair(index as u8, &whole, SYMBOL)).collect();
        let indices: Vec<u8> = (0..lost as u8).collect();
        let arrived: Vec<&[u8]> = (0..count)
            .map(|at| if missing.contains(&(at as u8)) { &[] } else { whole[at] })
            .collect();
        group.throughput(Throughput::Bytes((count * SYMBOL) as u64));
        group.bench_function(BenchmarkId::new("ours", &name), |b| {
            b.iter(|| {
                let recovery =
                    Recovery::new(count, black_box(&missing), &indices).expect("enough symbols");
                recovery.solve(&arrived, &slices(&symbols))
            });
        });
        let peer = ReedSolomon::new(count, repairs).expect("a group the peer knows");
        let mut shards = sources.clone();
        shards.extend(vec![vec![0; SYMBOL]; repairs]);
        peer.encode(&mut shards).expect("equal lengths");
        let shards: Vec<Option<Vec<u8>>> = shards
            .into_iter()
            .enumerate()
            .map(|(at, shard)| (!missing.contains(&(at as u8)) || at >= count).then_some(shard))
            .collect();
        group.bench_function(BenchmarkId::new("reed-solomon-erasure", &name), |b| {
            b.iter_batched(
                || shards.clone(),
                |mut shards| peer.reconstruct_data(&mut shards).map(|()| shards),
                criterion::BatchSize::LargeInput,
            );
        });
    }
    group.finish();
}

fn kernels(c: &mut Criterion) {
    let sources = sources(200);
    let terms: Vec<(u8, &[u8])> =
        sources.iter().enumerate().map(|(at, source)| (at as u8 + 2, &source[..])).collect();
    let mut group = c.benchmark_group("sum of 200 products of 1280 bytes");
    group.throughput(Throughput::Bytes((200 * SYMBOL) as u64));
    for kernel in Kernel::available() {
        let mut sum = vec![0; SYMBOL];
        group.bench_function(kernel.name(), |b| {
            b.iter(|| kernel.accumulate(black_box(&mut sum), &terms))
        });
    }
    group.finish();
}

criterion_group!(benches, encode, decode, kernels);
criterion_main!(benches);
