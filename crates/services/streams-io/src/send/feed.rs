//! The thread that reads the source and puts its frames into groups.

use super::{Options, here};
use crate::end::{SourceTotals, StreamContext};
use crate::pace::{Lateness, Pacer};
use crate::queue::Queue;
use crate::source::{Step, StreamSource, Unit};
use skyhaul_streams::wire::{Message, StreamRefusal, StreamRefusalKind};
use skyhaul_streams::{Departure, FrameHead, StreamFormat};
use skyhaul_units::{Duration, Instant};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard};

/// Reads a source to its end.
pub(super) struct Reader<'a> {
    source: StreamSource,
    feed: Feed<'a>,
    /// The first frame, which was read to know what the stream is.
    first: Option<(Option<FrameHead>, Vec<u8>)>,
}

/// Puts the frames of the source into groups.
pub(super) struct Feed<'a> {
    queue: &'a Queue,
    run: &'a StreamContext<'a>,
    departure: Departure,
    pacer: Pacer,
    frames_per_second: Option<u32>,
    tally: Arc<Tally>,
    /// Bytes since the last frame that belong to none.
    astray: u64,
}

/// The totals of the source, shared with the thread that reports the progress.
#[derive(Debug, Default)]
pub(super) struct Tally(Mutex<(SourceTotals, Lateness)>);

impl Tally {
    /// The counts, and how late frames were since it was read the last time.
    pub fn read(&self) -> SourceTotals {
        let mut tally = self.lock();
        let (near, late) = (tally.0, core::mem::take(&mut tally.1));
        with(near, late)
    }

    /// Counts more.
    pub fn change(&self, change: impl FnOnce(&mut SourceTotals)) {
        change(&mut self.lock().0);
    }

    /// The counts of all.
    pub fn total(&self) -> SourceTotals {
        self.lock().0
    }

    fn lock(&self) -> MutexGuard<'_, (SourceTotals, Lateness)> {
        self.0.lock().expect("no holder of this lock panics")
    }
}

const fn with(near: SourceTotals, late: Lateness) -> SourceTotals {
    let count = if late.count == 0 { 1 } else { late.count };
    SourceTotals {
        pacing_mean_us: late.sum.as_micros() / count,
        pacing_max_us: late.most.as_micros(),
        ..near
    }
}

impl<'a> Feed<'a> {
    pub fn new(
        queue: &'a Queue,
        run: &'a StreamContext<'a>,
        options: &Options,
        frames_per_second: Option<u32>,
    ) -> Self {
        let departure = Departure::new(run.clock.now(), options.packing, frames_per_second);
        let (pacer, tally) = (Pacer::new(options.pace), Arc::default());
        Self { queue, run, departure, pacer, frames_per_second, tally, astray: 0 }
    }

    fn take(&mut self, unit: Unit<'_>) -> Result<(), StreamRefusal> {
        match unit {
            Unit::Frame(head, bytes) => self.frame(head.as_ref(), bytes),
            Unit::Skipped(len) => {
                self.tally.lock().0.skipped += len;
                self.astray += len;
                if self.astray > ASTRAY_MAX {
                    let sentence =
                        "the source has no more frames: 16 MiB without one; check the source";
                    return Err(here(StreamRefusalKind::Source, sentence));
                }
            }
            Unit::Missing(count) => self.tally.lock().0.source_missing += count,
            Unit::Reordered => {
                let near = &mut self.tally.lock().0;
                near.source_reordered += 1;
                near.source_missing = near.source_missing.saturating_sub(1);
            }
            Unit::Changed(from, to) => {
                let sentence = format!(
                    "the source's frame size changes to {to} bytes, from {from}; send the rest as \
                    a separate stream"
                );
                return Err(here(StreamRefusalKind::Source, sentence));
            }
        }
        Ok(())
    }

    fn frame(&mut self, head: Option<&FrameHead>, bytes: &[u8]) {
        let mut now = self.run.clock.now();
        let rate = self.frames_per_second.or(self.departure.course().frames_per_second());
        let due = self.pacer.due(now, head, bytes.len(), rate);
        if let Some(due) = due {
            now = self.wait_until(due);
            self.pacer.handed(now, due);
        }
        if let Some(parcel) = self.departure.frame(now, head, bytes) {
            self.queue.push(parcel);
        }
        self.astray = 0;
        let mut tally = self.tally.lock();
        tally.0.frames += 1;
        tally.0.bytes += bytes.len() as u64;
        if let Some(due) = due {
            let late = now.since(due);
            tally.1.sum += late;
            tally.1.count += 1;
            tally.1.most = tally.1.most.max(late);
            tally.0 = with(tally.0, self.pacer.late());
        }
    }

    /// Waits until a frame is due; a group that is due before goes then.
    fn wait_until(&mut self, due: Instant) -> Instant {
        loop {
            let now = self.run.clock.now();
            if now >= due || self.is_to_end() {
                return now;
            }
            self.flush_if_due(now);
            let wait = self
                .run
                .clock
                .until(self.departure.due().map_or(due, |group| group.min(due)))
                .min(LOOK);
            std::thread::park_timeout(wait.to_std());
        }
    }

    fn flush_if_due(&mut self, now: Instant) {
        if self.departure.due().is_some_and(|due| due <= now) {
            self.flush();
        }
    }

    fn flush(&mut self) {
        if let Some(parcel) = self.departure.flush() {
            self.queue.push(parcel);
        }
    }

    fn is_to_end(&self) -> bool {
        self.run.stop.load(Ordering::Relaxed) || self.queue.is_closed()
    }
}

impl<'a> Reader<'a> {
    pub const fn new(source: StreamSource, feed: Feed<'a>) -> Self {
        Self { source, feed, first: None }
    }

    /// Reads up to the first frame, which shows the format.
    pub fn begin(&mut self) -> Result<StreamFormat, StreamRefusal> {
        loop {
            while let Some(unit) = self.source.unit() {
                if let Unit::Frame(head, bytes) = unit {
                    self.first = Some((head, bytes.to_vec()));
                    break;
                }
                self.feed.take(unit)?;
            }
            if let (Some(_), Some(format)) = (&self.first, self.source.format()) {
                return Ok(format);
            }
            if self.feed.is_to_end() {
                return Err(here(
                    StreamRefusalKind::Stopped,
                    "stopped before the source delivered a frame",
                ));
            }
            if self.source.advance(LOOK).map_err(|error| unreadable(&error))? == Step::End {
                let sentence =
                    "the source has no VDIF or Mark 5B frames; check the source, or give --format";
                return Err(here(StreamRefusalKind::Source, sentence));
            }
        }
    }

    /// Reads to the end, or until it is stopped.
    pub fn run(&mut self) -> Result<(), StreamRefusal> {
        let read = self.read();
        self.feed.flush();
        read
    }

    fn read(&mut self) -> Result<(), StreamRefusal> {
        if let Some((head, bytes)) = self.first.take() {
            self.feed.frame(head.as_ref(), &bytes);
        }
        loop {
            while let Some(unit) = self.source.unit() {
                self.feed.take(unit)?;
                if self.feed.is_to_end() {
                    return Ok(());
                }
            }
            if self.feed.is_to_end() {
                return Ok(());
            }
            let now = self.feed.run.clock.now();
            let wait = self.feed.departure.due().map_or(LOOK, |due| due.since(now)).min(LOOK);
            match self.source.advance(wait).map_err(|error| unreadable(&error))? {
                Step::End => return Ok(()),
                Step::Idle => self.feed.flush_if_due(self.feed.run.clock.now()),
                Step::More => {}
            }
        }
    }

    /// The message at the end, where `unsent` frames were dropped.
    pub fn end(&self, unsent: u64) -> Message {
        self.feed.departure.end(unsent)
    }

    /// What the source gives.
    pub fn near(&self) -> Arc<Tally> {
        Arc::clone(&self.feed.tally)
    }
}

pub(super) fn unreadable(error: &std::io::Error) -> StreamRefusal {
    here(
        StreamRefusalKind::Source,
        format!("the source can no longer be read ({error}); check the source"),
    )
}

/// Bytes without a frame after which the source counts as unreadable.
const ASTRAY_MAX: u64 = 16 << 20;
/// Interval of checks whether the stream is stopped.
pub(super) const LOOK: Duration = Duration::from_millis(50);
