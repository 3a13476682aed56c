//! `[node]`: the identity of a node.

use crate::name::Name;
use crate::section::section;
use std::path::{Path, PathBuf};

section! {
    /// The identity of this node and the folder of its durable state.
    "[node]" Node {
        /// The node's name in status output, in logs and in folders of the other end.
        name: Name => required,
        /// The file of its private key. `skyhaul keygen` makes it.
        key: PathBuf => required,
        /// The folder of its durable state. The node creates it if it does not exist.
        state: PathBuf => required,
        /// The local socket that `skyhaul status` queries. Default: `status.sock` in the state
        /// folder.
        status_socket: PathBuf => optional,
    }
}

impl Node {
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
