//! The form of the two files.
//!
//! ```text
//! file   4096 bytes of head, then rows, each of 4960 bytes
//! head   "SKYHIST", version u8, rows u32, seconds of a row u32, levels u16, spreads u16,
//!        checksum u32 over what is before; zeros
//! row    head of 32 bytes; 164 cells of levels; 36 cells of spreads
//! head   number u64, begin i64 (seconds since 1970), number of the first row of minutes that is
//!        not in it u64 (hours; else 0), zero u32, checksum u32 over what is before
//! ```
//!
//! All numbers are little-endian. The row of number `n` has place `n` modulo the number of rows.

use crate::cell::{LEVEL_BYTES, SPREAD_BYTES};
use crate::checksum::crc;

/// Bytes before the first row.
pub const FILE_HEAD: u64 = 4_096;
/// Bytes before the cells of a row.
pub const ROW_HEAD: usize = 32;
/// Series of levels: the mean, the least and the greatest value are kept.
pub const LEVELS_MAX: usize = 164;
/// Series of spreads, of which also buckets and the worst contact are kept.
pub const SPREADS_MAX: usize = 36;
/// Bytes of a row.
pub const ROW_BYTES: usize = ROW_HEAD + LEVELS_MAX * LEVEL_BYTES + SPREADS_MAX * SPREAD_BYTES;
/// Rows of minutes: 48 h.
pub const MINUTES_KEPT: u32 = 48 * 60;

const MAGIC: &[u8; 7] = b"SKYHIST";
const VERSION: u8 = 1;
/// A file of more rows is none of ours: 100 years of hours.
const ROWS_LIMIT: u32 = 1_000_000;

/// One of the two files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HistoryFile {
    /// A row a minute.
    Minutes,
    /// A row an hour.
    Hours,
}

/// The head of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileHead {
    /// Which of the two it is.
    pub file: HistoryFile,
    /// How many rows it has.
    pub rows: u32,
}

/// The head of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowHead {
    /// Counts from 1 in its file.
    pub number: u64,
    /// When its span of time begins, in seconds since 1970.
    pub begin: i64,
    /// In a row of hours: the number of the first row of minutes that is not in it.
    pub minutes: u64,
}

/// Why a file cannot be read on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HistoryFormError {
    /// It does not begin as such files do.
    #[error("it is not a file of the history")]
    Foreign,
    /// A later release wrote it.
    #[error("it has version {0}, and this program reads version {VERSION}")]
    Version(u8),
    /// Its head is damaged.
    #[error("its head is damaged")]
    Damaged,
    /// It is for other rows than this release writes.
    #[error("its rows have another form")]
    Other,
    /// It ends too early.
    #[error("it is shorter than its head says")]
    Short,
}

impl HistoryFile {
    /// Both of them.
    pub const ALL: [Self; 2] = [Self::Minutes, Self::Hours];

    /// Its name in the folder of the history.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Minutes => "minutes",
            Self::Hours => "hours",
        }
    }

    /// The span of a row, in seconds.
    pub const fn span(self) -> i64 {
        match self {
            Self::Minutes => 60,
            Self::Hours => 3_600,
        }
    }

    /// When the row of this time begins.
    pub const fn begin(self, second: i64) -> i64 {
        second - second.rem_euclid(self.span())
    }
}

impl FileHead {
    /// The whole file's bytes.
    pub const fn file_bytes(self) -> u64 {
        FILE_HEAD + self.rows as u64 * ROW_BYTES as u64
    }

    /// Where a row is.
    pub const fn offset(self, number: u64) -> u64 {
        FILE_HEAD + number % self.rows as u64 * ROW_BYTES as u64
    }

    /// As bytes, the first of the file.
    pub fn encode(self) -> Vec<u8> {
        let mut head = MAGIC.to_vec();
        head.push(VERSION);
        head.extend(self.rows.to_le_bytes());
        head.extend(u32::try_from(self.file.span()).unwrap_or(0).to_le_bytes());
        head.extend(u16::try_from(LEVELS_MAX).unwrap_or(0).to_le_bytes());
        head.extend(u16::try_from(SPREADS_MAX).unwrap_or(0).to_le_bytes());
        head.extend(crc(&[&head]).to_le_bytes());
        head
    }

    /// From the first bytes of a file of this length.
    ///
    /// # Errors
    /// See [`HistoryFormError`].
    pub fn read(file: HistoryFile, bytes: &[u8], length: u64) -> Result<Self, HistoryFormError> {
        let rest = bytes.strip_prefix(MAGIC).ok_or(HistoryFormError::Foreign)?;
        let version = *rest.first().ok_or(HistoryFormError::Foreign)?;
        if version != VERSION {
            return Err(HistoryFormError::Version(version));
        }
        let (head, rest) = bytes.split_at_checked(20).ok_or(HistoryFormError::Damaged)?;
        if rest.get(..4) != Some(&crc(&[head]).to_le_bytes()[..]) {
            return Err(HistoryFormError::Damaged);
        }
        let rows = u32::from_le_bytes([head[8], head[9], head[10], head[11]]);
        let own = Self { file, rows };
        if rows == 0 || rows > ROWS_LIMIT || own.encode()[..20] != *head {
            return Err(HistoryFormError::Other);
        }
        if length < own.file_bytes() {
            return Err(HistoryFormError::Short);
        }
        Ok(own)
    }
}

impl RowHead {
    /// As bytes.
    pub fn encode(self) -> [u8; ROW_HEAD] {
        let mut head = [0; ROW_HEAD];
        head[..8].copy_from_slice(&self.number.to_le_bytes());
        head[8..16].copy_from_slice(&self.begin.to_le_bytes());
        head[16..24].copy_from_slice(&self.minutes.to_le_bytes());
        let checksum = crc(&[&head[..28]]);
        head[28..].copy_from_slice(&checksum.to_le_bytes());
        head
    }

    /// From bytes; none where nothing is written there, or it is torn.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let head: &[u8; ROW_HEAD] = bytes.get(..ROW_HEAD)?.try_into().ok()?;
        if head[28..] != crc(&[&head[..28]]).to_le_bytes() {
            return None;
        }
        let number = u64::from_le_bytes(head[..8].try_into().ok()?);
        let begin = i64::from_le_bytes(head[8..16].try_into().ok()?);
        let minutes = u64::from_le_bytes(head[16..24].try_into().ok()?);
        // Numbers beyond this are of no file that was written a row a minute.
        (number > 0 && number < u64::MAX / 2).then_some(Self { number, begin, minutes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_hundred_series_take_64_mb_at_the_most() {
        assert_eq!((LEVELS_MAX + SPREADS_MAX, ROW_BYTES), (200, 4_960));
        let minutes = FileHead { file: HistoryFile::Minutes, rows: MINUTES_KEPT };
        let hours = FileHead { file: HistoryFile::Hours, rows: 400 * 24 };
        let bytes = minutes.file_bytes() + hours.file_bytes() + crate::TABLE_BYTES_MAX;
        assert!(bytes <= 64_000_000, "{bytes}");
    }

    #[test]
    fn heads_come_back_and_others_are_named() {
        let head = FileHead { file: HistoryFile::Hours, rows: 9_600 };
        let bytes = head.encode();
        assert_eq!(FileHead::read(HistoryFile::Hours, &bytes, head.file_bytes()), Ok(head));
        let read = |bytes: &[u8]| FileHead::read(HistoryFile::Hours, bytes, u64::MAX);
        let changed = |at: usize, to: u8| {
            let mut bytes = bytes.clone();
            bytes[at] = to;
            bytes
        };
        assert_eq!(read(b"SQLite"), Err(HistoryFormError::Foreign));
        assert_eq!(read(&changed(7, 9)), Err(HistoryFormError::Version(9)));
        assert_eq!(read(&changed(9, 1)), Err(HistoryFormError::Damaged));
        assert_eq!(read(&bytes[..12]), Err(HistoryFormError::Damaged));
        let minutes = FileHead::read(HistoryFile::Minutes, &bytes, u64::MAX);
        assert_eq!(minutes, Err(HistoryFormError::Other));
        let short = FileHead::read(HistoryFile::Hours, &bytes, head.file_bytes() - 1);
        assert_eq!(short, Err(HistoryFormError::Short));
        let row = RowHead { number: 9, begin: -60, minutes: 3 };
        assert_eq!(RowHead::read(&row.encode()), Some(row));
        assert_eq!(RowHead::read(&[0; ROW_HEAD]), None);
    }
}
