//! The sources: the bundled recordings, or longer passes made from their packets.

use super::truth::{ExpectedChannel, ExpectedContact, bundled};
use skyhaul_ccsds::capture::{Capture, CaptureEvent, CaptureOptions};
use skyhaul_ccsds::generate::{self, ErrorPlan, Generator, GeneratorOptions, Layout};
use skyhaul_ccsds::mission::MissionSet;
use skyhaul_exit::{Exit, Failure};
use skyhaul_units::{ByteCount, Duration, Probability, Rate, Utc};
use std::borrow::Cow;

/// A pass to be played, piece by piece.
#[derive(Debug)]
pub struct PassSource {
    kind: Kind,
    mission: &'static str,
    scid: u16,
}

#[derive(Debug)]
enum Kind {
    /// The rest of a recording, and its content.
    Recording(&'static [u8], ExpectedContact),
    /// A pass that is made while it is played.
    Long(Box<Generator>),
}

impl PassSource {
    /// The bundled recordings: Suomi NPP, Aqua and MetOp-B.
    pub fn recordings() -> Vec<Self> {
        let recording = |(file, mission, bits): &(&str, &'static str, &'static [u8])| {
            let truth = bundled(file, mission);
            Self { mission, scid: truth.scid, kind: Kind::Recording(bits, truth) }
        };
        RECORDINGS.iter().map(recording).collect()
    }

    /// Passes of `length` at `rate` made from the packets of the recordings, their times and
    /// counters carried on, with symbol errors that can be corrected.
    ///
    /// # Errors
    /// The passes are shorter than a frame.
    pub fn long(length: Duration, rate: Rate, seed: u64) -> Result<Vec<Self>, Failure> {
        let frames = (rate * length).as_u64() / CADU;
        if frames < FEWEST_FRAMES {
            let what = format!(
                "a pass of {length} at {rate} has {frames} frames, too few to be found in noise"
            );
            return Err(Failure::new(Exit::Usage, &what, "make it longer, such as --long 1min"));
        }
        let errors = ErrorPlan { correctable: CORRECTABLE, ..ErrorPlan::default() };
        let long = |(file, mission, bits): &(&str, &'static str, &[u8])| {
            let options =
                GeneratorOptions { frames, errors, offset_bits: 3, seed, layout: Layout::Cadus };
            let kind = Kind::Long(Box::new(Generator::new(packets(bits), options)));
            Self { mission, scid: bundled(file, mission).scid, kind }
        };
        Ok(RECORDINGS.iter().map(long).collect())
    }

    /// The length of the pass, or its rest, in bytes.
    pub fn left(&self) -> ByteCount {
        match &self.kind {
            Kind::Recording(left, _) => ByteCount::of(left.len()),
            Kind::Long(generator) => ByteCount::new(generator.nominal_bits().div_ceil(8)),
        }
    }

    /// The next bytes to be sent; none at the end.
    pub fn next_piece(&mut self) -> Option<Cow<'static, [u8]>> {
        match &mut self.kind {
            Kind::Recording(left, _) => {
                let (piece, rest) = left.split_at(PIECE.min(left.len()));
                *left = rest;
                (!piece.is_empty()).then_some(Cow::Borrowed(piece))
            }
            Kind::Long(generator) => generator.next().map(Cow::Owned),
        }
    }

    /// What a station that captured all of it must have found.
    pub fn truth(self) -> ExpectedContact {
        let generated = match self.kind {
            Kind::Recording(_, truth) => return truth,
            Kind::Long(generator) => generator.truth(),
        };
        let with_frames =
            generated.vcids.into_iter().filter(|(_, channel)| channel.good_frames > 0);
        let channels = with_frames.map(|(vcid, channel)| {
            let (frames, packets) = (channel.good_frames, channel.packets);
            (vcid, ExpectedChannel { frames, missing: 0, packets, apids: channel.apids })
        });
        ExpectedContact {
            mission: self.mission.to_owned(),
            scid: self.scid,
            frames: generated.good_frames,
            frames_sha256: generated.good_frames_sha256,
            corrected_symbols: generated.corrected_symbols,
            set_aside: generated.uncorrectable_frames,
            channels: channels.collect(),
        }
    }
}

/// The packets of a bundled recording.
fn packets(bits: &[u8]) -> generate::Source {
    let mut capture = Capture::new(MissionSet::built_in(), CaptureOptions::default());
    capture.push(Utc::default(), bits);
    capture.finish();
    let (mut mission, mut frames) = (None, Vec::new());
    while let Some(event) = capture.poll() {
        match event {
            CaptureEvent::Identified(found) => mission = Some(found.mission),
            CaptureEvent::Frame(frame) => frames.push(frame),
            _ => {}
        }
    }
    let mission = mission.expect("the bundled recordings are of known missions");
    generate::Source::from_frames(&mission, &frames).expect("the bundled recordings hold packets")
}

const PIECE: usize = 64 << 10;
/// Bytes of a marker with its frame and check symbols; the bundled missions agree in it.
const CADU: u64 = 1_024;
/// Some milliseconds of a downlink.
const FEWEST_FRAMES: u64 = 100;
/// One frame in a hundred: a downlink near the end of its margin.
const CORRECTABLE: Probability = Probability::from_ppb(10_000_000);

/// File, mission, bits.
const RECORDINGS: [(&str, &str, &[u8]); 3] = [
    (
        "npp.20241206T173815.dat",
        "suomi-npp",
        include_bytes!("../../../../../../testdata/cadu/npp.20241206T173815.dat"),
    ),
    (
        "aqua.20241206T175646.dat",
        "aqua",
        include_bytes!("../../../../../../testdata/cadu/aqua.20241206T175646.dat"),
    ),
    (
        "metopb.20241206T152751.dat",
        "metop-b",
        include_bytes!("../../../../../../testdata/cadu/metopb.20241206T152751.dat"),
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_pass_has_its_nominal_length_and_knows_its_truth() {
        let sources = PassSource::long(Duration::from_secs(2), Rate::from_mbps(15), 1).unwrap();
        for (mut source, recording) in sources.into_iter().zip(PassSource::recordings()) {
            let announced = source.left();
            let mut bytes = 0;
            while let Some(piece) = source.next_piece() {
                bytes += piece.len() as u64;
            }
            assert!(bytes.abs_diff(announced.as_u64()) <= 1, "{bytes} of {announced}");
            let (truth, recorded) = (source.truth(), recording.truth());
            assert_eq!(
                (truth.frames, &truth.mission, truth.scid),
                (3_662, &recorded.mission, recorded.scid)
            );
            assert!(truth.corrected_symbols > 0 && truth.set_aside == 0);
            assert_eq!(
                truth.channels.values().map(|channel| channel.frames).sum::<u64>(),
                truth.frames
            );
        }
        let none = PassSource::long(Duration::from_millis(1), Rate::from_mbps(1), 1).unwrap_err();
        assert!(none.to_string().contains("too few"), "{none}");
    }
}
