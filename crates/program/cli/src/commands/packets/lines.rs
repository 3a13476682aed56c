//! Packets as lines: JSON, comma-separated values, or for people.

use super::Picked;
use skyhaul_ccsds::packet::{Grouping, Header, SpaceHeader};
use skyhaul_columns::TableContent;
use skyhaul_exit::Failure;
use skyhaul_units::Utc;
use std::fmt::Write as _;
use std::io::{self, Write};

/// A packet in JSON.
#[derive(serde::Serialize)]
struct Line<'a> {
    file: &'a str,
    offset: u64,
    length: u64,
    /// The protocol of an encapsulation packet, which lacks the following fields.
    #[serde(skip_serializing_if = "Option::is_none")]
    protocol: Option<u8>,
    #[serde(flatten)]
    space: Option<Space>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<&'a str>,
}

/// The header of a space packet, and the packet's time.
#[derive(serde::Serialize)]
struct Space {
    apid: u16,
    count: u16,
    grouping: &'static str,
    telecommand: bool,
    secondary_header: bool,
    time: Option<Utc>,
}

/// Writes a line of JSON for each packet.
pub struct Json {
    hex: Option<String>,
    line: Vec<u8>,
}

/// Writes a line of comma-separated values for each packet.
pub struct Csv {
    hex: Option<String>,
    line: String,
}

impl Json {
    /// Begins without a line.
    pub fn new(content: TableContent) -> Self {
        Self { hex: hex(content), line: Vec::new() }
    }

    /// Writes a packet's line.
    ///
    /// # Errors
    /// The result cannot be written.
    pub fn put(
        &mut self,
        file: &str,
        packet: &Picked<'_>,
        out: &mut dyn Write,
    ) -> Result<(), Failure> {
        if let Some(hex) = &mut self.hex {
            write_hex(packet.bytes, hex);
        }
        let (space, protocol) = match packet.header {
            Header::Space(header) => (Some(space(&header, packet.time)), None),
            Header::Encapsulation(header) => (None, Some(header.protocol)),
        };
        let length = packet.bytes.len() as u64;
        let line = Line {
            file,
            offset: packet.offset,
            length,
            protocol,
            space,
            bytes: self.hex.as_deref(),
        };
        self.line.clear();
        serde_json::to_writer(&mut self.line, &line).map_err(io::Error::from)?;
        self.line.push(b'\n');
        Ok(out.write_all(&self.line)?)
    }
}

impl Csv {
    /// Writes the line that names the columns.
    ///
    /// # Errors
    /// The result cannot be written.
    pub fn begin(content: TableContent, out: &mut dyn Write) -> Result<Self, Failure> {
        let hex = hex(content);
        let bytes = if hex.is_some() { ",bytes" } else { "" };
        writeln!(
            out,
            "file,offset,length,apid,count,grouping,telecommand,secondary_header,time{bytes}"
        )?;
        Ok(Self { hex, line: String::new() })
    }

    /// Writes a packet's line. Of an encapsulation packet the columns of space packets are empty.
    ///
    /// # Errors
    /// The result cannot be written.
    pub fn put(
        &mut self,
        file: &str,
        packet: &Picked<'_>,
        out: &mut dyn Write,
    ) -> Result<(), Failure> {
        let line = &mut self.line;
        line.clear();
        quote(file, line);
        let written = match packet.header {
            Header::Space(header) => {
                let Space { apid, count, grouping, telecommand, secondary_header, .. } =
                    space(&header, packet.time);
                write!(
                    line,
                    ",{},{},{apid},{count},{grouping},{telecommand},{secondary_header},",
                    packet.offset,
                    packet.bytes.len(),
                )
            }
            Header::Encapsulation(_) => {
                write!(line, ",{},{},,,,,,", packet.offset, packet.bytes.len())
            }
        };
        let timed = packet.time.map_or(Ok(()), |time| write!(line, "{time}"));
        written.and(timed).expect("text takes everything");
        if let Some(hex) = &mut self.hex {
            write_hex(packet.bytes, hex);
            line.push(',');
            line.push_str(hex);
        }
        line.push('\n');
        Ok(out.write_all(line.as_bytes())?)
    }
}

/// Shows a packet to people.
///
/// # Errors
/// The result cannot be written.
pub fn show(packet: &Picked<'_>, out: &mut dyn Write) -> Result<(), Failure> {
    let (offset, length) = (packet.offset, packet.bytes.len());
    match packet.header {
        Header::Space(header) => {
            let Space { apid, count, grouping, time, .. } = space(&header, packet.time);
            let time = time.map_or("-".to_owned(), |time| time.to_string());
            writeln!(
                out,
                "  {offset:>12}  APID {apid:>4}  count {count:>5}  {length:>5} \
                bytes  {grouping:<12} {time}"
            )?;
        }
        Header::Encapsulation(header) => {
            let protocol = header.protocol;
            writeln!(out, "  {offset:>12}  encapsulation, protocol {protocol}  {length:>5} bytes")?;
        }
    }
    Ok(())
}

fn space(header: &SpaceHeader, time: Option<Utc>) -> Space {
    Space {
        apid: header.apid.value(),
        count: header.count,
        grouping: match header.grouping {
            Grouping::First => "first",
            Grouping::Continuation => "continuation",
            Grouping::Last => "last",
            Grouping::Standalone => "standalone",
        },
        telecommand: header.is_telecommand,
        secondary_header: header.has_secondary,
        time,
    }
}

/// Room for the bytes of a packet, if lines have them.
fn hex(content: TableContent) -> Option<String> {
    (content == TableContent::Packets).then(String::new)
}

fn write_hex(bytes: &[u8], hex: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    hex.clear();
    for byte in bytes {
        hex.push(char::from(DIGITS[usize::from(byte >> 4)]));
        hex.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
}

/// Appends a value, in quotes where it would break the line (RFC 4180 2).
fn quote(value: &str, line: &mut String) {
    if value.contains(['"', ',', '\n', '\r']) {
        line.push('"');
        line.push_str(&value.replace('"', "\"\""));
        line.push('"');
    } else {
        line.push_str(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_would_break_a_line_are_quoted() {
        let quoted = |value| {
            let mut line = String::new();
            quote(value, &mut line);
            line
        };
        assert_eq!(quoted("a b.dat"), "a b.dat");
        assert_eq!(quoted("a,\"b\""), "\"a,\"\"b\"\"\"");
    }
}
