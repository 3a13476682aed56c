//! Several recordings of one downlink combined: the best copy of each frame, in order, once, with
//! the account of each recording.

use super::course::Bounded;
use super::outputs::Outputs;
use super::stages::Stages;
use super::{DecodeSetup, Downlink, FileResult, READ_SIZE, notes, unidentified};
use skyhaul_ccsds::capture::{Capture, CaptureEvent, CaptureStats};
use skyhaul_ccsds::identify::{Identification, InputLayout};
use skyhaul_ccsds::quality::BitPosition;
use skyhaul_ccsds::select::MAX_INPUTS;
use skyhaul_ccsds::sync::RUN_BLOCKS;
use skyhaul_exit::{Exit, Failure};
use skyhaul_node::station::{Sighting, Union};
use skyhaul_units::Utc;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// What one of several recordings gave.
#[derive(Debug, serde::Serialize)]
pub struct InputResult {
    /// The recording, as it was named.
    pub file: String,
    /// Frames that it gave, good or not: the sum of `chosen`, `worse`, `duplicates`, `repeated` and
    /// `late`.
    pub frames: u64,
    /// Frames whose copy that was taken is its own.
    pub chosen: u64,
    /// Of these, good ones that no other recording had good.
    pub only_here: u64,
    /// Copies that were no better than the one taken.
    pub worse: u64,
    /// Of its frames, those that were set aside.
    pub set_aside: u64,
    /// Copies that came after the frame had been taken.
    pub duplicates: u64,
    /// Frames that it gave twice itself.
    pub repeated: u64,
    /// Frames without a copy that came after their position had passed; they are omitted.
    pub late: u64,
}

/// One recording.
struct Recording {
    /// Its place in the command.
    number: usize,
    name: String,
    file: File,
    capture: Capture,
    /// Bytes read.
    read: u64,
    /// Whether that is all of it.
    is_read: bool,
    /// No more frames are taken of it.
    is_over: bool,
    identified: Option<Box<Identification>>,
    /// Why nothing of it is taken.
    failure: Option<Failure>,
    /// The counts of the part that is used, if the file continues with another downlink.
    ended: Option<(BitPosition, CaptureStats)>,
    /// A downlink that is not of the mission named.
    foreign: Option<String>,
    set_aside: u64,
}

/// Frames of several recordings wait for the others in so much memory: recordings of 1,024-byte
/// frames may begin 262,144 frames apart, 2 minutes at 15 Mbit/s.
const HELD_BYTES: usize = 256 << 20;

/// The account of the downlink that several files are recordings of, and the page about it where
/// one is wanted.
///
/// # Errors
/// A file that cannot be read; files of different downlinks; too many; or nothing could be made of
/// any.
pub fn decode(
    files: &[PathBuf],
    setup: &DecodeSetup<'_>,
    outputs: &mut Outputs,
) -> Result<Vec<(FileResult, Option<String>)>, Failure> {
    if files.len() > MAX_INPUTS {
        let what = format!("--select joins at most {MAX_INPUTS} recordings, not {}", files.len());
        return Err(Failure::new(
            Exit::Usage,
            &what,
            "join fewer, then their --frames-out with the rest",
        ));
    }
    let mut buffer = vec![0; READ_SIZE];
    let mut recordings = Vec::with_capacity(files.len());
    for (number, file) in files.iter().enumerate() {
        let mut recording = Recording::open(number, file, setup)?;
        recording.identify(&mut buffer)?;
        recordings.push(recording);
    }
    // The choice between two equal copies does not depend on the order in the command.
    recordings.sort_by(|one, other| one.name.cmp(&other.name));
    let (mut union, downlink) = join(&mut recordings)?;
    let name = files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(" + ");
    outputs.begin(&files[0]);
    let bits = bits_per_frame(&downlink);
    let mut taken = BitPosition::from_bits(0);
    let (found, _) = std::thread::scope(|scope| {
        let course = setup.timeline(&downlink.mission);
        let mission = downlink.mission.clone();
        let stages = Stages::start(scope, mission, setup.known, outputs.writers(), course);
        loop {
            let is_over = !step(&mut recordings, &mut union, &mut buffer)?;
            if is_over {
                union.finish();
            }
            let mut frames = Vec::with_capacity(RUN_BLOCKS);
            while let Some(mut frame) = union.poll(UNTIMED) {
                // Positions in different files cannot be compared.
                frame.position = taken;
                taken = taken.plus_bits(bits);
                frames.push(frame);
            }
            stages.take(frames);
            if is_over {
                return Ok::<_, Failure>(stages.finish());
            }
        }
    })?;
    let mut accounts: Vec<(usize, InputResult)> =
        recordings.iter().enumerate().map(|(at, recording)| recording.result(&union, at)).collect();
    accounts.sort_by_key(|(number, _)| *number);
    recordings.sort_by_key(|recording| recording.number);
    let inputs: Vec<InputResult> = accounts.into_iter().map(|(_, account)| account).collect();
    let notes = recordings
        .iter()
        .zip(&inputs)
        .flat_map(|(recording, input)| recording.notes(input))
        .collect();
    let stats = stats(&recordings, taken);
    let lock = Bounded::default();
    let joined = Downlink { found, identified: downlink, from: None, lock, stats, inputs, notes };
    joined.account(&name).map(|account| vec![account]).ok_or_else(|| nothing(&mut recordings))
}

/// What the recordings are of, once they agree.
fn join(recordings: &mut [Recording]) -> Result<(Union, Box<Identification>), Failure> {
    let known =
        recordings.iter().enumerate().filter_map(|(at, one)| Some((at, one.identified.as_ref()?)));
    // A specific mission is preferred to a generic one.
    let lead = known.min_by_key(|(at, found)| (found.is_generic, *at)).map(|(at, _)| at);
    let Some((lead, downlink)) = lead.and_then(|at| Some((at, recordings[at].identified.clone()?)))
    else {
        return Err(nothing(recordings));
    };
    let held = (HELD_BYTES / downlink.mission.frame().length.max(1)).max(1);
    let mut union = Union::new(recordings.len(), None).holding_up_to(held);
    union.identified(lead, &downlink);
    for (at, recording) in recordings.iter().enumerate() {
        match &recording.identified {
            Some(found) if at != lead => {
                if let Sighting::Other { .. } = union.identified(at, found) {
                    let lead = Sighted { recording: &recordings[lead], found: &downlink };
                    return Err(differ(lead, Sighted { recording, found }));
                }
            }
            Some(_) => {}
            None => union.close(at),
        }
    }
    Ok((union, downlink))
}

/// Why nothing could be made of any.
fn nothing(recordings: &mut [Recording]) -> Failure {
    recordings.sort_by_key(|recording| recording.number);
    if let Some(failure) = recordings.iter_mut().find_map(|recording| recording.failure.take()) {
        return failure;
    }
    if let Some((name, other)) =
        recordings.iter().find_map(|one| Some((&one.name, one.foreign.as_ref()?)))
    {
        let what = format!("no frame of the mission was found; the capture holds {other}");
        return Failure::new(Exit::Result, &what, "omit --mission, or name that one").at(name);
    }
    let help = "check that they are captures, and name their --mission and --format";
    Failure::new(Exit::Result, "no frame was found in any of the recordings", help)
}

/// A recording and its downlink.
#[derive(Clone, Copy)]
struct Sighted<'a> {
    recording: &'a Recording,
    found: &'a Identification,
}

fn differ(one: Sighted<'_>, other: Sighted<'_>) -> Failure {
    let is_in_order = one.recording.number < other.recording.number;
    let (first, second) = if is_in_order { (one, other) } else { (other, one) };
    let holds = |seen: Sighted<'_>| format!("{} holds {}", seen.recording.name, shown(seen.found));
    let what =
        format!("the recordings are of different downlinks: {}, {}", holds(first), holds(second));
    let help = "--select joins recordings of one pass; omit it to decode each file separately";
    Failure::new(Exit::Usage, &what, help)
}

/// Takes a step of that recording of which the least waits; of such, of the one that was read
/// least. `false` where all have ended.
fn step(
    recordings: &mut [Recording],
    union: &mut Union,
    buffer: &mut [u8],
) -> Result<bool, Failure> {
    let going = recordings.iter_mut().enumerate().filter(|(_, recording)| !recording.is_over);
    let Some((at, next)) = going.min_by_key(|(at, next)| (union.holding(*at), next.read, *at))
    else {
        return Ok(false);
    };
    // Frames that came with the identification are already there.
    next.drain(at, union);
    if !next.is_over && !next.is_read {
        next.read(buffer)?;
        next.drain(at, union);
    }
    if next.is_over || next.is_read {
        next.is_over = true;
        union.close(at);
    }
    Ok(true)
}

impl Recording {
    fn open(number: usize, path: &Path, setup: &DecodeSetup<'_>) -> Result<Self, Failure> {
        let name = path.display().to_string();
        let file = File::open(path).map_err(|source| unreadable(&name, source))?;
        Ok(Self {
            number,
            name,
            file,
            capture: Capture::new(setup.known.clone(), setup.options.clone()),
            read: 0,
            is_read: false,
            is_over: false,
            identified: None,
            failure: None,
            ended: None,
            foreign: None,
            set_aside: 0,
        })
    }

    fn read(&mut self, buffer: &mut [u8]) -> Result<(), Failure> {
        let len = self.file.read(buffer).map_err(|source| unreadable(&self.name, source))?;
        self.capture.push(UNTIMED, &buffer[..len]);
        self.read += len as u64;
        if len == 0 {
            self.capture.finish();
            self.is_read = true;
        }
        Ok(())
    }

    /// Reads on until it is known what it holds.
    fn identify(&mut self, buffer: &mut [u8]) -> Result<(), Failure> {
        while !self.is_read {
            self.read(buffer)?;
            while let Some(event) = self.capture.poll() {
                match event {
                    CaptureEvent::Identified(found) => {
                        self.identified = Some(found);
                        return Ok(());
                    }
                    CaptureEvent::Unidentified(reason) => {
                        let bytes = self.capture.stats().sync.bits / 8;
                        self.failure = Some(unidentified(reason, bytes).at(&self.name));
                        self.is_over = true;
                        return Ok(());
                    }
                    CaptureEvent::OtherDownlink(other) => self.foreign = Some(shown(&other)),
                    _ => {}
                }
            }
        }
        self.is_over = true;
        Ok(())
    }

    /// Hands on the frames that its capture gave.
    fn drain(&mut self, at: usize, union: &mut Union) {
        while let Some(event) = self.capture.poll() {
            match event {
                CaptureEvent::Frame(frame) => {
                    self.set_aside += u64::from(!frame.is_good());
                    union.push(at, frame);
                }
                CaptureEvent::Changed { at: place, stats } => {
                    (self.ended, self.is_over) = (Some((place, stats)), true);
                    return;
                }
                CaptureEvent::OtherDownlink(other) => self.foreign = Some(shown(&other)),
                CaptureEvent::Identified(_)
                | CaptureEvent::Unidentified(_)
                | CaptureEvent::Locked(_)
                | CaptureEvent::LockLost(_)
                | CaptureEvent::OtherSpacecraft { .. } => {}
            }
        }
    }

    fn stats(&self) -> CaptureStats {
        self.ended.map_or_else(|| self.capture.stats(), |(_, stats)| stats)
    }

    fn result(&self, union: &Union, at: usize) -> (usize, InputResult) {
        let (account, _) = union.account(at);
        let result = InputResult {
            file: self.name.clone(),
            frames: account.given,
            chosen: account.chosen,
            only_here: account.only_here,
            worse: account.worse,
            set_aside: self.set_aside,
            duplicates: account.duplicates,
            repeated: account.repeated,
            late: account.late,
        };
        (self.number, result)
    }

    /// Notes about it.
    fn notes(&self, input: &InputResult) -> Vec<String> {
        let name = &self.name;
        let mut notes = Vec::new();
        match (&self.failure, input.frames) {
            (Some(_), _) => notes.push(format!(
                "{name} is not used; its content is unknown: decode it separately to see why"
            )),
            (None, 0) => notes.push(format!(
                "no frame was found in {name}; it is not used: check that the receiver had lock"
            )),
            (None, _) => {
                notes.extend(notes::outside(&self.stats()).map(|note| format!("{name}: {note}")));
            }
        }
        if let Some((place, _)) = self.ended {
            notes.push(format!(
                "{name} changes to another downlink at byte {}; the rest is not used: decode it \
                separately",
                place.byte()
            ));
        }
        if let Some(other) = &self.foreign {
            notes.push(format!(
                "{name} also holds {other}, which is not used: omit --mission, or name that one"
            ));
        }
        if input.late > 0 {
            notes.push(format!(
                "{} frames of {name} are not used; their place among the frames of the others is \
                unknown: \
                 decode it separately to get them",
                input.late
            ));
        }
        notes
    }
}

/// Counts of reception are those of all recordings; bits are those of the frames taken.
fn stats(recordings: &[Recording], taken: BitPosition) -> CaptureStats {
    let mut stats = CaptureStats::default();
    for recording in recordings {
        stats.sync = stats.sync.plus(recording.stats().sync);
    }
    stats.sync.bits = taken.as_bits();
    (stats.sync.skipped_bits, stats.sync.dropped_bits) = (0, 0);
    stats
}

/// What the frames taken are drawn over: each as long as it was sent.
fn bits_per_frame(downlink: &Identification) -> u64 {
    let mission = &downlink.mission;
    let is_bare = downlink.format == InputLayout::Frames;
    8 * if is_bare { mission.frame().length } else { mission.cadu_len() } as u64
}

fn shown(found: &Identification) -> String {
    let scid = found.scid.map_or(String::new(), |scid| format!(", spacecraft {}", scid.value()));
    format!("mission {}{scid}", found.mission.name())
}

fn unreadable(name: &str, source: std::io::Error) -> Failure {
    Failure::io("the capture cannot be read", name, "give the path of a readable file", source)
}

/// The reception time of a file is not known.
const UNTIMED: Utc = Utc::from_nanos(0);
