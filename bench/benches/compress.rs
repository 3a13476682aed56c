//! What packing the blocks of a station costs, and what it saves: real downlinks of three missions,
//! in blocks of 192 KiB.
//!
//! Throughput counts bytes of channel access data units, as they came from the spacecraft.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use skyhaul_ccsds::capture::{Capture, CaptureEvent, CaptureOptions};
use skyhaul_ccsds::mission::{Mission, MissionSet};
use skyhaul_records::RecordWriter;
use skyhaul_records::pack::{Effort, Packer, unpack};
use skyhaul_units::Utc;
use std::ops::Range;

const CAPTURES: [&str; 3] =
    ["npp.20241206T173815.dat", "metopb.20241206T152751.dat", "aqua.20241206T175646.dat"];

/// Bytes of records in a block of a station.
const BLOCK: usize = 192 << 10;

/// A downlink as a station has it in blocks.
struct Blocks {
    mission: Mission,
    blocks: Vec<(Vec<u8>, Vec<Range<usize>>)>,
    raw: usize,
}

impl Blocks {
    fn of(name: &str) -> Self {
        let path = format!("{}/../testdata/cadu/{name}", env!("CARGO_MANIFEST_DIR"));
        let mut capture = Capture::new(MissionSet::built_in(), CaptureOptions::default());
        capture.push(Utc::from_micros(0), &std::fs::read(path).expect("a capture"));
        capture.finish();
        let (mut mission, mut writer, mut raw) = (None, RecordWriter::new(), 0);
        let mut blocks = vec![(Vec::new(), Vec::new())];
        while let Some(event) = capture.poll() {
            match event {
                CaptureEvent::Identified(found) => mission = Some(found.mission.clone()),
                CaptureEvent::Frame(frame) => {
                    let (records, frames): &mut (Vec<u8>, Vec<Range<usize>>) =
                        blocks.last_mut().expect("a block");
                    writer.write_frame(&frame, records);
                    frames.push(records.len() - frame.bytes.len()..records.len());
                    raw += mission.as_ref().map_or(0, Mission::cadu_len);
                    if records.len() >= BLOCK {
                        blocks.push((Vec::new(), Vec::new()));
                        writer.restart();
                    }
                }
                _ => {}
            }
        }
        Self { mission: mission.expect("a known mission"), blocks, raw }
    }

    fn pack(&self, packer: &mut Packer, effort: Effort) -> Vec<Vec<u8>> {
        let pack = |(records, frames): &(Vec<u8>, Vec<Range<usize>>)| {
            packer
                .pack(records, frames, self.mission.frame(), effort)
                .unwrap_or_else(|| records.clone())
        };
        self.blocks.iter().map(pack).collect()
    }
}

fn compress(c: &mut Criterion) {
    let mut packer = Packer::new();
    for name in CAPTURES {
        let blocks = Blocks::of(name);
        let mut group = c.benchmark_group(format!("compress {}", blocks.mission.name()));
        group.throughput(Throughput::Bytes(blocks.raw as u64));
        for effort in [Effort::Fast, Effort::Normal, Effort::Thorough] {
            let packed = blocks.pack(&mut packer, effort);
            let len: usize = packed.iter().map(Vec::len).sum();
            println!(
                "{effort:?}: {:.1} % of the bytes saved",
                100.0 - 100.0 * len as f64 / blocks.raw as f64
            );
            group.bench_function(BenchmarkId::new("pack", format!("{effort:?}")), |b| {
                b.iter(|| blocks.pack(&mut packer, effort));
            });
            group.bench_function(BenchmarkId::new("unpack", format!("{effort:?}")), |b| {
                b.iter(|| packed.iter().map(|packed| unpack(packed, 1 << 20)).collect::<Vec<_>>());
            });
        }
        group.finish();
    }
}

criterion_group!(benches, compress);
criterion_main!(benches);
