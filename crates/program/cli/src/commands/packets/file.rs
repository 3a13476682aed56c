//! A packet file, read from its beginning in large pieces.

use skyhaul_ccsds::EndOfInput;
use skyhaul_ccsds::mission::{Mission, MissionSet};
pub use skyhaul_ccsds::scan::Scanned as Place;
use skyhaul_ccsds::scan::{LOOK_AHEAD, Scanner};
use skyhaul_ccsds::survey::{PacketTime, PacketTimes};
use skyhaul_exit::Failure;
use skyhaul_level0::naming::mission_of_file;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// A packet file that is open.
pub struct PacketFileInput {
    file: Box<dyn Read>,
    name: String,
}

/// Whether the rest of a file is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pass {
    /// It is.
    On,
    /// It is not.
    Over,
}

impl PacketFileInput {
    /// Opens a file, or takes standard input.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        let name = path.display().to_string();
        if path == Path::new("-") {
            return Ok(Self { file: Box::new(io::stdin()), name });
        }
        let file = File::open(path).map_err(|source| unreadable(&name, source))?;
        Ok(Self { file: Box::new(file), name })
    }

    /// Hands everything in the file to `sink`, with the times that packets have by a mission's
    /// rules.
    ///
    /// # Errors
    /// The file cannot be read; or what the sink says.
    pub fn each(
        &mut self,
        mission: Option<&Mission>,
        mut sink: impl FnMut(Place<'_>, PacketTime) -> Result<Pass, Failure>,
    ) -> Result<(), Failure> {
        let (mut scanner, mut times) = (Scanner::default(), PacketTimes::new(mission));
        let mut buffer = vec![0; READ_SIZE + LOOK_AHEAD];
        let mut held = 0;
        let mut outcome = Ok(Pass::On);
        while matches!(outcome, Ok(Pass::On)) {
            let read = self.fill(&mut buffer[held..])?;
            held += read;
            let end = if held < buffer.len() { EndOfInput::Reached } else { EndOfInput::Ahead };
            let taken = scanner.scan(&buffer[..held], end, |place| {
                if !matches!(outcome, Ok(Pass::On)) {
                    return;
                }
                let time = match &place {
                    Place::Packet { header, bytes, .. } => times.next(header, bytes),
                    Place::Damage(_) => PacketTime::default(),
                };
                outcome = sink(place, time);
            });
            if end == EndOfInput::Reached {
                break;
            }
            buffer.copy_within(taken..held, 0);
            held -= taken;
        }
        outcome.map(|_| ())
    }

    /// Reads until the buffer is full or the file ends.
    fn fill(&mut self, buffer: &mut [u8]) -> Result<usize, Failure> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.file.read(&mut buffer[filled..]) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(unreadable(&self.name, error)),
            }
        }
        Ok(filled)
    }
}

fn unreadable(name: &str, source: io::Error) -> Failure {
    Failure::io("the packet file cannot be read", name, "give the path of a readable file", source)
}

/// The mission in a file's name.
pub fn mission_by_name<'a>(path: &Path, known: &'a MissionSet) -> Option<&'a Mission> {
    mission_of_file(path.file_name()?.to_str()?, known)
}

/// 1 MiB at a time, which stays in a core's cache until it has been looked through.
const READ_SIZE: usize = 1 << 20;
