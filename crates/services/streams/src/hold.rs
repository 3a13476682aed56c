//! The reorder buffer: groups that wait for earlier ones.

use crate::wire::FrameGroup;
use std::collections::BTreeMap;

/// Groups that came before their turn.
#[derive(Debug, Default)]
pub(crate) struct Hold {
    groups: BTreeMap<u64, Held>,
    bytes: usize,
}

/// A group that came.
#[derive(Debug)]
pub(crate) struct Held {
    pub group: FrameGroup,
    /// Whether it was repaired on its way.
    pub repaired: bool,
}

impl Hold {
    /// Bytes of groups that wait, at most: two seconds of 1 Gbit/s.
    pub const BYTES_MAX: usize = 256 << 20;

    /// Keeps a group; gives it back where there is no room.
    pub fn keep(&mut self, held: Held) -> Result<(), Held> {
        let cost = cost(&held.group);
        if self.bytes + cost > Self::BYTES_MAX {
            return Err(held);
        }
        self.bytes += cost;
        self.groups.insert(held.group.first, held);
        Ok(())
    }

    /// Whether frames of `group` are there already.
    pub fn overlaps(&self, group: &FrameGroup) -> bool {
        let end = group.first + u64::from(group.count);
        let before = self.groups.range(..end).next_back();
        before.is_some_and(|(first, held)| first + u64::from(held.group.count) > group.first)
    }

    /// The first group that waits.
    pub fn first(&self) -> Option<&FrameGroup> {
        self.groups.first_key_value().map(|(_, held)| &held.group)
    }

    /// Takes the group that begins with the frame `number`.
    pub fn take(&mut self, number: u64) -> Option<Held> {
        let held = self.groups.remove(&number)?;
        self.bytes -= cost(&held.group);
        Some(held)
    }
}

/// With the book-keeping.
fn cost(group: &FrameGroup) -> usize {
    group.frames.len() + 256
}
