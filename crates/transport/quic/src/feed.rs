//! Events of single packets, taken out of the state machine through its congestion controller
//! interface.
//!
//! The state machine's own pacing and window are switched off here (a window it can't fill, no
//! pacing rate): the path paces, and keeps the window. The events are drained after every batch of
//! datagrams, and are never more than a few for each packet under way.

use noq_proto::RttEstimator;
use noq_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};
use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

/// One thing that happened to a packet.
#[derive(Debug, Clone, Copy)]
pub(crate) enum News {
    /// An ack-eliciting packet was sent.
    Sent { number: u64, bytes: u64 },
    /// A packet was acknowledged.
    Acked { number: u64, sent: Instant },
    /// The acknowledgements of one frame are complete.
    EndOfAcks,
    /// Acknowledgements came that tell of more packets marked "congestion experienced".
    Marked,
    /// A packet is considered lost.
    Lost { number: u64 },
}

/// The shared list of news of one connection.
#[derive(Debug, Clone, Default)]
pub(crate) struct Feed(Arc<Mutex<Vec<News>>>);

impl Feed {
    fn list(&self) -> MutexGuard<'_, Vec<News>> {
        self.0.lock().expect("no holder of this lock panics")
    }

    /// Moves the news into `out`, which is emptied first. The two lists change places, so neither
    /// is allocated anew.
    pub(crate) fn drain_into(&self, out: &mut Vec<News>) {
        out.clear();
        core::mem::swap(&mut *self.list(), out);
    }
}

/// Gives all controllers of one connection the same feed: a far end that moves to another address
/// gets a new one.
#[derive(Debug)]
pub(crate) struct FeedFactory(pub(crate) Feed);

impl ControllerFactory for FeedFactory {
    fn build(self: Arc<Self>, _now: Instant, _mtu: u16) -> Box<dyn Controller> {
        Box::new(Tap(self.0.clone()))
    }
}

/// The controller the state machine sees: it only listens.
#[derive(Debug, Clone)]
struct Tap(Feed);

impl Controller for Tap {
    fn on_packet_sent(&mut self, _now: Instant, bytes: u16, number: u64) {
        self.0.list().push(News::Sent { number, bytes: bytes.into() });
    }
    fn on_ack(
        &mut self,
        _: Instant,
        sent: Instant,
        _bytes: u64,
        number: u64,
        _: bool,
        _: &RttEstimator,
    ) {
        self.0.list().push(News::Acked { number, sent });
    }
    fn on_end_acks(
        &mut self,
        _now: Instant,
        _in_flight: u64,
        _app_limited: bool,
        _largest: Option<u64>,
    ) {
        self.0.list().push(News::EndOfAcks);
    }
    fn on_packet_lost(&mut self, _bytes: u16, number: u64, _now: Instant) {
        self.0.list().push(News::Lost { number });
    }
    fn on_congestion_event(
        &mut self,
        _: Instant,
        _: Instant,
        _: bool,
        is_ecn: bool,
        _: u64,
        _: u64,
    ) {
        if is_ecn {
            self.0.list().push(News::Marked);
        }
    }
    fn on_mtu_update(&mut self, _mtu: u16) {}
    fn window(&self) -> u64 {
        UNLIMITED
    }
    fn metrics(&self) -> ControllerMetrics {
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = UNLIMITED;
        metrics
    }
    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
    fn initial_window(&self) -> u64 {
        UNLIMITED
    }
    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// 1 TiB: more than any line holds; above 4 GiB the state machine paces no more.
const UNLIMITED: u64 = 1 << 40;
