//! Files of a drop folder that cannot be handed over, in `failed`; and files that were, which
//! leave.

use skyhaul_config::AfterHandover;
use skyhaul_files::RelPath;
use skyhaul_units::Utc;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

/// The folder of files that were set aside, within the one that they came to.
pub const FAILED: &str = "failed";
/// Files of one name that stand beside one another.
const SAME_NAME: u32 = 10_000;

/// Moves the file `name` of `folder` to `failed` there, with a file that gives the reason. Returns
/// where it is now.
///
/// # Errors
/// It cannot be moved: it is where it was.
pub fn set_aside(folder: &Path, name: &RelPath, reason: &str, now: Utc) -> io::Result<PathBuf> {
    let failed = folder.join(FAILED);
    fs::create_dir_all(&failed)?;
    let to = free_name(&failed, name)?;
    fs::rename(folder.join(OsStr::from_bytes(name.as_bytes())), &to)?;
    let mut note = to.clone().into_os_string().into_vec();
    note.extend_from_slice(b".reason.txt");
    let text = format!(
        "{now}: {reason}\n\nThe file was moved here because it could not be handed over. Move it \
        back to {} to try again.\n",
        folder.display()
    );
    // The alarm and the log have the reason too: a file without a note is still set aside.
    let _ = fs::write(OsString::from_vec(note), text);
    Ok(to)
}

/// Whether files are set aside in `folder`.
pub fn has_failed(folder: &Path) -> bool {
    fs::read_dir(folder.join(FAILED)).is_ok_and(|mut entries| entries.next().is_some())
}

/// Removes the file `name` of `folder`, or moves it away.
///
/// # Errors
/// It is where it was.
pub fn leave(folder: &Path, name: &RelPath, how: &AfterHandover) -> io::Result<()> {
    let from = folder.join(OsStr::from_bytes(name.as_bytes()));
    match how {
        AfterHandover::Keep => Ok(()),
        AfterHandover::Delete => fs::remove_file(from),
        AfterHandover::Move(dir) => {
            fs::create_dir_all(dir)?;
            fs::rename(from, free_name(dir, name)?)
        }
    }
}

/// A name in `dir` that nothing has: `name`, or `name.1` and so on.
fn free_name(dir: &Path, name: &RelPath) -> io::Result<PathBuf> {
    let first = dir.join(OsStr::from_bytes(name.as_bytes()));
    let next = |number: u32| {
        let mut bytes = name.as_bytes().to_vec();
        bytes.extend_from_slice(format!(".{number}").as_bytes());
        dir.join(OsString::from_vec(bytes))
    };
    let free = core::iter::once(first).chain((1..SAME_NAME).map(next)).find(|path| {
        fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    });
    free.ok_or_else(|| {
        let said = format!("{} has {SAME_NAME} files of this name", dir.display());
        io::Error::new(io::ErrorKind::AlreadyExists, said)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> RelPath {
        RelPath::new(text.as_bytes()).unwrap()
    }

    #[test]
    fn a_file_is_set_aside_with_its_reason_beside_others_of_its_name() {
        let folder = tempfile::tempdir().unwrap();
        assert!(!has_failed(folder.path()));
        for (content, at) in [("one", "a.dat"), ("two", "a.dat.1")] {
            fs::write(folder.path().join("a.dat"), content).unwrap();
            let to = set_aside(folder.path(), &name("a.dat"), "no frames", Utc::from_micros(0));
            let to = to.unwrap();
            assert_eq!(to, folder.path().join(FAILED).join(at));
            assert_eq!(fs::read_to_string(&to).unwrap(), content);
            let note = fs::read_to_string(format!("{}.reason.txt", to.display())).unwrap();
            assert!(note.contains(": no frames\n") && note.contains("to try again"), "{note}");
        }
        assert!(has_failed(folder.path()) && !folder.path().join("a.dat").exists());
        set_aside(folder.path(), &name("b"), "x", Utc::from_micros(0)).unwrap_err();
    }

    #[test]
    fn a_file_leaves_without_replacing_another_one() {
        let folder = tempfile::tempdir().unwrap();
        let taken = folder.path().join("taken");
        let put = |content| fs::write(folder.path().join("a"), content).unwrap();
        for content in ["one", "two"] {
            put(content);
            leave(folder.path(), &name("a"), &AfterHandover::Move(taken.clone())).unwrap();
        }
        let read = |name: &str| fs::read_to_string(taken.join(name)).unwrap();
        assert_eq!((read("a"), read("a.1")), ("one".to_owned(), "two".to_owned()));
        put("three");
        leave(folder.path(), &name("a"), &AfterHandover::Keep).unwrap();
        leave(folder.path(), &name("a"), &AfterHandover::Delete).unwrap();
        assert!(!folder.path().join("a").exists());
    }
}
