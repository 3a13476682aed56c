//! Notices that were read, and whose files could not be put away: they are not read again.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Notices by their names: as many as one look finds.
#[derive(Debug, Default)]
pub struct ReadNotices(Mutex<BTreeMap<String, ReadNotice>>);

/// A notice that was read.
#[derive(Debug, Clone, Copy)]
pub struct ReadNotice {
    /// The digest of its content: another one of the name is another notice.
    pub digest: [u8; 32],
    /// The name of the folder where it is put away.
    pub to: &'static str,
}

impl ReadNotices {
    fn all(&self) -> MutexGuard<'_, BTreeMap<String, ReadNotice>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The folder where a notice is put away, if it was read.
    pub fn was_read(&self, name: &str, digest: &[u8; 32]) -> Option<&'static str> {
        let all = self.all();
        all.get(name).filter(|read| read.digest == *digest).map(|read| read.to)
    }

    /// A notice was read.
    pub fn add(&self, name: &str, notice: ReadNotice) {
        self.all().insert(name.to_owned(), notice);
    }

    /// Forgets notices that are not there any more.
    pub fn keep(&self, names: &[String]) {
        self.all().retain(|name, _| names.contains(name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notice_is_read_once_and_another_of_its_name_too() {
        let read = ReadNotices::default();
        assert_eq!(read.was_read("a.PAN", &[1; 32]), None);
        read.add("a.PAN", ReadNotice { digest: [1; 32], to: "read" });
        read.keep(&["a.PAN".to_owned()]);
        assert_eq!(read.was_read("a.PAN", &[1; 32]), Some("read"));
        assert_eq!(read.was_read("a.PAN", &[2; 32]), None);
        read.keep(&[]);
        assert_eq!(read.was_read("a.PAN", &[1; 32]), None, "it was put away");
    }
}
