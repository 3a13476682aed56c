//! FTP servers with TLS (RFC 4217).
//!
//! A file is written beside its final name and renamed. An upload goes on at the size that the
//! server says the part has (`REST`), where a trial shows that it can. No FTP server says when a
//! file is on its disk.

mod refusal;
mod session;

use crate::access::RemoteAccess;
use crate::failure::{differs, failed, read_back_differs};
use crate::name;
use crate::place::{RemotePlace, RemoteServer};
use crate::sink::{
    Abilities, GoOn, MOST_LISTED, OutgoingFile, PlaceProgress, Placing, PublishWay, ReadBack,
    RemoteEntry, RemoteFound, RemoteSink, ResumeNote, ResumeStep, SMALL, StoreCheck,
};
use crate::source::{PIECE, PublishedSource};
use refusal::is_absent;
use session::FtpLogin;
use sha2::{Digest, Sha256};
use skyhaul_dispatch::{DeliveryFailure, FailureKind, Proof};
use skyhaul_units::ByteCount;
use std::io::{Read, Write};
use std::str::FromStr;
use suppaftp::{FtpError, FtpResult, RustlsFtpStream, TlsStream, TransferStream};

/// A folder of an FTP server.
pub struct FtpsSink {
    login: FtpLogin,
    folder: String,
    session: Option<RustlsFtpStream>,
    known: Option<Abilities>,
}

impl FtpsSink {
    /// Of a folder.
    ///
    /// # Errors
    /// What is needed to enter it cannot be read.
    pub fn new(
        server: &RemoteServer,
        access: &RemoteAccess,
        known: Option<Abilities>,
    ) -> Result<Self, DeliveryFailure> {
        let place = RemotePlace::Ftps(server.clone()).to_string();
        let login = FtpLogin::new(place, server.clone(), access.clone())?;
        Ok(Self { login, folder: server.folder_or_home(), session: None, known })
    }

    fn place_text(&self) -> &str {
        &self.login.place
    }

    fn path(&self, file_name: &str) -> String {
        name::join(&self.folder, file_name)
    }

    /// Opens a session where there is none that answers.
    fn ready(&mut self) -> Result<(), DeliveryFailure> {
        if self.session.as_mut().is_some_and(|session| session.noop().is_ok()) {
            return Ok(());
        }
        self.session = Some(self.login.session()?);
        Ok(())
    }

    /// Asks something. A session whose line failed is not used again.
    fn ask<T>(
        &mut self,
        doing: &str,
        what: impl FnOnce(&mut RustlsFtpStream) -> FtpResult<T>,
    ) -> Result<T, DeliveryFailure> {
        self.ask_of_file(doing, |session| what(session).map(Some))
            .map(|found| found.expect("only requests for a file that may be absent find none"))
    }

    /// The same; none where there is no such file.
    fn ask_of_file<T>(
        &mut self,
        doing: &str,
        what: impl FnOnce(&mut RustlsFtpStream) -> FtpResult<Option<T>>,
    ) -> Result<Option<T>, DeliveryFailure> {
        if self.session.is_none() {
            self.ready()?;
        }
        let session = self.session.as_mut().expect("it is ready");
        what(session).map_err(|error| {
            if !matches!(error, FtpError::UnexpectedResponse(_)) {
                self.session = None;
            }
            self.login.refused(doing, &error)
        })
    }

    fn size(&mut self, path: &str) -> Result<Option<u64>, DeliveryFailure> {
        self.ask_of_file(&format!("asking for the size of {path}"), |session| {
            match session.size(path) {
                Err(error) if is_absent(&error) => Ok(None),
                size => size.map(|size| Some(size as u64)),
            }
        })
    }

    /// Reads from a place to the end, at most so many bytes; none where there is no such file.
    fn fetch(
        &mut self,
        path: &str,
        from: u64,
        take: &mut dyn FnMut(&[u8]) -> GoOn,
    ) -> Result<Option<GoOn>, DeliveryFailure> {
        let ended = self.ask_of_file(&format!("reading {path}"), |session| {
            session.resume_transfer(usize::try_from(from).unwrap_or(usize::MAX))?;
            let mut stream = match session.retr_as_stream(path) {
                Err(error) if is_absent(&error) => return Ok(None),
                stream => stream?,
            };
            let mut buffer = vec![0; PIECE];
            loop {
                match stream.read(&mut buffer).map_err(FtpError::ConnectionError)? {
                    0 => break,
                    length if take(&buffer[..length]) == GoOn::Stop => return Ok(Some(GoOn::Stop)),
                    _ => {}
                }
            }
            stream.finish().map(|()| Some(GoOn::Continue))
        })?;
        if ended == Some(GoOn::Stop) {
            // What is still under way belongs to nobody.
            self.session = None;
        }
        Ok(ended)
    }

    fn digest(&mut self, path: &str) -> Result<Option<[u8; 32]>, DeliveryFailure> {
        let mut hash = Sha256::new();
        let mut take = |bytes: &[u8]| {
            hash.update(bytes);
            GoOn::Continue
        };
        let found = self.fetch(path, 0, &mut take)?;
        Ok(found.map(|_| hash.finalize().into()))
    }

    fn store(&mut self, path: &str, from: u64, bytes: &[u8]) -> Result<(), DeliveryFailure> {
        self.ask(&format!("writing {path}"), |session| {
            session.resume_transfer(usize::try_from(from).unwrap_or(usize::MAX))?;
            let mut stream = session.put_with_stream(path)?;
            match stream.write_all(bytes).and_then(|()| stream.flush()) {
                Ok(()) => stream.finish(),
                Err(error) => Err(why_broken(stream, error)),
            }
        })
    }

    /// Makes the folders of a name; what is there already is refused, and is good.
    fn make_folders(&mut self, file_name: &str) -> Result<(), DeliveryFailure> {
        for folder in name::folders(file_name) {
            let path = self.path(folder);
            self.ask("making a folder", |session| match session.mkdir(&path) {
                Err(FtpError::UnexpectedResponse(_)) => Ok(()),
                made => made,
            })?;
        }
        Ok(())
    }

    /// Whether the server renamed it.
    fn renames(&mut self, from: &str, to: &str) -> Result<bool, DeliveryFailure> {
        self.ask(&format!("renaming {from}"), |session| match session.rename(from, to) {
            Err(FtpError::UnexpectedResponse(_)) => Ok(false),
            renamed => renamed.map(|()| true),
        })
    }

    /// Renames, also onto a file; a server that refuses that has it removed before.
    fn move_onto(&mut self, from: &str, to: &str) -> Result<(), DeliveryFailure> {
        if self.renames(from, to)? {
            return Ok(());
        }
        self.remove(to)?;
        self.ask(&format!("renaming {from}"), |session| session.rename(from, to))
    }

    fn remove(&mut self, path: &str) -> Result<(), DeliveryFailure> {
        self.ask(&format!("removing {path}"), |session| match session.rm(path) {
            Err(error) if is_absent(&error) => Ok(()),
            removed => removed,
        })
    }

    fn known(&mut self) -> Result<Abilities, DeliveryFailure> {
        match &self.known {
            Some(known) => Ok(known.clone()),
            None => self.abilities(),
        }
    }

    /// Where writing goes on: the size of the part, if its last bytes are those of the file.
    fn begin<'a>(
        &mut self,
        file: &'a OutgoingFile,
        part: &str,
    ) -> Result<PublishedSource<'a>, DeliveryFailure> {
        let mut source = PublishedSource::open(file)?;
        let there = self.size(part)?.unwrap_or(0);
        if there == 0 || there > file.size.as_u64() {
            return Ok(source);
        }
        let tail = usize::try_from(there).unwrap_or(usize::MAX).min(PIECE);
        let ours = source.skip_to(there, tail)?;
        let mut theirs = Vec::new();
        let mut take = |bytes: &[u8]| {
            theirs.extend_from_slice(bytes);
            if theirs.len() > tail { GoOn::Stop } else { GoOn::Continue }
        };
        self.fetch(part, there - tail as u64, &mut take)?;
        if theirs == ours { Ok(source) } else { PublishedSource::open(file) }
    }

    /// Sends the rest of the file; whether the caller stopped it.
    fn send(
        &mut self,
        source: &mut PublishedSource<'_>,
        file: &OutgoingFile,
        path: &str,
        progress: &mut dyn FnMut(PlaceProgress<'_>) -> GoOn,
    ) -> Result<GoOn, DeliveryFailure> {
        let pace = self.login.access.pace.clone();
        let from = usize::try_from(source.at()).unwrap_or(usize::MAX);
        let mut unreadable = None;
        let sent = self.ask(&format!("writing {path}"), |session| {
            session.resume_transfer(from)?;
            let mut stream = session.put_with_stream(path)?;
            let mut noted = source.at();
            while !source.is_at_end() {
                let bytes = match source.next(PIECE) {
                    Ok(bytes) => bytes,
                    Err(failure) => {
                        unreadable = Some(failure);
                        return Ok(GoOn::Stop);
                    }
                };
                if let Some(pace) = &pace {
                    pause(pace.take(ByteCount::of(bytes.len())));
                }
                if let Err(error) = stream.write_all(&bytes) {
                    return Err(why_broken(stream, error));
                }
                if source.at() - noted >= NOTED_EACH {
                    noted = source.at();
                    let step = ResumeStep::part(file, noted);
                    if progress(PlaceProgress::Reached(&step)) == GoOn::Stop {
                        return Ok(GoOn::Stop);
                    }
                }
                if progress(PlaceProgress::Sent(ByteCount::new(source.at()))) == GoOn::Stop {
                    return Ok(GoOn::Stop);
                }
            }
            // Also of an empty file TLS is agreed on.
            stream.flush().map_err(FtpError::ConnectionError)?;
            stream.finish().map(|()| GoOn::Continue)
        })?;
        if sent == GoOn::Stop {
            self.session = None;
        }
        match unreadable {
            Some(failure) => Err(failure),
            None => Ok(sent),
        }
    }

    /// Compares what was written, before it gets its name.
    fn check(&mut self, file: &OutgoingFile, path: &str) -> Result<Proof, DeliveryFailure> {
        let size = self.size(path)?;
        let is_same = size == Some(file.size.as_u64());
        match file.read_back {
            ReadBack::Small if is_same => Ok(Proof::Size),
            ReadBack::Always if is_same && self.digest(path)? == Some(file.sha256) => {
                Ok(Proof::ReadBack)
            }
            _ => Err(read_back_differs(self.place_text(), &file.name)),
        }
    }

    /// Gives a part its name. A rename may replace a file, so the name is looked at last.
    fn publish(
        &mut self,
        file: &OutgoingFile,
        part: &str,
        proof: Proof,
    ) -> Result<Proof, DeliveryFailure> {
        match self.look(file)? {
            RemoteFound::Absent => {}
            RemoteFound::Same(proof) => return self.remove(part).map(|()| proof),
            RemoteFound::Differs => return Err(differs(self.place_text(), &file.name)),
        }
        let to = self.path(&file.name);
        self.ask(&format!("giving {} its name", file.name), |session| session.rename(part, &to))?;
        Ok(proof)
    }
}

impl RemoteSink for FtpsSink {
    fn abilities(&mut self) -> Result<Abilities, DeliveryFailure> {
        self.ready()?;
        let trial = name::trial(&self.login.access.tried_by);
        let (part, whole) = (self.path(&format!("{trial}.part")), self.path(&trial));
        // What an earlier trial left that was cut short: not every server renames over it.
        self.remove(&whole)?;
        self.store(&part, 0, b"trial")?;
        let renames = self.renames(&part, &whole)?;
        let resumes = renames
            && self.store(&whole, 5, b"!").is_ok()
            && self.size(&whole).is_ok_and(|size| size == Some(6));
        let mut refuses_existing = false;
        if renames {
            self.store(&part, 0, b"other")?;
            refuses_existing = !self.renames(&part, &whole)?;
        }
        for path in [part, whole] {
            self.remove(&path)?;
        }
        let welcome = self.session.as_ref().and_then(|session| session.get_welcome_msg());
        let found = Abilities {
            server: welcome.map(server_of).unwrap_or_default(),
            publish: if renames { PublishWay::Rename } else { PublishWay::Direct },
            says_durable: false,
            resumes,
            refuses_existing,
            check: StoreCheck::Nothing,
            replaces: renames.then_some(!refuses_existing),
            free: None,
        };
        Ok(self.known.insert(found).clone())
    }

    fn look(&mut self, file: &OutgoingFile) -> Result<RemoteFound, DeliveryFailure> {
        name::check(self.place_text(), &file.name)?;
        let path = self.path(&file.name);
        match self.size(&path)? {
            None => Ok(RemoteFound::Absent),
            Some(size) if size != file.size.as_u64() => Ok(RemoteFound::Differs),
            Some(_) if file.read_back == ReadBack::Small && file.size > SMALL => {
                Ok(RemoteFound::Same(Proof::Size))
            }
            Some(_) if self.digest(&path)? == Some(file.sha256) => {
                Ok(RemoteFound::Same(Proof::ReadBack))
            }
            Some(_) => Ok(RemoteFound::Differs),
        }
    }

    fn place(
        &mut self,
        file: &OutgoingFile,
        resume: &ResumeNote,
        progress: &mut dyn FnMut(PlaceProgress<'_>) -> GoOn,
    ) -> Result<Placing, DeliveryFailure> {
        self.ready()?;
        let known = self.known()?;
        match self.look(file)? {
            RemoteFound::Same(proof) => return Ok(Placing::Placed(proof)),
            RemoteFound::Differs
                if !(known.publish == PublishWay::Direct && resume.has_begun(file))
                    || self.size(&self.path(&file.name))? >= Some(file.size.as_u64()) =>
            {
                return Err(differs(self.place_text(), &file.name));
            }
            RemoteFound::Differs | RemoteFound::Absent => {}
        }
        if known.publish == PublishWay::Direct
            && progress(PlaceProgress::Reached(&ResumeStep::part(file, 0))) == GoOn::Stop
        {
            return Ok(Placing::Stopped);
        }
        let mut source = PublishedSource::open(file)?;
        self.make_folders(&file.name)?;
        let path = match known.publish {
            PublishWay::Rename => self.path(&name::part(&file.name)),
            PublishWay::Direct | PublishWay::Whole => self.path(&file.name),
        };
        if known.resumes && resume.part_bytes(file) > 0 {
            source = self.begin(file, &path)?;
        }
        if self.send(&mut source, file, &path, progress)? == GoOn::Stop {
            return Ok(Placing::Stopped);
        }
        if let Err(failure) = source.finish() {
            self.remove(&path)?;
            return Err(failure);
        }
        let proof = self.check(file, &path)?;
        match known.publish {
            PublishWay::Rename => self.publish(file, &path, proof).map(Placing::Placed),
            PublishWay::Direct | PublishWay::Whole => Ok(Placing::Placed(proof)),
        }
    }

    fn discard(&mut self, file: &OutgoingFile, _: &ResumeNote) -> Result<(), DeliveryFailure> {
        name::check(self.place_text(), &file.name)?;
        self.ready()?;
        self.remove(&self.path(&name::part(&file.name)))
    }

    fn write(&mut self, file_name: &str, bytes: &[u8]) -> Result<(), DeliveryFailure> {
        name::check(self.place_text(), file_name)?;
        self.ready()?;
        let known = self.known()?;
        self.make_folders(file_name)?;
        let (path, part) = (self.path(file_name), self.path(&name::part(file_name)));
        if known.publish != PublishWay::Rename {
            return self.store(&path, 0, bytes);
        }
        self.store(&part, 0, bytes)?;
        self.move_onto(&part, &path)
    }

    fn list(&mut self, folder: &str) -> Result<Vec<RemoteEntry>, DeliveryFailure> {
        self.ready()?;
        let path = self.path(folder);
        let lines = self.ask_of_file(&format!("listing {folder:?}"), |session| {
            match session.list(Some(&path)) {
                Err(error) if is_absent(&error) && !folder.is_empty() => Ok(None),
                // Some say 450 of a folder that is not there.
                Err(FtpError::UnexpectedResponse(response))
                    if response.status == suppaftp::Status::RequestFileActionIgnored =>
                {
                    Ok(None)
                }
                lines => lines.map(Some),
            }
        })?;
        let files = lines.unwrap_or_default();
        let files = files.iter().filter_map(|line| suppaftp::list::File::from_str(line).ok());
        let files = files.filter(|file| file.is_file() && !file.name().starts_with('.'));
        let mut found: Vec<RemoteEntry> = files
            .take(MOST_LISTED)
            .map(|file| RemoteEntry {
                name: file.name().to_owned(),
                size: ByteCount::of(file.size()),
            })
            .collect();
        found.sort();
        Ok(found)
    }

    fn read(
        &mut self,
        file_name: &str,
        most: ByteCount,
    ) -> Result<Option<Vec<u8>>, DeliveryFailure> {
        name::check(self.place_text(), file_name)?;
        self.ready()?;
        let mut bytes = Vec::new();
        let mut take = |piece: &[u8]| {
            bytes.extend_from_slice(piece);
            if bytes.len() > most.as_usize() { GoOn::Stop } else { GoOn::Continue }
        };
        let found = self.fetch(&self.path(file_name), 0, &mut take)?;
        if found == Some(GoOn::Stop) {
            let most = most.as_u64();
            let what = format!("{file_name} has more than the {most} bytes that are read");
            return Err(failed(FailureKind::Refused, self.place_text(), what));
        }
        Ok(found.map(|_| bytes))
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), DeliveryFailure> {
        name::check(self.place_text(), from)?;
        name::check(self.place_text(), to)?;
        self.ready()?;
        self.make_folders(to)?;
        self.move_onto(&self.path(from), &self.path(to))
    }
}

/// The server's name for itself: the first line of its welcome, without the code.
fn server_of(welcome: &str) -> String {
    let first = welcome.lines().next().unwrap_or_default();
    crate::failure::words(first.trim_start_matches(|c: char| c.is_ascii_digit() || c == '-'))
}

/// Why a data connection broke: the server says it on the other one, where that still stands.
fn why_broken<T: TlsStream>(stream: TransferStream<T>, error: std::io::Error) -> FtpError {
    let is_late =
        matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut);
    match stream.finish() {
        Err(said @ FtpError::UnexpectedResponse(_)) if !is_late => said,
        _ => FtpError::ConnectionError(error),
    }
}

#[allow(clippy::disallowed_methods, reason = "the thread of a destination keeps its rate")]
fn pause(span: std::time::Duration) {
    std::thread::sleep(span);
}

/// A note for each 16 MiB costs the caller one write, and the server nothing.
const NOTED_EACH: u64 = 16 << 20;
