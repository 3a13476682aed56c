//! The construction record: the binary file number 00 of an EDOS product set, which says what the
//! packet files hold and what is missing from them.
//!
//! Layout: big-endian, no alignment; the fixed head, one entry for each APID, one entry for each
//! file. The ICD (423-ICD-EDOS/EGS) is not public: the layout is what independent readers and
//! writers agree on, and it holds for genuine records. [`ConstructionRecord::parse`] takes any
//! bytes; a record that it returns has a length that agrees with its own counts. Spare octets are
//! ignored when read and zero when written.

mod entry;
mod parse;
mod write;

#[cfg(test)]
mod tests;

pub use entry::{
    ApidEntry, ApidSpan, FileEntry, FillEntry, FixedText, GapEntry, RecordTime, SpacecraftApid,
    SpacecraftVcid, Span,
};
pub use parse::ConstructionRecordError;
pub use write::WriteError;

use skyhaul_units::ByteCount;

/// APIDs that a construction record has room for: its count has 8 bits.
pub(crate) const RECORD_APIDS: usize = 255;

/// What a product set's packet files hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConstructionRecord {
    /// Version of the software that made the product.
    pub software: SoftwareVersion,
    /// What kind of product set this is.
    pub kind: ProductKind,
    /// The record's own file name without its suffix.
    pub id: FixedText<36>,
    /// Made from test data.
    pub test: bool,
    /// The spacecraft contacts that the data came from: start and stop on the ground.
    pub sessions: Vec<Span>,
    /// Figures over all packet files.
    pub totals: FileSetTotals,
    /// When the product set was complete.
    pub completed: RecordTime,
    /// What there is of each APID.
    pub apids: Vec<ApidEntry>,
    /// The files, this record's own first.
    pub files: Vec<FileEntry>,
}

/// Version of the software that made a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SoftwareVersion {
    /// Major version.
    pub major: u8,
    /// Minor version.
    pub minor: u8,
}

/// Kind of a product set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ProductKind {
    /// Production data set: everything.
    Pds,
    /// Expedited data set: a fast subset, same format.
    Eds,
    /// Expedited data set for quick-look use.
    QuickLookEds,
}

/// Figures over all packet files of a product set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FileSetTotals {
    /// Octets that the ground system made up to complete packets.
    pub fill: ByteCount,
    /// Packets whose header names a length that they do not have.
    pub length_discrepancies: u32,
    /// Time of the first and the last packet, spacecraft clock.
    pub packet_times: Span,
    /// Ground reception of the first and the last packet.
    pub reception: Span,
    /// Packets with at least one byte from a frame that needed Reed-Solomon correction.
    pub corrected_packets: u32,
    /// Packets in the data set.
    pub packets: u32,
    /// Octets in the data set.
    pub size: ByteCount,
    /// Breaks in the sequence counts, over all APIDs.
    pub gaps: u32,
}

impl ConstructionRecord {
    /// The length that the record's counts call for, in bytes: 136 + 16 N + sum over APIDs (92 + 4
    /// v + 48 g + 16 f + 4 d) + sum over files (44 + 24 max(1, n)).
    pub fn encoded_len(&self) -> usize {
        let apids: usize = self.apids.iter().map(ApidEntry::encoded_len).sum();
        let files: usize = self.files.iter().map(FileEntry::encoded_len).sum();
        HEAD + SESSION * self.sessions.len() + apids + files
    }
}

/// Fixed octets outside sessions, APIDs and files.
const HEAD: usize = 136;
/// Octets of one contact session: start and stop.
const SESSION: usize = 16;
