//! How large packets on a path are, where they are smaller than configured.

use super::Paths;
use skyhaul_transport::PathId;

impl Paths {
    /// A path carries symbol datagrams of this size when it comes up: those of the configured
    /// packets.
    pub fn up(&mut self, path: PathId, payload: usize) {
        if let Some(planned) = self.planned.iter_mut().find(|planned| planned.path == Some(path)) {
            planned.full = payload;
        }
    }

    /// The size of the IP packets of a path that carries symbol datagrams of `payload` bytes; none
    /// where they are as large as configured.
    pub fn packet(&self, path: PathId, payload: usize) -> Option<u64> {
        let planned = self.planned.iter().find(|planned| planned.path == Some(path))?;
        let less = planned.less(payload);
        (less > 0).then(|| self.mtu().saturating_sub(less))
    }

    /// The configured size of IP packets.
    pub fn mtu(&self) -> u64 {
        self.opener.line.mtu.size().as_u64()
    }

    /// What the paths are called.
    pub fn titles(&self) -> impl Iterator<Item = &str> {
        self.planned.iter().map(|planned| planned.config.title())
    }
}

impl super::Planned {
    /// By how much datagrams of `payload` bytes are smaller than they were when the path came up.
    pub(super) fn less(&self, payload: usize) -> u64 {
        self.full.saturating_sub(payload) as u64
    }
}
