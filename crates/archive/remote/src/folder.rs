//! A folder of this machine, or one that is mounted here. A mount that hangs blocks the thread of
//! this destination, and no other.

use crate::access::RemoteAccess;
use crate::failure::{differs, failed, of_disk, read_back_differs};
use crate::name;
use crate::sink::{
    Abilities, GoOn, MOST_LISTED, OutgoingFile, PlaceProgress, Placing, PublishWay, ReadBack,
    RemoteEntry, RemoteFound, RemoteSink, ResumeNote, ResumeStep, StoreCheck,
};
use crate::source::{PIECE, PublishedSource};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use sha2::{Digest, Sha256};
use skyhaul_dispatch::{DeliveryFailure, FailureKind, Proof};
use skyhaul_units::ByteCount;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// A folder.
pub struct FolderSink {
    root: PathBuf,
    place: String,
    access: RemoteAccess,
}

impl FolderSink {
    /// Of a path.
    pub fn new(root: PathBuf, access: RemoteAccess) -> Self {
        let place = format!("folder:{}", root.display());
        Self { root, place, access }
    }

    /// The path of a name; its folders exist afterwards. The root is not made: where it lacks, a
    /// disk may not be mounted.
    fn path(&self, name: &str) -> Result<PathBuf, DeliveryFailure> {
        name::check(&self.place, name)?;
        for folder in name::folders(name) {
            match fs::create_dir(self.root.join(folder)) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(self.failure(&format!("cannot make the folder {folder}"), &error));
                }
                _ => {}
            }
        }
        Ok(self.root.join(name))
    }

    fn failure(&self, what: &str, error: &io::Error) -> DeliveryFailure {
        of_disk(&self.place, what, error)
    }

    /// Opens the part, cut to what an earlier attempt made durable if its last bytes are those of
    /// the file, and the file at that place.
    fn begin<'a>(
        &self,
        file: &'a OutgoingFile,
        noted: u64,
    ) -> Result<(File, PublishedSource<'a>), DeliveryFailure> {
        let failed = |error: io::Error| self.failure("cannot open the part", &error);
        let path = self.root.join(name::part(&file.name));
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).read(true).write(true);
        let mut source = PublishedSource::open(file)?;
        let mut part = options.open(path).map_err(failed)?;
        let there = part.metadata().map_err(failed)?.len();
        if noted > 0 && noted <= there {
            let tail = usize::try_from(noted).unwrap_or(usize::MAX).min(PIECE);
            let mut seen = vec![0; tail];
            part.seek(SeekFrom::Start(noted - tail as u64)).map_err(failed)?;
            part.read_exact(&mut seen).map_err(failed)?;
            if source.skip_to(noted, tail)? == seen {
                part.set_len(noted).map_err(failed)?;
                return Ok((part, source));
            }
            source = PublishedSource::open(file)?;
        }
        part.set_len(0).map_err(failed)?;
        part.rewind().map_err(failed)?;
        Ok((part, source))
    }

    fn fill(
        &self,
        part: &mut File,
        source: &mut PublishedSource<'_>,
        file: &OutgoingFile,
        progress: &mut dyn FnMut(PlaceProgress<'_>) -> GoOn,
    ) -> Result<GoOn, DeliveryFailure> {
        let failed = |error: io::Error| self.failure("cannot write the part", &error);
        let mut noted = source.at();
        while !source.is_at_end() {
            let bytes = source.next(PIECE)?;
            if let Some(pace) = &self.access.pace {
                pause(pace.take(ByteCount::of(bytes.len())));
            }
            part.write_all(&bytes).map_err(failed)?;
            if source.at() - noted >= NOTED_EACH && !source.is_at_end() {
                part.sync_data().map_err(failed)?;
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
        part.sync_data().map_err(failed)?;
        Ok(GoOn::Continue)
    }

    /// Gives the part its name, unless a file has it.
    fn publish(&self, part: &Path, path: &Path) -> Result<(), io::Error> {
        match renameat_with(CWD, part, CWD, path, RenameFlags::NOREPLACE) {
            // NFS and some others cannot say "unless it exists".
            Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {
                if fs::symlink_metadata(path).is_ok() {
                    return Err(io::ErrorKind::AlreadyExists.into());
                }
                fs::rename(part, path)?;
            }
            other => other?,
        }
        sync_folder(path)
    }

    fn digest(&self, path: &Path) -> Result<[u8; 32], DeliveryFailure> {
        let failed = |error: io::Error| self.failure("cannot read the file back", &error);
        let mut file = File::open(path).map_err(failed)?;
        let (mut hash, mut buffer) = (Sha256::new(), vec![0; PIECE]);
        loop {
            match file.read(&mut buffer).map_err(failed)? {
                0 => return Ok(hash.finalize().into()),
                count => hash.update(&buffer[..count]),
            }
        }
    }
}

impl RemoteSink for FolderSink {
    fn abilities(&mut self) -> Result<Abilities, DeliveryFailure> {
        let trial = name::trial(&self.access.tried_by);
        self.write(&trial, b"trial")?;
        fs::remove_file(self.root.join(trial))
            .map_err(|error| self.failure("cannot remove a file", &error))?;
        let room = rustix::fs::statvfs(&self.root).ok();
        Ok(Abilities {
            server: String::new(),
            publish: PublishWay::Rename,
            says_durable: true,
            resumes: true,
            refuses_existing: true,
            check: StoreCheck::Nothing,
            replaces: Some(true),
            free: room.map(|room| room.f_bavail.saturating_mul(room.f_frsize)),
        })
    }

    fn look(&mut self, file: &OutgoingFile) -> Result<RemoteFound, DeliveryFailure> {
        name::check(&self.place, &file.name)?;
        let path = self.root.join(&file.name);
        match fs::metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(RemoteFound::Absent),
            Err(error) => Err(self.failure(&format!("cannot look at {}", file.name), &error)),
            Ok(found) if !found.is_file() || found.len() != file.size.as_u64() => {
                Ok(RemoteFound::Differs)
            }
            Ok(_) if self.digest(&path)? == file.sha256 => Ok(RemoteFound::Same(Proof::ReadBack)),
            Ok(_) => Ok(RemoteFound::Differs),
        }
    }

    fn place(
        &mut self,
        file: &OutgoingFile,
        resume: &ResumeNote,
        progress: &mut dyn FnMut(PlaceProgress<'_>) -> GoOn,
    ) -> Result<Placing, DeliveryFailure> {
        let path = self.path(&file.name)?;
        match self.look(file)? {
            RemoteFound::Same(proof) => return Ok(Placing::Placed(proof)),
            RemoteFound::Differs => return Err(differs(&self.place, &file.name)),
            RemoteFound::Absent => {}
        }
        let part_path = self.root.join(name::part(&file.name));
        let (mut part, mut source) = self.begin(file, resume.part_bytes(file))?;
        if self.fill(&mut part, &mut source, file, progress)? == GoOn::Stop {
            return Ok(Placing::Stopped);
        }
        if let Err(failure) = source.finish() {
            // What is removed was never visible; if it stays, the next attempt writes over it.
            let _ = fs::remove_file(&part_path);
            return Err(failure);
        }
        let proof = match file.read_back {
            ReadBack::Always if self.digest(&part_path)? == file.sha256 => Proof::ReadBack,
            ReadBack::Always => return Err(read_back_differs(&self.place, &file.name)),
            // Synced, each byte of it.
            ReadBack::Small => Proof::Written,
        };
        self.publish(&part_path, &path).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => differs(&self.place, &file.name),
            _ => self.failure(&format!("cannot give {} its name", file.name), &error),
        })?;
        Ok(Placing::Placed(proof))
    }

    fn discard(&mut self, file: &OutgoingFile, _: &ResumeNote) -> Result<(), DeliveryFailure> {
        name::check(&self.place, &file.name)?;
        match fs::remove_file(self.root.join(name::part(&file.name))) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(self.failure("cannot remove the part", &error))
            }
            _ => Ok(()),
        }
    }

    fn write(&mut self, name: &str, bytes: &[u8]) -> Result<(), DeliveryFailure> {
        let (path, part) = (self.path(name)?, self.root.join(name::part(name)));
        let write = || {
            let mut file = File::create(&part)?;
            file.write_all(bytes)?;
            file.sync_data()?;
            fs::rename(&part, &path)?;
            sync_folder(&path)
        };
        write().map_err(|error| self.failure(&format!("cannot write {name}"), &error))
    }

    fn list(&mut self, folder: &str) -> Result<Vec<RemoteEntry>, DeliveryFailure> {
        let path = self.root.join(folder);
        let failed = |error: io::Error| self.failure(&format!("cannot list {folder:?}"), &error);
        let entries = match fs::read_dir(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && !folder.is_empty() => {
                return Ok(Vec::new());
            }
            entries => entries.map_err(failed)?,
        };
        let mut found = Vec::new();
        for entry in entries {
            let entry = entry.map_err(failed)?;
            // A file that went away meanwhile is not listed.
            let Ok(about) = fs::metadata(entry.path()) else { continue };
            let Ok(name) = entry.file_name().into_string() else { continue };
            if about.is_file() && !name.starts_with('.') {
                found.push(RemoteEntry { name, size: ByteCount::new(about.len()) });
            }
            if found.len() == MOST_LISTED {
                break;
            }
        }
        found.sort();
        Ok(found)
    }

    fn read(&mut self, name: &str, most: ByteCount) -> Result<Option<Vec<u8>>, DeliveryFailure> {
        name::check(&self.place, name)?;
        let failure = |error: io::Error| self.failure(&format!("cannot read {name}"), &error);
        let file = match File::open(self.root.join(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file.map_err(failure)?,
        };
        let mut bytes = Vec::new();
        file.take(most.as_u64() + 1).read_to_end(&mut bytes).map_err(failure)?;
        if bytes.len() as u64 > most.as_u64() {
            let what = format!("{name} has more than the {} bytes that are read", most.as_u64());
            return Err(failed(FailureKind::Refused, &self.place, what));
        }
        Ok(Some(bytes))
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), DeliveryFailure> {
        name::check(&self.place, from)?;
        let to_path = self.path(to)?;
        fs::rename(self.root.join(from), &to_path)
            .and_then(|()| sync_folder(&to_path))
            .map_err(|error| self.failure(&format!("cannot move {from} to {to}"), &error))
    }
}

fn sync_folder(of: &Path) -> io::Result<()> {
    File::open(of.parent().expect("a file is in a folder"))?.sync_all()
}

#[allow(clippy::disallowed_methods, reason = "the thread of a destination keeps its rate")]
fn pause(span: std::time::Duration) {
    std::thread::sleep(span);
}

/// A sync for each 64 MiB: a tenth of the time of a disk that writes 100 MB/s.
const NOTED_EACH: u64 = 64 << 20;
