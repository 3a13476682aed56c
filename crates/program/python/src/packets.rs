//! Packet files, and packets as rows.

use crate::columns::{Numbers, Table, Time, words};
use crate::errors::of_data;
use crate::mission::mission_of;
use crate::row_data::{RowData, row_data};
use bytes::Bytes;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use skyhaul_ccsds::EndOfInput;
use skyhaul_ccsds::extract::ExtractedPacket;
use skyhaul_ccsds::id::Channel;
use skyhaul_ccsds::mission::MissionSet;
use skyhaul_ccsds::packet::{Grouping, Header};
use skyhaul_ccsds::scan::{LOOK_AHEAD, Scanned, Scanner};
use skyhaul_ccsds::survey::PacketTimes;
use skyhaul_level0::naming::mission_of_file;
use skyhaul_units::Utc;
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

/// Bytes read at once, as by `skyhaul packets`, and between two checks for Ctrl-C.
const READ_SIZE: usize = 1 << 20;
/// Damages that are listed; more are only counted.
const MOST_TOLD: usize = 16;

/// Reads a packet file to (packets, damages, count): a table, the first damages with their places,
/// and the number of all damages.
#[pyfunction]
#[pyo3(signature = (path, mission=None, data=RowData::Omitted))]
pub fn packets<'py>(
    py: Python<'py>,
    path: PathBuf,
    mission: Option<&str>,
    #[pyo3(from_py_with = row_data)] data: RowData,
) -> PyResult<(Bound<'py, PyDict>, Vec<String>, usize)> {
    let known = MissionSet::built_in();
    let named = mission.map(|wanted| mission_of(wanted, &known)).transpose()?;
    let by_name = || mission_of_file(path.file_name()?.to_str()?, &known);
    let mut reading = Reading {
        file: File::open(&path)?,
        scanner: Scanner::default(),
        times: PacketTimes::new(named.as_ref().or_else(by_name)),
        buffer: vec![0; READ_SIZE + LOOK_AHEAD],
        held: 0,
        rows: PacketRows::of_file(data),
        told: Vec::new(),
        damages: 0,
    };
    while !py.detach(|| reading.read())? {
        py.check_signals()?;
    }
    if reading.rows.count == 0 {
        let help = "see whether it is a packet file; `skyhaul.decode` reads captures";
        return Err(of_data(&path.display().to_string(), "no packet was found", help));
    }
    Ok((reading.rows.table(py)?, reading.told, reading.damages))
}

/// A file on its way through the scanner.
struct Reading {
    file: File,
    scanner: Scanner,
    times: PacketTimes,
    buffer: Vec<u8>,
    /// Bytes in the buffer that are not scanned yet.
    held: usize,
    rows: PacketRows,
    told: Vec<String>,
    damages: usize,
}

impl Reading {
    /// Reads the next piece. Returns whether it was the last.
    fn read(&mut self) -> PyResult<bool> {
        while self.held < self.buffer.len() {
            match self.file.read(&mut self.buffer[self.held..])? {
                0 => break,
                read => self.held += read,
            }
        }
        let end =
            if self.held < self.buffer.len() { EndOfInput::Reached } else { EndOfInput::Ahead };
        let Self { scanner, times, buffer, held, rows, told, damages, .. } = self;
        let taken = scanner.scan(&buffer[..*held], end, |found| match found {
            Scanned::Packet { offset, header, bytes } => {
                let time = times.next(&header, bytes).own;
                rows.push(Some(offset), None, &header, time);
                rows.data(bytes);
            }
            Scanned::Damage(damage) => {
                *damages += 1;
                if told.len() < MOST_TOLD {
                    told.push(format!(
                        "at byte {}, {} bytes: {}",
                        damage.offset, damage.bytes, damage.kind
                    ));
                }
            }
        });
        if end == EndOfInput::Reached {
            return Ok(true);
        }
        self.buffer.copy_within(taken..self.held, 0);
        self.held -= taken;
        Ok(false)
    }
}

/// The columns of the table of packets.
#[derive(Default)]
pub struct PacketRows {
    /// Packets of a file have an offset, those of a capture a channel.
    is_of_file: bool,
    count: u64,
    offset: Numbers<u64>,
    scid: Numbers<i32>,
    vcid: Numbers<i16>,
    apid: Numbers<i32>,
    sequence: Numbers<i32>,
    length: Numbers<u32>,
    grouping: Numbers<u8>,
    telecommand: Numbers<bool>,
    secondary_header: Numbers<bool>,
    time: Numbers<Time>,
    data: Option<Vec<Bytes>>,
}

impl PacketRows {
    /// Of a capture.
    pub fn new(data: RowData) -> Self {
        Self { data: data.column(), ..Self::default() }
    }

    fn of_file(data: RowData) -> Self {
        Self { is_of_file: true, ..Self::new(data) }
    }

    /// Adds a packet of a capture.
    pub fn push_extracted(&mut self, packet: &ExtractedPacket, time: Option<Utc>) {
        self.push(None, Some(packet.channel), &packet.header, time);
        self.data(&packet.bytes);
    }

    fn push(
        &mut self,
        offset: Option<u64>,
        channel: Option<Channel>,
        header: &Header,
        time: Option<Utc>,
    ) {
        self.count += 1;
        offset.into_iter().for_each(|offset| self.offset.push(offset));
        if let Some(Channel { scid, vcid }) = channel {
            self.scid.push(scid.value().into());
            self.vcid.push(vcid.value().into());
        }
        let space = match header {
            Header::Space(space) => Some(space),
            Header::Encapsulation(_) => None,
        };
        self.apid.push(space.map_or(-1, |space| space.apid.value().into()));
        self.sequence.push(space.map_or(-1, |space| space.count.into()));
        self.length.push(u32::try_from(header.total_len()).unwrap_or(u32::MAX));
        self.grouping.push(space.map_or(4, |space| match space.grouping {
            Grouping::First => 0,
            Grouping::Continuation => 1,
            Grouping::Last => 2,
            Grouping::Standalone => 3,
        }));
        self.telecommand.push(space.is_some_and(|space| space.is_telecommand));
        self.secondary_header.push(space.is_some_and(|space| space.has_secondary));
        self.time.push(Time(time));
    }

    fn data(&mut self, bytes: &[u8]) {
        if let Some(data) = &mut self.data {
            data.push(Bytes::copy_from_slice(bytes));
        }
    }

    /// The table.
    pub fn table(self, py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
        let table = Table::new(py);
        let table = if self.is_of_file {
            table.numbers("offset", self.offset)?
        } else {
            table.numbers("scid", self.scid)?.numbers("vcid", self.vcid)?
        };
        let groupings = words(&["first", "continuation", "last", "standalone", ""]);
        let table = table
            .numbers("length", self.length)?
            .numbers("apid", self.apid)?
            .numbers("count", self.sequence)?
            .words("grouping", self.grouping, &groupings)?
            .numbers("telecommand", self.telecommand)?
            .numbers("secondary_header", self.secondary_header)?
            .numbers("time", self.time)?
            .bytes("data", self.data)?;
        Ok(table.finish())
    }
}
