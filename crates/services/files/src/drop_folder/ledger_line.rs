//! The ledger of a folder whose files are handed over, as text.
//!
//! The first line is `skyhaul-folder 1`. Each further line has fields between spaces: a check, the
//! word `taken`, `done` or `forgotten`, and the name of the file; of `taken` and `done` before the
//! name its size in bytes, when it was modified in nanoseconds since 1970, its inode, and the
//! BLAKE3 hash of its contents. Bytes of a name other than visible ASCII, and `%`, stand as `%2f`.
//! The check is the beginning of the BLAKE3 hash of the line behind it. A line with another check
//! was not completely written, or is damaged: it is left out and counted.

use crate::hash::Hash;
use crate::path::RelPath;
use core::fmt::{self, Write as _};

/// A file as a listing of its folder shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DroppedFile {
    /// Its name in the folder.
    pub name: RelPath,
    /// Its length in bytes.
    pub size: u64,
    /// When it was modified, nanoseconds since 1970.
    pub modified_ns: i64,
    /// Its number on its file system.
    pub inode: u64,
}

impl DroppedFile {
    /// Whether both are the same version of one file, under whatever name.
    pub const fn is_same_version(&self, other: &Self) -> bool {
        self.size == other.size
            && self.modified_ns == other.modified_ns
            && self.inode == other.inode
    }
}

/// A file that was handed over, or is being.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandedFile {
    /// The file as it was.
    pub file: DroppedFile,
    /// The hash of its contents.
    pub hash: Hash,
}

/// A line of a folder's ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LedgerLine {
    /// The file is about to be handed over.
    Taken(HandedFile),
    /// It was handed over.
    Done(HandedFile),
    /// Nothing is known of a file of this name.
    Forgotten(RelPath),
}

/// What a ledger says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FolderLedger {
    /// Its lines, in order.
    pub lines: Vec<LedgerLine>,
    /// Lines that are damaged; without an incomplete last one, which is usual after a crash.
    pub damaged: u64,
}

/// Why a ledger cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FolderLedgerError {
    /// Another version wrote it.
    #[error(
        "the ledger has version {0}, this program reads version {VERSION}; run the newer program \
        that wrote it, or move the ledger away: all files in the folder are then handed over again"
    )]
    Version(u64),
    /// Its first line is no ledger's.
    #[error(
        "the first line is not that of a ledger; restore the file, or move it away: all files in \
        the folder are then handed over again"
    )]
    Foreign,
}

/// The version that is written.
const VERSION: u64 = 1;
const TITLE: &str = "skyhaul-folder ";
/// Bytes of a hash that a check has.
const CHECK: usize = 4;

impl FolderLedger {
    /// The first line of a new ledger.
    pub fn head() -> String {
        format!("{TITLE}{VERSION}\n")
    }

    /// Reads a ledger.
    ///
    /// # Errors
    /// It is no ledger, or one of another version.
    pub fn read(bytes: &[u8]) -> Result<Self, FolderLedgerError> {
        let head = Self::head();
        let Some(rest) = bytes.strip_prefix(head.as_bytes()) else {
            if head.as_bytes().starts_with(bytes) {
                // A crash cut its first line.
                return Ok(Self::default());
            }
            let first = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
            let version = core::str::from_utf8(first).ok().and_then(|first| {
                first.strip_prefix(TITLE).and_then(|version| version.trim().parse().ok())
            });
            return Err(version.map_or(FolderLedgerError::Foreign, FolderLedgerError::Version));
        };
        let mut ledger = Self::default();
        for line in rest.split_inclusive(|byte| *byte == b'\n') {
            match line.strip_suffix(b"\n") {
                // An incomplete line, and the end of one that was completed after an error.
                None | Some([]) => {}
                Some(whole) => match LedgerLine::parse(whole) {
                    Some(line) => ledger.lines.push(line),
                    None => ledger.damaged += 1,
                },
            }
        }
        Ok(ledger)
    }
}

impl LedgerLine {
    /// Reads a line, without its end.
    fn parse(line: &[u8]) -> Option<Self> {
        let text = core::str::from_utf8(line).ok()?;
        let (check, body) = text.split_once(' ')?;
        if check != check_of(body) {
            return None;
        }
        let mut fields = body.split(' ');
        let line = match fields.next()? {
            "forgotten" => Self::Forgotten(name(fields.next()?)?),
            word @ ("taken" | "done") => {
                let size = fields.next()?.parse().ok()?;
                let modified_ns = fields.next()?.parse().ok()?;
                let inode = fields.next()?.parse().ok()?;
                let hash = Hash::from_hex(fields.next()?).ok()?;
                let file = DroppedFile { name: name(fields.next()?)?, size, modified_ns, inode };
                let handed = HandedFile { file, hash };
                if word == "taken" { Self::Taken(handed) } else { Self::Done(handed) }
            }
            _ => return None,
        };
        fields.next().is_none().then_some(line)
    }
}

/// The line, with its end.
impl fmt::Display for LedgerLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let handed = |word: &str, handed: &HandedFile| {
            let HandedFile { file, hash } = handed;
            let DroppedFile { name, size, modified_ns, inode } = file;
            format!("{word} {size} {modified_ns} {inode} {hash} {}", quoted(name))
        };
        let body = match self {
            Self::Taken(file) => handed("taken", file),
            Self::Done(file) => handed("done", file),
            Self::Forgotten(name) => format!("forgotten {}", quoted(name)),
        };
        writeln!(f, "{} {body}", check_of(&body))
    }
}

fn check_of(body: &str) -> String {
    let mut check = String::with_capacity(2 * CHECK);
    for byte in &blake3::hash(body.as_bytes()).as_bytes()[..CHECK] {
        let _ = write!(check, "{byte:02x}");
    }
    check
}

fn quoted(name: &RelPath) -> String {
    let mut text = String::new();
    for byte in name.as_bytes() {
        if byte.is_ascii_graphic() && *byte != b'%' {
            text.push(char::from(*byte));
        } else {
            let _ = write!(text, "%{byte:02x}");
        }
    }
    text
}

fn name(text: &str) -> Option<RelPath> {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let (digits, after) = rest.split_first_chunk::<2>()?;
        rest = after;
        bytes.push(u8::from_str_radix(core::str::from_utf8(digits).ok()?, 16).ok()?);
    }
    RelPath::new(&bytes).ok().filter(|name| !name.is_here())
}
