//! The capture of a downlink, by set of instructions, beside what it must reach and beside two open
//! decoders, libfec (in C) and fec (in Rust): one table.
//!
//! Gbit/s count the bytes of channel access data units, markers and check symbols included; for the
//! search, of the bit stream; for the Viterbi decoder, of what it decodes to; for packets taken out
//! of frames, of the frames. All candidates of a line take turns, and the fastest turn of each
//! counts: other work of the machine makes a turn slower, never faster.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "wall-clock figures, to be read"
)]

mod fec;
mod libfec;
mod program;
mod recording;
mod symbols;

use libfec::Libfec;
use recording::Downlink;
use skyhaul_ccsds::capture::{Capture, CaptureEvent, CaptureOptions};
use skyhaul_ccsds::extract::Extractor;
use skyhaul_ccsds::identify::InputLayout;
use skyhaul_ccsds::mission::MissionSet;
use skyhaul_ccsds::packet::Header;
use skyhaul_ccsds::quality::CapturedFrame;
use skyhaul_ccsds::sync::RUN_BLOCKS;
use skyhaul_coding::gf::Kernel;
use skyhaul_coding::{BatchDecoder, BatchEncoder, Decoded, ReedSolomon};
use skyhaul_units::Utc;
use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Time for all turns of a candidate.
const PATIENCE: Duration = Duration::from_millis(1_500);
/// Fewest turns of a candidate.
const TURNS: usize = 5;
/// Units that are corrected or encoded in a turn: 4 MiB.
const UNITS: usize = 4_096;
const MARKER: usize = 4;

/// Bytes that were dealt with, and how long that took.
struct Turn(usize, Duration);

impl Turn {
    fn of(bytes: usize, work: impl FnOnce()) -> Self {
        let begun = Instant::now();
        work();
        Self(bytes, begun.elapsed())
    }

    fn gbps(&self) -> f64 {
        8.0 * self.0 as f64 / self.1.as_secs_f64() / 1e9
    }
}

/// A line of the table.
struct Row {
    name: String,
    /// What is to be reached, by the name of the instructions.
    bars: &'static [(&'static str, f64)],
    candidates: Vec<Candidate>,
    /// What libfec does beside it.
    libfec: Option<libfec::Work>,
    /// What fec does beside it.
    fec: Option<Box<dyn FnMut() -> Turn>>,
}

/// Who takes turns.
struct Candidate {
    /// Of the instructions.
    name: &'static str,
    turn: Box<dyn FnMut() -> Turn>,
}

fn main() {
    let mut libfec = Libfec::start();
    if let Err(reason) = &libfec {
        println!("SKIPPED: libfec: {reason}");
    }
    let kernels: Vec<&str> = Kernel::available().map(Kernel::name).collect();
    println!("| Gbit/s | {} | libfec | ÷ libfec | fec | ÷ fec |", kernels.join(" | "));
    println!("|---|{}---|---|---|---|", "---|".repeat(kernels.len()));
    for interleave in [4, 5] {
        let downlink = Downlink::new(interleave);
        [pipeline(&downlink), decode(&downlink), encode(&downlink), packets(&downlink)]
            .into_iter()
            .for_each(|row| measure(row, &kernels, libfec.as_mut().ok(), interleave));
    }
    for row in symbols::rows() {
        measure(row, &kernels, libfec.as_mut().ok(), 1);
    }
    println!();
    match std::env::var("SKYHAUL") {
        Ok(program) => match program::decode(&program, &Downlink::new(4)) {
            Ok(gbps) => {
                println!("`skyhaul decode` of 1 GiB, from start to end: {gbps:.1} Gbit/s (≥ 6)")
            }
            Err(error) => println!("FAILED: `skyhaul decode`: {error}"),
        },
        Err(_) => println!("SKIPPED: `skyhaul decode`: SKYHAUL does not name the program"),
    }
}

/// Lets the candidates take turns and prints the line.
fn measure(mut row: Row, kernels: &[&str], mut libfec: Option<&mut Libfec>, interleave: usize) {
    let mut best = vec![0f64; row.candidates.len()];
    let mut spent = vec![Duration::ZERO; row.candidates.len()];
    let (mut by_libfec, mut by_fec, mut turns) = (0f64, 0f64, 0);
    while turns < TURNS || spent.iter().any(|spent| *spent < PATIENCE) && turns < 100 * TURNS {
        for (index, candidate) in row.candidates.iter_mut().enumerate() {
            if turns < TURNS || spent[index] < PATIENCE {
                let turn = (candidate.turn)();
                spent[index] += turn.1;
                best[index] = best[index].max(turn.gbps());
            }
        }
        if let (Some(work), Some(libfec), true) = (row.libfec, &mut libfec, turns < 10) {
            by_libfec = by_libfec.max(libfec.gbps(work, interleave));
        }
        if let (Some(turn), true) = (&mut row.fec, turns < 10) {
            by_fec = by_fec.max(turn().gbps());
        }
        turns += 1;
    }
    let mut cells = Vec::new();
    for kernel in kernels {
        let found = row.candidates.iter().position(|candidate| candidate.name == *kernel);
        let bar = row.bars.iter().find(|(name, _)| name == kernel);
        cells.push(match (found, bar) {
            (Some(index), Some((_, bar))) => format!("{} (≥ {bar})", figure(best[index])),
            (Some(index), None) => figure(best[index]),
            (None, _) => String::new(),
        });
    }
    let first = best.first().copied().unwrap_or_default();
    for peer in [by_libfec, by_fec] {
        cells.extend(match peer {
            0.0 => [String::new(), String::new()],
            peer => [figure(peer), figure(first / peer)],
        });
    }
    println!("| {} | {} |", row.name, cells.join(" | "));
}

/// With as many places as say something.
fn figure(value: f64) -> String {
    let places = match value {
        100.0.. => 0,
        1.0.. => 1,
        _ => 2,
    };
    format!("{value:.places$}")
}

/// A capture in lock, from channel access data units to packets; as much at a time as it decodes at
/// once.
fn pipeline(downlink: &Downlink) -> Row {
    let candidates = Kernel::available().map(|kernel| {
        let Downlink { mission, stream, packets, .. } = downlink.clone();
        let turn = Box::new(move || {
            let options = CaptureOptions {
                mission: Some(mission.clone()),
                format: Some(InputLayout::Cadus),
                kernel,
                ..CaptureOptions::default()
            };
            let mut capture = Capture::new(MissionSet::built_in(), options);
            let mut extractor = Extractor::new(mission.clone());
            let mut found = 0;
            let turn = Turn::of(stream.len(), || {
                for piece in stream.chunks(RUN_BLOCKS * mission.cadu_len()) {
                    capture.push(Utc::from_micros(0), piece);
                    while let Some(event) = capture.poll() {
                        let CaptureEvent::Frame(frame) = event else { continue };
                        let pushed = extractor.push(&frame, |packet| {
                            found += 1;
                            drop(black_box(packet));
                        });
                        pushed.expect("frames of the mission");
                    }
                }
            });
            assert_eq!(found, packets, "every packet comes out");
            turn
        });
        Candidate { name: kernel.name(), turn }
    });
    Row {
        name: format!("locked pipeline, units to packets, I = {}", downlink.interleave()),
        bars: &[("gfni-avx512", 20.0), ("avx2", 8.0), ("portable", 0.8)],
        candidates: candidates.collect(),
        libfec: Some(libfec::Work::Check),
        fec: Some(fec::check(downlink)),
    }
}

/// Reed-Solomon decoding of blocks with 1 to 16 wrong symbols in every codeword.
fn decode(downlink: &Downlink) -> Row {
    let (code, units, stride) = downlink.units(UNITS);
    let mut damaged = units;
    damage(&code, &mut damaged, stride);
    let candidates = Kernel::available().map(|kernel| {
        let (damaged, mut work) = (damaged.clone(), damaged.clone());
        let mut decoder = BatchDecoder::with_kernel(&code, kernel);
        let turn = Box::new(move || {
            work.copy_from_slice(&damaged);
            Turn::of(work.len(), || {
                let decoded = decoder.decode(&mut work[MARKER..], stride);
                assert!(decoded.iter().all(Decoded::is_good));
            })
        });
        Candidate { name: kernel.name(), turn }
    });
    Row {
        name: format!("RS decode, 1-16 errors in every codeword, I = {}", downlink.interleave()),
        bars: &[("gfni-avx512", 7.0), ("avx2", 1.5), ("portable", 0.25)],
        candidates: candidates.collect(),
        libfec: Some(libfec::Work::Correct),
        fec: Some(fec::correct(downlink)),
    }
}

fn damage(code: &ReedSolomon, units: &mut [u8], stride: usize) {
    let mut draw = skyhaul_bench::draw();
    let interleave = code.parameters().interleave;
    for unit in units.chunks_exact_mut(stride) {
        for codeword in 0..interleave {
            let mut places: Vec<usize> = (0..255).collect();
            for _ in 0..=draw(16) {
                let place = places.swap_remove(draw(places.len()));
                unit[MARKER + place * interleave + codeword] ^= 1 + draw(255) as u8;
            }
        }
    }
}

/// Computing the check symbols.
fn encode(downlink: &Downlink) -> Row {
    let (code, units, stride) = downlink.units(UNITS);
    let candidates = Kernel::available().map(|kernel| {
        let mut work = units.clone();
        let mut encoder = BatchEncoder::with_kernel(&code, kernel);
        let turn =
            Box::new(move || Turn::of(work.len(), || encoder.encode(&mut work[MARKER..], stride)));
        Candidate { name: kernel.name(), turn }
    });
    Row {
        name: format!("RS encode, I = {}", downlink.interleave()),
        bars: &[("gfni-avx512", 25.0), ("avx2", 6.0), ("portable", 0.8)],
        candidates: candidates.collect(),
        libfec: Some(libfec::Work::Encode),
        fec: Some(fec::encode(downlink)),
    }
}

/// Taking packets out of frames and counting them by application: the same whatever the
/// instructions.
fn packets(downlink: &Downlink) -> Row {
    let frames: Vec<CapturedFrame> = downlink.frames();
    let bytes = frames.iter().map(|frame| frame.bytes.len()).sum();
    let mission = downlink.mission.clone();
    let turn = Box::new(move || {
        let mut extractor = Extractor::new(mission.clone());
        let mut applications: BTreeMap<u16, u64> = BTreeMap::new();
        let turn = Turn::of(bytes, || {
            for frame in &frames {
                let pushed = extractor.push(frame, |packet| {
                    if let Header::Space(header) = packet.header {
                        *applications.entry(header.apid.value()).or_default() += 1;
                    }
                });
                pushed.expect("frames of the mission");
            }
        });
        assert!(applications.len() > 1);
        turn
    });
    Row {
        name: format!(
            "packets out of frames, counted by APID (no vector instructions), I = {}",
            downlink.interleave()
        ),
        bars: &[("portable", 20.0)],
        candidates: vec![Candidate { name: "portable", turn }],
        libfec: None,
        fec: None,
    }
}
