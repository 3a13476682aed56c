//! Streams to centres, each on a thread of its own over an application channel of the session.

use super::shared::StationShared;
use crate::fault::Fault;
use crate::services;
use crate::status::{StreamState, StreamStatus};
use skyhaul_channels_io::{AppChannel, ChannelService};
use skyhaul_config::{StationConfig, StreamEntry};
use skyhaul_events::{AlarmKind, AlarmSubject};
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

/// The running streams of a station.
#[derive(Debug)]
pub struct Streams {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    clock: Clock,
}

/// One stream.
#[derive(Debug)]
struct Stream {
    config: StreamEntry,
    /// Its index in the configuration.
    index: usize,
    /// The index of its destination.
    place: usize,
    door: ChannelService,
    shared: Arc<StationShared>,
    clock: Clock,
    stop: Arc<AtomicBool>,
}

/// Why a stream was interrupted.
#[derive(Debug)]
enum Trouble {
    /// The session or the station ended: the stream begins anew over the next session.
    Lost,
    /// For this reason.
    Failed(String),
}

/// Between two checks of the stop flag.
const LOOK: Duration = Duration::from_millis(100);
/// The pause before a stream begins again after it ended, or its session was lost.
const PAUSE: Duration = Duration::from_millis(500);
/// The pause after a stream failed.
const RETRY: Duration = Duration::from_secs(5);
/// The time that streams get to end in order when the station ends: for their last frames, and the
/// account of the sink.
const PARTING: Duration = Duration::from_secs(5);

impl Streams {
    /// Starts the streams of the configuration.
    ///
    /// # Errors
    /// There are too many threads.
    pub fn start(
        config: &StationConfig,
        door: &ChannelService,
        shared: &Arc<StationShared>,
        clock: Clock,
    ) -> Result<Self, Fault> {
        let entries = &config.stream;
        shared.board.streams(entries.iter().map(shown).collect());
        let (stop, mut threads) = (Arc::new(AtomicBool::new(false)), Vec::new());
        for (index, entry) in entries.iter().enumerate() {
            let stream = Stream {
                config: entry.clone(),
                index,
                place: entry.place(&config.destinations),
                door: door.clone(),
                shared: Arc::clone(shared),
                clock,
                stop: Arc::clone(&stop),
            };
            threads.push(services::thread("stream", move || stream.run())?);
        }
        Ok(Self { stop, threads, clock })
    }

    /// Ends the streams in order while the line is up; those that take too long end with the
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
    /// Runs until the station ends; a stream that is not repeated, until it was sent once.
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
                    self.shared.alarms.raise(AlarmKind::StreamFailed, self.subject(), &sentence);
                    self.show(|status| {
                        (status.state, status.reason) = (StreamState::Failed, Some(sentence));
                    });
                    self.rest(RETRY);
                }
            }
        }
    }

    /// Sends the stream to its end, once the line is open.
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

    /// Opens an application channel, once the session is open; none where the station ends first.
    fn link(&self) -> Option<AppChannel> {
        let waiter = Waiter::new(self.clock);
        let mut link =
            pin!(self.door.connect(self.place, self.config.class.as_deref().unwrap_or_default()));
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
        self.shared.alarms.clear(AlarmKind::StreamFailed, self.subject());
        self.show(|status| {
            (status.state, status.ended, status.reason) =
                (StreamState::Ended, status.ended + 1, None);
            count(status, summary.near.unwrap_or_default(), &summary.counters);
        });
        let (sent, missing) = (summary.counters.sent, summary.counters.missing());
        tracing::info!(sent, missing, "{} ended", self.name());
    }

    /// The subject of its alarm.
    fn subject(&self) -> AlarmSubject {
        self.shared.behind(None, self.name())
    }

    fn name(&self) -> String {
        format!("the stream from {}", self.config.from.0)
    }

    fn show(&self, change: impl FnOnce(&mut StreamStatus)) {
        self.shared.board.stream(self.index, change);
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
    status.restarts = near.source_restarts;
}

/// The status of a stream that has done nothing yet.
fn shown(config: &StreamEntry) -> StreamStatus {
    StreamStatus {
        source: config.from.0.to_string(),
        sink: config.to.to_string(),
        to: config.destination.as_ref().map(ToString::to_string),
        ..StreamStatus::default()
    }
}
