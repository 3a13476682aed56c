//! Which session of this process writes which partial file.
//!
//! When a node is killed and calls again, its previous session may still be open here, since
//! nothing reported its end. The newer session takes the file over; a session of another node is
//! refused because the file is busy.

use crate::cancel::Cancel;
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// The claims of all sessions of a node.
#[derive(Debug, Clone, Default)]
pub struct Claims(Arc<(Mutex<BTreeMap<File, Holder>>, Condvar)>);

/// Device and inode.
pub(crate) type File = (u64, u64);

/// Who holds a file.
#[derive(Debug, Clone)]
pub(crate) struct Holder {
    /// The far end's key.
    pub peer: String,
    /// Ends its session.
    pub cancel: Cancel,
}

/// A file that is held until this is dropped.
#[derive(Debug)]
pub(crate) struct Claim {
    claims: Claims,
    file: File,
}

impl Claims {
    /// Claims a file whose lock shows that no session holds it.
    pub(crate) fn hold(&self, file: File, holder: Holder) -> Claim {
        self.files().insert(file, holder);
        Claim { claims: self.clone(), file }
    }

    /// Ends the session that holds `file`, if it is of the same node as `by`. Whether it may be
    /// free now: no session holds it.
    pub(crate) fn take_over(&self, file: File, by: &Holder) -> bool {
        let files = self.files();
        let Some(holder) = files.get(&file).cloned() else { return true };
        if holder.peer != by.peer {
            return false;
        }
        drop(files);
        holder.cancel.set();
        let waited =
            self.0.1.wait_timeout_while(self.files(), PATIENCE, |files| files.contains_key(&file));
        !waited.expect("no holder of this lock panics").1.timed_out()
    }

    fn files(&self) -> MutexGuard<'_, BTreeMap<File, Holder>> {
        self.0.0.lock().expect("no holder of this lock panics")
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.claims.files().remove(&self.file);
        self.claims.0.1.notify_all();
    }
}

/// How long the older session may take to sync what it wrote.
const PATIENCE: Duration = Duration::from_secs(30);
