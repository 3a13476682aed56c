//! The block service of a node, without a line: 16 programs with blocks of 1 KB at 10,000 blocks a
//! second, and one program with blocks of 256 KiB as fast as they go. Each block goes from a
//! program to the node and from there to another program. Prints the share of a core that the
//! service's thread takes, the rate, and the load of the machine.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark prints its figures")]
#![allow(clippy::disallowed_methods, reason = "a benchmark runs in real time, on threads")]

#[path = "../../crates/services/blocks-io/tests/all/looped.rs"]
#[allow(dead_code, reason = "shared with the tests")]
mod looped;

use looped::{Service, block_on};
use skyhaul_transport::Block;
use skyhaul_units::FlowId;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Programs that send small blocks.
const PROGRAMS: usize = 16;
/// Blocks of all of them in a second.
const RATE: usize = 10_000;
/// How long each part takes.
const SPAN: Duration = Duration::from_secs(5);

fn main() {
    small();
    large();
}

fn small() {
    let service = Service::usual();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let counted: Vec<_> = (0..PROGRAMS)
            .map(|place| {
                let (service, is_over) = (&service, &is_over);
                scope.spawn(move || pair(service, place, is_over))
            })
            .collect();
        let (before, begun) = (thread_seconds("blocks"), Instant::now());
        std::thread::sleep(SPAN);
        let used = thread_seconds("blocks") - before;
        is_over.store(true, Ordering::Relaxed);
        let span = begun.elapsed().as_secs_f64();
        let blocks: usize = counted.into_iter().map(|thread| thread.join().unwrap()).sum();
        println!(
            "blocks of 1 KB from {PROGRAMS} programs: {:.0} blocks/s, {:.1} % of a core in the \
             service; load {}",
            blocks as f64 / span,
            100.0 * used / span,
            load()
        );
    });
}

/// One program that sends at its part of the rate, and one that takes its blocks. Returns how many.
fn pair(service: &Service, place: usize, is_over: &AtomicBool) -> usize {
    let name = format!("sink-{place}");
    let (far, near) = (service.program(&name), service.program("sender"));
    far.listen().unwrap();
    let session = block_on(near.connect("mirror", &name)).unwrap();
    let sink = block_on(far.accept()).unwrap();
    std::thread::scope(|scope| {
        let counting = scope.spawn(move || std::iter::from_fn(|| block_on(sink.recv())).count());
        let begun = Instant::now();
        let mut sent = 0;
        while !is_over.load(Ordering::Relaxed) {
            let due = begun.elapsed().as_secs_f64() * RATE as f64 / PROGRAMS as f64;
            while (sent as f64) < due {
                let block = Block::reliable(FlowId(0), vec![7; 1_000].into());
                drop(block_on(session.send(block)).unwrap());
                sent += 1;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        drop(session);
        counting.join().unwrap()
    })
}

fn large() {
    let service = Service::usual();
    let (far, near) = (service.program("sink"), service.program("sender"));
    far.listen().unwrap();
    let session = block_on(near.connect("mirror", "sink")).unwrap();
    let sink = block_on(far.accept()).unwrap();
    std::thread::scope(|scope| {
        let counting = scope.spawn(move || {
            std::iter::from_fn(|| block_on(sink.recv())).map(|block| block.bytes.len()).sum()
        });
        let bytes: bytes::Bytes = vec![7; 256 << 10].into();
        let (before, begun) = (thread_seconds("blocks"), Instant::now());
        while begun.elapsed() < SPAN {
            drop(block_on(session.send(Block::reliable(FlowId(0), bytes.clone()))).unwrap());
        }
        drop(session);
        let count: usize = counting.join().unwrap();
        let (used, span) = (thread_seconds("blocks") - before, begun.elapsed().as_secs_f64());
        println!(
            "blocks of 256 KiB: {:.2} Gbit/s to the node and on to a program, {:.0} % of a core in \
             the service; load {}",
            count as f64 * 8.0 / span / 1e9,
            100.0 * used / span,
            load()
        );
    });
}

/// Processor time of this process's threads with this name.
fn thread_seconds(name: &str) -> f64 {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let stats =
        tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("stat")).ok());
    let ticks = stats.filter_map(|stat| {
        let (head, rest) = stat.rsplit_once(") ")?;
        let fields: Vec<&str> = rest.split(' ').collect();
        let used: u64 =
            fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
        head.ends_with(&format!("({name}")).then_some(used)
    });
    // The kernel counts in hundredths of a second for programs.
    ticks.sum::<u64>() as f64 / 100.0
}

fn load() -> String {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap();
    load.split(' ').next().unwrap_or_default().to_owned()
}
