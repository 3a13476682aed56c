//! A store that open contacts fill: nothing of them may be removed, so that waiting helps only if
//! one of them ends.

use super::ContactStore;
use skyhaul_units::ByteCount;

/// Open contacts fill the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "{contacts} contacts that have not ended take {size} of the store, and nothing of a contact is \
    removed before its end: unless one of them ends, raise max_size in [store], which is \
    {max_size}; a reload applies it at once"
)]
pub struct StoreJam {
    /// How many.
    pub contacts: usize,
    /// What they take.
    pub size: ByteCount,
    /// What the store may take.
    pub max_size: ByteCount,
}

impl StoreJam {
    /// Whether a write of `needed` has no room because of contacts that are open, whatever of the
    /// others is removed.
    pub fn of(store: &ContactStore, needed: ByteCount) -> Option<Self> {
        let (size, max_size) = (store.spaces.open_size(), store.room.max_size);
        let contacts = store.spaces.open_count();
        (contacts > 0 && size + needed > max_size).then_some(Self { contacts, size, max_size })
    }
}
