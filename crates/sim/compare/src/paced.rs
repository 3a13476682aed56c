//! Blocks at a constant rate over a kernel connection, and the delay of the latest.

use crate::gone::Gone;
use crate::stream::{KernelConnection, broken};
use crate::wait::pause;
use skyhaul_net::Clock;
use skyhaul_units::{ByteCount, Duration, Instant, Rate};
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// What an application hands over.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OfferedLoad {
    pub rate: Rate,
    pub block: ByteCount,
    /// For how long.
    pub span: Duration,
    /// How late a block may come, from when it was to be handed over to its last byte at the
    /// receiver.
    pub within: Duration,
    /// What may be missing of the rate, where that is all that counts: of a long requirement the
    /// run is but a piece.
    pub may_lack: Option<f64>,
}

/// How late blocks came.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Lateness {
    /// Of the latest.
    pub most: Duration,
    /// The missing share of the rate in the second half: by how much later blocks came at its end
    /// than at its beginning, relative to the time between. Only if it was measured.
    pub lack: Option<f64>,
}

impl Lateness {
    /// Whether the flow held.
    pub fn is_within(&self, flow: &OfferedLoad) -> bool {
        let is_lasting = self.lack.zip(flow.may_lack).is_some_and(|(lack, most)| lack <= most);
        self.most <= flow.within || is_lasting
    }
}

impl OfferedLoad {
    /// How many blocks that makes.
    pub fn blocks(&self) -> u64 {
        (self.rate * self.span).as_u64() / self.block.as_u64().max(1)
    }

    /// When a run has failed before its end. What counts only in the long run may begin late:
    /// kernel TCP takes seconds to find its rate under loss.
    fn hopeless(&self) -> Duration {
        if self.may_lack.is_some() { self.span.scaled(3, 5).max(self.within) } else { self.within }
    }

    /// When a block is handed over, from the beginning on: also then if the connection takes no
    /// more.
    fn due(&self, block: u64) -> Duration {
        self.rate.time_for(ByteCount::new(self.block.as_u64().saturating_mul(block)))
    }
}

/// The time since a run began, for both of its threads.
#[derive(Debug, Clone, Copy)]
struct Stopwatch {
    clock: Clock,
    start: Instant,
}

impl Stopwatch {
    fn start() -> Self {
        let clock = Clock::start();
        Self { clock, start: clock.now() }
    }

    fn elapsed(self) -> Duration {
        self.clock.now().since(self.start)
    }
}

/// Sends `flow`. It ends early with a block that is so late that nothing can make up for it.
pub fn lateness(
    connection: &KernelConnection,
    flow: OfferedLoad,
    stop: &AtomicBool,
) -> Result<Lateness, Gone> {
    let (stopwatch, done) = (Stopwatch::start(), AtomicBool::new(false));
    let found = std::thread::scope(|scope| {
        scope.spawn(|| hand_over(connection, flow, stopwatch, &done));
        let found = watch(connection, flow, stopwatch, stop);
        done.store(true, Ordering::Relaxed);
        found
    });
    match stop.load(Ordering::Relaxed) {
        true => Err(Gone::Interrupted),
        false => found.map_err(broken),
    }
}

fn hand_over(
    connection: &KernelConnection,
    flow: OfferedLoad,
    stopwatch: Stopwatch,
    done: &AtomicBool,
) {
    let bytes = vec![0x5a; flow.block.as_usize()];
    for block in 0..flow.blocks() {
        pause(flow.due(block).saturating_sub(stopwatch.elapsed()));
        let mut rest = &bytes[..];
        while !rest.is_empty() && !done.load(Ordering::Relaxed) {
            // A full buffer is not an error; the receiver reports a broken connection.
            let taken = (&connection.sender).write(rest).unwrap_or(0);
            rest = &rest[taken..];
        }
    }
}

fn watch(
    connection: &KernelConnection,
    flow: OfferedLoad,
    stopwatch: Stopwatch,
    stop: &AtomicBool,
) -> io::Result<Lateness> {
    let (mut room, mut bytes, mut course) =
        (vec![0; 1 << 18], ByteCount::ZERO, LatenessWatch::default());
    loop {
        // The oldest block that has not arrived.
        let block = bytes.as_u64() / flow.block.as_u64().max(1);
        let late = |now: Duration| now.saturating_sub(flow.due(block));
        let now = stopwatch.elapsed();
        let is_over = course.see(&flow, now, late(now));
        if is_over || block >= flow.blocks() || stop.load(Ordering::Relaxed) {
            return Ok(course.lateness(&flow));
        }
        match (&connection.receiver).read(&mut room) {
            Ok(0) => return Err(io::ErrorKind::ConnectionReset.into()),
            Ok(length) => {
                bytes += ByteCount::of(length);
                // The block arrived at this moment at the earliest.
                course.most = course.most.max(late(stopwatch.elapsed()));
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}

/// How late the oldest missing block was, in the course of a run.
#[derive(Debug, Default)]
struct LatenessWatch {
    most: Duration,
    /// When half of the run was over, and the last look: the time from the beginning on, and the
    /// lateness then.
    half: Option<(Duration, Duration)>,
    last: (Duration, Duration),
}

impl LatenessWatch {
    /// Whether the run is decided.
    fn see(&mut self, flow: &OfferedLoad, now: Duration, late: Duration) -> bool {
        self.most = self.most.max(late);
        self.last = (now, late);
        if self.half.is_none() && now >= flow.span.scaled(1, 2) {
            self.half = Some((now, late));
        }
        late > flow.hopeless() || (flow.may_lack.is_some() && now >= flow.span)
    }

    fn lateness(&self, flow: &OfferedLoad) -> Lateness {
        let ((now, late), end) = (self.last, flow.span.scaled(1, 2));
        let lack = self.half.filter(|(then, _)| now > *then).map(|(then, before)| {
            (late.as_secs_f64() - before.as_secs_f64()) / now.saturating_sub(then).as_secs_f64()
        });
        // A run that is given up in its first half lacks everything.
        let lack = lack.or((now < end && late > flow.hopeless()).then_some(1.0));
        Lateness { most: self.most, lack: lack.filter(|_| flow.may_lack.is_some()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn flow(may_lack: Option<f64>) -> OfferedLoad {
        let (rate, block) = (Rate::from_mbps(8), ByteCount::new(100_000));
        OfferedLoad {
            rate,
            block,
            span: SECOND.scaled(10, 1),
            within: SECOND.scaled(2, 1),
            may_lack,
        }
    }

    /// The result of a run with the given lateness after each second.
    fn run(flow: &OfferedLoad, late_ms: &[u64]) -> Lateness {
        let mut course = LatenessWatch::default();
        let seen = late_ms.iter().zip(1..).any(|(late, second)| {
            course.see(flow, SECOND.scaled(second, 1), Duration::from_millis(*late))
        });
        assert_eq!(seen, late_ms.len() == 10 || course.most > flow.hopeless());
        course.lateness(flow)
    }

    #[test]
    fn blocks_are_due_at_the_rate() {
        let flow = flow(None);
        assert_eq!((flow.blocks(), flow.due(10)), (100, SECOND));
    }

    #[test]
    fn in_the_long_run_a_late_start_is_forgiven_and_a_lack_of_rate_is_not() {
        let long = flow(Some(0.1));
        let catches_up =
            run(&long, &[1_000, 2_000, 3_000, 3_200, 3_000, 2_500, 2_000, 1_500, 1_000, 500]);
        assert!(catches_up.is_within(&long) && catches_up.most > long.within);
        let falls_behind =
            run(&long, &[300, 600, 900, 1_200, 1_500, 1_800, 2_100, 2_400, 2_700, 3_000]);
        assert!(!falls_behind.is_within(&long), "{falls_behind:?}");
        let nothing_comes = run(&long, &[1_000, 2_000, 3_000, 4_000, 5_000, 6_000, 7_000]);
        assert!(!nothing_comes.is_within(&long), "{nothing_comes:?}");
    }

    #[test]
    fn where_every_block_counts_the_first_late_one_decides() {
        let each = flow(None);
        let late = run(&each, &[100, 200, 2_001]);
        assert!(!late.is_within(&each) && late.lack.is_none());
    }
}
