//! Capture files: their frames, their packets, and the account that `skyhaul decode --json` prints.

use crate::columns::{Numbers, Table, words};
use crate::errors::of_data;
use crate::mission::mission_of;
use crate::packets::PacketRows;
use crate::row_data::{RowData, row_data};
use bytes::Bytes;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use skyhaul_ccsds::account::{Account, FileReport};
use skyhaul_ccsds::capture::{Capture, CaptureEvent, CaptureOptions};
use skyhaul_ccsds::frame::glimpse_as;
use skyhaul_ccsds::identify::{Identification, InputLayout, Unidentified};
use skyhaul_ccsds::mission::{Mission, MissionSet};
use skyhaul_ccsds::quality::{CapturedFrame, FrameVerdict, Reason};
use skyhaul_ccsds::survey::PacketTimes;
use skyhaul_units::Utc;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Bytes read at once, as by `skyhaul decode`, and between two checks for Ctrl-C.
const READ_SIZE: usize = 256 << 10;

/// Decodes a capture file to (frames, packets, account): two tables, and JSON.
#[pyfunction]
#[pyo3(signature = (path, mission=None, format="auto", data=RowData::Omitted))]
pub fn decode<'py>(
    py: Python<'py>,
    path: PathBuf,
    mission: Option<&str>,
    format: &str,
    #[pyo3(from_py_with = row_data)] data: RowData,
) -> PyResult<(Bound<'py, PyDict>, Bound<'py, PyDict>, String)> {
    let known = MissionSet::built_in();
    let options = CaptureOptions {
        format: input_format(format)?,
        mission: mission.map(|wanted| mission_of(wanted, &known)).transpose()?,
        ..CaptureOptions::default()
    };
    let mut file = File::open(&path)?;
    let mut decoding = Decoding::new(&path, known, options, data);
    loop {
        let read = py.detach(|| decoding.read(&mut file))?;
        py.check_signals()?;
        if read == 0 {
            return decoding.finish(py);
        }
    }
}

fn input_format(name: &str) -> PyResult<Option<InputLayout>> {
    match name {
        "auto" => Ok(None),
        "bits" => Ok(Some(InputLayout::Bits)),
        "cadus" => Ok(Some(InputLayout::Cadus)),
        "frames" => Ok(Some(InputLayout::Frames)),
        "symbols" => Ok(Some(InputLayout::Symbols)),
        "soft" => Ok(Some(InputLayout::Soft)),
        _ => {
            let what = format!("there is no format `{name}`");
            Err(PyValueError::new_err(format!(
                "{what}; write auto, bits, cadus, frames, symbols or soft"
            )))
        }
    }
}

/// A file on its way through the decoder.
struct Decoding {
    place: String,
    capture: Capture,
    known: MissionSet,
    buffer: Vec<u8>,
    /// The downlink that is being decoded, when it is identified.
    downlink: Option<Downlink>,
    reports: Vec<FileReport>,
    frames: FrameRows,
    packets: PacketRows,
    /// Why the input could not be identified.
    unidentified: Option<Unidentified>,
}

/// One downlink of a file.
struct Downlink {
    found: Box<Identification>,
    account: Account,
    times: PacketTimes,
    /// The index of the mission among those of the file.
    mission: u8,
}

impl Decoding {
    fn new(path: &Path, known: MissionSet, options: CaptureOptions, data: RowData) -> Self {
        Self {
            place: path.display().to_string(),
            capture: Capture::new(known.clone(), options),
            known,
            buffer: vec![0; READ_SIZE],
            downlink: None,
            reports: Vec::new(),
            frames: FrameRows { data: data.column(), ..FrameRows::default() },
            packets: PacketRows::new(data),
            unidentified: None,
        }
    }

    /// Reads and decodes the next piece. Returns its length.
    fn read(&mut self, file: &mut File) -> PyResult<usize> {
        let len = file.read(&mut self.buffer)?;
        // The reception time of a file is not known.
        self.capture.push(Utc::from_micros(0), &self.buffer[..len]);
        if len == 0 {
            self.capture.finish();
        }
        while let Some(event) = self.capture.poll() {
            match event {
                CaptureEvent::Identified(found) => self.begin(found),
                CaptureEvent::Frame(frame) => self.frame(&frame),
                CaptureEvent::Changed { .. } => self.end(),
                CaptureEvent::Unidentified(reason) => self.unidentified = Some(reason),
                CaptureEvent::Locked(_)
                | CaptureEvent::LockLost(_)
                | CaptureEvent::OtherSpacecraft { .. }
                | CaptureEvent::OtherDownlink(_) => {}
            }
        }
        if len == 0 {
            self.end();
        }
        Ok(len)
    }

    fn begin(&mut self, found: Box<Identification>) {
        let name = found.mission.name();
        let missions = &mut self.frames.missions;
        let known = missions.iter().position(|known| known == name).unwrap_or_else(|| {
            missions.push(name.to_owned());
            missions.len() - 1
        });
        // There are fewer missions than fit.
        let mission = u8::try_from(known).unwrap_or(u8::MAX);
        let (account, times) =
            (Account::new(&found.mission, &self.known), PacketTimes::new(Some(&found.mission)));
        self.downlink = Some(Downlink { found, account, times, mission });
    }

    fn frame(&mut self, frame: &CapturedFrame) {
        let Some(downlink) = &mut self.downlink else { return };
        self.frames.push(frame, &downlink.found.mission, downlink.mission);
        let (times, packets, mission) =
            (&mut downlink.times, &mut self.packets, &downlink.found.mission);
        downlink.account.feed_with(frame, |packet| {
            // The time rules are those of the mission's own spacecraft.
            let time = mission
                .covers(packet.channel.scid)
                .then(|| times.next(&packet.header, &packet.bytes).own);
            packets.push_extracted(packet, time.flatten());
        });
    }

    fn end(&mut self) {
        let Some(Downlink { found, account, .. }) = self.downlink.take() else { return };
        let report = FileReport { also_fits: found.also_fits, ..account.finish(&self.place) };
        if report.cadus > 0 {
            self.reports.push(report);
        }
    }

    fn finish(self, py: Python<'_>) -> PyResult<(Bound<'_, PyDict>, Bound<'_, PyDict>, String)> {
        if let Some(reason) = self.unidentified {
            let sentence = reason.to_string();
            let (what, help) =
                sentence.split_once("; ").unwrap_or((&sentence, "see whether it is a capture"));
            return Err(of_data(&self.place, what, help));
        }
        if self.reports.is_empty() {
            let help = "see whether it is a capture, and name its mission and format";
            return Err(of_data(&self.place, "no frame was found", help));
        }
        let account = serde_json::to_string(&self.reports).expect("reports have text keys only");
        Ok((self.frames.table(py)?, self.packets.table(py)?, account))
    }
}

/// The columns of the table of frames.
#[derive(Default)]
struct FrameRows {
    missions: Vec<String>,
    mission: Numbers<u8>,
    position: Numbers<u64>,
    verdict: Numbers<u8>,
    set_aside: Numbers<u8>,
    scid: Numbers<i32>,
    vcid: Numbers<i16>,
    count: Numbers<i64>,
    length: Numbers<u32>,
    marker_errors: Numbers<u8>,
    inverted: Numbers<bool>,
    slip: Numbers<i8>,
    flywheel: Numbers<bool>,
    corrected_symbols: Numbers<u32>,
    data: Option<Vec<Bytes>>,
}

impl FrameRows {
    fn push(&mut self, frame: &CapturedFrame, mission: &Mission, place: u8) {
        let quality = &frame.quality;
        self.mission.push(place);
        self.position.push(frame.position.as_bits());
        self.verdict.push(match quality.verdict {
            FrameVerdict::Clean => 0,
            FrameVerdict::Corrected => 1,
            FrameVerdict::Uncorrectable => 2,
            FrameVerdict::NotChecked => 3,
        });
        self.set_aside.push(match frame.set_aside {
            None => 0,
            Some(Reason::ReedSolomon) => 1,
            Some(Reason::Ldpc) => 2,
            Some(Reason::FrameErrorControl) => 3,
            Some(Reason::Header) => 4,
        });
        // The header of a frame that was set aside may be damaged.
        let header = frame.is_good().then(|| glimpse_as(&frame.bytes, mission.frame())).flatten();
        self.scid.push(header.map_or(-1, |(_, channel, _)| i32::from(channel.scid.value())));
        self.vcid.push(header.map_or(-1, |(_, channel, _)| i16::from(channel.vcid.value())));
        self.count.push(header.map_or(-1, |(_, _, count)| count.value.cast_signed()));
        self.length.push(u32::try_from(frame.bytes.len()).unwrap_or(u32::MAX));
        self.marker_errors.push(quality.marker_errors);
        self.inverted.push(quality.inverted);
        self.slip.push(quality.slip);
        self.flywheel.push(quality.flywheel);
        self.corrected_symbols.push(quality.corrected_symbols());
        if let Some(data) = &mut self.data {
            // Copied: a slice would keep the whole input buffer in memory.
            data.push(Bytes::copy_from_slice(&frame.bytes));
        }
    }

    fn table(self, py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
        let reasons =
            [Reason::ReedSolomon, Reason::Ldpc, Reason::FrameErrorControl, Reason::Header];
        let set_aside: Vec<String> =
            std::iter::once("").chain(reasons.map(Reason::text)).map(str::to_owned).collect();
        let table = Table::new(py)
            .words("mission", self.mission, &self.missions)?
            .numbers("position", self.position)?
            .words(
                "verdict",
                self.verdict,
                &words(&["clean", "corrected", "uncorrectable", "not checked"]),
            )?
            .words("set_aside", self.set_aside, &set_aside)?
            .numbers("scid", self.scid)?
            .numbers("vcid", self.vcid)?
            .numbers("count", self.count)?
            .numbers("length", self.length)?
            .numbers("marker_errors", self.marker_errors)?
            .numbers("inverted", self.inverted)?
            .numbers("slip", self.slip)?
            .numbers("flywheel", self.flywheel)?
            .numbers("corrected_symbols", self.corrected_symbols)?
            .bytes("data", self.data)?;
        Ok(table.finish())
    }
}
