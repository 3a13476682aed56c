//! A packet file, read from its beginning in large pieces.

use crate::failure::Failure;
use skyhaul_ccsds::id::Scid;
use skyhaul_ccsds::mission::{Mission, MissionSet};
pub use skyhaul_ccsds::scan::Found as Place;
use skyhaul_ccsds::scan::{FileEnd, LOOK_AHEAD, Scanner};
use skyhaul_ccsds::survey::{PacketTime, PacketTimes};
use skyhaul_level0::naming::ProductName;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// A packet file that is open.
pub struct Input {
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

impl Input {
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

    /// Hands everything in the file to `sink`, with the times that packets have by a mission's rules.
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
            let end = if held < buffer.len() { FileEnd::Here } else { FileEnd::Later };
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
            if end == FileEnd::Here {
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

/// The mission that a file's name tells: that of a Level-0 product, or of packets that `skyhaul decode` wrote.
pub fn mission_by_name<'a>(path: &Path, known: &'a MissionSet) -> Option<&'a Mission> {
    let name = path.file_name()?.to_str()?;
    let product = ProductName::parse(name).ok().and_then(|name| Scid::new(name.scid()));
    let decoded = || {
        let (_, after) = name.rsplit_once("-scid")?;
        let (scid, _) = after.split_once("-vcid")?;
        Scid::new(scid.parse().ok()?)
    };
    let scid = product.or_else(decoded)?;
    known.iter().find(|mission| mission.scids().contains(&scid))
}

/// 1 MiB at a time, which stays in a core's cache until it has been looked through.
const READ_SIZE: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_product_or_of_decoded_packets_tells_the_mission() {
        let known = MissionSet::built_in();
        let mission = |name: &str| mission_by_name(Path::new(name), &known).map(Mission::name);
        assert_eq!(mission("out/P1590011AAAAAAAAAAAAAT21099051420501.PDS"), Some("noaa-20"));
        assert_eq!(mission("npp.dat-scid157-vcid16.packets"), Some("suomi-npp"));
        for unknown in ["packets.dat", "x-scid1-vcid2.packets", "x-scid999999-vcid2.packets", "-", "P157.PDS"]
        {
            assert_eq!(mission(unknown), None, "{unknown}");
        }
    }
}
