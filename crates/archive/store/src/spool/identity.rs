//! The identity of a spool and of each of its openings: two copies of one state folder must not
//! pass for the same spool.
//!
//! | field | size | what |
//! |---|---|---|
//! | spool | 16 | drawn when the spool was made |
//! | openings | u64 + u64 each | count, and a number drawn then; the newest last |
//!
//! Each opening appends itself. A copy that was put back, or goes on elsewhere, has not the
//! openings of the other: the centre says from which it took data last, and the spool looks whether
//! that is one of its own. All of them are remembered, up to a limit: a destination may name an old
//! one that was away for long, was put back, or is added again.

use super::destinations::DestinationId;
use super::{LOG_DIR, Spool, SpoolError};
use crate::disk::Disk;
use crate::publish::{load_state, save_state};
use crate::{FlowId, Seq};
use skyhaul_units::wire::ByteReader;
use skyhaul_units::{SpoolId, SpoolIdentity, SpoolOpening};
use std::io;

/// Random bytes: a number for a new spool, and one for its opening.
#[derive(Debug, Clone, Copy)]
pub struct SpoolDraw(pub [u8; 24]);

/// What tells a spool from its copies.
#[derive(Debug)]
pub(super) struct Identity {
    id: SpoolId,
    /// At least one: that of now is the last.
    openings: Vec<SpoolOpening>,
    /// Whether this opening is on the disk.
    is_durable: bool,
}

/// Openings that are remembered: 16 KiB. A station that was opened so often without one of its
/// destinations is taken for a copy: it goes on as another spool, and loses nothing.
const OPENINGS_MAX: usize = 1_024;
const STATE_NAME: &str = "identity";

impl SpoolDraw {
    fn id(self) -> SpoolId {
        let mut id = [0; 16];
        id.copy_from_slice(&self.0[..16]);
        SpoolId(id)
    }

    fn opening(self, count: u64) -> SpoolOpening {
        let drawn = self.0[16..].iter().fold(0, |value, byte| value << 8 | u64::from(*byte));
        SpoolOpening { count, drawn }
    }
}

impl Identity {
    pub fn path() -> String {
        format!("{LOG_DIR}/{STATE_NAME}")
    }

    /// Of a spool that begins.
    pub fn new(draw: SpoolDraw) -> Self {
        Self { id: draw.id(), openings: vec![draw.opening(1)], is_durable: false }
    }

    /// Reads what was saved, and adds this opening; `None` where nothing was, or it is damaged: the
    /// spool is another one then.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn load(disk: &dyn Disk, draw: SpoolDraw) -> io::Result<Option<Self>> {
        let body = match load_state(disk, &Self::path()) {
            Err(error) if error.kind() == io::ErrorKind::InvalidData => None,
            other => other?,
        };
        let Some(mut identity) = body.and_then(|state| Self::decode(&state.body)) else {
            return Ok(None);
        };
        let count = identity.now().count.saturating_add(1);
        identity.openings.push(draw.opening(count));
        if identity.openings.len() > OPENINGS_MAX {
            identity.openings.remove(0);
        }
        Ok(Some(identity))
    }

    pub fn save(&mut self, disk: &dyn Disk) -> io::Result<()> {
        save_state(disk, LOG_DIR, STATE_NAME, &self.encode())?;
        self.is_durable = true;
        Ok(())
    }

    pub const fn is_durable(&self) -> bool {
        self.is_durable
    }

    fn now(&self) -> SpoolOpening {
        *self.openings.last().expect("made with one, and none is taken away but older ones")
    }

    fn encode(&self) -> Vec<u8> {
        let mut body = self.id.0.to_vec();
        for opening in &self.openings {
            body.extend_from_slice(&opening.count.to_be_bytes());
            body.extend_from_slice(&opening.drawn.to_be_bytes());
        }
        body
    }

    fn decode(body: &[u8]) -> Option<Self> {
        let mut body = ByteReader::new(body);
        let id = SpoolId(body.array()?);
        let openings =
            body.all(|body| Some(SpoolOpening { count: body.u64()?, drawn: body.u64()? }))?;
        let is_sane = (1..=OPENINGS_MAX).contains(&openings.len());
        is_sane.then_some(Self { id, openings, is_durable: false })
    }
}

impl Spool {
    /// Which spool this is, and which opening of it; `None` as long as the disk has no room to
    /// remember it: nobody may be told before. [`Spool::free`] tries again.
    pub fn identity(&self) -> Option<SpoolIdentity> {
        let identity = SpoolIdentity { id: self.identity.id, opening: self.identity.now() };
        self.identity.is_durable().then_some(identity)
    }

    /// Whether this opening goes on from that one, or is it.
    pub fn goes_on_from(&self, opening: SpoolOpening) -> bool {
        self.identity.openings.contains(&opening)
    }

    /// Becomes another spool: its flows begin anew there, and what it still has of those that wait
    /// is sent from its beginning, to every destination that has not all of it.
    ///
    /// # Errors
    /// [`SpoolError::Full`], [`SpoolError::State`]: it is the same spool as before. Try again.
    pub fn renew(&mut self, draw: SpoolDraw) -> Result<(), SpoolError> {
        // What is wholly in custody is forgotten first.
        let saved = self.queue.flows.save(&*self.room.disk);
        saved.map_err(|source| self.state_error(source))?;
        for (to, flow) in self.queue.flows.table.unfinished() {
            self.resume(to, flow, Seq::FIRST);
        }
        // In this order: what was written before the power went must not be a new spool of which
        // half is held for delivered.
        let saved = self.queue.flows.save(&*self.room.disk);
        saved.map_err(|source| self.state_error(source))?;
        let mut identity = Identity::new(draw);
        let saved = identity.save(&*self.room.disk);
        saved.map_err(|source| identity_error(self, source))?;
        self.identity = identity;
        Ok(())
    }

    /// Reads the identity of a spool that was opened, or makes one. Where the disk is full it is
    /// remembered later.
    pub(super) fn identify(&mut self, draw: SpoolDraw) -> Result<(), SpoolError> {
        let known = Identity::load(&*self.room.disk, draw)
            .map_err(|source| identity_error(self, source))?;
        let saved = match known {
            None => self.renew(draw),
            Some(identity) => {
                self.identity = identity;
                let saved = self.identity.save(&*self.room.disk);
                saved.map_err(|source| identity_error(self, source))
            }
        };
        match saved {
            Err(SpoolError::Full { .. }) => Ok(()),
            other => other,
        }
    }

    /// Remembers the identity, where that was not possible before and what goes with it is.
    pub(super) fn remember(&mut self) {
        if !self.identity.is_durable()
            && !self.queue.flows.lags()
            && self.identity.save(&*self.room.disk).is_err()
        {
            self.stats.state_failures += 1;
        }
    }

    /// A destination has said what it has of a live flow, which counts: less than it had receipted,
    /// where its own store was put back or is another one.
    pub fn resume(&mut self, to: DestinationId, flow: FlowId, next: Seq) {
        let Some(extent) = self.queue.extent(to, flow) else { return };
        // What is removed was in custody, though the state may not say so, unless it gave way:
        // that is told.
        let last_here = self.queue.last_here(flow);
        let is_gone = next < extent.next && last_here.is_none_or(|last| last < next);
        let gave_way = self.queue.flows.table.gone(to, flow) > next;
        // More than the spool knows of, where it had forgotten the flow.
        let has_more = next > extent.next && !self.queue.is_end_known(to, flow);
        let next = if (is_gone && !gave_way) || has_more { Seq::FINISHED } else { next };
        self.queue.flows.go_back(to, flow, next);
        self.custody(to, flow, next);
    }
}

fn identity_error(spool: &Spool, source: io::Error) -> SpoolError {
    if crate::is_full(&source) {
        return spool.state_error(source);
    }
    SpoolError::State { path: Identity::path(), source }
}

#[cfg(test)]
mod tests {
    use super::super::FlowExtent;
    use super::*;
    use crate::sim::SimDisk;
    use crate::{SpoolConfig, mark};
    use proptest::prelude::*;
    use skyhaul_units::{ByteCount, Utc};
    use std::sync::Arc;

    const NOW: Utc = Utc::from_micros(1_790_000_000_000_000);

    fn open(disk: &SimDisk, number: u8) -> Spool {
        let config = SpoolConfig {
            max_size: ByteCount::mib(8),
            segment_size: ByteCount::mib(1),
            ..SpoolConfig::default()
        };
        Spool::open(Arc::new(disk.clone()), config, NOW, SpoolDraw([number; 24])).unwrap()
    }

    #[test]
    fn a_spool_keeps_its_identity_and_counts_its_openings() {
        let disk = SimDisk::new(ByteCount::mib(256));
        let first = open(&disk, 1).identity().unwrap();
        let second = open(&disk, 2).identity().unwrap();
        assert_eq!((first.id, first.opening.count), (SpoolId([1; 16]), 1));
        assert_eq!((second.id, second.opening.count), (first.id, 2));
        let third = open(&disk, 3);
        assert!(third.goes_on_from(second.opening) && third.goes_on_from(first.opening));
        assert!(third.goes_on_from(third.identity().unwrap().opening));
        let elsewhere = SpoolOpening { count: 2, drawn: 9 };
        assert!(!third.goes_on_from(elsewhere), "as often opened, and another opening");
        assert_ne!(open(&SimDisk::new(ByteCount::mib(256)), 4).identity().unwrap().id, first.id);
    }

    #[test]
    fn a_copy_that_was_put_back_does_not_go_on_from_what_came_after_it() {
        let disk = SimDisk::new(ByteCount::mib(256));
        drop(open(&disk, 1));
        let copy = disk.copy();
        let later = open(&disk, 2).identity().unwrap().opening;
        drop(open(&copy, 3));
        let put_back = open(&copy, 4);
        assert!(
            put_back.identity().unwrap().opening.count > later.count,
            "the count alone does not tell"
        );
        assert!(!put_back.goes_on_from(later));
    }

    #[test]
    fn a_spool_that_becomes_another_sends_what_waits_from_its_beginning() {
        let disk = SimDisk::new(ByteCount::mib(256));
        let mut spool = open(&disk, 1);
        let flow = spool.open_flow(NOW).unwrap();
        for number in 0..6 {
            spool.append(flow, &[number; 9], NOW).unwrap();
        }
        spool.sync().unwrap();
        spool.custody(DestinationId::FIRST, flow, Seq(4));
        assert_eq!(
            spool.queue().extent(DestinationId::FIRST, flow),
            Some(FlowExtent { custody: Seq(4), next: Seq(6) })
        );
        assert_eq!(spool.queue_mut().mark_of(flow, Seq(3)).unwrap(), Some(mark(&[3; 9])));
        assert_eq!(spool.queue_mut().mark_of(flow, Seq(6)).unwrap(), None);
        spool.renew(SpoolDraw([2; 24])).unwrap();
        assert_eq!(
            (spool.identity().unwrap().id, spool.queue().extent(DestinationId::FIRST, flow)),
            (SpoolId([2; 16]), Some(FlowExtent { custody: Seq(0), next: Seq(6) }))
        );
        drop(spool);
        let spool = open(&disk, 3);
        assert_eq!(
            (spool.identity().unwrap().id, spool.queue().extent(DestinationId::FIRST, flow)),
            (SpoolId([2; 16]), Some(FlowExtent { custody: Seq(0), next: Seq(6) }))
        );
    }

    #[test]
    fn without_its_identity_a_spool_is_another_one_and_sends_everything_again() {
        for is_damaged in [false, true] {
            let disk = SimDisk::new(ByteCount::mib(256));
            let mut spool = open(&disk, 1);
            let flow = spool.open_flow(NOW).unwrap();
            spool.append(flow, b"x", NOW).unwrap();
            spool.append(flow, b"y", NOW).unwrap();
            spool.sync().unwrap();
            spool.custody(DestinationId::FIRST, flow, Seq(1));
            spool.free(NOW).unwrap();
            drop(spool);
            disk.remove(&Identity::path()).unwrap();
            if is_damaged {
                disk.create(&Identity::path()).unwrap().append(b"nothing of it is left").unwrap();
            }
            let spool = open(&disk, 2);
            assert_eq!(
                (spool.identity().unwrap().id, spool.queue().extent(DestinationId::FIRST, flow)),
                (SpoolId([2; 16]), Some(FlowExtent { custody: Seq(0), next: Seq(2) }))
            );
        }
    }

    #[test]
    fn at_every_fault_of_the_disk_it_is_the_one_spool_or_the_other_and_holds_all() {
        for fault in 0..12 {
            let disk = SimDisk::new(ByteCount::mib(256));
            let mut spool = open(&disk, 1);
            let flow = spool.open_flow(NOW).unwrap();
            spool.append(flow, b"x", NOW).unwrap();
            spool.append(flow, b"y", NOW).unwrap();
            spool.sync().unwrap();
            spool.custody(DestinationId::FIRST, flow, Seq(1));
            spool.free(NOW).unwrap();
            disk.fail_after(fault);
            let renewed = spool.renew(SpoolDraw([2; 24]));
            drop(spool);
            disk.crash(fault);
            let spool = open(&disk, 3);
            let (id, extent) =
                (spool.identity().unwrap().id, spool.queue().extent(DestinationId::FIRST, flow));
            assert!(renewed.is_err() || id == SpoolId([2; 16]), "fault {fault}");
            let is_new = id != SpoolId([1; 16]);
            assert!(
                !is_new || extent == Some(FlowExtent { custody: Seq(0), next: Seq(2) }),
                "fault {fault}: {extent:?}"
            );
            assert!(
                extent.is_some_and(|extent| extent.next == Seq(2)),
                "fault {fault}: {extent:?}"
            );
        }
    }

    #[test]
    fn on_a_full_disk_a_spool_opens_and_tells_nobody_which_it_is_until_it_can_remember_it() {
        let full = SimDisk::new(ByteCount::ZERO);
        let mut spool = open(&full, 1);
        assert_eq!(spool.identity(), None);
        spool.free(NOW).unwrap();
        assert_eq!(spool.identity(), None);
        full.set_capacity(ByteCount::mib(256));
        spool.free(NOW).unwrap();
        let identity = spool.identity().unwrap();
        drop(spool);
        assert!(open(&full, 2).goes_on_from(identity.opening));
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_identity_or_none(body in prop::collection::vec(any::<u8>(), 0..80)) {
            if let Some(identity) = Identity::decode(&body) {
                prop_assert_eq!(identity.encode(), body);
            }
        }
    }
}
