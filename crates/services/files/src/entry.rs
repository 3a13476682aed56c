//! One entry of a tree: its kind, its attributes, and the stamp that identifies its version.

use crate::fields::put_short;
use crate::path::RelPath;
use skyhaul_units::wire::ByteReader;

/// The kind of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TreeEntryKind {
    /// A file of this many bytes.
    File {
        /// Its length in bytes.
        size: u64,
    },
    /// A folder.
    Folder,
    /// A symbolic link, kept as it is.
    Link {
        /// Where it leads, as it is written there.
        target: Vec<u8>,
    },
    /// A pipe: its length is unknown, and it cannot be read again.
    Pipe,
}

/// Identifies a version of a source: made of its device, inode, length and time of change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SourceStamp(pub [u8; 16]);

/// An entry of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its path below the target folder.
    pub path: RelPath,
    /// What.
    pub kind: TreeEntryKind,
    /// Who may read, write and execute it: the lowest nine bits of a POSIX mode.
    pub mode: u16,
    /// When its contents were last changed: nanoseconds since 1970.
    pub mtime: i64,
    /// Identifies this version of the source.
    pub stamp: SourceStamp,
}

impl SourceStamp {
    /// Of these four.
    pub fn of(device: u64, inode: u64, size: u64, mtime: i64) -> Self {
        let mut hasher = blake3::Hasher::new();
        for field in [device, inode, size, mtime as u64] {
            hasher.update(&field.to_be_bytes());
        }
        let mut stamp = [0; 16];
        stamp.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        Self(stamp)
    }
}

impl Entry {
    /// Its length in bytes, where that is known.
    pub const fn size(&self) -> u64 {
        match self.kind {
            TreeEntryKind::File { size } => size,
            TreeEntryKind::Folder | TreeEntryKind::Link { .. } | TreeEntryKind::Pipe => 0,
        }
    }

    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        let (kind, size, target) = match &self.kind {
            TreeEntryKind::File { size } => (0, *size, &[][..]),
            TreeEntryKind::Folder => (1, 0, &[][..]),
            TreeEntryKind::Link { target } => (2, 0, &target[..]),
            TreeEntryKind::Pipe => (3, 0, &[][..]),
        };
        out.push(kind);
        out.extend(self.mode.to_be_bytes());
        out.extend(self.mtime.to_be_bytes());
        out.extend(size.to_be_bytes());
        out.extend(self.stamp.0);
        put_short(out, self.path.as_bytes());
        put_short(out, target);
    }

    pub(crate) fn take(fields: &mut ByteReader<'_>) -> Option<Self> {
        let kind = fields.u8()?;
        let mode = fields.u16().filter(|mode| *mode <= 0o777)?;
        let mtime = i64::from_be_bytes(fields.array()?);
        let size = fields.u64().filter(|size| *size <= SIZE_MAX)?;
        let stamp = SourceStamp(fields.array()?);
        let path = RelPath::new(fields.bytes16()?).ok()?;
        let target = fields.bytes16()?;
        let kind = match kind {
            0 if target.is_empty() => TreeEntryKind::File { size },
            1 if target.is_empty() && size == 0 => TreeEntryKind::Folder,
            2 if size == 0
                && !target.is_empty()
                && target.len() <= RelPath::MAX
                && !target.contains(&0) =>
            {
                TreeEntryKind::Link { target: target.to_owned() }
            }
            3 if target.is_empty() && size == 0 => TreeEntryKind::Pipe,
            _ => return None,
        };
        // Only a folder may be the one that the transfer goes to.
        (kind == TreeEntryKind::Folder || !path.is_here()).then_some(Self {
            path,
            kind,
            mode,
            mtime,
            stamp,
        })
    }
}

/// The longest file, in bytes: what systems take.
const SIZE_MAX: u64 = i64::MAX as u64;
