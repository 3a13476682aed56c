//! The thread that reads an RTP stream and makes a block of each frame.

use super::Options;
use super::dependencies::FrameRoles;
use super::feed::{LOOK, Tally, unreadable};
use crate::end::StreamContext;
use crate::queue::Queue;
use crate::source::{Step, StreamSource, Unit};
use bytes::Bytes;
use skyhaul_rtp::{RtpCounters, RtpEntrance, RtpRules};
use skyhaul_streams::wire::{Message, StreamRefusal};
use skyhaul_streams::{Departure, FrameGrouping, MediaClock};
use skyhaul_units::Duration;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Reads an RTP stream until it is stopped: it has no end of its own.
pub(super) struct RtpReader<'a> {
    source: StreamSource,
    queue: &'a Queue,
    run: &'a StreamContext<'a>,
    entrance: RtpEntrance,
    clock: MediaClock,
    roles: FrameRoles,
    departure: Departure,
    tally: Arc<Tally>,
    /// Bytes of packets that are not of the stream.
    skipped: u64,
}

impl<'a> RtpReader<'a> {
    pub fn new(
        source: StreamSource,
        rules: RtpRules,
        queue: &'a Queue,
        run: &'a StreamContext<'a>,
        options: &Options,
    ) -> Self {
        let now = run.clock.now();
        Self {
            source,
            queue,
            run,
            entrance: RtpEntrance::new(rules),
            clock: MediaClock::new(now, rules.clock_rate, options.lateness),
            roles: FrameRoles::default(),
            departure: Departure::new(now, FrameGrouping::default(), None),
            tally: Arc::default(),
            skipped: 0,
        }
    }

    /// Reads until it is stopped.
    pub fn run(&mut self) -> Result<(), StreamRefusal> {
        self.leave_old()?;
        while !self.run.stop.load(Ordering::Relaxed) && !self.queue.is_closed() {
            let now = self.run.clock.now();
            let wait = self.entrance.next_timeout().map_or(LOOK, |due| due.since(now));
            let step = self.source.advance(wait.min(LOOK)).map_err(|error| unreadable(&error))?;
            if step == Step::More {
                self.take();
            }
            self.entrance.handle_timeout(self.run.clock.now());
            self.push();
        }
        Ok(())
    }

    /// The message at the end, where `unsent` frames were dropped.
    pub fn end(&self, unsent: u64) -> Message {
        self.departure.end(unsent)
    }

    /// What the source gives.
    pub fn near(&self) -> Arc<Tally> {
        Arc::clone(&self.tally)
    }

    /// Packets that came before the far end was ready are too late.
    fn leave_old(&mut self) -> Result<(), StreamRefusal> {
        // As many as a socket may hold, in case they come as fast as they are read.
        for _ in 0..OLD_MAX {
            let step = self.source.advance(Duration::ZERO).map_err(|error| unreadable(&error))?;
            if step != Step::More {
                break;
            }
            while let Some(unit) = self.source.unit() {
                self.skipped += bytes_of(&unit);
            }
        }
        Ok(())
    }

    fn take(&mut self) {
        let now = self.run.clock.now();
        while let Some(unit) = self.source.unit() {
            let Unit::Frame(_, bytes) = unit else { continue };
            let refused = self.entrance.counters().refused;
            // One that is none is counted.
            let _ = self.entrance.take(now, Bytes::copy_from_slice(bytes));
            if self.entrance.counters().refused > refused {
                self.skipped += bytes.len() as u64;
            }
        }
    }

    fn push(&mut self) {
        let now = self.run.clock.now();
        let (mut frames, mut bytes) = (0, 0);
        while let Some(frame) = self.entrance.poll() {
            let time = self.clock.see(now, frame.time);
            let role = self.roles.next(now, self.departure.frames(), frame.kind);
            frames += 1;
            bytes += frame.packets.iter().map(|packet| packet.bytes().len() as u64).sum::<u64>();
            self.queue.push(self.departure.single(time, role, &frame.encode()));
        }
        let RtpCounters { missing, late, restarts, .. } = self.entrance.counters();
        let skipped = self.skipped;
        self.tally.change(|near| {
            near.frames += frames;
            near.bytes += bytes;
            (near.source_missing, near.source_reordered, near.skipped) = (missing, late, skipped);
            near.source_restarts = restarts;
        });
    }
}

fn bytes_of(unit: &Unit<'_>) -> u64 {
    match unit {
        Unit::Frame(_, bytes) => bytes.len() as u64,
        _ => 0,
    }
}

/// Reads of old packets, at most: of 64 packets each, so 32 MiB of packets of 1,300 bytes.
const OLD_MAX: usize = 400;
