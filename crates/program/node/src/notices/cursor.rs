//! Up to which event somebody was told: a small file in the state folder, replaced in one step.

use crate::fault::Fault;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use skyhaul_store::Disk;
use skyhaul_units::ByteCount;
use std::io;
use std::sync::Arc;

/// A cursor in the event log.
#[derive(Debug)]
pub struct NoticeCursor {
    disk: Arc<dyn Disk>,
    path: String,
    kept: KeptCursor,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct KeptCursor {
    /// The last event that needs nothing more.
    number: u64,
}

const FOLDER: &str = "notices";
const MOST: usize = 4_096;

impl NoticeCursor {
    /// The cursor of the one that `key` names; where there is none, behind event `last`, which is
    /// the last that there is.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn open(disk: Arc<dyn Disk>, key: &str, last: u64) -> Result<Self, Fault> {
        let digest = Sha256::digest(key.as_bytes());
        let name: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        let path = format!("{FOLDER}/{name}.json");
        let failed = |error: io::Error| {
            let help = "repair the disk or the permissions, then start the node again";
            Fault::environment(format!("a cursor cannot be used ({error})"), &path, help)
        };
        disk.make_dir(FOLDER).map_err(failed)?;
        let kept = match read(&*disk, &path) {
            Ok(text) => serde_json::from_slice(&text).ok(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(failed(error)),
        };
        // Of a log that was removed, numbers begin again.
        let kept = kept.filter(|kept: &KeptCursor| kept.number <= last);
        let is_new = kept.is_none();
        let mut own = Self { disk, path, kept: kept.unwrap_or(KeptCursor { number: last }) };
        if is_new {
            own.save().map_err(|error| {
                let help = "repair the disk or the permissions, then start the node again";
                Fault::environment(format!("a cursor cannot be kept ({error})"), &own.path, help)
            })?;
        }
        Ok(own)
    }

    /// The last event that needs nothing more.
    pub const fn number(&self) -> u64 {
        self.kept.number
    }

    /// All up to `number` need nothing more.
    ///
    /// # Errors
    /// It is so, and the disk does not have it.
    pub fn advance(&mut self, number: u64) -> io::Result<()> {
        if number <= self.kept.number {
            return Ok(());
        }
        self.kept.number = number;
        self.save()
    }

    fn save(&mut self) -> io::Result<()> {
        let text = serde_json::to_vec(&self.kept).map_err(io::Error::other)?;
        let new = format!("{}.new", self.path);
        let file = self.disk.create(&new)?;
        file.append(&text)?;
        file.sync()?;
        self.disk.rename(&new, &self.path)?;
        self.disk.sync_dir(FOLDER)
    }
}

fn read(disk: &dyn Disk, path: &str) -> io::Result<Vec<u8>> {
    let file = disk.open(path)?;
    let mut text = vec![0; MOST];
    let read = file.read_at(&mut text, ByteCount::ZERO)?;
    text.truncate(read);
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_store::sim::SimDisk;

    #[test]
    fn a_cursor_is_where_it_was_after_a_crash_and_begins_at_the_end_where_it_is_new() {
        let disk = SimDisk::new(ByteCount::mib(1));
        let open = |key: &str, last| NoticeCursor::open(Arc::new(disk.clone()), key, last).unwrap();
        let mut one = open("a", 7);
        assert_eq!((one.number(), open("b", 9).number()), (7, 9));
        one.advance(8).unwrap();
        one.advance(3).unwrap();
        drop(one);
        disk.crash(1);
        assert_eq!((open("a", 100).number(), open("b", 100).number()), (8, 9));
        assert_eq!(open("a", 5).number(), 5, "the log has begun again");
    }
}
