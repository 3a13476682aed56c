//! The errors of the contact store.

use super::StationName;
use super::limits::{MAX_OPEN_CONTACTS, MAX_SPOOLS, NEW_CONTACT};
use crate::disk::is_full;
use crate::format::help;
use crate::log::LogError;
use crate::room::{Room, Shortage};
use crate::{FlowId, Seq};
use skyhaul_units::ByteCount;
use std::io;

/// Why an operation of the contact store failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// No space; nothing was written. Hold the station back and try again: the error ends by itself
    /// when there is space.
    #[error(
        "the contact store is full: {needed} needed, {available} available; free space on the \
        state folder's file system (the store leaves {reserve} of it free), or raise max_size in \
        [store]"
    )]
    Full {
        /// What the append needs.
        needed: ByteCount,
        /// What there is.
        available: ByteCount,
        /// The space that stays free on the file system.
        reserve: ByteCount,
    },
    /// A record that is not the next one.
    #[error(
        "{station}, flow {flow}: record {got} received, {expected} expected; the station must send \
        in order, from {expected}"
    )]
    Gap {
        /// The station.
        station: StationName,
        /// The flow.
        flow: FlowId,
        /// What is next.
        expected: Seq,
        /// What came.
        got: Seq,
    },
    /// No such contact is open.
    #[error(
        "{station}, flow {flow}: no contact is open under this number: it was never opened, or is \
        finished"
    )]
    NotOpen {
        /// The station.
        station: StationName,
        /// The flow.
        flow: FlowId,
    },
    /// Too many contacts are open.
    #[error("{MAX_OPEN_CONTACTS} contacts are open, the limit: finish some")]
    TooManyContacts,
    /// A station came with too many spools.
    #[error(
        "{station}: {MAX_SPOOLS} spools sent data under this key, the limit: give each station its \
        own key, or remove folders of former spools from contacts/"
    )]
    TooManySpools {
        /// The station.
        station: StationName,
    },
    /// Other senders brought data since this sender got the resume state.
    #[error("{space}: another session delivered data meanwhile: the station must reconnect")]
    Overtaken {
        /// The name space.
        space: StationName,
    },
    /// Too many contacts below the finished ones never ended.
    #[error(
        "{station}: more than 4096 gaps between its finished contacts: finish the older contacts \
        first"
    )]
    TooManyHoles {
        /// The station.
        station: StationName,
    },
    /// A state file cannot be read or written.
    #[error(
        "{path}: {source}{}",
        help(.source, "; check the disk, then restore this file from a backup")
    )]
    State {
        /// The file.
        path: String,
        /// What is wrong with it.
        source: io::Error,
    },
    /// A contact's log cannot go on.
    #[error(transparent)]
    Log(#[from] LogError),
}

impl From<Shortage> for StoreError {
    fn from(shortage: Shortage) -> Self {
        let Shortage { needed, available, reserve } = shortage;
        Self::Full { needed, available, reserve }
    }
}

impl StoreError {
    /// A state file could not be written, where the store fills `used`.
    pub(super) fn state(path: String, source: io::Error, room: &Room, used: ByteCount) -> Self {
        if is_full(&source) {
            return room.shortage(NEW_CONTACT, used).into();
        }
        Self::State { path, source }
    }
}
