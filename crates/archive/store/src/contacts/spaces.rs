//! Name spaces: each spool of a station has its own, so that contacts of two spools with the same
//! flow numbers stay separate.
//!
//! ```text
//! contacts/STATION/spool             the first spool that data came from
//! contacts/STATION.5f3a9c21/spool    another one: its disk was replaced, its state folder put
//!                                    back, or two use one key
//! ```
//!
//! | field | size | what |
//! |---|---|---|
//! | spool | 16 | which one |
//! | opening | u64 + u64 | from which data came last: count, and the number drawn then |
//! | turn | u64 | the spool of the station with the highest brought data last |
//! | station | to the end | whose key it came under |

use super::finished::Finished;
use super::limits::MAX_SPOOLS;
use super::{
    Appended, Contact, ContactStore, FlowStatus, ResumeFlow, StationName, StoreError, station_dir,
};
use crate::FlowId;
use crate::disk::Disk;
use crate::publish::{load_state, save_state};
use skyhaul_units::wire::ByteReader;
use skyhaul_units::{ByteCount, SpoolId, SpoolIdentity, SpoolOpening};
use std::collections::BTreeMap;
use std::io;

pub(super) const SPOOL_NAME: &str = "spool";

/// Whose contacts a name space holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Origin {
    station: StationName,
    /// The opening is zero before the first data.
    spool: SpoolIdentity,
    turn: u64,
}

/// The data in the store of one spool of a station.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SpoolKnown {
    /// The spool, and its last opening that sent data.
    pub spool: SpoolIdentity,
    /// What need not be sent again.
    pub resume: ResumeFlow,
    /// The progress sent in the opening of a session: see [`SpoolSender::told`].
    pub state: SpoolState,
}

/// The progress of a name space when it was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SpoolState {
    opening: SpoolOpening,
    /// Records taken until then; `None` if some were not durable, so that not all were reported.
    taken: Option<u64>,
}

/// The sender of a session's records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpoolSender {
    /// Whose key it has.
    pub station: StationName,
    /// Where its contacts are kept.
    pub space: StationName,
    /// Its spool, and the opening of it.
    pub spool: SpoolIdentity,
    /// The progress of that spool that it got when the session began.
    pub told: SpoolState,
}

/// Where a spool's contacts are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContactSpace {
    /// The name of its name space.
    pub space: StationName,
    /// Whether data came from it before.
    pub is_known: bool,
    /// The spool of the station that sent data last, if that is another one.
    pub other: Option<SpoolId>,
}

impl Origin {
    /// For contacts whose spool is unknown.
    pub(super) fn nobodys(space: &StationName) -> Self {
        Self { station: space.clone(), spool: SpoolIdentity::default(), turn: 0 }
    }

    fn encode(&self) -> Vec<u8> {
        let mut body = self.spool.id.0.to_vec();
        for number in [self.spool.opening.count, self.spool.opening.drawn, self.turn] {
            body.extend_from_slice(&number.to_be_bytes());
        }
        body.extend_from_slice(self.station.as_str().as_bytes());
        body
    }

    fn decode(body: &[u8]) -> Option<Self> {
        let mut body = ByteReader::new(body);
        let id = SpoolId(body.array()?);
        let opening = SpoolOpening { count: body.u64()?, drawn: body.u64()? };
        let turn = body.u64()?;
        let station = StationName::new(std::str::from_utf8(body.rest()).ok()?).ok()?;
        Some(Self { station, spool: SpoolIdentity { id, opening }, turn })
    }

    /// Reads the owner of a name space's contacts. A damaged record has no owner: the spool gets
    /// another name space.
    pub(super) fn load(disk: &dyn Disk, space: &StationName) -> io::Result<Option<Self>> {
        let body = match load_state(disk, &format!("{}/{SPOOL_NAME}", station_dir(space))) {
            Err(error) if error.kind() == io::ErrorKind::InvalidData => Some(Vec::new()),
            other => other?.map(|state| state.body),
        };
        Ok(body.map(|body| Self::decode(&body).unwrap_or_else(|| Self::nobodys(space))))
    }

    /// Whether data came from it.
    fn is_known(&self) -> bool {
        self.spool.opening != SpoolOpening::default()
    }
}

/// The name spaces of all stations' spools, and the data received in each.
#[derive(Debug, Default)]
pub struct NameSpaces(BTreeMap<StationName, Station>);

/// The data received in one name space.
#[derive(Debug, Default)]
pub(super) struct Station {
    pub finished: Finished,
    pub open: BTreeMap<FlowId, Contact>,
    pub origin: Option<Origin>,
    /// Records since the store was opened.
    pub taken: u64,
}

impl NameSpaces {
    pub(super) fn get(&self, space: &StationName) -> Option<&Station> {
        self.0.get(space)
    }

    pub(super) fn get_mut(&mut self, space: &StationName) -> Option<&mut Station> {
        self.0.get_mut(space)
    }

    /// A name space, which is created if absent.
    pub(super) fn entry(&mut self, space: &StationName) -> &mut Station {
        self.0.entry(space.clone()).or_default()
    }

    pub(super) fn insert(&mut self, space: StationName, state: Station) {
        self.0.insert(space, state);
    }

    /// An open contact.
    pub(super) fn contact(&self, space: &StationName, flow: FlowId) -> Option<&Contact> {
        self.0.get(space)?.open.get(&flow)
    }

    pub(super) fn contact_mut(
        &mut self,
        space: &StationName,
        flow: FlowId,
    ) -> Option<&mut Contact> {
        self.0.get_mut(space)?.open.get_mut(&flow)
    }

    /// The open contacts, with the state of each.
    pub(super) fn contacts(&self) -> impl Iterator<Item = (&StationName, FlowId, &Contact)> {
        self.0.iter().flat_map(|(name, station)| {
            station.open.iter().map(move |(flow, contact)| (name, *flow, contact))
        })
    }

    /// How many contacts are open.
    pub(super) fn open_count(&self) -> usize {
        self.0.values().map(|station| station.open.len()).sum()
    }

    /// The space that the open contacts use on the disk.
    pub(super) fn open_size(&self) -> ByteCount {
        self.contacts().map(|(_, _, contact)| contact.log.segments().size()).sum()
    }

    /// The data that the station need not send again. It has durable data only.
    pub fn resume(&self, space: &StationName) -> ResumeFlow {
        self.get(space)
            .map_or_else(ResumeFlow::default, |space| ResumeFlow::of(&space.finished, &space.open))
    }

    /// How far a flow is.
    pub fn status(&self, station: &StationName, flow: FlowId) -> FlowStatus {
        let Some(station) = self.0.get(station) else {
            return FlowStatus::Unknown;
        };
        if let Some(contact) = station.open.get(&flow) {
            return FlowStatus::Open { next: contact.next, durable: contact.durable };
        }
        if station.finished.contains(flow) { FlowStatus::Finished } else { FlowStatus::Unknown }
    }

    /// The open contacts, to continue with them after a restart.
    pub fn open_contacts(&self) -> impl Iterator<Item = (&StationName, FlowId)> {
        self.contacts().map(|(name, flow, _)| (name, flow))
    }

    /// The data in the store of each spool of a station that sent data, the newest first, at most
    /// `most`.
    pub fn known(&self, station: &StationName, most: usize) -> Vec<SpoolKnown> {
        let mut known: Vec<(u64, SpoolKnown)> = Vec::new();
        for (space, state) in &self.0 {
            let Some(origin) = state.origin.as_ref().filter(|origin| origin.station == *station)
            else {
                continue;
            };
            if origin.is_known() {
                let one = SpoolKnown {
                    spool: origin.spool,
                    resume: self.resume(space),
                    state: state.told(),
                };
                known.push((origin.turn, one));
            }
        }
        known.sort_by_key(|(turn, _)| std::cmp::Reverse(*turn));
        known.into_iter().take(most).map(|(_, one)| one).collect()
    }

    /// The name spaces of a station's spools, its own name among them.
    pub fn of(&self, station: &StationName) -> Vec<StationName> {
        let is_its = |state: &Station| {
            state
                .origin
                .as_ref()
                .is_some_and(|origin| origin.station == *station && origin.is_known())
        };
        let its = self.0.iter().filter(|(space, state)| *space != station && is_its(state));
        std::iter::once(station).chain(its.map(|(space, _)| space)).cloned().collect()
    }

    /// The station whose contacts a name space holds.
    pub fn station_of(&self, space: &StationName) -> StationName {
        let origin = self.0.get(space).and_then(|state| state.origin.as_ref());
        origin.map_or_else(|| space.clone(), |origin| origin.station.clone())
    }

    /// Where the contacts of a spool are kept that came under a station's key. One from which no
    /// data came is forgotten for the next one.
    ///
    /// # Errors
    /// [`StoreError::TooManySpools`].
    pub(super) fn admit(
        &mut self,
        station: &StationName,
        spool: SpoolId,
    ) -> Result<ContactSpace, StoreError> {
        let is_claim = |space: &mut Station| {
            space.is_empty()
                && space.origin.as_ref().is_some_and(|origin| {
                    origin.station == *station && !origin.is_known() && origin.spool.id != spool
                })
        };
        self.0.retain(|_, space| !is_claim(space));
        let own = |origin: &&Origin| origin.station == *station;
        let origins = || self.0.values().filter_map(|space| space.origin.as_ref()).filter(own);
        let last = origins().filter(|origin| origin.is_known()).max_by_key(|origin| origin.turn);
        let other = last.map(|origin| origin.spool.id).filter(|last| *last != spool);
        let found = self.0.iter().find_map(|(space, state)| {
            let origin =
                state.origin.as_ref().filter(|origin| own(origin) && origin.spool.id == spool)?;
            Some((space.clone(), origin.is_known()))
        });
        if let Some((space, is_known)) = found {
            self.turn_to(&space);
            return Ok(ContactSpace { space, is_known, other });
        }
        if origins().count() >= MAX_SPOOLS {
            return Err(StoreError::TooManySpools { station: station.clone() });
        }
        let names =
            [station.clone(), station.with(&spool.short()), station.with(&spool.to_string())];
        let is_free =
            |name: &&StationName| self.0.get(*name).is_none_or(|space| space.origin.is_none());
        let space = names.iter().find(is_free).unwrap_or(&names[2]).clone();
        let identity = SpoolIdentity { id: spool, ..SpoolIdentity::default() };
        let origin = Origin { station: station.clone(), spool: identity, turn: 0 };
        self.0.entry(space.clone()).or_default().origin = Some(origin);
        Ok(ContactSpace { space, is_known: false, other })
    }

    /// A spool is in use again: the next session gets its state too.
    fn turn_to(&mut self, space: &StationName) {
        let turn = self.next_turn();
        if let Some(origin) = self.0.get_mut(space).and_then(|space| space.origin.as_mut()) {
            origin.turn = turn;
        }
    }

    fn next_turn(&self) -> u64 {
        let turns =
            self.0.values().filter_map(|space| space.origin.as_ref()).map(|origin| origin.turn);
        turns.max().unwrap_or(0).saturating_add(1)
    }

    /// Whether this sender sends the data: only it gets the receipts. Another sender with a copy of
    /// the spool may never have had that data.
    pub fn is_taken_up(&self, sender: &SpoolSender) -> bool {
        let origin = self.0.get(&sender.space).and_then(|space| space.origin.as_ref());
        origin.is_some_and(|origin| origin.spool == sender.spool)
    }
}

impl ContactStore {
    /// Where the contacts of a spool are kept that came under a station's key. One from which no
    /// data came is forgotten for the next one.
    ///
    /// # Errors
    /// [`StoreError::TooManySpools`].
    pub fn admit(
        &mut self,
        station: &StationName,
        spool: SpoolId,
    ) -> Result<ContactSpace, StoreError> {
        self.spaces.admit(station, spool)
    }

    /// Checks that a sender's records may be taken: since it got the resume state, no other sender
    /// may have sent data. The opening that sends data is durable when this returns.
    ///
    /// # Errors
    /// [`StoreError::Overtaken`]: the sender must begin a new session. [`StoreError::Full`],
    /// [`StoreError::State`].
    pub fn take_up(&mut self, sender: &SpoolSender) -> Result<(), StoreError> {
        let overtaken = || StoreError::Overtaken { space: sender.space.clone() };
        let state = self.spaces.get(&sender.space).ok_or_else(overtaken)?;
        let origin = state.origin.as_ref().filter(|origin| origin.spool.id == sender.spool.id);
        let origin = origin.ok_or_else(overtaken)?;
        if origin.spool.opening == sender.spool.opening {
            return Ok(());
        }
        let told = sender.told;
        let is_as_told = told.opening == origin.spool.opening
            && (!origin.is_known() || told.taken == Some(state.taken));
        if !is_as_told {
            return Err(overtaken());
        }
        let turn = self.spaces.next_turn();
        let new = Origin { station: sender.station.clone(), spool: sender.spool, turn };
        let dir = station_dir(&sender.space);
        let saved = self
            .room
            .disk
            .make_dir(&dir)
            .and_then(|()| save_state(&*self.room.disk, &dir, SPOOL_NAME, &new.encode()));
        saved.map_err(|source| {
            StoreError::state(format!("{dir}/{SPOOL_NAME}"), source, &self.room, self.size())
        })?;
        self.spaces.entry(&sender.space).origin = Some(new);
        Ok(())
    }

    /// Appends a sender's records, if they may be taken: see [`ContactStore::take_up`] and
    /// [`ContactStore::append`].
    ///
    /// # Errors
    /// As those two.
    pub fn append_from(
        &mut self,
        sender: &SpoolSender,
        arrival: super::ArrivedRecord<'_>,
    ) -> Result<Appended, StoreError> {
        self.take_up(sender)?;
        self.append(arrival)
    }
}

impl Station {
    fn told(&self) -> SpoolState {
        let opening = self.origin.as_ref().map(|origin| origin.spool.opening).unwrap_or_default();
        let is_durable = self.open.values().all(|contact| contact.next == contact.durable);
        SpoolState { opening, taken: is_durable.then_some(self.taken) }
    }

    /// Whether none of its data was ever stored.
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty() && self.finished == Finished::default() && self.taken == 0
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{NOW, open};
    use super::super::{ArrivedRecord, FlowId};
    use super::*;
    use crate::disk::Disk;
    use crate::sim::SimDisk;
    use crate::{Seq, mark};
    use proptest::prelude::*;
    use skyhaul_units::{ByteCount, Held};

    fn kiruna() -> StationName {
        StationName::new("kiruna").unwrap()
    }

    fn spool(number: u8, count: u64) -> SpoolIdentity {
        let opening = SpoolOpening { count, drawn: u64::from(number) << 8 | count };
        SpoolIdentity { id: SpoolId([number; 16]), opening }
    }

    /// A session with a spool, begun as a centre begins it.
    fn session(store: &mut ContactStore, spool: SpoolIdentity) -> SpoolSender {
        let known =
            store.spaces().known(&kiruna(), 4).into_iter().find(|known| known.spool.id == spool.id);
        let space = store.admit(&kiruna(), spool.id).unwrap().space;
        SpoolSender { station: kiruna(), space, spool, told: known.unwrap_or_default().state }
    }

    fn put(
        store: &mut ContactStore,
        sender: &SpoolSender,
        seq: u64,
    ) -> Result<Appended, StoreError> {
        let payload = [sender.spool.id.0[0]; 40];
        let station = &sender.space;
        let arrival = ArrivedRecord {
            station,
            flow: FlowId(9),
            seq: Seq(seq),
            received: NOW,
            payload: &payload,
        };
        store.append_from(sender, arrival)
    }

    #[test]
    fn two_spools_under_one_key_with_the_same_flow_number_are_two_contacts() {
        let disk = SimDisk::new(ByteCount::mib(1));
        let mut store = open(&disk);
        let first = session(&mut store, spool(1, 1));
        put(&mut store, &first, 0).unwrap();
        let second = session(&mut store, spool(2, 1));
        assert_eq!(store.admit(&kiruna(), SpoolId([2; 16])).unwrap().other, Some(SpoolId([1; 16])));
        put(&mut store, &second, 0).unwrap();
        assert_eq!((first.space.as_str(), second.space.as_str()), ("kiruna", "kiruna.02020202"));
        store.sync();
        disk.crash(3);
        let mut store = open(&disk);
        let known = store.spaces().known(&kiruna(), 4);
        let spools: Vec<_> = known.iter().map(|known| known.spool).collect();
        assert_eq!(spools, [spool(2, 1), spool(1, 1)], "the newest first");
        let held = |number: u8| Held { flow: FlowId(9), next: Seq(1), last: mark(&[number; 40]) };
        assert_eq!(
            (&known[0].resume.flows[..], &known[1].resume.flows[..]),
            (&[held(2)][..], &[held(1)][..])
        );
        assert_eq!(store.admit(&kiruna(), SpoolId([1; 16])).unwrap().space.as_str(), "kiruna");
        let finished = store.finish(&kiruna(), FlowId(9), NOW).unwrap();
        assert_eq!(finished.next, Seq::FINISHED);
        drop(store);
        let known = open(&disk).spaces().known(&kiruna(), 4);
        assert_eq!(known[1].resume.flows, [Held { next: Seq::FINISHED, ..held(1) }]);
    }

    #[test]
    fn a_copy_that_was_told_before_the_other_brought_more_has_to_ask_anew() {
        let mut store = open(&SimDisk::new(ByteCount::mib(1)));
        let first = session(&mut store, spool(1, 1));
        put(&mut store, &first, 0).unwrap();
        store.sync();
        let copy =
            session(&mut store, SpoolIdentity { opening: spool(7, 2).opening, ..spool(1, 1) });
        put(&mut store, &first, 1).unwrap();
        store.sync();
        assert!(matches!(put(&mut store, &copy, 1), Err(StoreError::Overtaken { .. })));
        assert!(
            store.spaces().is_taken_up(&first) && !store.spaces().is_taken_up(&copy),
            "the receipts are for the first"
        );
        let again = session(&mut store, copy.spool);
        put(&mut store, &again, 2).unwrap();
        assert!(matches!(put(&mut store, &first, 3), Err(StoreError::Overtaken { .. })));
        // Not all that had come was durable, and so not told.
        let third = session(&mut store, spool(1, 3));
        assert!(matches!(put(&mut store, &third, 3), Err(StoreError::Overtaken { .. })));
    }

    #[test]
    fn a_spool_from_which_nothing_came_leaves_nothing_behind() {
        let disk = SimDisk::new(ByteCount::mib(1));
        let mut store = open(&disk);
        for number in 1..100 {
            let admitted = store.admit(&kiruna(), SpoolId([number; 16])).unwrap();
            assert_eq!(
                (admitted.space.as_str(), admitted.is_known, admitted.other),
                ("kiruna", false, None)
            );
        }
        assert_eq!(store.spaces().known(&kiruna(), 4), []);
        assert_eq!(
            open(&disk).admit(&kiruna(), SpoolId([9; 16])).unwrap().space.as_str(),
            "kiruna"
        );
    }

    #[test]
    fn a_name_space_whose_owner_is_damaged_is_nobodys() {
        let disk = SimDisk::new(ByteCount::mib(1));
        let mut store = open(&disk);
        let first = session(&mut store, spool(1, 1));
        put(&mut store, &first, 0).unwrap();
        store.sync();
        drop(store);
        disk.remove("contacts/kiruna/spool").unwrap();
        let mut store = open(&disk);
        assert_eq!(store.spaces().known(&kiruna(), 4), []);
        let again = session(&mut store, spool(1, 2));
        assert_eq!((again.space.as_str(), again.told), ("kiruna.01010101", SpoolState::default()));
        put(&mut store, &again, 0).unwrap();
    }

    #[test]
    fn the_spools_of_a_station_are_bounded() {
        let mut store = open(&SimDisk::new(ByteCount::mib(64)));
        let id = |number: usize| {
            SpoolId([
                (number / 16) as u8 + 1,
                number as u8,
                3,
                4,
                0,
                0,
                0,
                0,
                0,
                0,
                0,
                0,
                0,
                0,
                0,
                0,
            ])
        };
        for number in 0..MAX_SPOOLS {
            let sender =
                session(&mut store, SpoolIdentity { id: id(number), opening: spool(1, 1).opening });
            store.take_up(&sender).unwrap();
        }
        let error = store.admit(&kiruna(), id(MAX_SPOOLS)).unwrap_err();
        assert!(matches!(error, StoreError::TooManySpools { .. }), "{error}");
        assert!(store.admit(&kiruna(), id(7)).unwrap().is_known);
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_owner_or_none(body in prop::collection::vec(any::<u8>(), 0..80)) {
            if let Some(origin) = Origin::decode(&body) {
                prop_assert_eq!(origin.encode(), body);
            }
        }
    }
}
