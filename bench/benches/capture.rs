//! What each byte of a downlink costs after decoding: packets, contact records.

use bytes::Bytes;
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use skyhaul_ccsds::extract::Extractor;
use skyhaul_ccsds::mission::MissionSet;
use skyhaul_ccsds::quality::{BitPosition, CapturedFrame, Quality};
use skyhaul_records::RecordWriter;
use skyhaul_units::Utc;
use std::hint::black_box;

fn frames(c: &mut Criterion) {
    let missions = MissionSet::built_in();
    let mission = missions.by_name("suomi-npp").expect("the program holds it");
    let frames: Vec<CapturedFrame> =
        FRAMES.chunks_exact(mission.frame().length).map(captured).collect();
    let mut group = c.benchmark_group("three frames of 892 bytes");
    group.throughput(Throughput::Bytes(FRAMES.len() as u64));
    group.bench_function("take the packets out", |b| {
        b.iter_batched_ref(
            || Extractor::new(mission.clone()),
            |extractor| {
                for frame in &frames {
                    extractor
                        .push(frame, |packet| drop(black_box(packet)))
                        .expect("frames of the mission");
                }
            },
            BatchSize::SmallInput,
        );
    });
    group.bench_function("write contact records", |b| {
        let mut out = Vec::with_capacity(FRAMES.len() * 2);
        b.iter(|| {
            out.clear();
            let mut writer = RecordWriter::new();
            frames.iter().for_each(|frame| writer.write_frame(frame, &mut out));
            black_box(out.len())
        });
    });
    group.finish();
}

fn captured(frame: &[u8]) -> CapturedFrame {
    CapturedFrame {
        received: Utc::from_micros(0),
        position: BitPosition::from_bits(0),
        quality: Quality::NOT_CHECKED,
        set_aside: None,
        bytes: Bytes::copy_from_slice(frame),
        check_symbols: Bytes::new(),
    }
}

/// Three frames of a real pass, after decoding.
const FRAMES: &[u8] = include_bytes!("../../fuzz/corpus/frames/suomi-npp");

criterion_group!(benches, frames);
criterion_main!(benches);
