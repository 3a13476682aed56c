//! Level-0's sorting: packets per second, on one thread, out of order and with duplicates, memory
//! bounded, the rest on disk.
//!
//! A tenth of them first, none later than the window in memory holds; then all, some of which go
//! through run files. `BENCH_PACKETS` says how many (10 million; they take 2.5 GB of disk in
//! `BENCH_DIR`, by default where the system keeps temporary files; 100 million take 25 GB). Making
//! the packets is not timed. What the system takes to write is told apart: on virtual machines most
//! of it is memory that the host gives for the first time. The product is checked: each packet
//! once, in order.

#![allow(clippy::disallowed_methods, reason = "wall-clock figures, to be read")]

use bytes::BytesMut;
use sha2::{Digest, Sha256};
use skyhaul_ccsds::extract::ExtractedPacket;
use skyhaul_ccsds::id::{Apid, Channel, Scid, Vcid};
use skyhaul_ccsds::mission::Mission;
use skyhaul_ccsds::packet::{Grouping, Packets, SpaceHeader};
use skyhaul_ccsds::time::TimeCode;
use skyhaul_level0::naming::Digit;
use skyhaul_level0::report::Product;
use skyhaul_level0::{ContactClose, ContactInfo, ContactProcessor, Files, Limits};
use skyhaul_units::{Duration, Utc};
use std::cell::Cell;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::Path;
use std::time::Instant;

/// Twenty applications of one product.
const MISSION: &str = r#"name = "bench"
title = "Bench"
scids = [157]

[frame]
kind = "aos"
length = 892

[coding]
randomiser = "ccsds255"

[[time]]
apids = ["800-819"]
code = "cds8"

[[product]]
name = "science"
apids = ["800-819"]
"#;
const APIDS: u64 = 20;
/// Packets made, and then taken, at a time.
const TURN: usize = 1 << 16;
/// Between a packet and the next.
const STEP: Duration = Duration::from_micros(20);
/// Bytes of the shortest packet, and how many lengths there are.
const LENGTHS: (u64, u64) = (60, 81);
/// Of each thousand packets, those that come again soon; and, where some come late, those that come
/// late and those that come again much later.
const SOON_AGAIN: u64 = 50;
const LATE: u64 = 10;
const LATE_AGAIN: u64 = 10;
/// By how many packets: more than the window holds, and fewer.
const LATE_BY: u64 = 1 << 20;
const SOON_BY: u64 = 500;
/// Of each thousand packets that come, those that change places with one up to a thousand packets
/// later.
const SWAPPED: u64 = 100;

/// Files in a folder, and how many bytes were written to them.
struct Folder<'a>(&'a Path, &'a Written);

/// Bytes written to run files, and to all, and what the system took for it.
#[derive(Default)]
struct Written {
    runs: Cell<u64>,
    all: Cell<u64>,
    taken: Cell<std::time::Duration>,
}

/// A file of which the bytes are counted.
struct Counted<'a> {
    file: File,
    is_run: bool,
    written: &'a Written,
}

impl Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let begun = Instant::now();
        let len = self.file.write(bytes)?;
        self.written.taken.update(|taken| taken + begun.elapsed());
        self.written.all.update(|all| all + len as u64);
        self.written.runs.update(|runs| runs + if self.is_run { len as u64 } else { 0 });
        Ok(len)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl<'a> Files for Folder<'a> {
    type Writer = Counted<'a>;
    type Reader = File;

    fn create(&mut self, name: &str) -> io::Result<Counted<'a>> {
        let file = File::create(self.0.join(name))?;
        Ok(Counted { file, is_run: name.contains(".run"), written: self.1 })
    }
    fn open(&mut self, name: &str) -> io::Result<File> {
        File::open(self.0.join(name))
    }
    fn publish(&mut self, _file: Counted<'a>, working: &str, name: &str) -> io::Result<()> {
        std::fs::rename(self.0.join(working), self.0.join(name))
    }
    fn remove(&mut self, name: &str) -> io::Result<()> {
        std::fs::remove_file(self.0.join(name))
    }
}

/// A number that looks random, the same for each `serial`.
fn mixed(serial: u64) -> u64 {
    let mixed = (serial ^ serial >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ mixed >> 31
}

/// The packet of a serial number.
fn write(serial: u64, bytes: &mut BytesMut) {
    let start = bytes.len();
    let total_len = (LENGTHS.0 + mixed(serial ^ 0xA5A5) % LENGTHS.1) as usize;
    let header = SpaceHeader {
        is_telecommand: false,
        has_secondary: true,
        apid: Apid::new(800 + (serial % APIDS) as u16).expect("it has 11 bits"),
        grouping: Grouping::Standalone,
        count: (serial / APIDS % 16_384) as u16,
        total_len,
    };
    bytes.extend_from_slice(&header.to_bytes());
    bytes.resize(start + total_len, serial as u8);
    assert!(TimeCode::Cds8.write(time(serial), &mut bytes[start + 6..]));
}

fn time(serial: u64) -> Utc {
    Utc::from_day(20_063, Duration::ZERO) + STEP * serial
}

/// The serial numbers in the order of arrival, a turn at a time.
struct Arrivals {
    packets: u64,
    /// Whether some come later than the window holds.
    late: bool,
    next: u64,
    duplicates: u64,
}

impl Arrivals {
    fn turn(&mut self, serials: &mut Vec<u64>) {
        serials.clear();
        while serials.len() < TURN && self.next < self.packets + 2 * LATE_BY {
            let now = self.next;
            self.next += 1;
            let lot = |serial: u64| mixed(serial) % 1_000;
            let mut come = |serial: Option<u64>, lots: std::ops::Range<u64>| {
                let comes =
                    serial.filter(|serial| *serial < self.packets && lots.contains(&lot(*serial)));
                serials.extend(comes);
                u64::from(comes.is_some())
            };
            let (late, again) = if self.late { (LATE, LATE + LATE_AGAIN) } else { (0, 0) };
            come(Some(now), late..1_000);
            come(now.checked_sub(LATE_BY), 0..late);
            self.duplicates += come(now.checked_sub(2 * LATE_BY), late..again);
            self.duplicates += come(now.checked_sub(SOON_BY), again..again + SOON_AGAIN);
        }
        for at in 0..serials.len() {
            let lot = mixed(serials[at] ^ 0x5A5A);
            let other = at + (lot >> 32) as usize % 1_000;
            if lot % 1_000 < SWAPPED && other < serials.len() {
                serials.swap(at, other);
            }
        }
    }
}

/// Packets as an extractor hands them over: those of one frame share its memory.
fn make(serials: &[u64], packets: &mut Vec<ExtractedPacket>) {
    const FRAME: usize = 64 << 10;
    let mut frame = BytesMut::with_capacity(2 * FRAME);
    for serials in serials.chunks(FRAME / 100) {
        serials.iter().for_each(|serial| write(*serial, &mut frame));
        let frame = frame.split().freeze();
        packets.extend(Packets::new(&frame).map(|(header, packet)| ExtractedPacket {
            channel: Channel { scid: Scid::from_bits(157), vcid: Vcid::from_bits(16) },
            map: None,
            received: Utc::from_nanos(0),
            from_corrected: false,
            from_unchecked: false,
            fill: 0,
            length_differs: false,
            header,
            bytes: frame.slice_ref(packet),
        }));
    }
}

/// Time that passed and time that the processor took.
#[derive(Default)]
struct Spent {
    wall: std::time::Duration,
    processor: std::time::Duration,
}

impl Spent {
    fn during<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let (begun, processor) = (Instant::now(), processor());
        let result = work();
        self.wall += begun.elapsed();
        self.processor += self::processor().saturating_sub(processor);
        result
    }
}

/// What this thread took of the processor.
fn processor() -> std::time::Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = text.split_whitespace().next().and_then(|nanos| nanos.parse().ok());
    std::time::Duration::from_nanos(nanos.unwrap_or(0))
}

/// The most memory that the process had, in MiB.
fn peak_memory() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok())
        .map_or(0, |kib| kib >> 10)
}

fn process(arrivals: &mut Arrivals, folder: Folder<'_>, spent: &mut Spent) -> Vec<Product> {
    let mission = Mission::from_toml(MISSION).expect("the mission is fixed");
    let contact = ContactInfo {
        station: "bench".to_owned(),
        contact: "bench-1".to_owned(),
        also_fits: Vec::new(),
        scid: Scid::from_bits(157),
        opened: time(0),
        window: None,
        file: None,
    };
    let mut processor = ContactProcessor::new(&mission, contact, Limits::default(), folder);
    let (mut serials, mut packets) = (Vec::new(), Vec::new());
    loop {
        arrivals.turn(&mut serials);
        if serials.is_empty() {
            break;
        }
        make(&serials, &mut packets);
        let taken: Result<(), _> =
            spent.during(|| packets.drain(..).try_for_each(|packet| processor.packet(packet)));
        taken.expect("the disk has room");
    }
    let end = time(arrivals.packets);
    let close = ContactClose { closed: end, created: end, uniqueness: Digit::default() };
    spent.during(|| processor.finish(close)).expect("the disk has room")
}

/// Asserts that a packet file has each packet once, in order. Returns its bytes.
fn check(file: &Path, packets: u64) -> u64 {
    let mut file = BufReader::with_capacity(1 << 20, File::open(file).expect("it was published"));
    let (mut bytes, mut expected, mut packet) = (0, BytesMut::new(), Vec::new());
    for serial in 0..packets {
        expected.clear();
        write(serial, &mut expected);
        packet.resize(expected.len(), 0);
        file.read_exact(&mut packet).expect("a packet is missing at the end");
        assert_eq!(packet, expected, "packet {serial}");
        bytes += packet.len() as u64;
    }
    assert_eq!(file.read(&mut packet).expect("it can be read"), 0, "more than each packet once");
    bytes
}

/// What a SHA-256 of so many bytes takes by itself: the part of the product's.
fn digest(bytes: u64) -> std::time::Duration {
    let mut spent = Spent::default();
    let piece = vec![0xA5; 128 << 10];
    let mut digest = Sha256::new();
    spent.during(|| (0..bytes / piece.len() as u64).for_each(|_| digest.update(&piece)));
    std::hint::black_box(digest.finalize());
    spent.processor
}

/// Sorts so many packets and says how fast.
#[allow(clippy::print_stdout, reason = "figures are what a bench is for")]
fn run(packets: u64, late: bool, dir: Option<&OsString>) {
    let folder = dir
        .map_or_else(tempfile::tempdir, tempfile::tempdir_in)
        .expect("a folder for working files");
    let mut arrivals = Arrivals { packets, late, next: 0, duplicates: 0 };
    let (mut spent, written) = (Spent::default(), Written::default());
    let products = process(&mut arrivals, Folder(folder.path(), &written), &mut spent);
    let [product] = &products[..] else { panic!("one product, not {}", products.len()) };
    let accounting = &product.sidecar.accounting;
    assert!(accounting.balanced);
    assert_eq!((accounting.delivered, accounting.duplicates), (packets, arrivals.duplicates));
    assert_eq!(accounting.late > 0, late, "the window holds what is only out of order");
    let name = &product.sidecar.product.packet_file.as_ref().expect("a packet file").name;
    let memory = peak_memory();
    let bytes = check(&folder.path().join(name), packets);
    let (wall, processor) = (spent.wall.as_secs_f64(), spent.processor.as_secs_f64());
    let (writing, digest) = (written.taken.get().as_secs_f64(), digest(bytes).as_secs_f64());
    let millions = accounting.received as f64 / 1e6;
    println!(
        "level0, {}: {millions:.1} million packets in, {} duplicates, {} late, {:.2} GB out; {:.2} \
        million/s of \
         processor time for order, duplicates and accounts, {:.2} million/s with file and digest, \
         {:.2} million/s and {:.0} MB/s \
         by the clock ({wall:.2} s, of which writing {writing:.2} s and a SHA-256 of the file \
         {digest:.2} s); {:.2} GB of run files, {:.2} GB written in all; memory {memory} MiB at \
         most",
        if late { "part through run files" } else { "out of order within the window" },
        accounting.duplicates,
        accounting.late,
        bytes as f64 / 1e9,
        millions / (processor - writing - digest),
        millions / processor,
        millions / wall,
        bytes as f64 / 1e6 / wall,
        written.runs.get() as f64 / 1e9,
        written.all.get() as f64 / 1e9,
    );
}

fn main() {
    let packets =
        std::env::var("BENCH_PACKETS").map_or(10_000_000, |n| n.parse().expect("a number"));
    let dir = std::env::var_os("BENCH_DIR");
    run(packets / 10, false, dir.as_ref());
    run(packets, true, dir.as_ref());
}
