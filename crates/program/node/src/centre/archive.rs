//! The contact's CADUs, restored bit for bit by encoding its frames again, for archives that keep
//! CADUs.

use super::files::{ProductFiles, ProductWriter};
use skyhaul_ccsds::decode::{BlockDecoder, CheckSymbols};
use skyhaul_ccsds::mission::{Marker, Mission};
use skyhaul_ccsds::quality::CapturedFrame;
use skyhaul_level0::Files;
use std::io::{self, Write};

/// A contact's CADU file, being written.
pub struct Archive {
    files: ProductFiles,
    writer: ProductWriter,
    encoder: BlockDecoder,
    marker: Marker,
    cadu: Vec<u8>,
}

const WORKING: &str = "archive";

impl Archive {
    /// Begins the file.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn begin(mut files: ProductFiles, mission: &Mission) -> io::Result<Self> {
        let writer = files.create(WORKING)?;
        let encoder = BlockDecoder::new(mission, CheckSymbols::Dropped);
        let marker = mission.coding().marker;
        Ok(Self { files, writer, encoder, marker, cadu: Vec::new() })
    }

    /// Adds a frame: a good one as it was sent, one set aside as it was received.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn frame(&mut self, frame: &CapturedFrame) -> io::Result<()> {
        self.cadu.clear();
        if frame.is_good() {
            self.encoder.encode(self.marker, &frame.bytes, &mut self.cadu);
        } else {
            self.marker.append_to(&mut self.cadu);
            self.cadu.extend_from_slice(&frame.bytes);
        }
        self.writer.write_all(&self.cadu)
    }

    /// Publishes the file as `name`.
    ///
    /// # Errors
    /// The file cannot be kept.
    pub fn publish(mut self, name: &str) -> io::Result<()> {
        self.files.publish(self.writer, WORKING, name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_ccsds::capture::{Capture, CaptureEvent, CaptureOptions};
    use skyhaul_ccsds::mission::MissionSet;
    use skyhaul_units::Utc;

    #[test]
    fn a_real_capture_comes_back_bit_for_bit() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../../testdata/cadu/snpp_synchronized_cadus.dat"
        );
        let received = std::fs::read(path).expect("the bundled capture");
        let mut capture = Capture::new(MissionSet::built_in(), CaptureOptions::default());
        capture.push(Utc::default(), &received);
        capture.finish();
        let folder = tempfile::tempdir().expect("a folder");
        let mut archive = None;
        while let Some(event) = capture.poll() {
            match event {
                CaptureEvent::Identified(found) => {
                    let files = ProductFiles::new(folder.path(), "contact").expect("files");
                    archive = Some(Archive::begin(files, &found.mission).expect("an archive"));
                }
                CaptureEvent::Frame(frame) => {
                    assert!(
                        frame.check_symbols.is_empty(),
                        "nothing but the frame crosses the line"
                    );
                    archive.as_mut().expect("identified first").frame(&frame).expect("room");
                }
                _ => {}
            }
        }
        archive.expect("identified").publish("contact.cadu").expect("room");
        let restored = std::fs::read(folder.path().join("contact.cadu")).expect("the file");
        assert!(restored == received, "{} and {} bytes", restored.len(), received.len());
    }
}
