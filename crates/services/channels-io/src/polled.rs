//! A channel as a thread sees it that serves many: without futures.

use crate::channel::IncomingBlock;
use crate::shared_session::ChannelService;
use crate::state::{
    ChannelId, ChannelState, FarNode, OUTGOING_MAX, OpenRequest, OutgoingBlock, POLLING, Shared,
};
use bytes::Bytes;
use skyhaul_quic::Fingerprint;
use skyhaul_transport::{Block, Outcome};
use skyhaul_units::Instant;
use std::sync::Arc;
use std::task::Waker;

/// A channel whose owner asks for what is new. Dropping it closes it once the blocks handed over
/// have an outcome.
#[derive(Debug)]
pub struct PolledChannel {
    shared: Arc<Shared>,
    id: ChannelId,
}

/// A block to hand over.
#[derive(Debug)]
pub struct PolledBlock {
    /// The owner's number of it: its outcome comes under this.
    pub number: u64,
    /// The block. Its flow is one of the channel's own, from 0, and its class a place in the
    /// channel's classes.
    pub block: Block,
    /// When its deadline passes, where it has one.
    pub until: Option<Instant>,
    /// The number of a block that it depends on.
    pub after: Option<u64>,
}

/// Where a channel is in its life.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChannelPhase {
    /// Its session, or the far end's answer, is waited for.
    Opening,
    /// It carries blocks.
    Open {
        /// The far node's name.
        peer: String,
        /// Its key.
        key: Option<Fingerprint>,
    },
    /// It has ended, for this reason. What arrived may still be taken.
    Ended(String),
}

impl ChannelService {
    /// Asks for a channel over the session with the node of this name, as soon as that is open,
    /// and for what `request` says, which the far end has to listen for. `classes` are those that
    /// the blocks' class is a place in.
    pub fn ask(&self, node: &str, classes: Vec<String>, request: &str) -> PolledChannel {
        let to = FarNode::Named(node.to_owned());
        let request = Bytes::copy_from_slice(request.as_bytes());
        let id = self.shared().open(OpenRequest { to, classes, request });
        if let Some(channel) = self.shared().state().channels.get_mut(&id) {
            channel.terms.outcomes = Some(Vec::new());
        }
        PolledChannel { shared: Arc::clone(self.shared()), id }
    }

    /// Accepts what far ends ask for by this name from now on. `classes` are as with
    /// [`ChannelService::ask`].
    pub fn listen(&self, request: &str, classes: Vec<String>) {
        let request = Bytes::copy_from_slice(request.as_bytes());
        self.shared().state().listens.insert(request, classes);
    }

    /// Accepts it no more.
    pub fn listen_no_more(&self, request: &str) {
        self.shared().state().listens.remove(request.as_bytes());
    }

    /// The next channel that a far end has asked for, with its request; `waker` is woken once when
    /// there may be one, where there is none now.
    pub fn poll_asked(&self, waker: &Waker) -> Option<(PolledChannel, String)> {
        let mut state = self.shared().state();
        let Some(id) = state.accepted.pop_front() else {
            state.accepting.insert(POLLING, waker.clone());
            return None;
        };
        let request = state.channels.get(&id).map(|channel| channel.terms.request.clone());
        let request = String::from_utf8_lossy(&request.unwrap_or_default()).into_owned();
        drop(state);
        Some((PolledChannel { shared: Arc::clone(self.shared()), id }, request))
    }
}

impl PolledChannel {
    /// What is new: outcomes go to `outcomes`. `waker` is woken once when there is more.
    pub fn poll(&self, waker: &Waker, outcomes: &mut Vec<(u64, Outcome)>) -> ChannelPhase {
        let mut state = self.shared.state();
        let Some(channel) = state.channels.get_mut(&self.id) else {
            return ChannelPhase::Ended("the channel has ended".to_owned());
        };
        outcomes.extend(channel.terms.outcomes.iter_mut().flat_map(core::mem::take));
        channel.waiting.insert(POLLING, waker.clone());
        match (&channel.closed, channel.open) {
            (Some(reason), _) => ChannelPhase::Ended(reason.clone()),
            (None, true) => {
                ChannelPhase::Open { peer: channel.peer_name.clone(), key: channel.peer_key }
            }
            (None, false) => ChannelPhase::Opening,
        }
    }

    /// Blocks that it takes now.
    pub fn room(&self) -> usize {
        self.shared.see(self.id, |channel| match channel.open && channel.closed.is_none() {
            true => room(channel),
            false => 0,
        })
    }

    /// Hands over blocks that there is [`PolledChannel::room`] for.
    pub fn hand_over(&self, blocks: impl IntoIterator<Item = PolledBlock>) {
        let mut state = self.shared.state();
        let Some(channel) = state.channels.get_mut(&self.id) else { return };
        for PolledBlock { number: ticket, block, until, after } in blocks {
            channel.outgoing.push_back(OutgoingBlock { ticket, block, until, after });
        }
        drop(state);
        self.shared.wake();
    }

    /// The next block that has arrived.
    pub fn recv(&self) -> Option<IncomingBlock> {
        let block = self.shared.state().channels.get_mut(&self.id)?.take()?;
        Some(IncomingBlock::new(block, Arc::clone(&self.shared), self.id))
    }
}

/// Blocks on the way to the session are few and small, so that they are judged late, and all of
/// them together are no more than the largest block and a few more.
fn room(channel: &ChannelState) -> usize {
    let waiting: usize = channel.outgoing.iter().map(|next| next.block.bytes.len()).sum();
    if waiting > WAITING_MAX { 0 } else { OUTGOING_MAX.saturating_sub(channel.outgoing.len()) }
}

/// Bytes on the way to the session above which no further block is taken: 40 ms of 100 Mbit/s.
const WAITING_MAX: usize = 512 << 10;

impl Drop for PolledChannel {
    fn drop(&mut self) {
        self.shared.let_go(self.id);
    }
}
