//! The sink's end of a stream.

use crate::end::{Look, StreamContext, StreamFailure, StreamSummary};
use crate::sink::{AllowedSinks, Sink, Writer};
use crate::wait::Waiter;
use skyhaul::{Block, Session};
use skyhaul_rtp::RtpFrame;
use skyhaul_streams::wire::{
    CONTROL, FrameGroup, Hello, Message, PLACES_MAX, StreamRefusal, StreamRefusalKind, WireError,
};
use skyhaul_streams::{Counters, StreamFormat, StreamReceiver};
use skyhaul_units::{Duration, Instant};
use std::sync::atomic::Ordering;

/// Receives the stream of the node at the far end of `link` and writes it to an `allowed` sink, to
/// its end. `begun` is called once the sink is known.
///
/// # Errors
/// See [`StreamFailure`].
pub fn serve(
    link: &Session,
    allowed: &AllowedSinks,
    run: &StreamContext<'_>,
    begun: &dyn Fn(&Hello),
) -> Result<StreamSummary, StreamFailure> {
    let waiter = Waiter::new(run.clock);
    let mut serving = Serving { link, run, waiter, told: run.clock.now() };
    let (hello, sink) = match serving.begin(allowed) {
        Err(StreamFailure::Here(refusal)) => return Err(serving.refuse(refusal)),
        other => other?,
    };
    begun(&hello);
    serving.say(&Message::Welcome);
    let writer = Writer::default();
    let taken = std::thread::scope(|scope| {
        let thread = scope.spawn(|| writer.run(sink));
        let taken = serving.take(&hello, &writer);
        if taken.is_ok() {
            writer.close();
        } else {
            writer.abandon();
        }
        let sink = thread.join().expect("no thread of a stream panics");
        // The first failure is reported rather than its consequences.
        match (taken, writer.failure()) {
            (Ok(_), Some(failure)) => Err(sink_failed(&hello, &failure, sink.abandon())),
            (Ok(taken), None) => sink
                .finish()
                .map_err(|error| cannot_write(&hello, &error.to_string()))
                .map(|()| taken),
            (Err(end), _) => Err(sink
                .abandon()
                .map_or_else(|error| cannot_write(&hello, &error.to_string()), |()| end)),
        }
    });
    match taken {
        Ok((began, arrival)) => Ok(serving.finish(&hello, began, arrival)),
        Err(StreamFailure::Here(refusal)) => Err(serving.refuse(refusal)),
        Err(end) => Err(end),
    }
}

struct Serving<'a> {
    link: &'a Session,
    run: &'a StreamContext<'a>,
    waiter: Waiter,
    told: Instant,
}

impl Serving<'_> {
    /// Receives the request, and opens the sink for it.
    fn begin(&self, allowed: &AllowedSinks) -> Result<(Hello, Sink), StreamFailure> {
        let first = loop {
            if let Some(first) = self.waiter.within(LOOK, self.link.recv()) {
                break first.ok_or_else(|| StreamFailure::lost(self.link))?;
            }
            self.go_on()?;
        };
        match Message::decode(&first.bytes, StreamFormat::Datagrams) {
            Ok(Message::Hello(hello)) => {
                let sink = Sink::open(&hello, allowed).map_err(StreamFailure::Here)?;
                Ok((hello, sink))
            }
            Ok(_) => Err(StreamFailure::Malformed("no Hello message".to_owned())),
            Err(WireError::Version(_)) => {
                let sentence = "the far end uses another version of streams; install the same \
                               version at both ends";
                Err(StreamFailure::Here(StreamRefusal::new(StreamRefusalKind::Version, sentence)))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Receives frames until all are handed to the writer.
    fn take(
        &mut self,
        hello: &Hello,
        writer: &Writer,
    ) -> Result<(Instant, StreamReceiver), StreamFailure> {
        let began = self.run.clock.now();
        self.told = began;
        let mut arrival =
            StreamReceiver::new(hello.format, hello.lateness, hello.frames_per_second);
        loop {
            let room = writer.has_room();
            let due = arrival
                .next_timeout()
                .filter(|_| room)
                .map_or(LOOK, |due| self.run.clock.until(due));
            match self.waiter.within(due.min(LOOK), self.link.recv()) {
                Some(Some(incoming)) => {
                    let repaired = incoming.timing.repaired;
                    match Message::decode(&incoming.bytes, hello.format)? {
                        Message::Group(group) => {
                            check_packets(hello, &group)?;
                            let now = self.run.clock.now();
                            match repaired {
                                false => arrival.group(now, group)?,
                                true => arrival.repaired_group(now, group)?,
                            }
                        }
                        Message::End(end) => arrival.end(self.run.clock.now(), &end)?,
                        Message::Refused(refusal) => return Err(StreamFailure::Refused(refusal)),
                        _ => {
                            return Err(StreamFailure::Malformed(
                                "a message that only a sink's end sends".to_owned(),
                            ));
                        }
                    }
                }
                Some(None) => return Err(StreamFailure::lost(self.link)),
                None => {}
            }
            while writer.has_room()
                && let Some(given) = arrival.poll(self.run.clock.now())
            {
                writer.push(given);
            }
            if arrival.is_over() {
                return Ok((began, arrival));
            }
            self.look(hello, writer, began, &mut arrival)?;
        }
    }

    /// Checks whether the stream can continue, and reports the progress each second.
    fn look(
        &mut self,
        hello: &Hello,
        writer: &Writer,
        began: Instant,
        arrival: &mut StreamReceiver,
    ) -> Result<(), StreamFailure> {
        self.go_on()?;
        if let Some(failure) = writer.failure() {
            return Err(cannot_write(hello, &failure));
        }
        let behind = writer.behind(arrival.newest());
        if behind > hello.lateness + SLOW_MAX {
            let sentence = format!(
                "the sink {} is slower than the stream: it was {} s behind",
                hello.sink,
                behind.as_millis() / 1_000
            );
            return Err(StreamFailure::Here(StreamRefusal::new(StreamRefusalKind::Slow, sentence)));
        }
        let now = self.run.clock.now();
        if now.since(self.told) >= EACH {
            self.told = now;
            let counters = *arrival.counters();
            let slowest = arrival.slowest();
            let (elapsed, format) = (now.since(began), hello.format);
            (self.run.tell)(&Look { format, elapsed, near: None, counters, slowest });
            self.say(&Message::Account(counters));
        }
        Ok(())
    }

    fn finish(&self, hello: &Hello, began: Instant, arrival: StreamReceiver) -> StreamSummary {
        let elapsed = self.run.clock.now().since(began);
        let (counters, map) = arrival.into_map();
        let (map, further) = map.finish();
        for places in map.chunks(PLACES_MAX) {
            self.say(&Message::Map(places.to_vec()));
        }
        self.say(&Message::Finished(counters, further));
        self.until_closed();
        StreamSummary { format: hello.format, elapsed, near: None, counters, map, further }
    }

    /// Tells the caller why the stream ends; returns the failure of this end.
    fn refuse(&self, refusal: StreamRefusal) -> StreamFailure {
        self.say(&Message::Refused(refusal.clone()));
        self.until_closed();
        StreamFailure::Here(refusal)
    }

    /// Waits until the caller closes the session, so that the last message is delivered.
    fn until_closed(&self) {
        let until = self.run.clock.now() + PARTING;
        while self.run.clock.until(until) > Duration::ZERO && !self.run.stop.load(Ordering::Relaxed)
        {
            if let Some(None) = self.waiter.within(LOOK, self.link.recv()) {
                return;
            }
        }
    }

    fn go_on(&self) -> Result<(), StreamFailure> {
        if self.run.stop.load(Ordering::Relaxed) {
            let sentence = "the far end was stopped before the stream ended";
            return Err(StreamFailure::Here(StreamRefusal::new(
                StreamRefusalKind::Stopped,
                sentence,
            )));
        }
        Ok(())
    }

    /// A message that cannot be sent is ignored: the session has ended, which is noticed elsewhere.
    fn say(&self, message: &Message) {
        let block = Block { priority: 0, ..Block::reliable(CONTROL, message.encode()) };
        drop(self.waiter.within(PARTING, self.link.send(block)));
    }
}

/// The sink gets whole packets of RTP only.
fn check_packets(hello: &Hello, group: &FrameGroup) -> Result<(), StreamFailure> {
    if hello.format == StreamFormat::Rtp {
        RtpFrame::packets_in(&group.frames)
            .map_err(|error| StreamFailure::Malformed(error.to_string()))?;
    }
    Ok(())
}

fn cannot_write(hello: &Hello, error: &str) -> StreamFailure {
    let sentence = format!("the sink {} cannot be written ({error})", hello.sink);
    StreamFailure::Here(StreamRefusal::new(StreamRefusalKind::Sink, sentence))
}

/// The first failure is the one that is reported.
fn sink_failed(hello: &Hello, failure: &str, _abandoned: std::io::Result<()>) -> StreamFailure {
    cannot_write(hello, failure)
}

impl StreamSummary {
    /// Whether no more frames are missing than `budget` allows.
    pub fn is_within(&self, budget: skyhaul_units::Probability) -> bool {
        let Counters { sent, .. } = self.counters;
        let missing = u128::from(self.counters.missing()) * 1_000_000_000;
        missing <= u128::from(sent) * u128::from(budget.as_ppb())
    }
}

/// How far a sink may lie behind, beyond the lateness bound: long enough for a disk that pauses.
const SLOW_MAX: Duration = Duration::from_secs(10);
/// Interval of checks whether the stream is stopped.
const LOOK: Duration = Duration::from_millis(100);
/// Interval of progress reports.
const EACH: Duration = Duration::from_secs(1);
/// Time-out for a caller that was told the end.
const PARTING: Duration = Duration::from_secs(10);
