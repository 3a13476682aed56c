//! The source of a replay: a recording with its times, or a plain file.

use super::Replay;
use skyhaul_exit::{Exit, Failure};
use skyhaul_store::raw::{RawError, RawKind, RawPieces, RawReader, RawSpan};
use skyhaul_store::{Disk, EntryKind, RealDisk};
use skyhaul_units::{ByteCount, Utc};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

/// The next piece.
#[derive(Debug)]
pub struct ReplayPiece {
    /// When its last byte was received; none in a file.
    pub received: Option<Utc>,
    /// The input's own count of its first byte.
    pub input: u64,
    /// Stream, datagram, or the end of a transmission.
    pub kind: RawKind,
    /// What was received.
    pub bytes: Vec<u8>,
    /// The disk gave it back as it was written.
    pub is_intact: bool,
}

/// A recording or a file.
#[derive(Debug)]
pub struct ReplaySource {
    kind: Kind,
    length: ByteCount,
    place: String,
}

#[derive(Debug)]
enum Kind {
    Recording(Box<RawPieces>),
    File { file: File, position: u64 },
}

impl ReplaySource {
    /// Opens what the command names.
    ///
    /// # Errors
    /// There is nothing of that name, or nothing in the span asked for.
    pub fn open(command: &Replay) -> Result<Self, Failure> {
        let path = &command.source;
        let place = path.display().to_string();
        let unreadable = |source| {
            let help = "give a node's state folder, the folder of a recording, or a capture file";
            Failure::io("the recording cannot be read", &place, help, source)
        };
        if std::fs::metadata(path).map_err(unreadable)?.is_dir() {
            return Self::recording(command, path);
        }
        if command.channel.is_some() || command.from.is_some() || command.to.is_some() {
            let help =
                "omit --channel, --from and --to, or give the state folder of a node that records";
            return Err(
                Failure::new(Exit::Usage, "a file has neither channels nor times", help).at(&place)
            );
        }
        let file = File::open(path).map_err(unreadable)?;
        let length = ByteCount::new(file.metadata().map_err(unreadable)?.len());
        Ok(Self { kind: Kind::File { file, position: 0 }, length, place })
    }

    fn recording(command: &Replay, path: &Path) -> Result<Self, Failure> {
        let disk: Arc<dyn Disk> = Arc::new(RealDisk::look(path));
        let dir = folder(&*disk, command)?;
        let place = path.join(&dir).display().to_string();
        let reader = RawReader::open(disk, &dir);
        let span = RawSpan {
            from: command.from.map(|time| time.utc()),
            to: command.to.map(|time| time.utc()),
            places: None,
        };
        let failed = |error: RawError| unreadable(&error, &place);
        let Some(extent) = reader.extent(&span).map_err(failed)? else {
            let all = reader.extent(&RawSpan::default()).map_err(failed)?;
            let help = match all {
                Some(all) => format!("the recording goes from {} to {}", all.first, all.last),
                None => "check that the channel has `record_raw = true`, and that it received data"
                    .to_owned(),
            };
            return Err(Failure::new(Exit::Result, "nothing was recorded then", &help).at(&place));
        };
        let pieces = reader.read(span).map_err(failed)?;
        Ok(Self { kind: Kind::Recording(Box::new(pieces)), length: extent.bytes, place })
    }

    /// Bytes in it when it was opened.
    pub const fn length(&self) -> ByteCount {
        self.length
    }

    /// Whether it knows when its bytes were received.
    pub const fn is_timed(&self) -> bool {
        matches!(self.kind, Kind::Recording(_))
    }

    /// The next piece, of a file at most `step` bytes long; `None` at the end.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn next_piece(&mut self, step: usize) -> Result<Option<ReplayPiece>, Failure> {
        match &mut self.kind {
            Kind::Recording(pieces) => {
                let piece = pieces.next_piece().map_err(|error| unreadable(&error, &self.place))?;
                Ok(piece.map(|piece| ReplayPiece {
                    received: Some(piece.stamp.received),
                    input: piece.stamp.input,
                    kind: piece.stamp.kind,
                    bytes: piece.bytes,
                    is_intact: piece.is_intact,
                }))
            }
            Kind::File { file, position } => {
                let mut bytes = vec![0; step];
                let read = file.read(&mut bytes).map_err(|source| {
                    Failure::io("the capture cannot be read", &self.place, "check the disk", source)
                })?;
                bytes.truncate(read);
                let input = *position;
                *position += read as u64;
                let (received, kind) = (None, RawKind::Stream);
                Ok((read > 0).then_some(ReplayPiece {
                    received,
                    input,
                    kind,
                    bytes,
                    is_intact: true,
                }))
            }
        }
    }
}

/// The folder of the recording, as seen from the folder named.
fn folder(disk: &dyn Disk, command: &Replay) -> Result<String, Failure> {
    let place = command.source.display().to_string();
    let list = |dir: &str| {
        disk.list(dir).map_err(|source| {
            Failure::io(
                "the folder cannot be read",
                &place,
                "give this user read permission",
                source,
            )
        })
    };
    let is_index =
        |name: &str| Path::new(name).extension().is_some_and(|extension| extension == "idx");
    if list("")?.iter().any(|entry| is_index(&entry.name)) {
        return Ok(".".to_owned());
    }
    let channels = list("raw")?.into_iter().filter(|entry| entry.kind == EntryKind::Directory);
    let channels: Vec<String> = channels.map(|entry| entry.name).collect();
    let known = channels.join(", ");
    match (&command.channel, &*channels) {
        (Some(wanted), _) if channels.contains(wanted) => Ok(format!("raw/{wanted}")),
        (None, [only]) => Ok(format!("raw/{only}")),
        (_, []) => {
            let help = "give the state folder of a station with `record_raw = true`";
            Err(Failure::new(Exit::Usage, "there is no recording in this folder", help).at(&place))
        }
        (Some(wanted), _) => {
            let what = format!("channel `{wanted}` has no recording");
            Err(Failure::new(Exit::Usage, &what, &format!("write one of {known}")).at(&place))
        }
        (None, _) => {
            let what = "there are recordings of several channels";
            Err(Failure::new(Exit::Usage, what, &format!("add --channel with one of {known}"))
                .at(&place))
        }
    }
}

fn unreadable(error: &RawError, place: &str) -> Failure {
    Failure::from_sentence(Exit::Environment, &error.to_string()).at(place)
}
