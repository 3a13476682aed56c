//! What each datagram costs: its coding, and its way through the link model.

use bytes::Bytes;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use skyhaul_link::{Link, LinkConfig, Loss};
use skyhaul_transport::wire::{Datagram, SymbolHeader};
use skyhaul_units::{ByteCount, Duration, FlowId, Instant, Probability, Rate};
use std::hint::black_box;

fn datagrams(c: &mut Criterion) {
    let header = SymbolHeader {
        flow: FlowId(3),
        seq_low: 77,
        offset: 1430,
        fin: false,
        repeated: false,
        head: None,
    };
    let slice = vec![0x5a; 1430];
    let encoded: Bytes = header.encode(&slice);
    let mut group = c.benchmark_group("symbol of 1430 bytes");
    group.throughput(Throughput::Bytes(slice.len() as u64));
    group.bench_function("encode", |b| b.iter(|| header.encode(black_box(&slice))));
    group.bench_function("decode", |b| b.iter(|| Datagram::decode(black_box(&encoded))));
    group.finish();
}

fn link(c: &mut Criterion) {
    let mut config = LinkConfig::line(Rate::from_mbps(300), Duration::from_millis(80));
    config.loss = Loss::Independent(Probability::of(1, 100));
    let size = ByteCount::new(1500);
    let mut group = c.benchmark_group("link of 300 Mbit/s, 80 ms, 1 % loss");
    group.throughput(Throughput::Elements(1));
    group.bench_function("one packet", |b| {
        let mut link = Link::new(config.clone(), 1);
        let mut now = Instant::ZERO;
        b.iter(|| {
            now += Duration::from_micros(40);
            link.send(now, size, ());
            while link.poll(now).is_some() {}
        });
    });
    group.finish();
}

criterion_group!(benches, datagrams, link);
criterion_main!(benches);
