//! Received files: parts are written at their offsets, verified, and the file gets its name when it
//! is complete.

use serde::Serialize;
use sha2::{Digest, Sha256};
use skyhaul_identity::OneWaySession;
use skyhaul_oneway::file::{FileIndex, FileProgress, Part};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The files of one session.
#[derive(Debug)]
pub struct SessionFiles {
    folder: PathBuf,
    session: OneWaySession,
    files: BTreeMap<FileIndex, Arriving>,
}

#[derive(Debug)]
struct Arriving {
    progress: FileProgress,
    path: PathBuf,
    file: Option<File>,
    is_done: bool,
}

/// What became of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileVerdict {
    /// Its name; that of the partial file where no manifest came.
    pub file: String,
    /// Whether it is whole and its digest right.
    pub whole: bool,
    /// Bytes that came.
    pub bytes: u64,
    /// SHA-256 of a whole one, hexadecimal.
    pub sha256: Option<String>,
    /// The missing ranges: from an offset to another; without an end if the length is not known.
    pub gaps: Vec<(u64, Option<u64>)>,
}

/// Files of one session: a sender sends at most 60.
const FILES_MAX: usize = 64;
/// Bytes read at once for a digest.
const READ: usize = 1 << 20;

impl SessionFiles {
    /// For a session's files, in an existing folder.
    pub const fn new(folder: PathBuf, session: OneWaySession) -> Self {
        Self { folder, session, files: BTreeMap::new() }
    }

    /// Whether nothing of any file came.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Takes a part; the verdict where it made its file whole.
    ///
    /// # Errors
    /// The folder or its disk refused.
    pub fn part(&mut self, part: Part) -> io::Result<Option<FileVerdict>> {
        let number = match &part {
            Part::Data { file, .. } | Part::Manifest(file, _) => *file,
        };
        if self.files.len() >= FILES_MAX && !self.files.contains_key(&number) {
            return Ok(None);
        }
        let name = format!("{}-{}.partial", &self.session.to_string()[..20], number.0);
        let path = self.folder.join(name);
        let arriving = self.files.entry(number).or_insert_with(|| Arriving {
            progress: FileProgress::default(),
            path,
            file: None,
            is_done: false,
        });
        if arriving.is_done {
            return Ok(None);
        }
        match part {
            Part::Manifest(_, manifest) => {
                arriving.open()?;
                arriving.progress.named(manifest);
            }
            Part::Data { offset, bytes, .. } => {
                if arriving.progress.came(offset, bytes.len() as u64) {
                    arriving.open()?.write_all_at(&bytes, offset)?;
                }
            }
        }
        if !arriving.progress.is_whole() {
            return Ok(None);
        }
        arriving.complete(&self.folder).map(Some)
    }

    /// The session is over: verdicts of the files that are not whole. What came of them is kept,
    /// with a list of what did not.
    ///
    /// # Errors
    /// The folder or its disk refused.
    pub fn finish(&mut self) -> io::Result<Vec<FileVerdict>> {
        let folder = &self.folder;
        let open = self.files.values_mut().filter(|file| !file.is_done);
        open.map(|file| file.give_up(folder)).collect()
    }
}

impl Arriving {
    fn open(&mut self) -> io::Result<&File> {
        if self.file.is_none() {
            let options = OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(true)
                .open(&self.path);
            self.file = Some(options?);
        }
        self.file.as_ref().ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }

    fn name(&self) -> Option<String> {
        self.progress.manifest.as_ref().map(|manifest| manifest.name.clone())
    }

    /// All bytes have arrived: the file gets its name if its digest is correct.
    fn complete(&mut self, folder: &Path) -> io::Result<FileVerdict> {
        self.is_done = true;
        let digest = digest(self.open()?)?;
        let whole = self.progress.manifest.as_ref().and_then(|manifest| manifest.whole);
        let Some((name, whole)) =
            self.name().zip(whole).filter(|(_, whole)| whole.digest == digest)
        else {
            // The sender's file changed while it was read, or between two rounds.
            return self.give_up(folder);
        };
        if let Some(file) = self.file.take() {
            file.set_len(whole.len)?;
            file.sync_all()?;
        }
        std::fs::rename(&self.path, folder.join(&name))?;
        File::open(folder)?.sync_all()?;
        for stale in [format!("{name}.partial"), format!("{name}.gaps")] {
            // From an earlier transfer of the same file, if there was one.
            let _ = std::fs::remove_file(folder.join(stale));
        }
        let sha256 = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(FileVerdict {
            file: name,
            whole: true,
            bytes: whole.len,
            sha256: Some(sha256),
            gaps: Vec::new(),
        })
    }

    fn give_up(&mut self, folder: &Path) -> io::Result<FileVerdict> {
        self.is_done = true;
        let partial =
            self.path.file_stem().and_then(|stem| stem.to_str()).unwrap_or("unnamed").to_owned();
        let name = self.name().unwrap_or(partial);
        if let Some(file) = self.file.take() {
            file.sync_all()?;
            std::fs::rename(&self.path, folder.join(format!("{name}.partial")))?;
        }
        let gaps = self.progress.gaps();
        let mut list = File::create(folder.join(format!("{name}.gaps")))?;
        for (start, end) in &gaps {
            writeln!(list, "{start} {}", end.map_or("end".to_owned(), |end| end.to_string()))?;
        }
        list.sync_all()?;
        Ok(FileVerdict {
            file: name,
            whole: false,
            bytes: self.progress.bytes(),
            sha256: None,
            gaps,
        })
    }
}

fn digest(file: &File) -> io::Result<[u8; 32]> {
    let (mut hash, mut buffer) = (Sha256::new(), vec![0; READ]);
    let mut input = file.try_clone()?;
    io::Seek::seek(&mut input, io::SeekFrom::Start(0))?;
    loop {
        let count = input.read(&mut buffer)?;
        if count == 0 {
            break;
        }
        hash.update(&buffer[..count]);
    }
    Ok(hash.finalize().into())
}

impl FileVerdict {
    /// For people, in one line; the longest lists are in the file of gaps.
    pub fn text(&self) -> String {
        let Self { file, bytes, .. } = self;
        if let Some(digest) = &self.sha256 {
            return format!("{file}: whole, {bytes} bytes, sha256 {digest}");
        }
        let gaps: Vec<String> = {
            let shown = self.gaps.iter().take(SHOWN);
            shown.map(|(start, end)| gap_text(*start, *end)).collect()
        };
        let more = self.gaps.len().saturating_sub(SHOWN);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let missing =
            if gaps.is_empty() { "its digest differs".to_owned() } else { gaps.join(", ") + &more };
        format!(
            "{file}: incomplete, {bytes} bytes received, missing: {missing} (kept as \
            {file}.partial, {file}.gaps)"
        )
    }
}

fn gap_text(start: u64, end: Option<u64>) -> String {
    end.map_or_else(|| format!("{start} to the end"), |end| format!("{start}-{end}"))
}

/// Gaps that one line names.
const SHOWN: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use skyhaul_oneway::file::{Manifest, Whole};

    fn manifest(content: Option<&[u8]>) -> Part {
        let whole = content.map(|content| Whole {
            len: content.len() as u64,
            digest: Sha256::digest(content).into(),
        });
        Part::Manifest(FileIndex(0), Manifest { name: "pass.bin".to_owned(), whole })
    }

    fn data(offset: u64, bytes: &'static [u8]) -> Part {
        Part::Data { file: FileIndex(0), offset, bytes: Bytes::from_static(bytes) }
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_gets_its_name_when_it_is_complete_in_any_order_of_arrival() {
        let folder = tempfile::tempdir().unwrap();
        let mut incoming =
            SessionFiles::new(folder.path().to_owned(), OneWaySession::new(1, [1; 8]));
        assert_eq!(incoming.part(data(3, b"def")).unwrap(), None);
        assert!(names(folder.path())[0].ends_with("-0.partial"));
        assert_eq!(incoming.part(manifest(Some(b"abcdef"))).unwrap(), None);
        let verdict = incoming.part(data(0, b"abc")).unwrap().unwrap();
        assert!(
            verdict.whole
                && verdict.text().contains("pass.bin: whole, 6 bytes, sha256 bef57ec7f53a6d40")
        );
        assert_eq!(names(folder.path()), ["pass.bin"]);
        assert_eq!(std::fs::read(folder.path().join("pass.bin")).unwrap(), b"abcdef");
        // A further round changes nothing.
        assert_eq!(incoming.part(data(0, b"xyz")).unwrap(), None);
        assert_eq!(incoming.finish().unwrap(), []);
    }

    #[test]
    fn missing_ranges_are_listed_and_received_parts_kept() {
        let folder = tempfile::tempdir().unwrap();
        let mut incoming =
            SessionFiles::new(folder.path().to_owned(), OneWaySession::new(1, [1; 8]));
        incoming.part(manifest(None)).unwrap();
        incoming.part(data(3, b"def")).unwrap();
        incoming.part(manifest(Some(b"abcdefghi"))).unwrap();
        let verdicts = incoming.finish().unwrap();
        assert_eq!(verdicts[0].gaps, [(0, Some(3)), (6, Some(9))]);
        assert!(verdicts[0].text().contains("missing: 0-3, 6-9"), "{}", verdicts[0].text());
        assert_eq!(names(folder.path()), ["pass.bin.gaps", "pass.bin.partial"]);
        assert_eq!(std::fs::read(folder.path().join("pass.bin.partial")).unwrap(), b"\0\0\0def");
        assert_eq!(
            std::fs::read_to_string(folder.path().join("pass.bin.gaps")).unwrap(),
            "0 3\n6 9\n"
        );
    }

    #[test]
    fn a_file_with_a_wrong_digest_gets_no_name() {
        let folder = tempfile::tempdir().unwrap();
        let mut incoming =
            SessionFiles::new(folder.path().to_owned(), OneWaySession::new(1, [1; 8]));
        incoming.part(data(0, b"abX")).unwrap();
        let verdict = incoming.part(manifest(Some(b"abc"))).unwrap().unwrap();
        assert!(!verdict.whole && verdict.text().contains("digest"), "{}", verdict.text());
        assert_eq!(names(folder.path()), ["pass.bin.gaps", "pass.bin.partial"]);
    }
}
