//! The status board of a centre: each thread puts up what it does, and status reads it.

use super::assembly::ContactKey;
use crate::latency::Latency;
use crate::status::{
    AssembledProduct, CentreStatus, ContactReceived, FilesStatus, ForwardsStatus, Recent,
    StationPeer, StoreState, StreamsStatus,
};
use skyhaul_history::HistorySketch;
use skyhaul_net::drops;
use skyhaul_units::Duration;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What the threads of a centre show.
#[derive(Debug, Default)]
pub struct CentreBoard {
    shown: Mutex<Shown>,
}

#[derive(Debug, Default)]
struct Shown {
    name: String,
    address: String,
    stations: Vec<StationPeer>,
    contacts: Recent<ContactReceived>,
    assembled: Recent<AssembledProduct>,
    store: StoreState,
    /// The inodes of the lines' sockets.
    sockets: Vec<u64>,
    latency: BTreeMap<FrameStage, Latency>,
    /// Since somebody took them, by mission.
    recent: BTreeMap<String, BTreeMap<FrameStage, RecentTimes>>,
    refused: u64,
    forwards: Option<ForwardsStatus>,
    /// By station: no more than the configuration has.
    files: BTreeMap<String, FilesStatus>,
    /// By station: no more than the configuration has.
    streams: BTreeMap<String, StreamsStatus>,
}

/// Frames that took so long in a stage.
#[derive(Debug, Clone, Copy)]
pub struct StageTime {
    pub stage: FrameStage,
    pub span: Duration,
    pub frames: u64,
}

/// Times of one stage since they were taken last, for the history.
#[derive(Debug, Clone, Default)]
pub struct RecentTimes {
    /// In seconds.
    pub sketch: HistorySketch,
    /// The contact of the longest: its station, and its flow there.
    pub worst: Option<(String, u32)>,
}

impl RecentTimes {
    /// Counts frames of a contact that took `span`.
    pub fn add(&mut self, span: Duration, frames: u64, contact: &ContactReceived) {
        let seconds = span.as_secs_f64();
        if frames > 0 && (self.sketch.is_empty() || seconds > self.sketch.max()) {
            self.worst = Some((contact.station.clone(), contact.flow));
        }
        self.sketch.add(seconds, frames);
    }
}

/// Missions whose times are kept apart until the next look takes them.
const MISSIONS_MAX: usize = 64;

/// A stage of a frame's way from the antenna to Level-0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FrameStage {
    /// From the frame's last bit until its block was closed.
    Capture,
    /// From there until the block was read from the durable spool for sending.
    Spool,
    /// From there until its first symbol was sent.
    Queue,
    /// From there until its last symbol arrived that was not retransmitted.
    Line,
    /// From there until the block and all before it were whole.
    Repair,
    /// From there until the block was durable.
    Store,
    /// From there until its packets were sorted in.
    Level0,
    /// From the frame's last bit until it was durable.
    Total,
}

impl FrameStage {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Capture => "capture",
            Self::Spool => "spool",
            Self::Queue => "queue",
            Self::Line => "line",
            Self::Repair => "repair",
            Self::Store => "store",
            Self::Level0 => "level0",
            Self::Total => "total",
        }
    }
}

impl CentreBoard {
    /// Of the centre `name`, which listens at `address` and has done nothing yet.
    pub fn new(name: String, address: String) -> Self {
        Self { shown: Mutex::new(Shown { name, address, ..Shown::default() }) }
    }

    fn shown(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows a product of several contacts.
    pub fn assembled(&self, product: &AssembledProduct) {
        let key = |one: &AssembledProduct| {
            (
                one.mission.clone(),
                one.product.clone(),
                one.contact.clone(),
                one.from.clone(),
                one.to.clone(),
            )
        };
        self.shown().assembled.show(product, |shown| key(shown) == key(product));
    }

    /// Shows a contact, new or changed.
    pub fn contact(&self, contact: &ContactReceived) {
        let same = |shown: &ContactReceived| shown.stored() == contact.stored();
        self.shown().contacts.show(contact, same);
    }

    /// The status of a contact; none where it is not shown.
    pub fn find_contact(&self, station: &str, flow: u32) -> Option<ContactReceived> {
        let same = |shown: &ContactReceived| shown.stored() == (station, flow);
        self.shown().contacts.newest(same).cloned()
    }

    /// The flow in a name space of a contact that nodes passed on; none where it is not shown.
    pub fn find_origin(&self, space: &str, origin: &ContactKey) -> Option<u32> {
        let same = |shown: &ContactReceived| {
            shown.stored().0 == space && (&shown.station, shown.flow) == (&origin.0, origin.1)
        };
        self.shown().contacts.newest(same).map(|shown| shown.stored().1)
    }

    /// Counts an unknown caller that was refused.
    pub fn count_refused(&self) {
        self.shown().refused += 1;
    }

    /// Changes the status of a station's file transfers.
    pub fn files(&self, station: &str, change: impl FnOnce(&mut FilesStatus)) {
        let mut shown = self.shown();
        let fresh = || FilesStatus { station: station.to_owned(), ..FilesStatus::default() };
        change(shown.files.entry(station.to_owned()).or_insert_with(fresh));
    }

    /// Changes the status of a station's streams.
    pub fn streams(&self, station: &str, change: impl FnOnce(&mut StreamsStatus)) {
        let mut shown = self.shown();
        let fresh = || StreamsStatus { station: station.to_owned(), ..StreamsStatus::default() };
        change(shown.streams.entry(station.to_owned()).or_insert_with(fresh));
    }

    /// Shows the forwards.
    pub fn forwards(&self, forwards: Option<ForwardsStatus>) {
        self.shown().forwards = forwards;
    }

    /// Shows the stations that are connected.
    pub fn stations(&self, stations: Vec<StationPeer>) {
        self.shown().stations = stations;
    }

    /// The names of the paths of a peer's session.
    pub fn paths_of(&self, peer: &str) -> Vec<String> {
        let shown = self.shown();
        let its = shown.stations.iter().filter(|station| station.name == peer);
        its.flat_map(|station| station.paths.iter().map(|path| path.name.clone())).collect()
    }

    /// Shows whether the store takes data.
    /// Returns what was shown.
    pub fn store(&self, state: StoreState) -> StoreState {
        std::mem::replace(&mut self.shown().store, state)
    }

    /// Names the inodes of the lines' sockets, so that status shows what the system drops there.
    pub fn sockets(&self, inodes: Vec<u64>) {
        self.shown().sockets = inodes;
    }

    /// Counts frames of a contact, and how long they took in their stages.
    pub fn latency(&self, contact: &ContactReceived, times: &[StageTime]) {
        let mut shown = self.shown();
        let Shown { latency, recent, .. } = &mut *shown;
        for StageTime { stage, span, frames } in times {
            latency.entry(*stage).or_default().record(*span, *frames);
        }
        if recent.len() == MISSIONS_MAX && !recent.contains_key(&contact.mission) {
            return;
        }
        let recent = recent.entry(contact.mission.clone()).or_default();
        for StageTime { stage, span, frames } in times {
            recent.entry(*stage).or_default().add(*span, *frames, contact);
        }
    }

    /// How long frames took since the last call, by mission and stage.
    pub fn take_recent(&self) -> BTreeMap<String, BTreeMap<FrameStage, RecentTimes>> {
        std::mem::take(&mut self.shown().recent)
    }

    /// Copies everything that is shown into `status`. Assembled products are added behind those
    /// that are there.
    pub fn copy_to(&self, status: &mut CentreStatus) {
        // The system's lists are read without the lock, which the line's thread needs.
        let sockets = self.shown().sockets.clone();
        status.socket_drops = drops::kernel_drops(|inode| sockets.contains(&inode));
        let shown = self.shown();
        status.name.clone_from(&shown.name);
        status.address.clone_from(&shown.address);
        status.stations.clone_from(&shown.stations);
        status.contacts = shown.contacts.to_vec();
        status.products.assembled.extend(shown.assembled.to_vec());
        status.store.state = shown.store;
        let latency = shown.latency.iter();
        status.latency_s =
            latency.map(|(stage, times)| (stage.name().to_owned(), times.summary())).collect();
        status.refused = shown.refused;
        status.guests.forwards.clone_from(&shown.forwards);
        status.guests.files = shown.files.values().cloned().collect();
        status.guests.streams = shown.streams.values().cloned().collect();
    }
}
