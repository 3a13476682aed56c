//! What the centre has of each station's contacts, for standby stations.

use skyhaul_level0::ledger::ContactId;
use skyhaul_level0::standby::{BlockFrames, FrameMark};
use skyhaul_store::Seq;
use skyhaul_units::Instant;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The contacts that were read since the start.
#[derive(Debug, Default)]
pub struct DeliveredContacts {
    list: Mutex<BTreeMap<ContactId, ReadContact>>,
}

/// A contact that was read up to some block.
#[derive(Debug, Clone)]
pub struct ReadContact {
    /// The name of its mission.
    pub mission: String,
    /// Its first good frame, and the newest.
    pub frames: BlockFrames,
    /// When the newest frames came; none where that was before the start.
    pub came: Option<Instant>,
    /// Blocks below it are read.
    pub next: Seq,
    /// Whether it has ended.
    pub is_ended: bool,
}

/// A block that was read.
#[derive(Debug)]
pub struct ReadBlock<'a> {
    /// The mission of its contact.
    pub mission: &'a str,
    /// Its place.
    pub seq: Seq,
    /// Its good frames.
    pub frames: BlockFrames,
    /// When it came; none where that was before the start.
    pub came: Option<Instant>,
}

/// Contacts that are remembered; the oldest go first.
const CONTACTS_MAX: usize = 1_024;

impl DeliveredContacts {
    fn list(&self) -> MutexGuard<'_, BTreeMap<ContactId, ReadContact>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A block with good frames was read.
    pub fn read(&self, id: &ContactId, block: ReadBlock<'_>) {
        let ReadBlock { mission, seq, frames, came } = block;
        let mut list = self.list();
        if let Some(read) = list.get_mut(id) {
            if read.next <= seq {
                (read.next, read.came) = (seq.next(), came.or(read.came));
                if read.frames.first.mark == FrameMark::default() {
                    read.frames = frames;
                } else if frames.last.mark != FrameMark::default() {
                    read.frames.last = frames.last;
                }
            }
            return;
        }
        let (mission, next) = (mission.to_owned(), seq.next());
        list.insert(id.clone(), ReadContact { mission, frames, came, next, is_ended: false });
        if list.len() > CONTACTS_MAX {
            let oldest = list.iter().min_by_key(|(_, read)| read.frames.last.received);
            if let Some(oldest) = oldest.map(|(id, _)| id.clone()) {
                list.remove(&oldest);
            }
        }
    }

    /// The contact has ended, and all of it was read.
    pub fn ended(&self, id: &ContactId) {
        if let Some(read) = self.list().get_mut(id) {
            read.is_ended = true;
        }
    }

    /// The contacts that `is_its` says.
    pub fn of(&self, is_its: impl Fn(&ContactId) -> bool) -> Vec<(ContactId, ReadContact)> {
        let list = self.list();
        let its = list.iter().filter(|(id, _)| is_its(id));
        its.map(|(id, read)| (id.clone(), read.clone())).collect()
    }
}
