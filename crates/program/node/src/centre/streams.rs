//! Streams of stations to sinks here: each over an application channel of the station's session, on
//! a thread of its own.

use super::shared::CentreShared;
use skyhaul_channels_io::{AppChannel, ChannelService};
use skyhaul_net::Clock;
use skyhaul_quic::Fingerprint;
use skyhaul_streams::Counters;
use skyhaul_streams_io::{AllowedSinks, Look, StreamContext, StreamFailure, Waiter, serve};
use skyhaul_units::Duration;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Takes the stations' streams.
#[derive(Debug)]
pub struct Streams {
    door: ChannelService,
    /// Name and allowed sinks of each station, by its key.
    stations: BTreeMap<Fingerprint, (String, AllowedSinks)>,
    shared: Arc<CentreShared>,
    clock: Clock,
}

/// Streams at a time; each has two threads.
const STREAMS_MAX: usize = 64;
/// Between two checks of the stop flag.
const LOOK: Duration = Duration::from_millis(100);

impl Streams {
    /// Serves streams to these sinks.
    pub fn new(
        door: ChannelService,
        stations: BTreeMap<Fingerprint, (String, AllowedSinks)>,
        shared: Arc<CentreShared>,
        clock: Clock,
    ) -> Self {
        Self { door, stations, shared, clock }
    }

    /// Runs until the centre ends.
    pub fn run(self) {
        let (waiter, running) = (Waiter::new(self.clock), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            while !self.shared.shutdown.is_requested() {
                let link = match waiter.within(LOOK, self.door.accept()) {
                    None => continue,
                    Some(None) => return,
                    Some(Some(link)) => link,
                };
                let station = link.peer().and_then(|key| self.stations.get(&key));
                let (Some((station, allowed)), true) =
                    (station, running.load(Ordering::Relaxed) < STREAMS_MAX)
                else {
                    // Closing the application channel makes the station try again.
                    continue;
                };
                running.fetch_add(1, Ordering::Relaxed);
                let (this, running) = (&self, &running);
                scope.spawn(move || {
                    this.take(&link, station, allowed);
                    running.fetch_sub(1, Ordering::Relaxed);
                });
            }
        });
    }

    fn take(&self, link: &AppChannel, station: &str, allowed: &AllowedSinks) {
        let before = Mutex::new(Counters::default());
        let count = |counters: &Counters| {
            let mut before = before.lock().unwrap_or_else(PoisonError::into_inner);
            let since = counters.since(&before);
            *before = *counters;
            self.shared.board.streams(station, |streams| {
                streams.received += since.received;
                streams.repaired += since.repaired;
                streams.late += since.late;
                streams.lost += since.lost;
                streams.bytes += since.bytes;
            });
        };
        let sink = Mutex::new(None);
        let tell = |look: &Look| count(&look.counters);
        let run =
            StreamContext { clock: self.clock, stop: self.shared.shutdown.flag(), tell: &tell };
        let end = serve(link, allowed, &run, &|hello| {
            tracing::info!(station, sink = hello.sink, "stream of {} started", hello.format.name());
            self.shared.board.streams(station, |streams| streams.sinks.push(hello.sink.clone()));
            *sink.lock().unwrap_or_else(PoisonError::into_inner) = Some(hello.sink.clone());
        });
        let sink = sink.into_inner().unwrap_or_else(PoisonError::into_inner);
        self.shared.board.streams(station, |streams| {
            if let Some(place) = streams.sinks.iter().position(|open| Some(open) == sink.as_ref()) {
                streams.sinks.remove(place);
            }
            if end.is_ok() {
                streams.ended += 1;
            } else {
                streams.failed += 1;
            }
        });
        match end {
            Ok(summary) => {
                count(&summary.counters);
                let (sent, missing) = (summary.counters.sent, summary.counters.missing());
                tracing::info!(station, sink, sent, missing, "stream ended");
            }
            Err(StreamFailure::Here(refusal) | StreamFailure::Refused(refusal)) => {
                tracing::warn!(station, sink, "stream aborted: {}", refusal.sentence);
            }
            Err(StreamFailure::Malformed(what)) => {
                tracing::warn!(
                    station,
                    sink,
                    "stream aborted: protocol error from station: {what}"
                );
            }
            Err(StreamFailure::Lost(reason)) => {
                tracing::warn!(station, sink, "stream aborted: {reason}");
            }
        }
    }
}
