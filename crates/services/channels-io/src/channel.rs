//! A channel as a program sees it.

use crate::channel_error::AppChannelError;
use crate::session_bell::SessionBell;
use crate::state::{ArrivedBlock, ChannelId, ChannelState, SentKey, Shared};
use core::pin::Pin;
use skyhaul_quic::Fingerprint;
use skyhaul_transport::{Block, BlockId, ClassTree, Outcome, PathId, PathStatus, Received, Stats};
use std::future::poll_fn;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

/// A channel to another node, over a session of its own or a shared one. Dropping it closes it once
/// the blocks handed over have an outcome.
#[derive(Debug)]
pub struct AppChannel {
    shared: Arc<Shared>,
    id: ChannelId,
    /// Made when the program asks for a descriptor.
    bell: OnceLock<Arc<SessionBell>>,
}

/// A block that was handed over. Resolves to its outcome; `None` if the channel ended first. It may
/// be dropped: the block is sent nevertheless.
#[derive(Debug)]
#[must_use = "dropping it is fine if the block's outcome does not matter; say so with `drop`"]
pub struct Sent {
    shared: Arc<Shared>,
    key: SentKey,
}

/// A block that arrived. It counts against the receive window until it is dropped.
#[derive(Debug)]
pub struct IncomingBlock {
    block: ArrivedBlock,
    shared: Arc<Shared>,
    channel: ChannelId,
}

impl AppChannel {
    pub(crate) const fn new(shared: Arc<Shared>, id: ChannelId) -> Self {
        Self { shared, id, bell: OnceLock::new() }
    }

    pub(crate) const fn id(&self) -> ChannelId {
        self.id
    }

    pub(crate) const fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// The classes of blocks in a session of a node's block service: the node has given them. None
    /// in a session of this process, whose classes its node was started with.
    pub fn classes(&self) -> Option<ClassTree> {
        self.shared.see(self.id, |channel| channel.terms.classes.clone())
    }

    /// Hands over a block, as soon as there is room for it.
    ///
    /// # Errors
    /// [`AppChannelError::Closed`] when the channel has ended. A block that the session does not take
    /// (empty, too long, expendable without deadline) has the outcome [`Outcome::Cancelled`].
    pub async fn send(&self, block: Block) -> Result<Sent, AppChannelError> {
        let mut block = Some(block);
        let waiter = self.shared.waiter(Some(self.id));
        let ticket = poll_fn(|context| waiter.poll_send(&mut block, context)).await?;
        drop(waiter);
        let key = SentKey { channel: self.id, ticket };
        Ok(Sent { shared: Arc::clone(&self.shared), key })
    }

    /// The next block that arrives; `None` once the channel has ended and everything was taken.
    pub async fn recv(&self) -> Option<IncomingBlock> {
        self.listen_again();
        let waiter = self.shared.waiter(Some(self.id));
        let block = poll_fn(|context| waiter.poll_recv(context)).await?;
        self.ring_for_more();
        Some(IncomingBlock { block, shared: Arc::clone(&self.shared), channel: self.id })
    }

    /// A descriptor for `poll`: readable when a block has arrived, a block's outcome is known, or
    /// the channel has ended. [`AppChannel::recv`] makes it unreadable; where there are more blocks
    /// it is readable again at once.
    ///
    /// # Errors
    /// The system has no more file descriptors.
    pub fn descriptor(&self) -> io::Result<BorrowedFd<'_>> {
        if self.bell.get().is_none() {
            let _ = self.bell.set(Arc::new(SessionBell::new()?));
            self.listen_again();
            // What has happened before nobody has told.
            self.bell.get().into_iter().for_each(|bell| bell.ring());
        }
        let bell = self.bell.get().ok_or_else(|| io::Error::other("no descriptor"))?;
        Ok(bell.fd())
    }

    /// Waits for news again, from now on.
    fn listen_again(&self) {
        if let Some(bell) = self.bell.get() {
            bell.still();
            let waker = Arc::clone(bell).into();
            self.shared.watch(self.id, waker);
        }
    }

    fn ring_for_more(&self) {
        if let Some(bell) = self.bell.get()
            && self.shared.see(self.id, ChannelState::has_arrived)
        {
            bell.ring();
        }
    }

    /// The channel's counters, as of the last time it was served.
    pub fn stats(&self) -> Stats {
        self.shared.see(self.id, |channel| channel.stats)
    }

    /// The session's paths and their state, as of the last time it was served.
    pub fn paths(&self) -> Vec<(PathId, PathStatus)> {
        self.shared.see(self.id, |channel| channel.paths.clone())
    }

    /// Paths that were asked for and could not be made, with the reason: the session goes on
    /// without them.
    pub fn refused_paths(&self) -> Vec<String> {
        self.shared.see(self.id, |channel| channel.refused.clone())
    }

    /// The name that the far end gives itself; empty before the handshake.
    pub fn peer_name(&self) -> String {
        self.shared.see(self.id, |channel| channel.peer_name.clone())
    }

    /// The far end's key, which it has proved to have.
    pub fn peer(&self) -> Option<Fingerprint> {
        self.shared.see(self.id, |channel| channel.peer_key)
    }

    /// Why it has ended; `None` while it is open.
    pub fn closed(&self) -> Option<String> {
        self.shared.see(self.id, |channel| channel.closed.clone())
    }
}

impl Sent {
    /// The session's name for the block, for others that depend on it. It is known once the session
    /// has taken the block; `None` if it did not.
    pub async fn name(&self) -> Option<BlockId> {
        let waiter = self.shared.sent_waiter(self.key);
        poll_fn(|context| waiter.poll_name(context)).await
    }

    /// The outcome of the block, as this itself resolves to; several may wait for it.
    pub async fn outcome(&self) -> Option<Outcome> {
        let waiter = self.shared.sent_waiter(self.key);
        poll_fn(|context| waiter.poll_outcome(context)).await
    }
}

impl Drop for AppChannel {
    fn drop(&mut self) {
        self.shared.let_go(self.id);
    }
}

impl Future for Sent {
    type Output = Option<Outcome>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.shared.poll_outcome(self.key, context)
    }
}

impl Drop for Sent {
    fn drop(&mut self) {
        self.shared.forget_sent(self.key);
    }
}

impl IncomingBlock {
    pub(crate) const fn new(block: ArrivedBlock, shared: Arc<Shared>, channel: ChannelId) -> Self {
        Self { block, shared, channel }
    }
}

impl core::ops::Deref for IncomingBlock {
    type Target = Received;

    fn deref(&self) -> &Received {
        &self.block.received
    }
}

impl Drop for IncomingBlock {
    fn drop(&mut self) {
        if self.block.is_counted {
            self.shared.release(self.channel, self.block.received.bytes.len());
        }
    }
}
