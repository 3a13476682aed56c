//! Opening the contact store: finished contacts by name only, open ones with their log.

use super::finished::Finished;
use super::spaces::{Origin, SPOOL_NAME, Station};
use super::{
    Contact, ContactConfig, ContactStats, ContactStore, FINISHED_NAME, KeptContacts,
    MAX_OPEN_CONTACTS, Marks, NameSpaces, ROOT, StationName, StoreError, contact_dir, mark_behind,
    station_dir,
};
use crate::disk::{Disk, EntryKind};
use crate::log::{Log, LogConfig, LogCursor, LogEntry, Position};
use crate::publish::load_state;
use crate::room::Room;
use crate::{FlowId, Seq};
use skyhaul_units::BlockMark;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

impl ContactStore {
    /// Opens the store on this disk, and creates it if absent. All valid data is durable when this
    /// returns.
    ///
    /// # Errors
    /// [`StoreError::State`], [`StoreError::Log`], [`StoreError::TooManyContacts`].
    pub fn open(disk: Arc<dyn Disk>, config: ContactConfig) -> Result<Self, StoreError> {
        let ContactConfig { segment_size, max_size, reserve, .. } = config;
        let mut store = Self {
            room: Room { disk: disk.clone(), max_size, reserve },
            config,
            spaces: NameSpaces::default(),
            kept: KeptContacts::none(disk, LogConfig { segment_size }),
            stats: ContactStats::default(),
            damage: None,
        };
        let refused = |source| StoreError::State { path: ROOT.to_owned(), source };
        store.room.disk.make_dir(ROOT).map_err(refused)?;
        for entry in store.room.disk.list(ROOT).map_err(refused)? {
            // Only directories that this store made have such names.
            if let (EntryKind::Directory, Some(name)) =
                (entry.kind, StationName::of_space(&entry.name))
            {
                store.load_station(name)?;
            }
        }
        Ok(store)
    }

    fn load_station(&mut self, name: StationName) -> Result<(), StoreError> {
        let dir = station_dir(&name);
        let refused_at = |path: String| move |source| StoreError::State { path, source };
        let refused = |source| refused_at(format!("{dir}/{FINISHED_NAME}"))(source);
        // The last session may have ended between a rename and its sync: files that are visible now
        // must not vanish later.
        self.room.disk.sync_dir(&dir).map_err(refused)?;
        let finished = match load_state(&*self.room.disk, &format!("{dir}/{FINISHED_NAME}"))
            .map_err(refused)?
        {
            Some(state) => {
                self.stats.state_mended += u64::from(state.is_damaged);
                Finished::decode(&state.body).ok_or_else(|| {
                    refused(io::Error::new(
                        io::ErrorKind::InvalidData,
                        "not a list of finished contacts",
                    ))
                })?
            }
            None => Finished::default(),
        };
        let origin = Origin::load(&*self.room.disk, &name)
            .map_err(refused_at(format!("{dir}/{SPOOL_NAME}")))?;
        let mut station = Station { finished, open: BTreeMap::new(), origin, taken: 0 };
        for entry in self.room.disk.list(&dir).map_err(refused)? {
            let Some(flow) =
                parse_contact_dir(&entry.name).filter(|_| entry.kind == EntryKind::Directory)
            else {
                continue;
            };
            if station.finished.contains(flow) {
                let mark = format!("{}/{FINISHED_NAME}", contact_dir(&name, flow));
                self.kept.load(&name, flow).map_err(refused_at(mark))?;
            } else {
                if self.spaces.open_count() + station.open.len() >= MAX_OPEN_CONTACTS {
                    return Err(StoreError::TooManyContacts);
                }
                station.open.insert(flow, self.load_contact(&name, flow)?);
            }
        }
        if station.origin.is_none() && !station.is_empty() {
            station.origin = Some(Origin::nobodys(&name));
        }
        self.spaces.insert(name, station);
        Ok(())
    }

    fn load_contact(&mut self, name: &StationName, flow: FlowId) -> Result<Contact, StoreError> {
        let config = LogConfig { segment_size: self.config.segment_size };
        let mut log = Log::open(self.room.disk.clone(), &contact_dir(name, flow), config)?;
        let spans = log
            .segments()
            .iter()
            .filter_map(|(number, summary)| Some((number, summary.span(flow)?)));
        let last =
            spans.map(|(segment, span)| (span.last, Position { segment, offset: span.last_at }));
        let last = last.max_by_key(|(last, _)| *last);
        let next = last.map_or(Seq::FIRST, |(last, _)| last.next());
        self.stats.torn += log.stats().torn;
        // A record that cannot be read is not compared.
        let last = match last.map(|(_, at)| log.read(&mut LogCursor::at(at))).transpose()?.flatten()
        {
            Some(LogEntry::Block(record)) => mark_behind(self.config.preface, &record.payload),
            Some(LogEntry::Damaged(_) | LogEntry::SegmentEnd(_)) | None => BlockMark::default(),
        };
        let marks = Marks { last, durable: last };
        Ok(Contact { log, next, durable: next, marks, mended: 0 })
    }
}

fn parse_contact_dir(name: &str) -> Option<FlowId> {
    let flow = u32::from_str_radix(name, 16).ok().map(FlowId)?;
    (format!("{:08x}", flow.0) == name).then_some(flow)
}
