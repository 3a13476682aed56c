//! What a session holds, and what it may hold at most.

use super::config::SessionConfig;
use super::control::CONTROL_MAX;
use super::early::EARLY_MAX;
use super::events::MESSAGES_MAX;
use super::multipath::Multipath;
use super::path_repair::PathRepair;
use super::receiver::Holdings;
use super::retransmit_elsewhere::ELSEWHERE_BYTES_MAX;
use super::sender::BlockSender;
use crate::block::{MAX_BLOCK, cost};
use crate::inflight::{ENTRIES_MAX, ENTRY};
use crate::reassembly::{FLOWS_MAX, RUNS_MAX, SLACK};
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

impl Multipath {
    /// Bytes of blocks, datagrams and book-keeping held now, without the control stream.
    pub(super) fn memory(&self) -> u64 {
        let paths = self.paths.attached.values().map(|path| {
            let PathRepair { coder, decoder, .. } = &path.repair;
            let datagrams = coder.retained() as u64 * path.payload.unwrap_or(0) as u64;
            let control = path.control_in.len() as u64;
            datagrams + decoder.memory() + control + path.inflight.len() as u64 * ENTRY
        });
        let Holdings { bytes, flows, runs } = self.receiver.holdings();
        let BlockSender { outbox, elsewhere, .. } = &self.sender;
        outbox.backlog.flows.held()
            + bytes
            + self.receiver.early.held()
            + elsewhere.held()
            + (flows + outbox.backlog.flows.len()) as u64 * FLOW
            + runs as u64 * RUN
            + self.events.held() as u64
            + paths.sum::<u64>()
    }
}

impl SessionConfig {
    /// What a session with so many paths of this payload holds at most, whatever its far end does:
    ///
    /// ```text
    ///   send_buffer, or one block of 16 MiB if that is more
    /// + receive_window + 64 KiB
    /// + 16 MiB of datagrams that overtook the hello
    /// + 8,192 slices that go on another path * 32 B
    /// + 2 * 65,536 flows * 256 B
    /// + 262,144 runs of settled places * 80 B
    /// + 2 hellos, and the control bytes behind them
    /// + 1 MiB of the far end's application messages
    /// + paths * (262,144 transmissions * 128 B    (the path never tells what became of them)
    ///            + 12,240 datagrams to be repaired * payload
    ///            + 16 MiB of datagrams received
    ///            + 2,048 repair symbols of at most the far end's payload, here ours
    ///            + 1 MiB + 64 KiB of control bytes)
    /// ```
    ///
    /// Of a path that reports every outcome, the transmissions are what it has under way, and not
    /// the first term.
    pub fn memory_max(&self, paths: usize, payload: usize) -> ByteCount {
        let (paths, payload) = (paths as u64, payload as u64);
        let flows = 2 * FLOWS_MAX as u64 * FLOW + RUNS_MAX as u64 * RUN;
        let control = 2 * MESSAGE_MAX as u64 + CONTROL_MAX as u64 + 64 + MESSAGES_MAX as u64;
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
                + ELSEWHERE_BYTES_MAX
                + flows
                + control
                + paths * path,
        )
    }
}
