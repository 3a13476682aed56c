//! A file sink: grows under a temporary name, and gets its name when the stream has ended.

use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

/// A file that is being written.
#[derive(Debug)]
pub(crate) struct FileSink {
    folder: OwnedFd,
    file: File,
    name: OsString,
    part: OsString,
    empty: bool,
}

impl FileSink {
    /// A new file `path` below `root`; folders on the way are made, and none of them may be a link.
    pub fn create(root: &OwnedFd, path: &Path) -> io::Result<Self> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_owned();
        let mut folder = root.try_clone()?;
        for part in path.parent().into_iter().flat_map(Path::components) {
            let part = part.as_os_str();
            match rustix::fs::mkdirat(&folder, part, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            folder = rustix::fs::openat(&folder, part, flags, Mode::empty())?;
        }
        if rustix::fs::statat(&folder, &name, AtFlags::SYMLINK_NOFOLLOW).is_ok() {
            return Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                "a file of this name exists; give another name",
            ));
        }
        let mut part = OsString::from(".");
        part.push(&name);
        part.push(".skyhaul-part");
        let flags =
            OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&folder, &part, flags, Mode::from_raw_mode(0o666)).map_err(
            |error| match error {
                Errno::EXIST => {
                    let said = format!(
                        "{} of an earlier stream exists; move or remove it",
                        part.display()
                    );
                    io::Error::new(io::ErrorKind::AlreadyExists, said)
                }
                other => other.into(),
            },
        )?;
        Ok(Self { folder, file: file.into(), name, part, empty: true })
    }

    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.empty &= bytes.is_empty();
        self.file.write_all(bytes)
    }

    /// The file is complete: syncs it, then gives it its name.
    pub fn finish(self) -> io::Result<()> {
        self.file.sync_all()?;
        let folder = self.folder.as_fd();
        rustix::fs::renameat_with(folder, &self.part, folder, &self.name, RenameFlags::NOREPLACE)?;
        Ok(rustix::fs::fsync(folder)?)
    }

    /// The stream broke off: the file keeps its temporary name; an empty one is removed.
    pub fn abandon(self) -> io::Result<()> {
        if self.empty {
            return Ok(rustix::fs::unlinkat(&self.folder, &self.part, AtFlags::empty())?);
        }
        self.file.sync_all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root(folder: &Path) -> OwnedFd {
        File::open(folder).unwrap().into()
    }

    #[test]
    fn a_file_has_its_name_once_it_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let mut sink = FileSink::create(&root(folder.path()), Path::new("a/b/x.vdif")).unwrap();
        sink.write(b"frames").unwrap();
        let part = folder.path().join("a/b/.x.vdif.skyhaul-part");
        assert_eq!(std::fs::read(&part).unwrap(), b"frames");
        sink.finish().unwrap();
        assert_eq!(std::fs::read(folder.path().join("a/b/x.vdif")).unwrap(), b"frames");
        assert!(!part.exists());
        let again = FileSink::create(&root(folder.path()), Path::new("a/b/x.vdif")).unwrap_err();
        assert!(again.to_string().contains("give another name"), "{again}");
    }

    #[test]
    fn what_was_not_finished_stays_beside_and_nothing_is_removed_for_it() {
        let folder = tempfile::tempdir().unwrap();
        let create = || FileSink::create(&root(folder.path()), Path::new("x"));
        create().unwrap().abandon().unwrap();
        let mut sink = create().unwrap();
        sink.write(b"frames").unwrap();
        sink.abandon().unwrap();
        assert!(create().unwrap_err().to_string().contains("of an earlier stream"));
        assert!(!folder.path().join("x").exists());
    }

    #[test]
    fn no_link_leads_out_of_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let other = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(other.path(), folder.path().join("link")).unwrap();
        assert!(FileSink::create(&root(folder.path()), Path::new("link/x")).is_err());
        assert_eq!(std::fs::read_dir(other.path()).unwrap().count(), 0);
    }
}
