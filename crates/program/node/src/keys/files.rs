//! The files of a node's key, and of what it knows of other keys.

use super::record;
use crate::fault::Fault;
use crate::services;
use skyhaul_config::Node;
use skyhaul_identity::{Identity, KeyRecord, KeyStore, StoredKeys};
use skyhaul_store::Disk;
use skyhaul_units::Utc;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// Where the keys of a node are.
#[derive(Debug)]
pub struct KeyFiles {
    disk: Arc<dyn Disk>,
    /// The key in use.
    key: PathBuf,
    /// The next key, where the folder of the key can be written.
    next: PathBuf,
    /// The next key, where it cannot: a service manager hands the key over.
    next_in_state: PathBuf,
    /// The key before.
    former: PathBuf,
}

/// The end of the name of the next key.
const NEXT: &str = "rotation-next";
/// The end of the name of the key before.
const FORMER: &str = "rotation-former";

impl KeyFiles {
    /// Of this node, with its state folder as `disk`.
    pub fn new(disk: Arc<dyn Disk>, node: &Node) -> Self {
        let beside = |end: &str| {
            let mut name = node.key.file_name().map(OsString::from).unwrap_or_default();
            name.push(".");
            name.push(end);
            node.key.with_file_name(name)
        };
        let (next, former) = (beside(NEXT), beside(FORMER));
        Self { disk, key: node.key.clone(), next, next_in_state: node.state.join(NEXT), former }
    }

    /// Reads the keys.
    ///
    /// # Errors
    /// The key in use cannot be read.
    pub fn read(&self, node: &Node) -> Result<StoredKeys, Fault> {
        let current = services::identity(node)?;
        let since = fs::metadata(&self.key).and_then(|metadata| metadata.modified());
        let since = since.ok().and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok());
        let micros = since.and_then(|since| i64::try_from(since.as_micros()).ok());
        let read = |file: &Path| Identity::from_pem(&services::private_key(file).ok()?).ok();
        let next = read(&self.next).or_else(|| read(&self.next_in_state));
        Ok(StoredKeys { current, since: Utc::from_micros(micros.unwrap_or(0)), next })
    }

    /// Reads the record.
    ///
    /// # Errors
    /// It cannot be read: a node must not forget which keys are revoked.
    pub fn record(&self) -> Result<KeyRecord, Fault> {
        record::load(&*self.disk)
    }
}

#[cfg(test)]
impl KeyFiles {
    /// Of a node that never changes its key.
    pub fn in_memory(disk: Arc<dyn Disk>) -> Self {
        let none = || PathBuf::from("/nonexistent/key");
        Self { disk, key: none(), next: none(), next_in_state: none(), former: none() }
    }
}

impl KeyStore for KeyFiles {
    fn save(&mut self, record: &KeyRecord) -> Result<(), String> {
        record::save(&*self.disk, record)
            .map_err(|error| format!("{} cannot be written ({error})", record::KEYS_FILE))
    }

    fn write_next(&mut self, next: &Identity) -> Result<(), String> {
        let text = next.to_pem();
        let Err(beside) = write(&self.next, &text) else { return Ok(()) };
        write(&self.next_in_state, &text).map_err(|error| {
            let (next, state) = (self.next.display(), self.next_in_state.display());
            format!(
                "the next key can be written neither to {next} ({beside}) nor to {state} \
                     ({error})"
            )
        })
    }

    fn install(&mut self) -> Result<(), String> {
        if !self.next.exists() {
            let next = self.next_in_state.display();
            return match self.next_in_state.exists() {
                true => Err(format!(
                    "the folder of {key} cannot be written: put {next} in the place of {key} where \
                     the service takes it from, and restart the node",
                    key = self.key.display()
                )),
                false => Err(format!("the next key {} is gone", self.next.display())),
            };
        }
        let failed = |error: io::Error| {
            let (next, key) = (self.next.display(), self.key.display());
            format!(
                "{next} cannot be put in the place of {key} ({error}): do so, and restart the \
                     node"
            )
        };
        match fs::hard_link(&self.key, &self.former) {
            // Of a run that was killed here: it is the key in use, or one before it.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                fs::remove_file(&self.former)
                    .and_then(|()| fs::hard_link(&self.key, &self.former))
                    .map_err(failed)?;
            }
            linked => linked.map_err(failed)?,
        }
        fs::rename(&self.next, &self.key).and_then(|()| sync_folder(&self.key)).map_err(failed)
    }

    fn clean(&mut self) -> Result<(), String> {
        for file in [&self.next, &self.next_in_state, &self.former] {
            // A file system that is read only refuses to remove even what is not there.
            if fs::symlink_metadata(file).is_ok() {
                fs::remove_file(file)
                    .and_then(|()| sync_folder(file))
                    .map_err(|error| format!("{} cannot be removed ({error})", file.display()))?;
            }
        }
        Ok(())
    }
}

/// Makes a file that this user alone can read, in one step.
fn write(file: &Path, text: &str) -> io::Result<()> {
    let new = file.with_extension(format!("{NEXT}.new"));
    match fs::remove_file(&new) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut out = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
    out.write_all(text.as_bytes())?;
    out.sync_all()?;
    fs::rename(&new, file)?;
    sync_folder(file)
}

fn sync_folder(file: &Path) -> io::Result<()> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_store::sim::SimDisk;
    use skyhaul_units::ByteCount;

    fn files(folder: &Path, key: &str) -> KeyFiles {
        let disk = Arc::new(SimDisk::new(ByteCount::mib(1)));
        let beside = |end: &str| folder.join(format!("{key}.{end}"));
        KeyFiles {
            disk,
            key: folder.join(key),
            next: beside(NEXT),
            next_in_state: folder.join(NEXT),
            former: beside(FORMER),
        }
    }

    fn read(path: &Path) -> Option<String> {
        fs::read_to_string(path).ok()
    }

    #[test]
    fn a_next_key_takes_the_place_of_the_one_in_use_also_after_a_kill_between() {
        let folder = tempfile::tempdir().unwrap();
        let (old, new) = (Identity::generate().unwrap(), Identity::generate().unwrap());
        let mut files = files(folder.path(), "s.key");
        write(&files.key, &old.to_pem()).unwrap();
        files.write_next(&new).unwrap();
        assert_eq!(read(&files.next), Some(new.to_pem()));
        // The run before was killed when it had kept the key in use.
        fs::hard_link(&files.key, &files.former).unwrap();
        files.install().unwrap();
        assert_eq!(read(&files.key), Some(new.to_pem()));
        assert_eq!((read(&files.former), read(&files.next)), (Some(old.to_pem()), None));
        assert!(files.install().unwrap_err().contains("is gone"));
        files.clean().unwrap();
        files.clean().unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn where_the_folder_of_the_key_cannot_be_written_the_operator_is_told_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let new = Identity::generate().unwrap();
        let mut files = files(folder.path(), "absent/s.key");
        files.write_next(&new).unwrap();
        assert_eq!(read(&folder.path().join(NEXT)), Some(new.to_pem()));
        let said = files.install().unwrap_err();
        assert!(said.contains("in the place of") && said.contains("restart the node"), "{said}");
        files.clean().unwrap();
        assert_eq!(read(&folder.path().join(NEXT)), None);
    }
}
