//! Streams that the centre gets, each on a thread of its own over a link of the session.

use super::shared::StationShared;
use crate::fault::Fault;
use crate::services;
use crate::status::{StreamState, StreamStatus};
use skyhaul_channels_io::{AppChannel, ChannelService};
use skyhaul_config::StreamEntry;
use skyhaul_net::Clock;
use skyhaul_streams::Counters;
use skyhaul_streams_io::{
    Look, SourceTotals, StreamContext, StreamFailure, StreamSummary, Waiter, send,
};
use skyhaul_units::Duration;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// The streams of a station, under way.
#[derive(Debug)]
pub struct Streams {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    clock: Clock,
}

/// One of them.
#[derive(Debug)]
struct Stream {
    config: StreamEntry,
    /// Its place in the configuration.
    place: usize,
    door: ChannelService,
    shared: Arc<StationShared>,
    clock: Clock,
    stop: Arc<AtomicBool>,
}

/// How a stream did not come to its end.
#[derive(Debug)]
enum Trouble {
    /// The session has ended, or the station does: it begins anew over the next one.
    Lost,
    /// In words.
    Failed(String),
}

/// Between two looks whether the station ends.
const LOOK: Duration = Duration::from_millis(100);
/// Between two streams where the first has ended, or its session was lost.
const PAUSE: Duration = Duration::from_millis(500);
/// What could not be is tried again.
const RETRY: Duration = Duration::from_secs(5);
/// How long streams have to end in order when the station does: their last frames, and the account
/// of the sink.
const PARTING: Duration = Duration::from_secs(5);

impl Streams {
    /// Starts those of the configuration.
    ///
    /// # Errors
    /// There are too many threads.
    pub fn start(
        entries: &[StreamEntry],
        door: &ChannelService,
        (shared, clock): (&Arc<StationShared>, Clock),
    ) -> Result<Self, Fault> {
        shared.board.streams(entries.iter().map(shown).collect());
        let (stop, mut threads) = (Arc::new(AtomicBool::new(false)), Vec::new());
        for (place, config) in entries.iter().enumerate() {
            let stream = Stream {
                config: config.clone(),
                place,
                door: door.clone(),
                shared: Arc::clone(shared),
                clock,
                stop: Arc::clone(&stop),
            };
            threads.push(services::thread("stream", move || stream.run())?);
        }
        Ok(Self { stop, threads, clock })
    }

    /// Ends them in order, as long as the line is there; what is left of them ends with the
    /// session.
    pub fn end(self) -> Vec<JoinHandle<()>> {
        self.stop.store(true, Ordering::Relaxed);
        let until = self.clock.now() + PARTING;
        while self.clock.now() < until && !self.threads.iter().all(JoinHandle::is_finished) {
            std::thread::park_timeout(LOOK.to_std());
        }
        self.threads
    }
}

impl Stream {
    /// Goes on until the station ends; one that is not to begin again, until it was carried once.
    fn run(self) {
        while !self.is_ending() {
            match self.carry() {
                Ok(summary) => {
                    self.ended(&summary);
                    if !self.config.again {
                        return;
                    }
                    self.rest(PAUSE);
                }
                Err(Trouble::Lost) => {
                    self.show(|status| status.state = StreamState::Waiting);
                    self.rest(PAUSE);
                }
                Err(Trouble::Failed(sentence)) => {
                    self.shared.alarms.raise(&self.name(), &sentence);
                    self.show(|status| {
                        (status.state, status.reason) = (StreamState::Failed, Some(sentence));
                    });
                    self.rest(RETRY);
                }
            }
        }
    }

    /// Carries it to its end, from when the line is open.
    fn carry(&self) -> Result<StreamSummary, Trouble> {
        let link = self.link().ok_or(Trouble::Lost)?;
        let options = self.config.options().map_err(Trouble::Failed)?;
        let source = self.config.open().map_err(|error| Trouble::Failed(error.to_string()))?;
        let sink = self.config.to.0.at(self.clock.utc());
        self.show(|status| (status.state, status.sink) = (StreamState::Source, sink.clone()));
        let run =
            StreamContext { clock: self.clock, stop: &self.stop, tell: &|look| self.look(look) };
        send(&link, source, &sink, &options, &run).map_err(|end| match end {
            StreamFailure::Lost(_) => Trouble::Lost,
            _ if self.is_ending() => Trouble::Lost,
            StreamFailure::Refused(refusal) => {
                Trouble::Failed(format!("the centre refuses it: {}", refusal.sentence))
            }
            StreamFailure::Here(refusal) => Trouble::Failed(refusal.sentence),
            StreamFailure::Malformed(what) => Trouble::Failed(format!(
                "protocol error from the centre ({what}); install the same version at both ends"
            )),
        })
    }

    /// A link over the session, once that is open; nothing where the station ends first.
    fn link(&self) -> Option<AppChannel> {
        let waiter = Waiter::new(self.clock);
        let mut link =
            pin!(self.door.connect(CENTRE, self.config.class.as_deref().unwrap_or_default()));
        while !self.is_ending() {
            if let Some(link) = waiter.within(LOOK, link.as_mut()) {
                return link.ok();
            }
        }
        None
    }

    fn look(&self, look: &Look) {
        self.show(|status| {
            status.state = StreamState::Streaming;
            count(status, look.near.unwrap_or_default(), &look.counters);
        });
    }

    fn ended(&self, summary: &StreamSummary) {
        self.shared.alarms.clear(&self.name());
        self.show(|status| {
            (status.state, status.ended, status.reason) =
                (StreamState::Ended, status.ended + 1, None);
            count(status, summary.near.unwrap_or_default(), &summary.counters);
        });
        let (sent, missing) = (summary.counters.sent, summary.counters.missing());
        tracing::info!(sent, missing, "{} ended", self.name());
    }

    fn name(&self) -> String {
        format!("the stream from {}", self.config.from.0)
    }

    fn show(&self, change: impl FnOnce(&mut StreamStatus)) {
        self.shared.board.stream(self.place, change);
    }

    fn is_ending(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.shared.shutdown.is_requested()
    }

    /// Waits for so long, or until the station ends.
    fn rest(&self, span: Duration) {
        let until = self.clock.now() + span;
        while self.clock.now() < until && !self.is_ending() {
            self.shared.shutdown.pause(LOOK);
        }
    }
}

fn count(status: &mut StreamStatus, near: SourceTotals, counters: &Counters) {
    (status.frames, status.bytes, status.unsent) = (near.frames, near.bytes, near.unsent);
    (status.received, status.repaired) = (counters.received, counters.repaired);
    (status.late, status.lost) = (counters.late, counters.lost);
}

/// What status shows of a stream that has done nothing yet.
fn shown(config: &StreamEntry) -> StreamStatus {
    StreamStatus {
        source: config.from.0.to_string(),
        sink: config.to.to_string(),
        ..StreamStatus::default()
    }
}

/// The place of the only node that a station calls.
const CENTRE: usize = 0;
