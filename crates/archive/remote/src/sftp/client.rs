//! What an SFTP session is asked, with the names of one folder.

use super::login::{Login, SftpSession};
use super::refusal::{is_absent, refused};
use super::upload::{Writing, digest, read_at};
use crate::access::RemoteAccess;
use crate::failure::{differs, failed, read_back_differs};
use crate::name;
use crate::place::RemoteServer;
use crate::sink::{
    Abilities, GoOn, MOST_LISTED, OutgoingFile, PlaceProgress, Placing, PublishWay, ReadBack,
    RemoteEntry, RemoteFound, ResumeNote, ResumeStep, SMALL, StoreCheck,
};
use crate::source::{PIECE, PublishedSource};
use russh_sftp::client::error::Error;
use russh_sftp::extensions::{FSYNC, STATVFS};
use russh_sftp::protocol::{FileAttributes, OpenFlags, Packet, StatusCode};
use skyhaul_dispatch::{DeliveryFailure, FailureKind, Proof};
use skyhaul_units::ByteCount;
use std::time::Duration;
use tokio::time::Instant;

/// A folder of an SFTP server.
pub struct SftpClient {
    /// As texts name it.
    pub place: String,
    server: RemoteServer,
    access: RemoteAccess,
    folder: String,
    session: Option<SftpSession>,
    /// When the session was used last.
    used: Instant,
    known: Option<Abilities>,
}

impl SftpClient {
    /// Of a folder; `known` is what an earlier trial found.
    pub fn new(
        place: String,
        server: RemoteServer,
        access: RemoteAccess,
        known: Option<Abilities>,
    ) -> Self {
        let folder = server.folder_or_home();
        Self { place, server, access, folder, session: None, used: Instant::now(), known }
    }

    /// Ends a session whose state is not known any more.
    pub fn close(&mut self) {
        self.session = None;
    }

    /// Opens a session where there is none.
    ///
    /// # Errors
    /// The server cannot be entered.
    pub async fn ready(&mut self) -> Result<(), DeliveryFailure> {
        let idle = core::mem::replace(&mut self.used, Instant::now()).elapsed();
        if let Some(session) = &self.session {
            // A server may have closed it while nothing was asked.
            let is_good = idle < FRESH || session.raw.realpath(".").await.is_ok();
            if is_good && !session.is_closed() {
                return Ok(());
            }
        }
        self.session = None;
        let login = Login { place: &self.place, server: &self.server, access: &self.access };
        self.session = Some(login.session().await?);
        Ok(())
    }

    fn session(&self) -> &SftpSession {
        self.session.as_ref().expect("each call begins with ready()")
    }

    fn path(&self, file_name: &str) -> String {
        name::join(&self.folder, file_name)
    }

    fn refused(&self, doing: &str, error: &Error) -> DeliveryFailure {
        refused(&self.place, doing, error)
    }

    /// What the server can, as known, or by a trial.
    ///
    /// # Errors
    /// The server takes no file.
    pub async fn known(&mut self) -> Result<Abilities, DeliveryFailure> {
        match &self.known {
            Some(known) => Ok(known.clone()),
            None => self.trial().await,
        }
    }

    /// Finds out what the server can.
    ///
    /// # Errors
    /// The server takes no file.
    pub async fn trial(&mut self) -> Result<Abilities, DeliveryFailure> {
        let trial = name::trial(&self.access.tried_by);
        let (part, whole) = (self.path(&format!("{trial}.part")), self.path(&trial));
        let doing = "writing a trial file";
        // What an earlier trial left that was cut short: not every server renames over it.
        self.session().raw.remove(&whole).await.ok();
        self.write_whole(&part, b"trial", doing).await?;
        let raw = &self.session().raw;
        let renames = raw.rename(&part, &whole).await.is_ok();
        let resumes = match renames {
            true => match raw.open(&whole, OpenFlags::WRITE, FileAttributes::empty()).await {
                Ok(opened) => {
                    let appended = raw.write(&opened.handle, 5, b"!".to_vec()).await.is_ok();
                    raw.close(opened.handle).await.is_ok() && appended
                }
                Err(_) => false,
            },
            false => false,
        };
        let mut refuses_existing = false;
        if renames {
            self.write_whole(&part, b"other", doing).await?;
            refuses_existing = self.session().raw.rename(&part, &whole).await.is_err();
        }
        let session = self.session();
        let there = if renames { &whole } else { &part };
        let room = match session.extensions.contains_key(STATVFS) {
            true => session.raw.statvfs(there).await.ok(),
            false => None,
        };
        session.raw.remove(&part).await.ok();
        session.raw.remove(&whole).await.ok();
        let abilities = Abilities {
            server: session.server.clone(),
            publish: if renames { PublishWay::Rename } else { PublishWay::Direct },
            says_durable: session.extensions.contains_key(FSYNC),
            resumes,
            refuses_existing,
            check: StoreCheck::Nothing,
            replaces: Some(renames && session.extensions.contains_key(POSIX_RENAME)),
            free: room.map(|room| room.blocks_avail.saturating_mul(room.fragment_size)),
        };
        Ok(self.known.insert(abilities).clone())
    }

    /// The size of what is there; none where nothing is.
    async fn size(&self, path: &str, file_name: &str) -> Result<Option<u64>, DeliveryFailure> {
        match self.session().raw.stat(path).await {
            Ok(found) => Ok(Some(found.attrs.size.unwrap_or(0))),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(self.refused(&format!("looking at {file_name}"), &error)),
        }
    }

    /// What is under the final name.
    ///
    /// # Errors
    /// The server cannot be asked.
    pub async fn look(&self, file: &OutgoingFile) -> Result<RemoteFound, DeliveryFailure> {
        name::check(&self.place, &file.name)?;
        let path = self.path(&file.name);
        match self.size(&path, &file.name).await? {
            None => Ok(RemoteFound::Absent),
            Some(size) if size != file.size.as_u64() => Ok(RemoteFound::Differs),
            Some(_) if file.read_back == ReadBack::Small && file.size > SMALL => {
                Ok(RemoteFound::Same(Proof::Size))
            }
            Some(size) => match self.digest(&path, &file.name, size).await? == file.sha256 {
                true => Ok(RemoteFound::Same(Proof::ReadBack)),
                false => Ok(RemoteFound::Differs),
            },
        }
    }

    async fn digest(
        &self,
        path: &str,
        file_name: &str,
        size: u64,
    ) -> Result<[u8; 32], DeliveryFailure> {
        let failed = |error: Error| self.refused(&format!("reading {file_name} back"), &error);
        let session = self.session();
        let opened = session.raw.open(path, OpenFlags::READ, FileAttributes::empty()).await;
        let handle = opened.map_err(failed)?.handle;
        let read = digest(session, &handle, size).await;
        session.raw.close(handle).await.map_err(failed)?;
        read.map_err(failed)
    }

    /// Opens a file for writing, and makes its folders where they lack.
    async fn create(
        &self,
        file_name: &str,
        path: &str,
        flags: OpenFlags,
    ) -> Result<String, DeliveryFailure> {
        let raw = &self.session().raw;
        let doing = format!("opening {path}");
        match raw.open(path, flags, FileAttributes::empty()).await {
            Ok(opened) => return Ok(opened.handle),
            Err(error) if !is_absent(&error) || !file_name.contains('/') => {
                return Err(self.refused(&doing, &error));
            }
            Err(_) => self.make_folders(file_name).await,
        }
        let opened = raw.open(path, flags, FileAttributes::empty()).await;
        opened.map(|opened| opened.handle).map_err(|error| self.refused(&doing, &error))
    }

    /// Makes the folders of a name; one that is there already is refused, and is good.
    async fn make_folders(&self, file_name: &str) {
        for folder in name::folders(file_name) {
            self.session().raw.mkdir(self.path(folder), FileAttributes::empty()).await.ok();
        }
    }

    /// Opens what will be written, and brings the source to where writing goes on.
    async fn begin<'a>(
        &self,
        file: &'a OutgoingFile,
        path: &str,
        noted: u64,
    ) -> Result<(String, PublishedSource<'a>), DeliveryFailure> {
        let mut source = PublishedSource::open(file)?;
        let there = if noted > 0 { self.size(path, &file.name).await? } else { None };
        if there.is_some_and(|there| (noted..=file.size.as_u64()).contains(&there)) {
            let flags = OpenFlags::READ | OpenFlags::WRITE;
            let handle = self.create(&file.name, path, flags).await?;
            let tail = usize::try_from(noted).unwrap_or(usize::MAX).min(PIECE);
            let ours = source.skip_to(noted, tail)?;
            let theirs = read_at(self.session(), &handle, noted - tail as u64, tail).await;
            if theirs.is_ok_and(|theirs| theirs == ours) {
                return Ok((handle, source));
            }
            self.session().raw.close(handle).await.ok();
            source = PublishedSource::open(file)?;
        }
        let flags = OpenFlags::CREATE | OpenFlags::TRUNCATE | OpenFlags::WRITE;
        Ok((self.create(&file.name, path, flags).await?, source))
    }

    /// Places a file that is not there.
    ///
    /// # Errors
    /// As [`crate::RemoteSink::place`].
    pub async fn place(
        &mut self,
        file: &OutgoingFile,
        resume: &ResumeNote,
        progress: &mut dyn FnMut(PlaceProgress<'_>) -> GoOn,
    ) -> Result<Placing, DeliveryFailure> {
        let known = self.known().await?;
        match self.look(file).await? {
            RemoteFound::Same(proof) => return Ok(Placing::Placed(proof)),
            RemoteFound::Differs
                if !(known.publish == PublishWay::Direct && resume.has_begun(file))
                    || self.size(&self.path(&file.name), &file.name).await?
                        >= Some(file.size.as_u64()) =>
            {
                return Err(differs(&self.place, &file.name));
            }
            RemoteFound::Differs | RemoteFound::Absent => {}
        }
        if known.publish == PublishWay::Direct
            && progress(PlaceProgress::Reached(&ResumeStep::part(file, 0))) == GoOn::Stop
        {
            return Ok(Placing::Stopped);
        }
        let path = match known.publish {
            PublishWay::Direct => self.path(&file.name),
            PublishWay::Rename | PublishWay::Whole => self.path(&name::part(&file.name)),
        };
        let noted = if known.resumes { resume.part_bytes(file) } else { 0 };
        let (handle, mut source) = self.begin(file, &path, noted).await?;
        let (session, place, access) = (self.session(), self.place.as_str(), &self.access);
        let (path_there, handle_there) = (path.clone(), handle.clone());
        let writing =
            Writing { session, place, access, file, path: path_there, handle: handle_there };
        if writing.fill(&mut source, progress).await? == GoOn::Stop {
            session.raw.close(handle).await.ok();
            return Ok(Placing::Stopped);
        }
        let closed = session.raw.close(handle).await;
        closed.map_err(|error| self.refused(&format!("closing {path}"), &error))?;
        if let Err(failure) = source.finish() {
            session.raw.remove(&path).await.ok();
            return Err(failure);
        }
        let proof = self.check(file, &path).await?;
        if known.publish == PublishWay::Direct {
            return Ok(Placing::Placed(proof));
        }
        self.publish(file, &path, proof).await.map(Placing::Placed)
    }

    /// Compares what was written, before it gets its name.
    async fn check(&self, file: &OutgoingFile, path: &str) -> Result<Proof, DeliveryFailure> {
        let size = self.size(path, &file.name).await?;
        if size != Some(file.size.as_u64()) {
            let what = format!(
                "{} has {} bytes there after {} were written",
                file.name,
                size.unwrap_or(0),
                file.size.as_u64()
            );
            return Err(failed(FailureKind::Line, &self.place, what));
        }
        if file.read_back == ReadBack::Small {
            return Ok(Proof::Size);
        }
        match self.digest(path, &file.name, file.size.as_u64()).await? == file.sha256 {
            true => Ok(Proof::ReadBack),
            false => Err(read_back_differs(&self.place, &file.name)),
        }
    }

    /// Gives a part its name. The rename of version 3 refuses a name that exists (OpenSSH links and
    /// unlinks); only where it is refused for another reason, the one that replaces takes over.
    async fn publish(
        &self,
        file: &OutgoingFile,
        part: &str,
        proof: Proof,
    ) -> Result<Proof, DeliveryFailure> {
        let path = self.path(&file.name);
        if let Some(found) = self.look(file).await?.decided(&self.place, file) {
            return found;
        }
        let Err(error) = self.session().raw.rename(part, &path).await else { return Ok(proof) };
        if let Some(found) = self.look(file).await?.decided(&self.place, file) {
            self.session().raw.remove(part).await.ok();
            return found;
        }
        match self.replace(part, &path).await {
            true => Ok(proof),
            false => Err(self.refused(&format!("giving {} its name", file.name), &error)),
        }
    }

    /// Renames, also onto a file, in one step; whether the server did it.
    async fn replace(&self, from: &str, to: &str) -> bool {
        if !self.session().extensions.contains_key(POSIX_RENAME) {
            return false;
        }
        let mut names = Vec::new();
        for name in [from, to] {
            names.extend(u32::try_from(name.len()).unwrap_or(0).to_be_bytes());
            names.extend(name.as_bytes());
        }
        let answer = self.session().raw.extended(POSIX_RENAME, names).await;
        matches!(answer, Ok(Packet::Status(status)) if status.status_code == StatusCode::Ok)
    }

    async fn write_whole(
        &self,
        path: &str,
        bytes: &[u8],
        doing: &str,
    ) -> Result<(), DeliveryFailure> {
        let failed = |error: Error| self.refused(doing, &error);
        let session = self.session();
        let flags = OpenFlags::CREATE | OpenFlags::TRUNCATE | OpenFlags::WRITE;
        let opened = session.raw.open(path, flags, FileAttributes::empty()).await;
        let handle = opened.map_err(failed)?.handle;
        for (index, piece) in bytes.chunks(32 << 10).enumerate() {
            let offset = (index * (32 << 10)) as u64;
            session.raw.write(&handle, offset, piece.to_vec()).await.map_err(failed)?;
        }
        if session.extensions.contains_key(FSYNC) {
            session.raw.fsync(&handle).await.map_err(failed)?;
        }
        session.raw.close(handle).await.map_err(failed).map(drop)
    }

    /// Writes a small file, and replaces its former one.
    ///
    /// # Errors
    /// As [`crate::RemoteSink::write`].
    pub async fn write(&mut self, file_name: &str, bytes: &[u8]) -> Result<(), DeliveryFailure> {
        name::check(&self.place, file_name)?;
        let known = self.known().await?;
        self.make_folders(file_name).await;
        let (path, part) = (self.path(file_name), self.path(&name::part(file_name)));
        let doing = format!("writing {file_name}");
        if known.publish == PublishWay::Direct {
            return self.write_whole(&path, bytes, &doing).await;
        }
        self.write_whole(&part, bytes, &doing).await?;
        self.move_onto(&part, &path, &doing).await
    }

    /// Renames, also onto a file; without the extension a reader may see neither for a moment.
    async fn move_onto(&self, from: &str, to: &str, doing: &str) -> Result<(), DeliveryFailure> {
        if self.replace(from, to).await {
            return Ok(());
        }
        let raw = &self.session().raw;
        if raw.rename(from, to).await.is_ok() {
            return Ok(());
        }
        raw.remove(to).await.ok();
        raw.rename(from, to).await.map(drop).map_err(|error| self.refused(doing, &error))
    }

    /// Removes a part.
    ///
    /// # Errors
    /// The server refuses.
    pub async fn discard(&self, file: &OutgoingFile) -> Result<(), DeliveryFailure> {
        name::check(&self.place, &file.name)?;
        match self.session().raw.remove(self.path(&name::part(&file.name))).await {
            Err(error) if !is_absent(&error) => Err(self.refused("removing a part", &error)),
            _ => Ok(()),
        }
    }

    /// The files of a folder.
    ///
    /// # Errors
    /// The server refuses.
    pub async fn list(&self, folder: &str) -> Result<Vec<RemoteEntry>, DeliveryFailure> {
        let failed = |error: Error| self.refused(&format!("listing {folder:?}"), &error);
        let raw = &self.session().raw;
        let handle = match raw.opendir(self.path(folder)).await {
            Err(error) if is_absent(&error) && !folder.is_empty() => return Ok(Vec::new()),
            opened => opened.map_err(failed)?.handle,
        };
        let mut found = Vec::new();
        while found.len() < MOST_LISTED {
            let entries = match raw.readdir(&handle).await {
                Ok(entries) if entries.files.is_empty() => break,
                Ok(entries) => entries.files,
                Err(Error::Status(status)) if status.status_code == StatusCode::Eof => break,
                Err(error) => return Err(failed(error)),
            };
            let files = entries
                .into_iter()
                .filter(|file| file.attrs.file_type().is_file() && !file.filename.starts_with('.'));
            found.extend(files.map(|file| RemoteEntry {
                size: ByteCount::new(file.attrs.size.unwrap_or(0)),
                name: file.filename,
            }));
        }
        raw.close(handle).await.map_err(failed)?;
        found.truncate(MOST_LISTED);
        found.sort();
        Ok(found)
    }

    /// Reads a small file.
    ///
    /// # Errors
    /// It is longer, or the server refuses.
    pub async fn read(
        &self,
        file_name: &str,
        most: ByteCount,
    ) -> Result<Option<Vec<u8>>, DeliveryFailure> {
        name::check(&self.place, file_name)?;
        let failure = |error: Error| self.refused(&format!("reading {file_name}"), &error);
        let raw = &self.session().raw;
        let opened = raw.open(self.path(file_name), OpenFlags::READ, FileAttributes::empty()).await;
        let handle = match opened {
            Err(error) if is_absent(&error) => return Ok(None),
            opened => opened.map_err(failure)?.handle,
        };
        let bytes = read_at(self.session(), &handle, 0, most.as_usize() + 1).await;
        raw.close(handle).await.map_err(failure)?;
        let bytes = bytes.map_err(failure)?;
        if bytes.len() > most.as_usize() {
            let what =
                format!("{file_name} has more than the {} bytes that are read", most.as_u64());
            return Err(failed(FailureKind::Refused, &self.place, what));
        }
        Ok(Some(bytes))
    }

    /// Moves a file.
    ///
    /// # Errors
    /// The server refuses.
    pub async fn rename(&self, from: &str, to: &str) -> Result<(), DeliveryFailure> {
        name::check(&self.place, from)?;
        name::check(&self.place, to)?;
        self.make_folders(to).await;
        let doing = format!("moving {from} to {to}");
        self.move_onto(&self.path(from), &self.path(to), &doing).await
    }
}

/// A session that was used within this time is used without a question whether it still stands.
const FRESH: Duration = Duration::from_secs(5);

const POSIX_RENAME: &str = "posix-rename@openssh.com";
