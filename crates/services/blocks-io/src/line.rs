//! What carries the blocks: the sessions of a node.

use skyhaul_blocks::HintRequest;
use skyhaul_channels::FlowRange;
use skyhaul_channels_io::{
    ChannelPhase, ChannelService, IncomingBlock, PolledBlock, PolledChannel,
};
use skyhaul_transport::{Outcome, Received};
use skyhaul_units::FlowId;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

/// The sessions of a node with some of its peers.
pub trait BlockLine: Send {
    /// The names of the peers, as far as it is known.
    fn peers(&self) -> Vec<String>;

    /// The classes of the sessions; the first one is the default.
    fn classes(&self) -> Vec<String>;

    /// Asks for a session with a program at a peer. Its blocks' class is a place in `classes`.
    fn call(&self, peer: &str, classes: Vec<String>, program: &str) -> Box<dyn LineChannel>;

    /// Takes sessions for a program from now on, whose blocks are of `classes`.
    fn listen(&self, program: &str, classes: Vec<String>);

    /// Takes them no more.
    fn listen_no_more(&self, program: &str);

    /// Takes what a program says of a path to a peer. `program` names it for people, the same
    /// after it has come back.
    ///
    /// # Errors
    /// A sentence: the hint cannot be, or there is no such path.
    fn hint(&self, peer: &str, program: &str, hint: &HintRequest) -> Result<(), String>;

    /// The next session that a far program has asked for, and the program that it is for. Wakes
    /// `waker` once when there may be one, where there is none now.
    fn poll_called(&self, waker: &Waker) -> Option<(Box<dyn LineChannel>, String)>;
}

/// One session with a far program.
pub trait LineChannel: Send {
    /// What is new. Wakes `waker` once when there is more.
    fn poll(&self, waker: &Waker, outcomes: &mut Vec<(u64, Outcome)>) -> ChannelPhase;

    /// Blocks that it takes now.
    fn room(&self) -> usize;

    /// Hands over blocks that there is room for, with flows from 0.
    fn hand_over(&self, blocks: Vec<PolledBlock>);

    /// The next block that has arrived.
    fn recv(&self) -> Option<ArrivedLineBlock>;
}

/// A block that has arrived. It counts against a window until it is dropped.
#[derive(Debug)]
pub struct ArrivedLineBlock {
    /// The block, with a flow from 0.
    pub received: Received,
    /// Holds its part of the window.
    pub window: Option<IncomingBlock>,
}

/// The sessions of a node's station or centre.
#[derive(Debug)]
pub struct SessionsLine {
    /// Where channels are opened.
    pub service: ChannelService,
    /// What is known of the sessions; the owner changes it as the configuration does.
    pub names: Arc<Mutex<LineNames>>,
    /// Takes hints for the paths.
    pub hints: HintTaker,
}

/// Takes what a program says of a path: of the peer, the program and the hint.
pub struct HintTaker(pub Box<TakeHint>);

/// See [`BlockLine::hint`].
pub type TakeHint = dyn Fn(&str, &str, &HintRequest) -> Result<(), String> + Send;

impl core::fmt::Debug for HintTaker {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("HintTaker").finish_non_exhaustive()
    }
}

/// What is known of sessions before they are there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LineNames {
    /// The names of the peers.
    pub peers: Vec<String>,
    /// The classes; the first one is the default.
    pub classes: Vec<String>,
}

const FIRST: FlowId = FlowRange::Blocks.first();

impl SessionsLine {
    fn names(&self) -> MutexGuard<'_, LineNames> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BlockLine for SessionsLine {
    fn peers(&self) -> Vec<String> {
        self.names().peers.clone()
    }

    fn classes(&self) -> Vec<String> {
        self.names().classes.clone()
    }

    fn call(&self, peer: &str, classes: Vec<String>, program: &str) -> Box<dyn LineChannel> {
        Box::new(self.service.ask(peer, classes, program))
    }

    fn listen(&self, program: &str, classes: Vec<String>) {
        self.service.listen(program, classes);
    }

    fn listen_no_more(&self, program: &str) {
        self.service.listen_no_more(program);
    }

    fn hint(&self, peer: &str, program: &str, hint: &HintRequest) -> Result<(), String> {
        (self.hints.0)(peer, program, hint)
    }

    fn poll_called(&self, waker: &Waker) -> Option<(Box<dyn LineChannel>, String)> {
        let (channel, program) = self.service.poll_asked(waker)?;
        Some((Box::new(channel), program))
    }
}

impl LineChannel for PolledChannel {
    fn poll(&self, waker: &Waker, outcomes: &mut Vec<(u64, Outcome)>) -> ChannelPhase {
        Self::poll(self, waker, outcomes)
    }

    fn room(&self) -> usize {
        Self::room(self)
    }

    fn hand_over(&self, mut blocks: Vec<PolledBlock>) {
        for each in &mut blocks {
            each.block.flow.0 += FIRST.0;
        }
        Self::hand_over(self, blocks);
    }

    fn recv(&self) -> Option<ArrivedLineBlock> {
        let window = Self::recv(self)?;
        let mut received = Received::clone(&window);
        received.id.flow.0 -= FIRST.0;
        Some(ArrivedLineBlock { received, window: Some(window) })
    }
}
