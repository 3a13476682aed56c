//! The status board of a station: each thread puts up what it does, and status reads it.

use crate::status::{
    ChannelStatus, ContactCaptured, ContactForecast, DestinationStatus, ForwardsStatus, LineStatus,
    MirrorStatus, Recent, RecordingStatus, StandbyStatus, StationStatus, StoreState, StreamStatus,
};
use crate::status::{FilesStatus, FolderStatus};
use skyhaul_config::ContactLabel;
use skyhaul_units::{ByteCount, FlowId, Rate};
use std::collections::BTreeMap;
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
    /// With the index of each.
    destinations: Vec<(usize, DestinationStatus)>,
    forwards: Option<ForwardsStatus>,
    folders: Vec<FolderStatus>,
    mirrors: Vec<MirrorStatus>,
    streams: Vec<StreamStatus>,
    /// Files that destinations wrote here, or read, by the destination.
    files: BTreeMap<String, FilesStatus>,
    spool: StoreState,
}

impl StationBoard {
    /// Of the station `name` with these channels and destinations, which has done nothing yet.
    pub fn new(
        name: String,
        channels: Vec<ChannelStatus>,
        destinations: Vec<DestinationStatus>,
    ) -> Self {
        let destinations = destinations.into_iter().enumerate().collect();
        Self { shown: Mutex::new(Shown { name, channels, destinations, ..Shown::default() }) }
    }

    /// The name of the station.
    pub fn name(&self) -> String {
        self.shown().name.clone()
    }

    fn shown(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the status of destination number `place`.
    fn destination(&self, place: usize, change: impl FnOnce(&mut DestinationStatus)) {
        let mut shown = self.shown();
        if let Some((_, found)) = shown.destinations.iter_mut().find(|(of, _)| *of == place) {
            change(found);
        }
    }

    /// Shows these destinations, each with its index, in this order; those that were shown before
    /// keep their state.
    pub fn destinations(&self, list: Vec<(usize, DestinationStatus)>) {
        let mut shown = self.shown();
        let before = core::mem::take(&mut shown.destinations);
        let kept = |(place, new): (usize, DestinationStatus)| {
            let is_it =
                |(of, old): &&(usize, DestinationStatus)| (*of, &old.name) == (place, &new.name);
            (place, before.iter().find(is_it).map_or(new.clone(), |(_, old)| old.clone()))
        };
        shown.destinations = list.into_iter().map(kept).collect();
    }

    /// Shows the line to destination number `place`.
    pub fn line(&self, place: usize, line: LineStatus) {
        self.destination(place, |shown| shown.line = line);
    }

    /// The destinations, each with the names of the paths to it in the order of the configuration.
    pub fn paths(&self) -> Vec<(String, Vec<String>)> {
        let shown = self.shown();
        let of = |(_, one): &(usize, DestinationStatus)| {
            let names = one.line.paths.iter().map(|path| path.name.clone());
            let mut names: Vec<String> = names.collect();
            // A path over UDP and TCP is shown twice.
            names.dedup();
            (one.name.clone(), names)
        };
        shown.destinations.iter().map(of).collect()
    }

    /// Shows what is done for destination number `place` where this node stands by for another.
    pub fn standby(&self, place: usize, standby: Option<StandbyStatus>) {
        self.destination(place, |shown| shown.standby = standby);
    }

    /// Shows the forwards.
    pub fn forwards(&self, forwards: Option<ForwardsStatus>) {
        self.shown().forwards = forwards;
    }

    /// Shows the drop folders, before they do anything.
    pub fn folders(&self, folders: Vec<FolderStatus>) {
        self.shown().folders = folders;
    }

    /// Changes the status of drop folder number `index`.
    pub fn folder(&self, index: usize, change: impl FnOnce(&mut FolderStatus)) {
        if let Some(folder) = self.shown().folders.get_mut(index) {
            change(folder);
        }
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

    /// Changes the counts of the files that a destination wrote here, or read.
    pub fn files(&self, peer: &str, change: impl FnOnce(&mut FilesStatus)) {
        let mut shown = self.shown();
        let fresh = || FilesStatus { station: peer.to_owned(), ..FilesStatus::default() };
        change(shown.files.entry(peer.to_owned()).or_insert_with(fresh));
    }

    /// The lowest rate that the congestion controllers of a line in use allow; zero while there is
    /// none. Each destination gets the same data.
    pub fn line_rate(&self) -> Rate {
        let shown = self.shown();
        let rates = shown.destinations.iter().map(|(_, one)| one.line.rate_bps);
        let rates = rates.filter(|rate| *rate > 0);
        Rate::from_bps(rates.min().unwrap_or_default())
    }

    /// Bytes of all contacts that are to be sent, or sent again, as of the last forecast, to the
    /// destination that lacks most.
    pub fn unsent(&self) -> ByteCount {
        let unsent = |one: &DestinationStatus| -> u64 {
            one.forecasts.iter().map(|forecast| forecast.unsent_bytes).sum()
        };
        ByteCount::new(
            self.shown().destinations.iter().map(|(_, one)| unsent(one)).max().unwrap_or_default(),
        )
    }

    /// Shows when each contact will be at destination number `place`.
    pub fn forecasts(&self, place: usize, forecasts: Vec<ContactForecast>) {
        self.destination(place, |shown| shown.forecasts = forecasts);
    }

    /// What a contact is of that was captured since the start.
    pub fn label_of(&self, flow: FlowId) -> Option<ContactLabel> {
        let shown = self.shown();
        let contact = shown.contacts.newest(|contact| contact.flow == flow.0)?;
        Some(ContactLabel {
            station: shown.name.clone(),
            channel: contact.channel.clone(),
            mission: contact.mission.clone(),
        })
    }

    /// Shows whether the spool takes data. Returns what was shown.
    pub fn spool(&self, state: StoreState) -> StoreState {
        std::mem::replace(&mut self.shown().spool, state)
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
        status.destinations = shown.destinations.iter().map(|(_, one)| one.clone()).collect();
        status.forwards.clone_from(&shown.forwards);
        status.folders.clone_from(&shown.folders);
        status.mirrors.clone_from(&shown.mirrors);
        status.streams.clone_from(&shown.streams);
        status.files = shown.files.values().cloned().collect();
    }
}
