//! `skyhaul decode`: capture files to frames and packets, with the full account.

mod course;
mod notes;
mod outputs;
mod page;
mod pages;
mod select;
mod stages;

use course::{Bounded, CaptureTimeline, ChangeKind, InputChange};
use outputs::{Outputs, Writers};
use page::ContactPage;
use pages::Pages;
use select::InputResult;
use skyhaul_ccsds::account::{ChannelReport, FileReport};
use skyhaul_ccsds::capture::{Capture, CaptureEvent, CaptureOptions, CaptureStats};
use skyhaul_ccsds::identify::{Identification, Unidentified};
use skyhaul_ccsds::mission::{GENERIC, Mission, MissionSet};
use skyhaul_ccsds::quality::BitPosition;
use skyhaul_ccsds::sync::RUN_BLOCKS;
use skyhaul_config::MissionRef;
use skyhaul_exit::{Exit, Failure};
use skyhaul_units::Utc;
use stages::{CaptureTotals, Stages};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// The arguments of `skyhaul decode`.
#[derive(clap::Args)]
#[command(after_help = "\
        The format of a file (raw bit stream, CADUs or frames) and its spacecraft are detected. \
        --format and --mission are for files where detection fails.

Example:
  skyhaul decode pass.dat
  skyhaul decode pass.dat --report page
  skyhaul decode --select north.dat south.dat --frames-out frames.bin
  skyhaul decode pass.dat --packets-out packets --frames-out frames.bin --json")]
pub struct Decode {
    /// The capture files.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Combines recordings of one pass, by several antennas or stations: takes the best copy of
    /// each frame, in order, once.
    #[arg(long)]
    select: bool,
    /// The mission: a name (suomi-npp), or a mission file ending in .toml.
    #[arg(long, value_name = "NAME|FILE.toml")]
    mission: Option<MissionRef>,
    /// The format of the files: auto, bits, cadus, frames, or a demodulator's symbols: symbols (one
    /// bit each) or soft (one byte each).
    #[arg(long, default_value = "auto")]
    format: skyhaul_config::InputFormat,
    /// Writes the packets of each virtual channel to a separate file in this folder.
    #[arg(long, value_name = "DIR")]
    packets_out: Option<PathBuf>,
    /// Writes all good frames in order to this file.
    #[arg(long, value_name = "FILE")]
    frames_out: Option<PathBuf>,
    /// Writes a page about each contact to this folder, for a browser or a printer: report.html, or
    /// one page named after each file if there are several.
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,
    /// Prints the account as one JSON line.
    #[arg(long)]
    json: bool,
}

#[derive(serde::Serialize)]
struct Report<'a> {
    files: &'a [FileResult],
}

/// One downlink of a file, or of several recordings combined, with notes about it. Most files have
/// one.
#[derive(serde::Serialize)]
struct FileResult {
    #[serde(flatten)]
    report: FileReport,
    /// Where it begins, behind another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    begins_at_byte: Option<u64>,
    /// What each of several recordings gave.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    inputs: Vec<InputResult>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

/// Decodes the files, one after the other or joined, and prints their account. A file that cannot
/// be read does not keep the others from being decoded.
///
/// # Errors
/// The first file of which nothing could be made; or an output that cannot be written.
pub fn run(command: &Decode, out: &mut dyn Write) -> Result<(), Failure> {
    if command.format == skyhaul_config::InputFormat::Vita49 {
        let help = "give the channel of a station `format = \"vita49\"` and an udp: input, and \
                   play the packets to it";
        let what = "vita49 is a format of datagrams, and a file does not keep datagram boundaries";
        return Err(Failure::new(Exit::Usage, what, help));
    }
    let known = MissionSet::built_in();
    let options = CaptureOptions {
        format: command.format.known(),
        mission: command.mission.as_ref().map(|wanted| mission(wanted, &known)).transpose()?,
        ..CaptureOptions::default()
    };
    let mut outputs = Outputs::open(command)?;
    let pages = Pages::open(command)?;
    let mut reports = Vec::new();
    let mut failures = Vec::new();
    let setup = DecodeSetup { known: &known, options: &options, has_pages: pages.is_some() };
    let together = if command.select { command.files.len() } else { 1 };
    for files in command.files.chunks(together.max(1)) {
        let decoded = match files {
            [file] => decode(file, &setup, &mut outputs),
            several => select::decode(several, &setup, &mut outputs),
        };
        match decoded {
            Ok(contacts) => {
                for (number, (report, page)) in (1..).zip(contacts) {
                    reports.push(report);
                    let pages = pages.iter().zip(page);
                    let written = pages.map(|(pages, page)| pages.write(&files[0], number, &page));
                    failures.extend(written.filter_map(Result::err));
                }
            }
            Err(failure) => failures.push(failure),
        }
    }
    outputs.close()?;
    if command.json {
        serde_json::to_writer(&mut *out, &Report { files: &reports }).map_err(io::Error::from)?;
        writeln!(out)?;
    } else {
        reports.iter().try_for_each(|report| write_report(report, out))?;
    }
    let mut failures = failures.into_iter();
    let first = failures.next();
    for failure in failures {
        writeln!(io::stderr(), "{failure}")?;
    }
    first.map_or(Ok(()), Err)
}

/// The mission of a name among `known`, or of a file.
///
/// # Errors
/// There is none of the name; or the file cannot be read, or contradicts itself.
pub(super) fn mission(wanted: &MissionRef, known: &MissionSet) -> Result<Mission, Failure> {
    let file = match wanted {
        MissionRef::Named(name) if name == "generic" => {
            return Ok(Mission::from_toml(GENERIC).expect("the program's own mission can be read"));
        }
        MissionRef::Named(name) => {
            return known.by_name(name).cloned().ok_or_else(|| {
                let names: Vec<&str> = known.iter().map(Mission::name).collect();
                let help = format!(
                    "write one of {}, generic, or a file ending in .toml",
                    names.join(", ")
                );
                Failure::new(Exit::Usage, &format!("there is no mission `{name}`"), &help)
            });
        }
        MissionRef::File(file) => file,
    };
    let place = file.display().to_string();
    let text = std::fs::read_to_string(file).map_err(|source| {
        Failure::io("the mission cannot be read", &place, "give the path of a mission file", source)
    })?;
    Mission::from_toml(&text).map_err(|error| {
        Failure::new(Exit::Usage, &error.reason, "missions/ has examples")
            .at(&format!("{place}:{}", error.line))
    })
}

/// How captures are decoded.
pub(super) struct DecodeSetup<'a> {
    /// Every mission that the program knows.
    known: &'a MissionSet,
    options: &'a CaptureOptions,
    /// Whether a page is written about each contact.
    has_pages: bool,
}

impl DecodeSetup<'_> {
    /// The data of a page, if one is written.
    fn timeline(&self, mission: &Mission) -> Option<CaptureTimeline> {
        self.has_pages.then(|| CaptureTimeline::new(mission))
    }
}

/// The account of each downlink of a file, and the page about it if one is written.
fn decode(
    file: &Path,
    setup: &DecodeSetup<'_>,
    outputs: &mut Outputs,
) -> Result<Vec<(FileResult, Option<String>)>, Failure> {
    let name = file.display().to_string();
    let unreadable = |source| {
        Failure::io("the capture cannot be read", &name, "give the path of a readable file", source)
    };
    let mut input = File::open(file).map_err(unreadable)?;
    let mut capture = Capture::new(setup.known.clone(), setup.options.clone());
    let mut buffer = vec![0; READ_SIZE];
    outputs.begin(file);
    let mut writers = Some(outputs.writers());
    let mut downlinks = Downlinks::default();
    std::thread::scope(|scope| {
        let mut stages: Option<Stages<'_, '_>> = None;
        loop {
            let len = input.read(&mut buffer).map_err(unreadable)?;
            // The reception time of a file is not known.
            capture.push(Utc::from_micros(0), &buffer[..len]);
            if len == 0 {
                capture.finish();
            }
            let mut frames = Vec::with_capacity(RUN_BLOCKS);
            while let Some(event) = capture.poll() {
                match event {
                    CaptureEvent::Identified(found) => {
                        let course = setup.timeline(&found.mission);
                        let mission = found.mission.clone();
                        let start =
                            |writers| Stages::start(scope, mission, setup.known, writers, course);
                        stages = writers.take().map(start);
                        downlinks.identified = Some(found);
                    }
                    CaptureEvent::Frame(frame) => frames.push(frame),
                    CaptureEvent::Unidentified(reason) => {
                        return Err(unidentified(reason, capture.stats().sync.bits / 8).at(&name));
                    }
                    CaptureEvent::Locked(position) => {
                        downlinks.lock.push(InputChange { position, kind: ChangeKind::Locked });
                    }
                    CaptureEvent::LockLost(position) => {
                        downlinks.lock.push(InputChange { position, kind: ChangeKind::LockLost });
                    }
                    CaptureEvent::Changed { at, stats } => {
                        if let Some(stages) = stages.take() {
                            stages.take(std::mem::take(&mut frames));
                            writers = Some(downlinks.end(stages, stats));
                        }
                        downlinks.from = Some(at);
                    }
                    CaptureEvent::OtherDownlink(other) => downlinks.foreign = Some(other),
                    CaptureEvent::OtherSpacecraft { .. } => {}
                }
            }
            if let Some(stages) = &stages {
                stages.take(frames);
            }
            if len == 0 {
                stages.map(|stages| downlinks.end(stages, capture.stats()));
                return downlinks.account(&name);
            }
        }
    })
}

/// The downlinks of a file, one after the other.
#[derive(Default)]
struct Downlinks {
    ended: Vec<Downlink>,
    /// Of the present one.
    identified: Option<Box<Identification>>,
    from: Option<BitPosition>,
    lock: Bounded<InputChange>,
    /// One that is not of the mission named.
    foreign: Option<Box<Identification>>,
}

/// What one downlink of a file amounts to once all of it is decoded.
struct Downlink {
    found: CaptureTotals,
    identified: Box<Identification>,
    /// Where it begins, behind another one.
    from: Option<BitPosition>,
    lock: Bounded<InputChange>,
    stats: CaptureStats,
    /// What each of several recordings gave.
    inputs: Vec<InputResult>,
    /// Notes about these.
    notes: Vec<String>,
}

impl Downlinks {
    /// The present one ends; what writes is free for the next.
    fn end<'o>(&mut self, stages: Stages<'_, 'o>, stats: CaptureStats) -> Writers<'o> {
        let (found, writers) = stages.finish();
        let (lock, from) = (std::mem::take(&mut self.lock), self.from.take());
        if let Some(identified) = self.identified.take() {
            let (inputs, notes) = (Vec::new(), Vec::new());
            self.ended.push(Downlink { found, identified, from, lock, stats, inputs, notes });
        }
        writers
    }

    fn account(self, name: &str) -> Result<Vec<(FileResult, Option<String>)>, Failure> {
        let foreign = self.foreign.map(|other| {
            let scid =
                other.scid.map_or(String::new(), |scid| format!(", spacecraft {}", scid.value()));
            format!("mission {}{scid}", other.mission.name())
        });
        let mut contacts: Vec<_> =
            self.ended.into_iter().filter_map(|downlink| downlink.account(name)).collect();
        let Some((last, _)) = contacts.last_mut() else {
            let (what, help) = match &foreign {
                None => (
                    "no frame was found".to_owned(),
                    "check that it is a capture, and name its --mission and --format",
                ),
                Some(other) => (
                    format!("no frame of the mission was found; the capture holds {other}"),
                    "omit --mission, or name that one",
                ),
            };
            return Err(Failure::new(Exit::Result, &what, help).at(name));
        };
        if let Some(other) = foreign {
            last.notes.push(format!(
                "the capture also holds {other}; it is not decoded: omit --mission, or name that \
                one"
            ));
        }
        Ok(contacts)
    }
}

impl Downlink {
    /// `None` where no frame was found.
    fn account(self, name: &str) -> Option<(FileResult, Option<String>)> {
        let Self { found, identified, from, lock, stats, inputs, notes: of_inputs } = self;
        let CaptureTotals { frames, packets, clocks, course } = found;
        let report =
            FileReport { also_fits: identified.also_fits.clone(), ..packets.finish(name, frames) };
        if report.cadus == 0 {
            return None;
        }
        let mut notes = notes::notes(&report, &identified.mission, &stats, &clocks);
        notes.extend(of_inputs);
        let page = course.map(|course| {
            page::page(&ContactPage {
                report: &report,
                notes: &notes,
                mission: &identified.mission,
                format: identified.format,
                course: &course,
                lock: &lock,
                stats,
                inputs: &inputs,
            })
        });
        Some((
            FileResult { report, begins_at_byte: from.map(BitPosition::byte), inputs, notes },
            page,
        ))
    }
}

fn unidentified(reason: Unidentified, len: u64) -> Failure {
    match reason {
        _ if len == 0 => {
            Failure::new(Exit::Result, "the capture is empty", "check that the receiver wrote it")
        }
        Unidentified::Coding(block) if len < block as u64 => {
            let what = format!("the capture's {len} bytes end inside its first frame of {block}");
            Failure::new(Exit::Result, &what, "check that it was copied completely")
        }
        other => Failure::from_sentence(Exit::Result, &other.to_string()),
    }
}

fn write_report(result: &FileResult, out: &mut dyn Write) -> io::Result<()> {
    let FileResult { report, begins_at_byte, inputs, notes } = result;
    let spacecraft =
        report.scid.map_or(String::new(), |scid| format!(", spacecraft {}", scid.value()));
    let from = begins_at_byte.map_or(String::new(), |byte| format!(", from byte {byte} on"));
    writeln!(out, "{}: mission {}{spacecraft}{from}", report.file, report.mission)?;
    writeln!(
        out,
        "  {} frames: {} clean, {} corrected ({} symbols), {} set aside",
        report.cadus,
        report.clean_frames,
        report.corrected_frames,
        report.corrected_symbols,
        report.uncorrectable_frames
    )?;
    if let Some(ldpc) = &report.ldpc {
        writeln!(
            out,
            "  parity checks: {} iterations for {} codewords, {} at most; {} not met",
            ldpc.iterations, ldpc.codewords, ldpc.most_iterations, ldpc.not_converged
        )?;
    }
    write_inputs(inputs, out)?;
    write_channels(&report.vcids, out)?;
    for other in &report.other_spacecraft {
        let mission = other.mission.as_deref().unwrap_or("unknown");
        writeln!(out, "  also spacecraft {}, mission {mission}", other.scid.value())?;
        write_channels(&other.vcids, out)?;
    }
    notes.iter().try_for_each(|note| writeln!(out, "  note: {note}"))
}

fn write_inputs(inputs: &[InputResult], out: &mut dyn Write) -> io::Result<()> {
    if !inputs.is_empty() {
        writeln!(out, "    frames    taken  only here  no better  set aside  recording")?;
    }
    for input in inputs {
        let InputResult { file, frames, chosen, only_here, worse, set_aside, .. } = input;
        writeln!(
            out,
            "  {frames:>8} {chosen:>8} {only_here:>10} {worse:>10} {set_aside:>10}  {file}"
        )?;
    }
    Ok(())
}

fn write_channels(channels: &BTreeMap<u8, ChannelReport>, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "  VCID   frames  missing  packets        bytes  packets by APID")?;
    for (vcid, channel) in channels {
        let apids: Vec<String> =
            channel.apids.iter().map(|(apid, count)| format!("{apid}: {count}")).collect();
        writeln!(
            out,
            "  {vcid:>4} {:>8} {:>8} {:>8} {:>12}  {}",
            channel.good_frames,
            channel.missing_frames,
            channel.packets,
            channel.bytes,
            apids.join(", ")
        )?;
        if channel.resets > 0 {
            writeln!(out, "       {}", resets(channel.resets))?;
        }
    }
    Ok(())
}

/// The note about a frame count that went back, or jumped by more than can be counted as a gap.
fn resets(count: u64) -> String {
    let times = match count {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        count => format!("{count} times"),
    };
    format!(
        "its frame count jumped {times}, by a reset, a replay or a damaged header; a jump does not \
        count as missing frames"
    )
}

/// 256 KiB: large enough that reading costs nothing beside decoding.
const READ_SIZE: usize = 256 << 10;
