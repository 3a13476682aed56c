//! Channels whose blocks something else than a session of this process carries.
//!
//! A program has an [`AppChannel`], as over a session of its own. What carries its blocks, such as
//! a connection to the block service of a node on this host, has the [`CarriedChannel`].

use crate::channel::AppChannel;
use crate::channel_error::AppChannelError;
use crate::hint::{HintError, OwnHint};
use crate::state::{ArrivedBlock, ChannelId, OutgoingBlock, Shared};
use skyhaul_net::Waker;
use skyhaul_quic::Fingerprint;
use skyhaul_transport::{Block, BlockId, ClassTree, Outcome, PathId, Received};
use std::future::poll_fn;
use std::sync::Arc;

/// The channels of one carrier. Dropping it ends them.
#[derive(Debug)]
pub struct CarriedChannels(Arc<Shared>);

/// The carrier's side of a channel.
#[derive(Debug)]
pub struct CarriedChannel {
    shared: Arc<Shared>,
    id: ChannelId,
    /// A far program has opened it.
    is_arrived: bool,
}

impl CarriedChannels {
    /// No channels yet. `waker` is of the thread that carries blocks: it is woken when a program
    /// has done something.
    pub fn new(waker: Waker) -> Self {
        Self(Arc::new(Shared::new(waker)))
    }

    /// A channel that is about to be opened, for the program and for the carrier.
    pub fn begin(&self) -> (AppChannel, CarriedChannel) {
        let id = self.0.state().add();
        let carried = CarriedChannel { shared: Arc::clone(&self.0), id, is_arrived: false };
        (AppChannel::new(Arc::clone(&self.0), id), carried)
    }

    /// Waits until a channel that was begun is open.
    ///
    /// # Errors
    /// It has ended instead.
    pub async fn opened(&self, channel: &AppChannel) -> Result<(), AppChannelError> {
        let waiter = self.0.waiter(Some(channel.id()));
        poll_fn(|context| waiter.poll_open(context)).await
    }

    /// A channel that a far program has opened, for [`CarriedChannels::accept`].
    pub fn arrived(&self) -> CarriedChannel {
        let id = self.0.state().add();
        CarriedChannel { shared: Arc::clone(&self.0), id, is_arrived: true }
    }

    /// The next channel that a far program has opened; `None` once the carrier has stopped.
    pub async fn accept(&self) -> Option<AppChannel> {
        let waiter = self.0.waiter(None);
        let id = poll_fn(|context| waiter.poll_accept(context)).await?;
        Some(AppChannel::new(Arc::clone(&self.0), id))
    }

    /// The carrier has stopped: every channel ends.
    pub fn stop(&self, reason: &str) {
        self.0.state().stop(reason);
    }

    /// No further channel arrives: [`CarriedChannels::accept`] gives out none any more.
    pub fn stop_accepting(&self) {
        let mut state = self.0.state();
        state.stopped = true;
        state.wake_accepting();
    }

    /// Forgets channels that are over at both sides.
    pub fn tidy(&self) {
        self.0.state().channels.retain(|_, channel| !channel.is_over());
    }
}

impl Drop for CarriedChannels {
    fn drop(&mut self) {
        self.stop("the carrier of this channel has stopped");
    }
}

impl CarriedChannel {
    /// It carries blocks from now on.
    pub fn open(&self, peer: &str, key: Fingerprint, classes: Option<ClassTree>) {
        let mut state = self.shared.state();
        if let Some(channel) = state.channels.get_mut(&self.id) {
            channel.open = true;
            channel.peer_name = peer.to_owned();
            channel.peer_key = Some(key);
            channel.terms.classes = classes;
            channel.wake();
        }
    }

    /// The program may accept it from now on, if a far program has opened it.
    pub fn offer(&self) {
        if self.is_arrived {
            let mut state = self.shared.state();
            state.accepted.push_back(self.id);
            state.wake_accepting();
        }
    }

    /// It has ended.
    pub fn close(&self, reason: &str) {
        if let Some(channel) = self.shared.state().channels.get_mut(&self.id) {
            channel.close(reason.to_owned());
        }
    }

    /// The next block that the program has handed over, with a number of its own.
    pub fn next_block(&self) -> Option<(u64, Block)> {
        let mut state = self.shared.state();
        let channel = state.channels.get_mut(&self.id)?;
        let OutgoingBlock { ticket, block, .. } = channel.outgoing.pop_front()?;
        channel.stats.sent.blocks_taken += 1;
        channel.wake();
        Some((ticket, block))
    }

    /// What the program says next of a path, with a number for the answer.
    pub fn next_hint(&self) -> Option<(u64, PathId, OwnHint)> {
        self.shared.state().channels.get_mut(&self.id)?.terms.hints.take_next()
    }

    /// The answer to a hint.
    pub fn hinted(&self, number: u64, answer: Result<(), HintError>) {
        if let Some(channel) = self.shared.state().channels.get_mut(&self.id) {
            channel.hinted(number, answer);
        }
    }

    /// The name by which others depend on a block.
    pub fn name(&self, number: u64, name: BlockId) {
        if let Some(channel) = self.shared.state().channels.get_mut(&self.id) {
            channel.named(number, name);
        }
    }

    /// The outcome of a block is known.
    pub fn settle(&self, number: u64, len: usize, outcome: Outcome) {
        if let Some(channel) = self.shared.state().channels.get_mut(&self.id) {
            let sent = &mut channel.stats.sent;
            match outcome {
                Outcome::Delivered | Outcome::Sent => {
                    sent.blocks_reported += 1;
                    sent.bytes_reported += len as u64;
                }
                Outcome::Expired => sent.blocks_given_up += 1,
                Outcome::Cancelled => sent.blocks_cancelled += 1,
            }
            channel.settle(number, outcome);
        }
    }

    /// A block has arrived for the program.
    pub fn arrive(&self, received: Received) {
        if let Some(channel) = self.shared.state().channels.get_mut(&self.id) {
            let counts = &mut channel.stats.received;
            counts.bytes_delivered += received.bytes.len() as u64;
            match received.timing.repaired {
                true => counts.blocks_repaired += 1,
                false => counts.blocks_delivered += 1,
            }
            channel.arrived(ArrivedBlock { received, is_counted: true });
        }
    }

    /// The lengths of blocks that the program is done with since the last call.
    pub fn taken(&self) -> Vec<usize> {
        let mut state = self.shared.state();
        let channel = state.channels.get_mut(&self.id);
        channel.map(|channel| core::mem::take(&mut channel.released)).unwrap_or_default()
    }

    /// Whether the program has dropped the channel, and has handed over nothing more to send.
    pub fn is_done_with(&self) -> bool {
        self.shared
            .state()
            .channels
            .get(&self.id)
            .is_none_or(|channel| channel.is_done_with() || channel.is_over())
    }
}

impl Drop for CarriedChannel {
    fn drop(&mut self) {
        self.close("it is not carried any more");
    }
}
