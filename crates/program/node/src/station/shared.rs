//! What a station's threads have in common: the spool, and what status shows.

use super::order::Orders;
use super::refill::Questions;
use crate::life::Life;
use crate::status::{
    ChannelStatus, ContactCaptured, ContactForecast, ForwardsStatus, LineStatus, MirrorStatus,
    NodeStatus, Recent, RecordingStatus, ShortageStatus, SpoolStatus, StationStatus, StoreState,
    StreamStatus, peak_resident_bytes, resident_bytes, threads,
};
use skyhaul_net::{Clock, Waker};
use skyhaul_store::Spool;
use skyhaul_units::{ByteCount, FlowId, Instant, Rate};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// One station's common state. Locks are held for the length of one call, never while waiting for
/// the disk or the line, except that an append writes to the page cache.
#[derive(Debug)]
pub struct Shared {
    clock: Clock,
    spool: Mutex<Spool>,
    state: Mutex<State>,
    /// What all threads look at.
    pub life: Life,
    /// What the line's thread is to do.
    pub orders: Orders,
    /// What the centre asks for.
    pub questions: Questions,
}

#[derive(Debug, Default)]
struct State {
    name: String,
    channels: Vec<ChannelStatus>,
    contacts: Recent<ContactCaptured>,
    line: LineStatus,
    forecasts: Vec<ContactForecast>,
    forwards: Option<ForwardsStatus>,
    mirrors: Vec<MirrorStatus>,
    streams: Vec<StreamStatus>,
    store: StoreState,
}

impl Shared {
    /// The state of a station that has done nothing yet.
    pub fn new(
        name: String,
        channels: Vec<ChannelStatus>,
        spool: Spool,
        clock: Clock,
        waker: Waker,
    ) -> Self {
        let state = State { name, channels, ..State::default() };
        let (life, orders, questions) = (Life::new(waker), Orders::default(), Questions::default());
        Self { clock, spool: Mutex::new(spool), state: Mutex::new(state), life, orders, questions }
    }

    /// The spool. A thread that panicked with it in hand ends the station; what it wrote is checked
    /// at the next start.
    pub fn spool(&self) -> MutexGuard<'_, Spool> {
        self.spool.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The line's state.
    pub fn line(&self, line: LineStatus) {
        self.state().line = line;
    }

    /// What is forwarded beside contacts.
    pub fn forwards(&self, forwards: Option<ForwardsStatus>) {
        self.state().forwards = forwards;
    }

    /// The mirrors, before they do anything.
    pub fn mirrors(&self, mirrors: Vec<MirrorStatus>) {
        self.state().mirrors = mirrors;
    }

    /// Changes what is shown of the mirror at this place.
    pub fn mirror(&self, place: usize, change: impl FnOnce(&mut MirrorStatus)) {
        if let Some(mirror) = self.state().mirrors.get_mut(place) {
            change(mirror);
        }
    }

    /// The streams, before they do anything.
    pub fn streams(&self, streams: Vec<StreamStatus>) {
        self.state().streams = streams;
    }

    /// Changes what is shown of the stream at this place.
    pub fn stream(&self, place: usize, change: impl FnOnce(&mut StreamStatus)) {
        if let Some(stream) = self.state().streams.get_mut(place) {
            change(stream);
        }
    }

    /// What the line carries, as its controllers know it; zero where there is none.
    pub fn line_rate(&self) -> Rate {
        Rate::from_bps(self.state().line.rate_bps)
    }

    /// Bytes captured and never sent, or to be sent again, as of the last forecast.
    pub fn unsent(&self) -> ByteCount {
        ByteCount::new(self.state().forecasts.iter().map(|forecast| forecast.unsent_bytes).sum())
    }

    /// When each contact will be at the centre.
    pub fn forecasts(&self, forecasts: Vec<ContactForecast>) {
        self.state().forecasts = forecasts;
    }

    /// The channel that a contact since the start came from.
    pub fn channel_of(&self, flow: FlowId) -> Option<String> {
        let state = self.state();
        state
            .contacts
            .newest(|contact| contact.flow == flow.0)
            .map(|contact| contact.channel.clone())
    }

    /// Whether the spool takes data.
    pub fn store_state(&self, store: StoreState) {
        self.state().store = store;
    }

    /// Changes what is shown of input number `index`.
    pub fn channel(&self, index: usize, change: impl FnOnce(&mut ChannelStatus)) {
        if let Some(channel) = self.state().channels.get_mut(index) {
            change(channel);
        }
    }

    /// Shows how the recording of an input goes, which is the `at`-th of the channel of this
    /// number.
    pub fn recording(&self, (index, at): (usize, usize), recording: RecordingStatus) {
        self.channel(index, |shown| match shown.inputs.get_mut(at) {
            Some(input) => input.recording = Some(recording),
            None => shown.recording = Some(recording),
        });
    }

    /// Shows a contact, new or changed.
    pub fn contact(&self, contact: &ContactCaptured) {
        self.state().contacts.show(contact, |shown| shown.flow == contact.flow);
    }

    /// What status shows now.
    pub fn status(&self) -> NodeStatus {
        let (depth, disk) = {
            let spool = self.spool();
            (spool.queue().depth(self.clock.utc()), spool.queue().size())
        };
        let state = self.state();
        NodeStatus::Station(StationStatus {
            name: state.name.clone(),
            uptime_s: self.clock.now().since(Instant::ZERO).as_secs_f64(),
            rss_bytes: resident_bytes(),
            rss_peak_bytes: peak_resident_bytes(),
            log_dropped: crate::log::dropped(),
            channels: state.channels.clone(),
            contacts: state.contacts.to_vec(),
            spool: SpoolStatus {
                state: state.store,
                blocks: depth.blocks,
                bytes: depth.bytes.as_u64(),
                disk_bytes: disk.as_u64(),
            },
            forecasts: state.forecasts.clone(),
            line: state.line.clone(),
            forwards: state.forwards.clone(),
            mirrors: state.mirrors.clone(),
            streams: state.streams.clone(),
            threads: threads(),
            shortage: ShortageStatus::now(),
            alarms: self.life.alarms(),
        })
    }
}
