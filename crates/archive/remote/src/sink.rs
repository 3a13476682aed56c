//! What can be asked of a destination, whatever its protocol.

use crate::failure::differs;
use serde::{Deserialize, Serialize};
use skyhaul_dispatch::{DeliveryFailure, Proof};
use skyhaul_units::ByteCount;
use std::path::PathBuf;

/// A connection to a destination. One worker thread owns it, and each call blocks that thread.
///
/// Names are relative to the folder of the [`crate::RemotePlace`]; they may name folders below it,
/// which are made where they lack. A failure closes the connection; the next call opens another.
pub trait RemoteSink: Send {
    /// What the far side can. It is found out by trying, with small files that are removed again.
    ///
    /// # Errors
    /// The far side cannot be reached, or refuses the trial.
    fn abilities(&mut self) -> Result<Abilities, DeliveryFailure>;

    /// What is there under the final name of a file.
    ///
    /// # Errors
    /// The far side cannot be asked, or the name cannot be written there.
    fn look(&mut self, file: &OutgoingFile) -> Result<RemoteFound, DeliveryFailure>;

    /// Places a file under its final name, where it is visible only when it is whole. It goes on
    /// where the note says that an earlier attempt stopped, and replaces no file of other content.
    ///
    /// # Errors
    /// The kind says who must act. The notes so far stay good.
    fn place(
        &mut self,
        file: &OutgoingFile,
        resume: &ResumeNote,
        progress: &mut dyn FnMut(PlaceProgress<'_>) -> GoOn,
    ) -> Result<Placing, DeliveryFailure>;

    /// Removes what an attempt left that will not be continued: a part, an upload. Nothing there is
    /// no failure.
    ///
    /// # Errors
    /// The far side cannot be asked.
    fn discard(&mut self, file: &OutgoingFile, resume: &ResumeNote) -> Result<(), DeliveryFailure>;

    /// Writes a small file in one step, and replaces a former one of this name.
    ///
    /// # Errors
    /// The far side cannot be asked, or refuses it.
    fn write(&mut self, name: &str, bytes: &[u8]) -> Result<(), DeliveryFailure>;

    /// The files of a folder by name, without those whose name begins with a dot. At most
    /// [`MOST_LISTED`]; a folder that does not exist has none.
    ///
    /// # Errors
    /// The far side cannot be asked, or refuses it.
    fn list(&mut self, folder: &str) -> Result<Vec<RemoteEntry>, DeliveryFailure>;

    /// Reads a file that has at most `most` bytes; none where there is no such file.
    ///
    /// # Errors
    /// The file has more bytes, or the far side cannot be asked.
    fn read(&mut self, name: &str, most: ByteCount) -> Result<Option<Vec<u8>>, DeliveryFailure>;

    /// Moves a file, and replaces one of the new name.
    ///
    /// # Errors
    /// The far side cannot be asked, or refuses it.
    fn rename(&mut self, from: &str, to: &str) -> Result<(), DeliveryFailure>;
}

/// A published file on its way out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutgoingFile {
    /// Where it is here.
    pub path: PathBuf,
    /// Its name at the destination; `/` separates folders.
    pub name: String,
    /// Its length.
    pub size: ByteCount,
    /// Its digest, as published.
    pub sha256: [u8; 32],
    /// Its MD5, where it is known.
    pub md5: Option<[u8; 16]>,
    /// When the copy there is read back.
    pub read_back: ReadBack,
}

/// When a file is read back from a destination that computes no digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReadBack {
    /// A file that was there before, if it is small ([`SMALL`]). A longer one is compared by
    /// its size.
    #[default]
    Small,
    /// Each file, also after it was placed.
    Always,
}

/// What is under a final name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemoteFound {
    /// Nothing.
    Absent,
    /// The same file, with this proof.
    Same(Proof),
    /// A file with other content.
    Differs,
}

impl RemoteFound {
    /// What is decided of a file to be placed: it is there, or may not be placed; none where it is
    /// to be sent.
    pub(crate) fn decided(
        self,
        place: &str,
        file: &OutgoingFile,
    ) -> Option<Result<Proof, DeliveryFailure>> {
        match self {
            Self::Absent => None,
            Self::Same(proof) => Some(Ok(proof)),
            Self::Differs => Some(Err(differs(place, &file.name))),
        }
    }
}

/// How [`RemoteSink::place`] ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placing {
    /// The file is there, with this proof.
    Placed(Proof),
    /// The caller stopped it; it can go on from the last note.
    Stopped,
}

/// Whether the caller wants to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GoOn {
    /// Yes.
    Continue,
    /// No: end this attempt soon.
    Stop,
}

/// How far a placing is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlaceProgress<'a> {
    /// So many bytes of the file went out, with those of earlier attempts. It comes several times a
    /// second while data flows, and also while none does.
    Sent(ByteCount),
    /// The far side has a new state that outlives this connection: keep it with
    /// [`ResumeNote::apply`] before the next call.
    Reached(&'a ResumeStep),
}

/// Where an attempt stopped: kept by the caller, and given back with the next one.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ResumeNote {
    /// Nothing is there.
    #[default]
    Nothing,
    /// A part of the file is there.
    Part(PartNote),
    /// An upload in parts has begun.
    Upload(UploadNote),
}

/// A part file at the destination.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartNote {
    /// The digest of the whole file that it is a part of.
    pub sha256: [u8; 32],
    /// So many bytes are on its disk.
    pub bytes: u64,
}

/// An upload to an object store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UploadNote {
    /// The digest of the whole file.
    pub sha256: [u8; 32],
    /// The store's name of the upload.
    pub upload: String,
    /// The length of each part but the last; it does not change within an upload.
    pub part_size: u64,
    /// How the store checks what it takes.
    pub check: StoreCheck,
    /// The parts that the store has, from the first on without a gap.
    pub parts: Vec<UploadedPart>,
}

/// One part of an upload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UploadedPart {
    /// The store's tag of it.
    pub tag: String,
    /// Its CRC (CRC-64/NVME, or CRC-32C in the low bits), as this side computed it.
    pub crc: u64,
}

/// What is new in a [`ResumeNote`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResumeStep {
    /// This is all of it; it takes the former one's place.
    Whole(ResumeNote),
    /// One more part of the upload.
    Further(UploadedPart),
}

/// How a destination checks the content that it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StoreCheck {
    /// CRC-64/NVME of the whole object.
    Crc64,
    /// CRC-32C of each part.
    Crc32c,
    /// MD5 of each part.
    Md5,
    /// BLAKE3 of each file, as another node computes it.
    Blake3,
    /// Not at all.
    Nothing,
}

/// How a file gets its final name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PublishWay {
    /// Written under another name, then renamed.
    Rename,
    /// The store shows a file only when it is whole.
    Whole,
    /// Written under its final name; only the delivery record says that it is whole.
    Direct,
}

/// What a destination can, as a trial found it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Abilities {
    /// The server, in its own words; empty where it does not say.
    pub server: String,
    /// How a file gets its final name.
    pub publish: PublishWay,
    /// Whether it says when a file is on its disk.
    pub says_durable: bool,
    /// Whether it goes on where an attempt stopped.
    pub resumes: bool,
    /// Whether it refuses to replace a file by itself, also when two write at a time.
    pub refuses_existing: bool,
    /// How it checks content; nothing but object stores and other nodes does.
    pub check: StoreCheck,
    /// Whether a file that gets its name can take another one's place in one step; none where that
    /// is not known.
    #[serde(default)]
    pub replaces: Option<bool>,
    /// The bytes that are free there; none where it does not say.
    #[serde(default)]
    pub free: Option<u64>,
}

/// A file in a folder of a destination.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RemoteEntry {
    /// Its name, without its folder.
    pub name: String,
    /// Its length.
    pub size: ByteCount,
}

impl ResumeNote {
    /// Takes in what is new.
    pub fn apply(&mut self, step: &ResumeStep) {
        match (step, self) {
            (ResumeStep::Whole(whole), note) => note.clone_from(whole),
            (ResumeStep::Further(part), Self::Upload(upload)) => upload.parts.push(part.clone()),
            (ResumeStep::Further(_), _) => {}
        }
    }

    /// Whether an attempt to place this file has begun: where a file is written under its final
    /// name at once, a shorter one of that name is what the attempt left.
    pub(crate) fn has_begun(&self, file: &OutgoingFile) -> bool {
        matches!(self, Self::Part(part) if part.sha256 == file.sha256)
    }

    /// How many bytes of this file it says are there, in a part file.
    pub(crate) fn part_bytes(&self, file: &OutgoingFile) -> u64 {
        match self {
            Self::Part(part) if part.sha256 == file.sha256 && part.bytes <= file.size.as_u64() => {
                part.bytes
            }
            _ => 0,
        }
    }
}

impl ResumeStep {
    /// So many bytes of a file are on the disk there.
    pub(crate) fn part(file: &OutgoingFile, bytes: u64) -> Self {
        Self::Whole(ResumeNote::Part(PartNote { sha256: file.sha256, bytes }))
    }
}

/// Files of up to 16 MiB are read back to compare them: less than two seconds at 100 Mbit/s.
pub const SMALL: ByteCount = ByteCount::mib(16);

/// A folder of notices has a few; in one with more, those that stay are read later.
pub const MOST_LISTED: usize = 10_000;
