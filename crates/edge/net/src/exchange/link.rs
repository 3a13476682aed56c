//! A session as a program sees it.

use super::state::{Came, LinkId, Shared, Ticket};
use core::pin::Pin;
use skyhaul_quic::Fingerprint;
use skyhaul_transport::{Block, BlockId, Outcome, PathId, PathStatus, Received, Stats};
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

/// A session with another node. Dropping it closes it once the blocks handed over have met their
/// fate.
#[derive(Debug)]
pub struct AppChannel {
    shared: Arc<Shared>,
    id: LinkId,
}

/// Why a link cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    /// It has ended, or did not begin.
    #[error("the channel is closed: {0}")]
    Closed(String),
    /// The session does not take the block.
    #[error("{0}")]
    Block(String),
}

/// A block that was handed over. Resolves to what became of it; `None` where the link ended first.
/// It may be dropped: the block is sent nevertheless.
#[derive(Debug)]
#[must_use = "dropping it is fine where the block's fate does not matter; say so with `drop`"]
pub struct Sent {
    shared: Arc<Shared>,
    link: LinkId,
    ticket: Ticket,
}

/// A block that arrived. It counts against the receive window until it is dropped.
#[derive(Debug)]
pub struct IncomingBlock {
    came: Came,
    shared: Arc<Shared>,
    link: LinkId,
}

impl AppChannel {
    pub(super) const fn new(shared: Arc<Shared>, id: LinkId) -> Self {
        Self { shared, id }
    }

    /// Hands over a block, once there is room for it.
    ///
    /// # Errors
    /// [`LinkError::Closed`] when the link has ended. A block that the session does not take
    /// (empty, too long, expendable without deadline) shows as [`Outcome::Cancelled`].
    pub async fn send(&self, block: Block) -> Result<Sent, LinkError> {
        let mut block = Some(block);
        let waiter = self.shared.waiter(Some(self.id));
        let ticket = poll_fn(|context| waiter.poll_send(&mut block, context)).await?;
        drop(waiter);
        Ok(Sent { shared: Arc::clone(&self.shared), link: self.id, ticket })
    }

    /// The next block that arrives; `None` once the link has ended and everything was taken.
    pub async fn recv(&self) -> Option<IncomingBlock> {
        let waiter = self.shared.waiter(Some(self.id));
        let came = poll_fn(|context| waiter.poll_recv(context)).await?;
        Some(IncomingBlock { came, shared: Arc::clone(&self.shared), link: self.id })
    }

    /// The session's counters, as of the last time it was served.
    pub fn stats(&self) -> Stats {
        self.shared.see(self.id, |link| link.stats)
    }

    /// Its paths and how they do, as of the last time it was served.
    pub fn paths(&self) -> Vec<(PathId, PathStatus)> {
        self.shared.see(self.id, |link| link.paths.clone())
    }

    /// Paths that were called for and did not come up, with the reason: the session goes on without
    /// them.
    pub fn refused_paths(&self) -> Vec<String> {
        self.shared.see(self.id, |link| link.refused.clone())
    }

    /// The far end's name, as it says; empty before it said so.
    pub fn peer_name(&self) -> String {
        self.shared.see(self.id, |link| link.peer.0.clone())
    }

    /// The far end's key, as it proved.
    pub fn peer(&self) -> Option<Fingerprint> {
        self.shared.see(self.id, |link| link.peer.1)
    }

    /// Why it has ended; `None` while it stands.
    pub fn closed(&self) -> Option<String> {
        self.shared.see(self.id, |link| link.closed.clone())
    }
}

impl Sent {
    /// The session's name for the block, for others that depend on it: it is known once the session
    /// has taken it. `None` where it did not.
    pub async fn name(&self) -> Option<BlockId> {
        let waiter = self.shared.fate_waiter(self.link, self.ticket);
        poll_fn(|context| waiter.poll_name(context)).await
    }

    /// What became of the block, as this itself resolves to, for several that wait.
    pub async fn outcome(&self) -> Option<Outcome> {
        let waiter = self.shared.fate_waiter(self.link, self.ticket);
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
        self.shared.poll_fate((self.link, self.ticket), context)
    }
}

impl Drop for Sent {
    fn drop(&mut self) {
        self.shared.forget_fate(self.link, self.ticket);
    }
}

impl core::ops::Deref for IncomingBlock {
    type Target = Received;

    fn deref(&self) -> &Received {
        &self.came.received
    }
}

impl Drop for IncomingBlock {
    fn drop(&mut self) {
        if self.came.is_counted {
            self.shared.release(self.link, self.came.received.bytes.len());
        }
    }
}
