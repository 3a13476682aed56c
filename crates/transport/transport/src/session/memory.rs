//! What a session holds, and what it may hold at most.

use super::early::EARLY_MAX;
use super::retransmit_elsewhere::REROUTED_MAX;
use super::{Session, SessionConfig};
use crate::block::{MAX_BLOCK, cost};
use crate::inflight::{ENTRIES_MAX, ENTRY, Slice};
use crate::path::PathId;
use crate::reassembly::{FLOWS_MAX, Inbox, RUNS_MAX, SLACK};
use crate::repair::{DECODER_MAX, RETAINED_MAX};
use crate::wire::MESSAGE_MAX;
use skyhaul_units::ByteCount;

/// What a flow's state costs at one end, in bytes: its maps' entries with their keys, rounded up.
const FLOW: u64 = 256;
/// A run of places done: two numbers in a map, and whether it was told in another.
const RUN: u64 = 80;
/// The coder keeps an open group beside the closed ones: 16 of 255 datagrams.
const OPEN_GROUPS: usize = 16 * 255;
/// Control bytes read at once beyond what makes a message.
const CONTROL_READ: usize = 64 << 10;

impl Session {
    /// Bytes of blocks, datagrams and book-keeping held now. It is never above
    /// [`SessionConfig::memory_max`].
    pub fn memory(&self) -> ByteCount {
        let paths = self.paths.values().map(|path| {
            let datagrams = path.coder.retained() as u64 * path.payload.unwrap_or(0) as u64;
            let control = path.control_in.len() as u64;
            datagrams + path.decoder.memory() + control + path.inflight.len() as u64 * ENTRY
        });
        let inbox = self.inbox.as_ref().map_or((0, 0, 0), Inbox::counts);
        let (held, flows, runs) = inbox;
        let flows = flows as u64 + self.outbox.backlog.flows.len() as u64;
        let control = (self.control.bytes.len() + self.control.greeting.len() + self.heard) as u64;
        ByteCount::new(
            self.outbox.backlog.flows.held()
                + held
                + self.early.held()
                + self.rerouted.held()
                + flows * FLOW
                + runs as u64 * RUN
                + control
                + paths.sum::<u64>(),
        )
    }
}

impl Session {
    /// What the far end may have under way and undelivered here, as it said; nothing before that.
    pub const fn peer_window(&self) -> ByteCount {
        ByteCount::new(self.peer_window)
    }

    /// What blocks hold of this end's window: those under way, and those that the application has
    /// not released.
    pub fn held(&self) -> ByteCount {
        ByteCount::new(self.inbox.as_ref().map_or(0, |inbox| inbox.counts().0))
    }

    /// This end's window.
    pub const fn receive_window(&self) -> ByteCount {
        self.config.receive_window
    }
}

impl SessionConfig {
    /// What a session with so many paths of this payload holds at most, whatever its far end does:
    ///
    /// ```text
    ///   send_buffer, or one block of 16 MiB if that is more
    /// + receive_window + 64 KiB + 16 MiB of what overtook the greeting + 8,192 slices to go elsewhere * 32 B
    /// + 2 * 65,536 flows * 256 B + 262,144 runs of settled places * 80 B + 2 greetings and the control bytes behind
    /// + 1 MiB that the far end's application said
    /// + paths * (262,144 transmissions * 128 B                          (the path never tells what became of them)
    ///            + 12,240 datagrams to be repaired * payload
    ///            + 16 MiB of datagrams received + 2,048 repair symbols of at most the payload of the far end, here ours
    ///            + 1 MiB + 64 KiB of control bytes)
    /// ```
    ///
    /// Of a path that reports every outcome, the transmissions are what it has under way, and not
    /// the first term.
    pub fn memory_max(&self, paths: usize, payload: usize) -> ByteCount {
        let (paths, payload) = (paths as u64, payload as u64);
        let flows = 2 * FLOWS_MAX as u64 * FLOW + RUNS_MAX as u64 * RUN;
        let control = 2 * MESSAGE_MAX as u64
            + super::outgoing::CONTROL_MAX as u64
            + 64
            + super::HEARD_MAX as u64;
        let coder = (RETAINED_MAX + OPEN_GROUPS) as u64 * payload;
        let decoder = DECODER_MAX + crate::repair::REPAIRS_MAX as u64 * payload;
        let path = (ENTRIES_MAX as u64 + 1) * ENTRY
            + coder
            + decoder
            + (MESSAGE_MAX + CONTROL_READ) as u64;
        ByteCount::new(
            self.send_buffer.as_u64().max(cost(MAX_BLOCK))
                + self.receive_window.as_u64()
                + SLACK
                + EARLY_MAX
                + (REROUTED_MAX * size_of::<(PathId, Slice)>()) as u64
                + flows
                + control
                + paths * path,
        )
    }
}
