//! Looking through a packet file, as `skyhaul packets` does: with the sum of every application's
//! packets, beside reading the file alone.
//!
//! Files of 1 GiB in the page cache: of packets of an imager's length, and of short ones, which
//! cost the most.
#![allow(clippy::disallowed_methods, reason = "wall-clock figures, to be read")]

use skyhaul_ccsds::EndOfInput;
use skyhaul_ccsds::id::Apid;
use skyhaul_ccsds::mission::MissionSet;
use skyhaul_ccsds::packet::{Grouping, SpaceHeader};
use skyhaul_ccsds::scan::{LOOK_AHEAD, Scanned, Scanner};
use skyhaul_ccsds::survey::{PacketSurvey, PacketTimes};
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::time::Instant;

const SIZE: usize = 1 << 30;
const READ_SIZE: usize = 1 << 20;
/// The fastest of so many turns counts.
const TURNS: usize = 5;

/// Reads the file to its end in large pieces, with no more than a look at each.
fn read(path: &Path) -> u64 {
    let mut file = File::open(path).expect("the file was written");
    let mut buffer = vec![0; READ_SIZE];
    let mut bytes = 0;
    loop {
        match file.read(&mut buffer).expect("the file can be read") {
            0 => return bytes,
            read => bytes += read as u64,
        }
    }
}

/// Looks through the file; its packets.
fn survey(path: &Path) -> u64 {
    let missions = MissionSet::built_in();
    let mission = missions.by_name("suomi-npp");
    let (mut scanner, mut times, mut survey) =
        (Scanner::default(), PacketTimes::new(mission), PacketSurvey::new(mission));
    let mut file = File::open(path).expect("the file was written");
    let mut buffer = vec![0; READ_SIZE + LOOK_AHEAD];
    let mut held = 0;
    loop {
        let mut end = EndOfInput::Ahead;
        while held < buffer.len() {
            match file.read(&mut buffer[held..]).expect("the file can be read") {
                0 => {
                    end = EndOfInput::Reached;
                    break;
                }
                read => held += read,
            }
        }
        let taken = scanner.scan(&buffer[..held], end, |found| match found {
            Scanned::Packet { header, bytes, .. } => {
                let time = times.next(&header, bytes);
                survey.add(&header, time.own);
            }
            Scanned::Damage(damage) => panic!("{damage:?}"),
        });
        if end == EndOfInput::Reached {
            return survey.totals().packets;
        }
        buffer.copy_within(taken..held, 0);
        held -= taken;
    }
}

fn seconds<T>(work: impl Fn() -> T) -> f64 {
    let turn = |_| {
        let begun = Instant::now();
        std::hint::black_box(work());
        begun.elapsed().as_secs_f64()
    };
    (0..TURNS).map(turn).fold(f64::INFINITY, f64::min)
}

/// Packets of one length, of eight applications, each with the next sequence count over and over.
fn packets(total_len: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    // All counts of eight applications, so that the file has no gap where it begins again.
    for at in 0..8u32 << 14 {
        let header = SpaceHeader {
            is_telecommand: false,
            has_secondary: true,
            apid: Apid::new(800 + (at % 8) as u16).expect("it has 11 bits"),
            grouping: Grouping::Standalone,
            count: (at / 8) as u16,
            total_len,
        };
        bytes.extend_from_slice(&header.to_bytes());
        bytes.resize(bytes.len() + total_len - SpaceHeader::LEN, 0x55);
    }
    bytes
}

#[allow(clippy::print_stdout, reason = "figures are what a bench is for")]
fn main() {
    let folder = tempfile::tempdir().expect("a folder for the file");
    // An imager's packets are 3 KB long on average, those of housekeeping some 70 bytes.
    for len in [3_000, 71] {
        let packets = packets(len);
        let path = folder.path().join("packets");
        let mut file = File::create(&path).expect("the file can be written");
        for _ in 0..SIZE.div_ceil(packets.len()) {
            file.write_all(&packets).expect("the disk has room");
        }
        drop(file);
        let bytes = read(&path);
        let count = survey(&path);
        let (plain, surveyed) = (seconds(|| read(&path)), seconds(|| survey(&path)));
        println!(
            "packets of {len} bytes: {:.2} GB/s, {:.1} million packets/s; reading alone {:.2} \
            GB/s, {:.2} of its time",
            bytes as f64 / surveyed / 1e9,
            count as f64 / surveyed / 1e6,
            bytes as f64 / plain / 1e9,
            surveyed / plain,
        );
        std::fs::remove_file(&path).expect("it was written");
    }
}
