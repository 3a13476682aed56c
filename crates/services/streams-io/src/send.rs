//! The source's end of a stream.

mod dependencies;
mod feed;
mod rtp;

use crate::end::{Look, SourceTotals, StreamContext, StreamFailure, StreamSummary};
use crate::queue::{Queue, WhenFull};
use crate::wait::Waiter;
use crate::{SourcePace, StreamSource};
use dependencies::SentFrames;
use feed::{Feed, Reader, Tally};
use rtp::RtpReader;
use skyhaul::{Block, ClassId, Session};
use skyhaul_streams::wire::{CONTROL, DATA, Hello, Message, StreamRefusal};
use skyhaul_streams::{Counters, FrameGrouping, Parcel, StreamFormat};
use skyhaul_units::{ByteCount, Duration, Instant};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// How a stream is sent.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// How much later than the fastest ones frames may arrive at the sink.
    pub lateness: Duration,
    /// How fast the source is read.
    pub pace: SourcePace,
    /// Frames of a thread in a second, where they are known.
    pub frames_per_second: Option<u32>,
    /// How frames are gathered.
    pub packing: FrameGrouping,
    /// As in a block.
    pub priority: u8,
    /// As in a block.
    pub class: ClassId,
}

impl Options {
    /// The part of the lateness bound that this end uses up itself. With the whole bound, frames
    /// sent after a short pause of this process would leave no time for FEC repair and the line's
    /// jitter, and would all be late until the line has caught up.
    fn own_bound(&self) -> Duration {
        self.lateness.scaled(OWN_PART.0, OWN_PART.1)
    }
}

/// Groups of at most `bytes` bytes; `None` where such groups are not possible.
pub fn groups(bytes: ByteCount) -> Option<FrameGrouping> {
    let bytes =
        usize::try_from(bytes.as_u64()).ok().filter(|bytes| (1..=GROUP_MOST).contains(bytes))?;
    Some(FrameGrouping { bytes, ..FrameGrouping::default() })
}

/// Sends the frames of `source` to `sink` at the far end of `link`, until the source ends or `run`
/// stops it.
///
/// # Errors
/// See [`StreamFailure`]. Where the source failed, the far end has the frames before that.
pub fn send(
    link: &Session,
    source: StreamSource,
    sink: &str,
    options: &Options,
    run: &StreamContext<'_>,
) -> Result<StreamSummary, StreamFailure> {
    let when_full = match options.pace {
        SourcePace::Line => WhenFull::Wait,
        SourcePace::Live | SourcePace::Rate(_) | SourcePace::Frames => WhenFull::DropOldest,
    };
    let queue = Queue::new(when_full);
    let frames_per_second = options.frames_per_second.or(source.own_rate());
    let mut reader = match source.rtp() {
        Some(rules) => AnyReader::Rtp(RtpReader::new(source, rules, &queue, run, options)),
        None => {
            let feed = Feed::new(&queue, run, options, frames_per_second);
            AnyReader::Frames(Reader::new(source, feed))
        }
    };
    let format = reader.begin().map_err(StreamFailure::Here)?;
    let hello =
        Hello { format, lateness: options.lateness, frames_per_second, sink: sink.to_owned() };
    let mut sending = Sending::new(link, options, run);
    sending.greet(hello)?;
    sending.began = run.clock.now();
    std::thread::scope(|scope| {
        let near = reader.near();
        let reading = scope.spawn(|| {
            let read = reader.run();
            queue.close();
            (read, reader)
        });
        let carrying = scope.spawn(|| GroupSender::new(link, options, run).run(&queue));
        let heard = sending.hear(
            &|| {
                let near = near.read();
                SourceTotals { unsent: queue.dropped(), ..near }
            },
            &|| carrying.is_finished() && reading.is_finished(),
        );
        // Ends the threads, whatever ended the stream.
        queue.close();
        let (read, reader) = reading.join().expect("no thread of a stream panics");
        carrying.join().expect("no thread of a stream panics");
        heard?;
        let (counters, map, further) = sending.part(&reader.end(queue.dropped()))?;
        read.map_err(StreamFailure::Here)?;
        let near = SourceTotals { unsent: queue.dropped(), ..reader.near().total() };
        let elapsed = run.clock.now().since(sending.began);
        Ok(StreamSummary { format, elapsed, near: Some(near), counters, map, further })
    })
}

/// Reads a source to its end, into the queue.
enum AnyReader<'a> {
    Frames(Reader<'a>),
    Rtp(RtpReader<'a>),
}

impl AnyReader<'_> {
    fn begin(&mut self) -> Result<StreamFormat, StreamRefusal> {
        match self {
            Self::Frames(reader) => reader.begin(),
            Self::Rtp(_) => Ok(StreamFormat::Rtp),
        }
    }

    fn run(&mut self) -> Result<(), StreamRefusal> {
        match self {
            Self::Frames(reader) => reader.run(),
            Self::Rtp(reader) => reader.run(),
        }
    }

    /// The message at the end, where `unsent` frames were dropped.
    fn end(&self, unsent: u64) -> Message {
        match self {
            Self::Frames(reader) => reader.end(unsent),
            Self::Rtp(reader) => reader.end(unsent),
        }
    }

    /// What the source gives.
    fn near(&self) -> Arc<Tally> {
        match self {
            Self::Frames(reader) => reader.near(),
            Self::Rtp(reader) => reader.near(),
        }
    }
}

/// Hands groups to the session.
struct GroupSender<'a> {
    link: &'a Session,
    options: &'a Options,
    run: &'a StreamContext<'a>,
    waiter: Waiter,
    delay: Delay,
    sent: SentFrames,
}

impl<'a> GroupSender<'a> {
    fn new(link: &'a Session, options: &'a Options, run: &'a StreamContext<'a>) -> Self {
        let delay = Delay { until: Instant::ZERO, one_way: Duration::ZERO, window: u64::MAX };
        let (waiter, sent) = (Waiter::new(run.clock), SentFrames::default());
        Self { link, options, run, waiter, delay, sent }
    }

    /// Hands groups over until there are no more.
    fn run(mut self, queue: &Queue) {
        while !queue.is_over() && self.link.closed().is_none() {
            let now = self.run.clock.now();
            let Some(parcel) = queue.pop(now, self.options.own_bound()) else { continue };
            self.delay.look(self.link, now);
            if self.options.pace == SourcePace::Line {
                self.delay.wait_for_room(self.link, queue);
            }
            let frames = parcel.frames;
            if !self.offer(parcel) {
                queue.unsent(frames);
            }
        }
    }

    /// Hands a group over; `false` where it is too late for it, or a frame is missing without which
    /// it is worth nothing.
    fn offer(&mut self, parcel: Parcel) -> bool {
        let Some(needed) = self.sent.needed_by(parcel.role) else { return false };
        loop {
            let age = if self.options.pace == SourcePace::Line {
                Duration::ZERO
            } else {
                self.run.clock.now().since(parcel.since)
            };
            if age > self.options.own_bound() || self.link.closed().is_some() {
                return false;
            }
            let block = Block { depends_on: needed, ..self.block(&parcel, age) };
            let Some(sent) = self.waiter.within(LOOK, self.link.send(block)) else { continue };
            let Ok(sent) = sent else { return false };
            if let Some(role) = parcel.role.filter(|role| role.is_needed) {
                self.sent.add(role.number, self.waiter.within(LOOK, sent.name()));
            }
            return true;
        }
    }

    fn block(&self, parcel: &Parcel, age: Duration) -> Block {
        let Options { lateness, priority, class, .. } = *self.options;
        // A frame of RTP goes out at the far end when the whole bound is over, not before.
        let bound = parcel.role.map_or(self.options.own_bound(), |_| lateness);
        let is_key = parcel.role.is_some_and(|role| role.is_key);
        let deadline = self.delay.one_way + bound.saturating_sub(age);
        Block {
            priority: priority.saturating_sub(is_key.into()),
            class,
            ..Block::expendable(DATA, deadline.max(LEAST), parcel.bytes.clone())
        }
    }
}

/// The delay and the window of the line.
struct Delay {
    until: Instant,
    one_way: Duration,
    /// Bytes that keep the line busy, for a source that waits for it.
    window: u64,
}

impl Delay {
    fn look(&mut self, link: &Session, now: Instant) {
        if now < self.until {
            return;
        }
        self.until = now + LOOK;
        let paths = link.paths();
        // The estimate of the session, which at first is longer than the delay of the line, since
        // the answer of the handshake takes time. Frames sent meanwhile are in time all the same,
        // and the far end measures by itself which ones are late.
        let least = paths
            .iter()
            .map(|(_, path)| path.estimate.rtt)
            .filter(|rtt| *rtt > Duration::ZERO)
            .min();
        self.one_way = least.unwrap_or(Duration::ZERO) / 2;
        let busy =
            |path: &skyhaul::PathStatus| (path.estimate.rate * (path.estimate.rtt + BUSY)).as_u64();
        self.window = paths.iter().map(|(_, path)| busy(path)).sum::<u64>().max(WINDOW_LEAST);
    }

    /// Waits until the session holds no more than keeps the line busy.
    fn wait_for_room(&self, link: &Session, queue: &Queue) {
        while link.stats().sent.buffer > self.window
            && link.closed().is_none()
            && !queue.is_closed()
        {
            std::thread::park_timeout(MOMENT);
        }
    }
}

struct Sending<'a> {
    link: &'a Session,
    run: &'a StreamContext<'a>,
    waiter: Waiter,
    patience: Duration,
    began: Instant,
    told: Instant,
    counters: Counters,
    format: StreamFormat,
}

impl<'a> Sending<'a> {
    fn new(link: &'a Session, options: &Options, run: &'a StreamContext<'a>) -> Self {
        let (began, waiter) = (run.clock.now(), Waiter::new(run.clock));
        let (counters, format) = (Counters::default(), StreamFormat::Datagrams);
        Self {
            link,
            run,
            waiter,
            patience: PATIENCE + options.lateness,
            began,
            told: began,
            counters,
            format,
        }
    }

    /// Sends the request and waits for the answer.
    fn greet(&mut self, hello: Hello) -> Result<(), StreamFailure> {
        self.format = hello.format;
        self.say(&Message::Hello(hello))?;
        let until = self.run.clock.now() + self.patience;
        while self.run.clock.until(until) > Duration::ZERO && !self.run.stop.load(Ordering::Relaxed)
        {
            match self.message(LOOK)? {
                Some(Message::Welcome) => return Ok(()),
                Some(_) => {
                    return Err(StreamFailure::Malformed(
                        "no answer to the Hello message".to_owned(),
                    ));
                }
                None => {}
            }
        }
        Err(StreamFailure::Lost(
            "no answer from the stream's far end; check that it runs `skyhaul stream serve`, or a \
            centre of this version"
                .to_owned(),
        ))
    }

    /// Receives the far end's accounts and reports the progress each second, until `is_over`.
    fn hear(
        &mut self,
        near: &dyn Fn() -> SourceTotals,
        is_over: &dyn Fn() -> bool,
    ) -> Result<(), StreamFailure> {
        self.told = self.began;
        while !is_over() {
            match self.message(TURN)? {
                Some(Message::Account(counters)) => self.counters = counters,
                Some(_) => {
                    return Err(StreamFailure::Malformed("an unexpected message".to_owned()));
                }
                None => {}
            }
            let now = self.run.clock.now();
            if now.since(self.told) >= EACH {
                self.told = now;
                let (elapsed, near) = (now.since(self.began), Some(near()));
                (self.run.tell)(&Look {
                    format: self.format,
                    elapsed,
                    near,
                    counters: self.counters,
                    slowest: Duration::ZERO,
                });
            }
        }
        Ok(())
    }

    /// Sends the end of the stream, and receives the account.
    fn part(
        &mut self,
        end: &Message,
    ) -> Result<(Counters, Vec<skyhaul_streams::Missing>, u64), StreamFailure> {
        self.say(end)?;
        let mut map = Vec::new();
        let until = self.run.clock.now() + self.patience;
        while self.run.clock.until(until) > Duration::ZERO {
            match self.message(LOOK)? {
                Some(Message::Account(counters)) => self.counters = counters,
                Some(Message::Map(places)) if map.len() < skyhaul_streams::LossMap::MAX => {
                    map.extend(places);
                }
                Some(Message::Finished(counters, further)) => return Ok((counters, map, further)),
                Some(_) => {
                    return Err(StreamFailure::Malformed("an unexpected message".to_owned()));
                }
                None => {}
            }
        }
        Err(StreamFailure::Lost("the final account of the stream is missing".to_owned()))
    }

    /// The next message within `limit`; one that ends the stream is an error.
    fn message(&self, limit: Duration) -> Result<Option<Message>, StreamFailure> {
        let Some(incoming) = self.waiter.within(limit, self.link.recv()) else { return Ok(None) };
        let incoming = incoming.ok_or_else(|| StreamFailure::lost(self.link))?;
        match Message::decode(&incoming.bytes, self.format)? {
            Message::Refused(refusal) => Err(StreamFailure::Refused(refusal)),
            message => Ok(Some(message)),
        }
    }

    fn say(&self, message: &Message) -> Result<(), StreamFailure> {
        let block = Block { priority: 0, ..Block::reliable(CONTROL, message.encode()) };
        match self.waiter.within(self.patience, self.link.send(block)) {
            Some(Ok(sent)) => {
                drop(sent);
                Ok(())
            }
            _ => Err(StreamFailure::lost(self.link)),
        }
    }
}

/// A refusal of this end.
pub(crate) fn here(
    reason: skyhaul_streams::wire::StreamRefusalKind,
    sentence: impl Into<String>,
) -> StreamRefusal {
    StreamRefusal::new(reason, sentence)
}

/// The largest group: half of the largest block.
const GROUP_MOST: usize = 8 << 20;
/// The shortest deadline of a block: one that is handed over at its last moment may still arrive.
const LEAST: Duration = Duration::from_millis(1);
/// The part of the lateness bound that the near end uses.
const OWN_PART: (u64, u64) = (3, 4);
/// The queue that keeps the line busy, beyond a round trip.
const BUSY: Duration = Duration::from_millis(20);
const WINDOW_LEAST: u64 = 1 << 20;
/// Between two looks whether the session has room.
const MOMENT: std::time::Duration = std::time::Duration::from_micros(200);
/// Between two looks whether all has been sent.
const TURN: Duration = Duration::from_millis(20);
/// Between two looks at what changes slowly.
const LOOK: Duration = Duration::from_millis(100);
/// Interval of progress reports.
const EACH: Duration = Duration::from_secs(1);
/// How long the far end is waited for, beyond the lateness bound: several round trips of the
/// longest line.
const PATIENCE: Duration = Duration::from_secs(60);
