//! The account of a packet file: its packets by application, and the bytes that are not packets.

use super::selection::PacketSelection;
use skyhaul_ccsds::id::Apid;
use skyhaul_ccsds::mission::Mission;
use skyhaul_ccsds::packet::Header;
use skyhaul_ccsds::scan::UnreadableRange;
use skyhaul_ccsds::survey::{ApidSurvey, PacketSurvey, SurveyTotals};
use skyhaul_exit::{Exit, Failure};
use skyhaul_units::Utc;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

/// What a file amounts to.
pub struct PacketFileAccount {
    name: String,
    mission: Option<String>,
    selected: PacketSurvey,
    /// Packets of the file, selected or not.
    packets: u64,
    bytes: u64,
    damage: Vec<UnreadableRange>,
    damaged_bytes: u64,
    damaged_places: u64,
}

/// As in JSON.
#[derive(serde::Serialize)]
struct Summary<'a> {
    file: &'a str,
    mission: Option<&'a str>,
    #[serde(flatten)]
    totals: SurveyTotals,
    apids: BTreeMap<u16, ApidSurvey>,
    /// Packets of the file that were not selected.
    passed_over: u64,
    damaged_bytes: u64,
    damaged_places: u64,
    damage: Vec<DamagedPlace>,
}

#[derive(serde::Serialize)]
struct DamagedPlace {
    offset: u64,
    bytes: u64,
    what: String,
}

#[derive(serde::Serialize)]
struct Summaries<'a> {
    files: Vec<Summary<'a>>,
}

impl PacketFileAccount {
    /// Of nothing yet.
    pub fn new(path: &Path, mission: Option<&Mission>) -> Self {
        Self {
            name: path.display().to_string(),
            mission: mission.map(|mission| mission.name().to_owned()),
            selected: PacketSurvey::new(mission),
            packets: 0,
            bytes: 0,
            damage: Vec::new(),
            damaged_bytes: 0,
            damaged_places: 0,
        }
    }

    /// The file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Counts a packet of the file, selected or not.
    pub fn pass(&mut self, len: usize) {
        self.packets += 1;
        self.bytes += len as u64;
    }

    /// Counts a packet that was selected.
    pub fn add(&mut self, header: &Header, time: Option<Utc>) {
        self.selected.add(header, time);
    }

    /// Counts bytes that are no packets.
    pub fn damage(&mut self, damage: UnreadableRange) {
        self.damaged_places += 1;
        self.damaged_bytes += damage.bytes;
        if self.damage.len() < LISTED_DAMAGE {
            self.damage.push(damage);
        }
    }

    /// What keeps the file from being a whole packet file.
    pub fn fault(&self) -> Option<Failure> {
        let at = |failure: Failure| failure.at(&self.name);
        let help = "check that it is a packet file: run captures and frames through `skyhaul \
                   decode` first";
        let first = match self.damage.first() {
            None if self.packets == 0 => {
                let help = "check the program that writes it";
                return Some(at(Failure::new(Exit::Result, "the packet file is empty", help)));
            }
            None => return None,
            Some(_) if self.packets == 0 => {
                return Some(at(Failure::new(Exit::Result, "no packet was found", help)));
            }
            Some(first) => first,
        };
        let all = self.bytes + self.damaged_bytes;
        let what = format!(
            "{} of {all} bytes, at {} places, are not packets, the first at byte {}: {}",
            self.damaged_bytes, self.damaged_places, first.offset, first.kind
        );
        let help = "the packets found are whole; get the file again from its source";
        Some(at(Failure::new(Exit::Result, &what, help)))
    }

    /// Writes what the file amounts to, for people.
    ///
    /// # Errors
    /// The result cannot be written.
    pub fn write(&self, selection: &PacketSelection, out: &mut dyn Write) -> io::Result<()> {
        let totals = self.selected.totals();
        let mission =
            self.mission.as_deref().map_or(String::new(), |mission| format!("mission {mission}, "));
        let of_all =
            if selection.is_all() { String::new() } else { format!(" of {}", self.packets) };
        writeln!(
            out,
            "{}: {mission}{}{of_all} packets, {} bytes",
            self.name, totals.packets, totals.bytes
        )?;
        if totals.packets > totals.encapsulation_packets {
            writeln!(
                out,
                "  APID    packets          bytes         length    gaps  missing  resets  \
                {:<28}last",
                "first"
            )?;
        }
        for (apid, survey) in self.selected.apids() {
            write_apid(apid, &survey, out)?;
        }
        if totals.encapsulation_packets > 0 {
            let (packets, bytes) = (totals.encapsulation_packets, totals.encapsulation_bytes);
            writeln!(out, "  encapsulation packets: {packets}, {bytes} bytes")?;
        }
        if self.mission.is_none() && totals.packets > totals.encapsulation_packets {
            writeln!(
                out,
                "  no times: the file's name contains no mission; name it with --mission"
            )?;
        }
        for damage in self.damage.iter().take(SHOWN_DAMAGE) {
            writeln!(out, "  at byte {}, {} bytes: {}", damage.offset, damage.bytes, damage.kind)?;
        }
        let further = self.damaged_places.saturating_sub(SHOWN_DAMAGE as u64);
        if further > 0 {
            writeln!(out, "  and {further} further places")?;
        }
        Ok(())
    }

    fn summary(&self) -> Summary<'_> {
        let totals = self.selected.totals();
        let place = |damage: &UnreadableRange| DamagedPlace {
            offset: damage.offset,
            bytes: damage.bytes,
            what: damage.kind.to_string(),
        };
        Summary {
            file: &self.name,
            mission: self.mission.as_deref(),
            totals,
            apids: self
                .selected
                .apids()
                .into_iter()
                .map(|(apid, survey)| (apid.value(), survey))
                .collect(),
            passed_over: self.packets - totals.packets,
            damaged_bytes: self.damaged_bytes,
            damaged_places: self.damaged_places,
            damage: self.damage.iter().map(place).collect(),
        }
    }
}

fn write_apid(apid: Apid, survey: &ApidSurvey, out: &mut dyn Write) -> io::Result<()> {
    let lengths = match (survey.shortest, survey.longest) {
        (shortest, longest) if shortest == longest => shortest.to_string(),
        (shortest, longest) => format!("{shortest}-{longest}"),
    };
    let time = |time: Option<Utc>| time.map_or("-".to_owned(), |time| time.to_string());
    writeln!(
        out,
        "  {apid:>4} {:>10} {:>14} {lengths:>14} {:>7} {:>8} {:>7}  {:<28}{}",
        survey.packets,
        survey.bytes,
        survey.gaps,
        survey.missing,
        survey.resets,
        time(survey.first),
        time(survey.last)
    )
}

/// Writes what the files amount to as one line of JSON.
///
/// # Errors
/// The result cannot be written.
pub fn write_summary(accounts: &[PacketFileAccount], out: &mut dyn Write) -> Result<(), Failure> {
    let summaries = Summaries { files: accounts.iter().map(PacketFileAccount::summary).collect() };
    serde_json::to_writer(&mut *out, &summaries).map_err(io::Error::from)?;
    Ok(writeln!(out)?)
}

/// Damaged places that are listed; further ones are counted.
const LISTED_DAMAGE: usize = 1_000;
/// Damaged places that are shown to people.
const SHOWN_DAMAGE: usize = 5;
