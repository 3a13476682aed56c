//! `[node]`: the identity of a node.

use crate::name::Name;
use crate::section::section;
use skyhaul_units::Duration;
use std::path::{Path, PathBuf};

section! {
    /// The identity of this node and the folder of its durable state.
    "[node]" Node checked by Node::check {
        /// The node's name in status output, in logs and in folders of the other end.
        name: Name => required,
        /// The file of its private key. `skyhaul keygen` makes it.
        key: PathBuf => required,
        /// The folder of its durable state. The node creates it if it does not exist.
        state: PathBuf => required,
        /// The local socket that `skyhaul status` queries. Default: `status.sock` in the state
        /// folder.
        status_socket: PathBuf => optional,
        /// The node that this one stands by for, by its name at the destinations: both capture the
        /// same feed. This one keeps what it captures, and sends only what a destination does not
        /// have from the other one, when that is silent or lacks frames. Each destination decides
        /// for itself. Default: it sends everything.
        standby_of: Name => optional,
        /// The other node is silent for a destination when no frames have come there for so long.
        /// With the default a standby sends within 2 s over lines of up to 660 ms round trip.
        standby_after: Duration => "1250 ms",
        /// It is an alarm when the key of this node is older: `skyhaul key rotate` changes it. It
        /// works on, however old it is. `0 s`: never.
        key_old_after: Duration => "730 d",
    }
}

impl Node {
    fn check(&self) -> Result<(), String> {
        let fits = SHORTEST <= self.standby_after && self.standby_after <= LONGEST;
        fits.then_some(()).ok_or_else(|| {
            format!(
                "a standby cannot wait for {}; write a standby_after from {SHORTEST} to {LONGEST}",
                self.standby_after
            )
        })
    }

    /// A key that is older is an alarm; none where that is none.
    pub fn key_old_after(&self) -> Option<Duration> {
        (self.key_old_after > Duration::ZERO).then_some(self.key_old_after)
    }

    /// Where `skyhaul status` asks this node.
    pub fn status_socket(&self) -> PathBuf {
        self.status_socket.clone().unwrap_or_else(|| self.state.join("status.sock"))
    }

    pub(super) fn resolve(&mut self, base: &Path) {
        crate::from_base(base, &mut self.key);
        crate::from_base(base, &mut self.state);
        if let Some(socket) = &mut self.status_socket {
            crate::from_base(base, socket);
        }
    }
}

/// Two reports of a centre.
const SHORTEST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(600);
