//! The status board of a station: each thread puts up what it does, and status reads it.

use crate::status::{
    ChannelStatus, ContactCaptured, ContactForecast, ForwardsStatus, LineStatus, MirrorStatus,
    Recent, RecordingStatus, StationStatus, StoreState, StreamStatus,
};
use skyhaul_units::{ByteCount, FlowId, Rate};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What the threads of a station show.
#[derive(Debug, Default)]
pub struct StationBoard {
    shown: Mutex<Shown>,
}

/// An input of a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InputIndex {
    /// The index of the channel in the configuration.
    pub channel: usize,
    /// The index of the input in the channel.
    pub input: usize,
}

#[derive(Debug, Default)]
struct Shown {
    name: String,
    channels: Vec<ChannelStatus>,
    contacts: Recent<ContactCaptured>,
    line: LineStatus,
    forecasts: Vec<ContactForecast>,
    forwards: Option<ForwardsStatus>,
    mirrors: Vec<MirrorStatus>,
    streams: Vec<StreamStatus>,
    spool: StoreState,
}

impl StationBoard {
    /// Of the station `name` with these channels, which has done nothing yet.
    pub fn new(name: String, channels: Vec<ChannelStatus>) -> Self {
        Self { shown: Mutex::new(Shown { name, channels, ..Shown::default() }) }
    }

    fn shown(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows the line.
    pub fn line(&self, line: LineStatus) {
        self.shown().line = line;
    }

    /// Shows the forwards.
    pub fn forwards(&self, forwards: Option<ForwardsStatus>) {
        self.shown().forwards = forwards;
    }

    /// Shows the mirrors, before they do anything.
    pub fn mirrors(&self, mirrors: Vec<MirrorStatus>) {
        self.shown().mirrors = mirrors;
    }

    /// Changes the status of mirror number `index`.
    pub fn mirror(&self, index: usize, change: impl FnOnce(&mut MirrorStatus)) {
        if let Some(mirror) = self.shown().mirrors.get_mut(index) {
            change(mirror);
        }
    }

    /// Shows the streams, before they do anything.
    pub fn streams(&self, streams: Vec<StreamStatus>) {
        self.shown().streams = streams;
    }

    /// Changes the status of stream number `index`.
    pub fn stream(&self, index: usize, change: impl FnOnce(&mut StreamStatus)) {
        if let Some(stream) = self.shown().streams.get_mut(index) {
            change(stream);
        }
    }

    /// The rate that the line's congestion controllers allow; zero while there is no line.
    pub fn line_rate(&self) -> Rate {
        Rate::from_bps(self.shown().line.rate_bps)
    }

    /// Bytes of all contacts that are to be sent, or sent again, as of the last forecast.
    pub fn unsent(&self) -> ByteCount {
        ByteCount::new(self.shown().forecasts.iter().map(|forecast| forecast.unsent_bytes).sum())
    }

    /// Shows when each contact will be at the centre.
    pub fn forecasts(&self, forecasts: Vec<ContactForecast>) {
        self.shown().forecasts = forecasts;
    }

    /// The channel of a contact that was captured since the start.
    pub fn channel_of(&self, flow: FlowId) -> Option<String> {
        let shown = self.shown();
        shown
            .contacts
            .newest(|contact| contact.flow == flow.0)
            .map(|contact| contact.channel.clone())
    }

    /// Shows whether the spool takes data.
    pub fn spool(&self, state: StoreState) {
        self.shown().spool = state;
    }

    /// Changes the status of channel number `index`.
    pub fn channel(&self, index: usize, change: impl FnOnce(&mut ChannelStatus)) {
        if let Some(channel) = self.shown().channels.get_mut(index) {
            change(channel);
        }
    }

    /// Shows the recording of an input.
    pub fn recording(&self, of: InputIndex, recording: RecordingStatus) {
        self.channel(of.channel, |shown| match shown.inputs.get_mut(of.input) {
            Some(input) => input.recording = Some(recording),
            None => shown.recording = Some(recording),
        });
    }

    /// Shows a contact, new or changed.
    pub fn contact(&self, contact: &ContactCaptured) {
        self.shown().contacts.show(contact, |shown| shown.flow == contact.flow);
    }

    /// Copies everything that is shown into `status`.
    pub fn copy_to(&self, status: &mut StationStatus) {
        let shown = self.shown();
        status.name.clone_from(&shown.name);
        status.channels.clone_from(&shown.channels);
        status.contacts = shown.contacts.to_vec();
        status.spool.state = shown.spool;
        status.forecasts.clone_from(&shown.forecasts);
        status.line = shown.line.clone();
        status.forwards.clone_from(&shown.forwards);
        status.mirrors.clone_from(&shown.mirrors);
        status.streams.clone_from(&shown.streams);
    }
}
