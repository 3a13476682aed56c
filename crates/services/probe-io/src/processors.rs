//! What this process gets of the machine's processors.

use skyhaul_net::{Shortage, ThreadTimes};
use skyhaul_probe::why::Lack;

/// Threads and shortage of this process at an instant.
#[derive(Debug, Clone, Default)]
pub struct Processors {
    /// Its threads.
    pub threads: ThreadTimes,
    /// What kept it from running.
    pub shortage: Shortage,
}

impl Processors {
    /// Of this process, now.
    pub fn now() -> Self {
        Self { threads: ThreadTimes::now(), shortage: Shortage::now() }
    }

    /// What the process lacked over the `seconds` since `earlier`; `None` where the system does not
    /// tell.
    pub fn lack_since(&self, earlier: &Self, seconds: f64) -> Option<Lack> {
        Some(Lack {
            ready: self.threads.ready_since(&earlier.threads, seconds)?,
            throttled: self.shortage.throttled_since(&earlier.shortage, seconds),
            stolen: self.shortage.stolen_since(&earlier.shortage),
        })
    }
}
