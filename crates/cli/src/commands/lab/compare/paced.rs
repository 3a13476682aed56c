//! Blocks at a constant rate over a connection of the kernel: how late the latest of them comes.

use super::bench::Gone;
use super::stream::{Connection, broken};
use crate::commands::demo::pause;
use skyhaul_net::Clock;
use skyhaul_units::{Bytes, Duration, Instant, Rate};
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// What an application hands over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flow {
    pub rate: Rate,
    pub block: Bytes,
    /// For how long.
    pub span: Duration,
    /// How late a block may come, from when it was to be handed over to its last byte at the receiver.
    pub within: Duration,
}

impl Flow {
    /// How many blocks that makes.
    pub fn blocks(&self) -> u64 {
        (self.rate * self.span).as_u64() / self.block.as_u64().max(1)
    }

    /// When a block is handed over, from the beginning on: also then if the connection takes no more.
    fn due(&self, block: u64) -> Duration {
        self.rate.time_for(Bytes::new(self.block.as_u64().saturating_mul(block)))
    }
}

/// Sends `flow`. Gives the latency of the block that took longest; at the first that is beyond its time it ends, and that is
/// what it took by then.
pub fn latest(connection: &Connection, flow: Flow, stop: &AtomicBool) -> Result<Duration, Gone> {
    let (clock, done) = (Clock::start(), AtomicBool::new(false));
    let start = clock.now();
    let latest = std::thread::scope(|scope| {
        scope.spawn(|| hand_over(connection, flow, (&clock, start), &done));
        let latest = watch(connection, flow, (&clock, start), stop);
        done.store(true, Ordering::Relaxed);
        latest
    });
    match stop.load(Ordering::Relaxed) {
        true => Err(Gone::Interrupted),
        false => latest.map_err(broken),
    }
}

fn hand_over(connection: &Connection, flow: Flow, (clock, start): (&Clock, Instant), done: &AtomicBool) {
    let bytes = vec![0x5a; flow.block.as_usize()];
    for block in 0..flow.blocks() {
        let due = start + flow.due(block);
        pause(due.since(clock.now()));
        let mut rest = &bytes[..];
        while !rest.is_empty() && !done.load(Ordering::Relaxed) {
            // A full buffer is not the end; a connection that broke is told of by the receiver.
            let taken = (&connection.sender).write(rest).unwrap_or(0);
            rest = &rest[taken..];
        }
    }
}

fn watch(
    connection: &Connection,
    flow: Flow,
    (clock, start): (&Clock, Instant),
    stop: &AtomicBool,
) -> io::Result<Duration> {
    let (mut room, mut bytes, mut latest) = (vec![0; 1 << 18], Bytes::ZERO, Duration::ZERO);
    loop {
        // The oldest block that is not here.
        let block = bytes.as_u64() / flow.block.as_u64().max(1);
        let waited = clock.now().since(start + flow.due(block));
        if block >= flow.blocks() || stop.load(Ordering::Relaxed) {
            return Ok(latest);
        }
        if waited > flow.within {
            return Ok(latest.max(waited));
        }
        match (&connection.receiver).read(&mut room) {
            Ok(0) => return Err(io::ErrorKind::ConnectionReset.into()),
            Ok(length) => {
                let before = bytes.as_u64() / flow.block.as_u64().max(1);
                bytes += Bytes::of(length);
                if bytes.as_u64() / flow.block.as_u64().max(1) > before {
                    latest = latest.max(clock.now().since(start + flow.due(before)));
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}
