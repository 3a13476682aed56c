//! Cuts the frames of one contact into files.

use super::kept::KeptSession;
use super::source::{ContactBlocks, ContactSource};
use super::times::SessionTimes;
use crate::custody::StoredContact;
use sha2::{Digest, Sha256};
use skyhaul_ccsds::frame::Frame;
use skyhaul_ccsds::mission::Mission;
use skyhaul_ccsds::quality::{CapturedFrame, FrameVerdict};
use skyhaul_records::payload::BlockHead;
use skyhaul_records::{Open, Record, RecordReader};
use skyhaul_serve::{ContactSession, SessionFile, SessionFrames, SessionLabel, SessionProgress};
use skyhaul_store::LogRecord;
use skyhaul_units::{Duration, Instant, Seq, Utc};
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::PathBuf;

/// A contact that is cut into files.
#[derive(Debug)]
pub struct CutContact<S: ContactSource> {
    contact: StoredContact,
    number: u64,
    folder: PathBuf,
    reading: S::Reading,
    is_gone: bool,
    /// From when its first block was read.
    kept: Option<KeptSession>,
    /// With what was read behind its last file.
    ahead: Ahead,
    mission: Option<Mission>,
    /// What stands before each frame.
    marker: Vec<u8>,
    file: Option<GrowingFile>,
}

/// What was read behind the last file.
#[derive(Debug, Clone, Copy, Default)]
struct Ahead {
    next: Seq,
    stop: Utc,
    frames: SessionFrames,
    progress: SessionProgress,
    is_broken: bool,
}

/// The file that grows.
#[derive(Debug)]
struct GrowingFile {
    out: BufWriter<File>,
    part: PathBuf,
    size: u64,
    sha256: Sha256,
    began: Instant,
}

/// A file is cut at this length: a few seconds of a fast downlink.
const FILE_SIZE: u64 = 64 << 20;
/// Or when it is this old: a poller sees a slow downlink grow.
const FILE_AGE: Duration = Duration::from_secs(10);
/// Letters of a satellite's and a station's name in the names of files.
const NAME_MAX: usize = 32;

impl<S: ContactSource> CutContact<S> {
    /// Of which nothing was read yet.
    pub fn new(contact: StoredContact, number: u64, folder: PathBuf) -> Self {
        Self {
            contact,
            number,
            folder,
            reading: S::Reading::default(),
            is_gone: false,
            kept: None,
            ahead: Ahead::default(),
            mission: None,
            marker: Vec::new(),
            file: None,
        }
    }

    /// Of which an earlier run offered some.
    pub fn again(kept: KeptSession, folder: PathBuf) -> Self {
        let mut this = Self::new(kept.contact.clone(), kept.session.number, folder);
        // The first block may be gone by now. The text was read as a mission before it was kept.
        let _ = this.describe(&kept.mission);
        this.kept = Some(kept);
        this.begin_again();
        this
    }

    /// Begins again behind the last file.
    pub fn begin_again(&mut self) {
        (self.reading, self.file) = (S::Reading::default(), None);
        self.ahead = self.kept.as_ref().map_or_else(Ahead::default, |kept| Ahead {
            next: kept.next,
            stop: kept.session.stop,
            frames: kept.session.frames,
            progress: kept.session.progress,
            is_broken: false,
        });
    }

    /// What is offered of it: nothing before its first block.
    pub fn session(&self) -> Option<ContactSession> {
        let kept = self.kept.as_ref()?;
        let Ahead { stop, frames, .. } = self.ahead;
        Some(ContactSession { stop, frames, ..kept.session.clone() })
    }

    /// How many files it has, and whether it is offered at all.
    pub fn files(&self) -> Option<usize> {
        self.kept.as_ref().map(|kept| kept.session.files.len())
    }

    /// Whether all of it is in files.
    pub fn is_over(&self) -> bool {
        self.kept.as_ref().is_some_and(|kept| kept.session.is_over())
    }

    /// It is over: it is kept until then.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn ended(self, evicted: Utc) -> Result<Option<KeptSession>, String> {
        let Some(mut kept) = self.kept else { return Ok(None) };
        kept.session.evicted = Some(evicted);
        kept.save(&self.folder).map_err(|error| error.to_string())?;
        Ok(Some(kept))
    }

    /// The next block.
    ///
    /// # Errors
    /// The store, or the spool, cannot be read.
    pub fn next_block(&mut self, source: &S) -> Result<ContactBlocks, String> {
        source.next(&self.contact, &mut self.reading)
    }

    /// A block of it cannot be read.
    pub const fn broken(&mut self) {
        self.ahead.is_broken = true;
    }

    /// Whether the store lost it before anything of it was offered.
    pub const fn is_unknown(&self) -> bool {
        self.is_gone && self.kept.is_none()
    }

    /// The rest of it is gone.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn give_up(&mut self, times: &mut SessionTimes) -> Result<(), String> {
        self.is_gone = true;
        self.ahead.progress = SessionProgress::Broken;
        self.cut(times)
    }

    /// Takes a block.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn block(
        &mut self,
        record: &LogRecord,
        source: &S,
        times: &mut SessionTimes,
    ) -> Result<(), String> {
        if record.seq < self.ahead.next {
            return Ok(());
        }
        // Blocks that are gone, or that the disk did not give back.
        self.ahead.is_broken |= record.seq > self.ahead.next;
        let opened = source.content(record).and_then(|payload| {
            let (head, content) = BlockHead::decode(payload).ok()?;
            Some((head, content.records().ok()?.into_owned()))
        });
        let Some((head, records)) = opened else {
            self.ahead.is_broken = true;
            self.ahead.next = self.ahead.next.max(record.seq.next());
            return Ok(());
        };
        let (mut rest, mut reader) = (&records[..], RecordReader::new());
        while let Ok(Some(record)) = reader.read(&mut rest) {
            match record {
                Record::Open(open) => self.open(&open, &head, source, times)?,
                Record::Frame(frame) => self.frame(&frame, times)?,
                Record::Close(close) => {
                    self.ahead.stop = close.last_bit;
                    self.ahead.progress = match self.ahead.is_broken {
                        true => SessionProgress::Broken,
                        false => SessionProgress::Whole,
                    };
                }
                _ => {}
            }
        }
        self.ahead.next = record.seq.next();
        let is_long = self.file.as_ref().is_some_and(|file| file.size >= FILE_SIZE);
        match is_long || self.ahead.progress != SessionProgress::Open {
            true => self.cut(times),
            false => self.cut_if_due(times),
        }
    }

    fn open(
        &mut self,
        open: &Open,
        head: &BlockHead,
        source: &S,
        times: &mut SessionTimes,
    ) -> Result<(), String> {
        let mission = self.describe(&open.mission)?;
        if self.kept.is_none() {
            let hop = head.hops.first();
            let label = SessionLabel {
                station: hop
                    .map_or_else(|| source.station_of(&self.contact), |hop| hop.node.clone()),
                channel: open.channel.clone(),
                mission,
                flow: hop.map_or(self.contact.flow, |hop| hop.flow).0,
                is_retransfer: open.completes.is_some(),
            };
            let session = ContactSession {
                number: self.number,
                name: self.name_of(&label, open.opened),
                of: label,
                published: times.published(),
                start: open.opened,
                stop: open.opened,
                progress: SessionProgress::Open,
                frames: SessionFrames::default(),
                files: Vec::new(),
                evicted: None,
            };
            self.ahead.stop = open.opened;
            let (contact, mission) = (self.contact.clone(), open.mission.clone());
            let kept = KeptSession { contact, session, mission, next: Seq::FIRST };
            kept.save(&self.folder).map_err(|error| error.to_string())?;
            self.kept = Some(kept);
        }
        Ok(())
    }

    /// Takes the description of the mission, and returns its name.
    fn describe(&mut self, mission: &str) -> Result<String, String> {
        let mission = Mission::from_toml(mission).map_err(|error| error.to_string())?;
        self.marker.clear();
        mission.coding().marker.append_to(&mut self.marker);
        let name = mission.name().to_owned();
        self.mission = Some(mission);
        Ok(name)
    }

    /// The name of a contact: satellite, time and number, as the interface has them; where another
    /// one has that name, with the number that this node gave it.
    fn name_of(&self, of: &SessionLabel, opened: Utc) -> String {
        let digits: String = opened.to_string().chars().filter(char::is_ascii_digit).collect();
        let second = digits.get(..14).unwrap_or(&digits);
        let satellite = plain(&of.mission).to_ascii_uppercase();
        let name = format!("{satellite}_{second}{:06}", of.flow % 1_000_000);
        match self.folder.join(format!("{name}.json")).exists() {
            true => format!("{name}-{}", self.number),
            false => name,
        }
    }

    fn frame(&mut self, frame: &CapturedFrame, times: &mut SessionTimes) -> Result<(), String> {
        let (Some(kept), Some(mission)) = (&self.kept, &self.mission) else { return Ok(()) };
        let format = mission.frame();
        let counts = &mut self.ahead.frames;
        counts.acquired += 1;
        self.ahead.stop = self.ahead.stop.max(frame.received);
        if !frame.is_good() {
            counts.uncorrectable += 1;
            return Ok(());
        }
        let is_corrected = frame.quality.verdict == FrameVerdict::Corrected;
        counts.corrected += u64::from(is_corrected);
        let is_data = Frame::parse(&frame.bytes, format).is_ok_and(|it| !it.is_idle(format.kind));
        counts.data += u64::from(is_data);
        counts.corrected_data += u64::from(is_data && is_corrected);
        if self.file.is_none() {
            let part = self.folder.join(format!(".{}.part", kept.session.name));
            let out = File::create(&part).map_err(|error| error.to_string())?;
            let out = BufWriter::with_capacity(256 << 10, out);
            let (sha256, began) = (Sha256::new(), times.now());
            self.file = Some(GrowingFile { out, part, size: 0, sha256, began });
        }
        let Some(file) = &mut self.file else { return Ok(()) };
        for bytes in [&self.marker[..], &frame.bytes[..], &frame.check_symbols[..]] {
            file.out.write_all(bytes).map_err(|error| error.to_string())?;
            file.sha256.update(bytes);
            file.size += bytes.len() as u64;
        }
        Ok(())
    }

    /// Cuts a file that is old enough.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn cut_if_due(&mut self, times: &mut SessionTimes) -> Result<(), String> {
        let is_old = |file: &GrowingFile| times.now().since(file.began) >= FILE_AGE;
        if self.file.as_ref().is_some_and(is_old) { self.cut(times) } else { Ok(()) }
    }

    /// Makes a file of what was read, and then says so.
    fn cut(&mut self, times: &mut SessionTimes) -> Result<(), String> {
        let say = |error: std::io::Error| error.to_string();
        let Some(kept) = &mut self.kept else { return Ok(()) };
        let mut next = kept.clone();
        if let Some(file) = self.file.take() {
            let block = next.session.files.last().map_or(1, |last| last.block + 1);
            let session = &next.session;
            let name = format!(
                "DCS_{}_{}_ch1_DSDB_{block:05}.raw",
                plain(&session.of.station),
                session.name
            );
            let GrowingFile { out, part, size, sha256, .. } = file;
            let out = out.into_inner().map_err(|error| error.to_string())?;
            out.sync_data().map_err(say)?;
            fs::rename(&part, self.folder.join(&name)).map_err(say)?;
            File::open(&self.folder).and_then(|folder| folder.sync_all()).map_err(say)?;
            let (sha256, published) = (sha256.finalize().into(), times.published());
            next.session.files.push(SessionFile { block, name, size, sha256, published });
        }
        let Ahead { next: seq, stop, frames, progress, .. } = self.ahead;
        let session = &mut next.session;
        (session.stop, session.frames, session.progress) = (stop, frames, progress);
        next.next = seq;
        next.save(&self.folder).map_err(say)?;
        *kept = next;
        Ok(())
    }
}

/// A name as it can stand in the name of a file.
fn plain(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    name.chars().map(|c| if is_plain(c) { c } else { '-' }).take(NAME_MAX).collect()
}
