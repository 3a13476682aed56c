//! Contacts as sessions of the CADU Interface Delivery Point (CADIP): what a server says of them
//! while they come in and after.

use serde::{Deserialize, Serialize};
use skyhaul_units::Utc;

/// A contact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContactSession {
    /// Its number at this node.
    pub number: u64,
    /// Its name, `SATELLITE_TIMEFLOW`.
    pub name: String,
    /// What it is of.
    pub of: SessionLabel,
    /// When the first of it was on the disk here.
    pub published: Utc,
    /// When it began at its station.
    pub start: Utc,
    /// When the last bit that is here was received at its station.
    pub stop: Utc,
    /// What is known of its end.
    pub progress: SessionProgress,
    /// Its frames so far.
    pub frames: SessionFrames,
    /// Its files so far, by their block numbers.
    pub files: Vec<SessionFile>,
    /// When its files go; none while it comes in.
    pub evicted: Option<Utc>,
}

/// What a contact is of.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionLabel {
    /// The station.
    pub station: String,
    /// The channel there.
    pub channel: String,
    /// The mission.
    pub mission: String,
    /// The contact's number at the station.
    pub flow: u32,
    /// Whether it has frames that were missing in an earlier contact.
    pub is_retransfer: bool,
}

/// How far a contact is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SessionProgress {
    /// It comes in.
    #[default]
    Open,
    /// All of it is here.
    Whole,
    /// It has ended, and blocks of it could not be read.
    Broken,
}

/// Frames of a contact.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionFrames {
    /// Frames that were received, good or not.
    pub acquired: u64,
    /// Good frames in which errors were corrected.
    pub corrected: u64,
    /// Frames that could not be corrected: they are in no file.
    pub uncorrectable: u64,
    /// Good frames with data: all but fill.
    pub data: u64,
    /// Those of them in which errors were corrected.
    pub corrected_data: u64,
}

/// A file of a contact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionFile {
    /// Its place in the contact, from 1.
    pub block: u32,
    /// Its name.
    pub name: String,
    /// Its length.
    pub size: u64,
    /// Its digest.
    pub sha256: [u8; 32],
    /// When it was on the disk.
    pub published: Utc,
}

impl ContactSession {
    /// The number of a file.
    pub const fn file_number(&self, block: u32) -> u64 {
        self.number << BLOCK_BITS | block as u64
    }

    /// The numbers of the contact and the block of a file.
    pub const fn of_file_number(number: u64) -> (u64, u32) {
        (number >> BLOCK_BITS, (number & ((1 << BLOCK_BITS) - 1)) as u32)
    }

    /// Whether it has ended.
    pub fn is_over(&self) -> bool {
        self.progress != SessionProgress::Open
    }

    /// Whether a file is the last one; none where that is not known yet.
    pub fn is_last(&self, file: &SessionFile) -> Option<bool> {
        let is_newest = self.files.last().is_some_and(|last| last.block == file.block);
        match (is_newest, self.is_over()) {
            (false, _) => Some(false),
            (true, true) => Some(true),
            (true, false) => None,
        }
    }

    /// The bytes of its files.
    pub fn volume(&self) -> u64 {
        self.files.iter().map(|file| file.size).sum()
    }
}

/// A contact has at most a million files.
const BLOCK_BITS: u32 = 20;
