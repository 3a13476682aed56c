//! What one session says about keys.

use super::NodeKeys;
use bytes::Bytes;
use skyhaul_identity::{Fingerprint, KeyStage, KeyTalk};
use skyhaul_net::SessionManager;
use skyhaul_sessions::{SessionId, follow_key};
use std::collections::VecDeque;

/// What was said in a session with another node.
#[derive(Debug)]
pub struct SessionKeys {
    /// The key that the other node has in it.
    shown: Fingerprint,
    /// What was said of the own key.
    told: Option<KeyTalk>,
    /// Replies that wait for room.
    replies: VecDeque<KeyTalk>,
    /// The changes of keys that the session knows.
    seen: Option<u64>,
    /// Messages that this node had to keep.
    taken: u32,
}

/// Messages about keys in one session: a node changes its key a few times in its life, and each
/// costs a write to the disk.
const TAKEN_MAX: u32 = 64;
/// Replies that wait.
const REPLIES_MAX: usize = 8;

impl SessionKeys {
    /// Of a session that begins with a node that shows this key.
    pub const fn new(shown: Fingerprint) -> Self {
        Self { shown, told: None, replies: VecDeque::new(), seen: None, taken: 0 }
    }

    /// The key that the other node has in the session.
    pub const fn shown(&self) -> Fingerprint {
        self.shown
    }

    /// Takes a message about keys from the node `peer`.
    pub fn received(&mut self, keys: &NodeKeys, peer: &str, body: &[u8]) {
        if self.taken >= TAKEN_MAX || self.replies.len() >= REPLIES_MAX {
            return tracing::debug!(peer, "too many messages about keys in one session");
        }
        self.taken += 1;
        let read = KeyTalk::decode(body).map_err(|error| error.to_string());
        let taken = read
            .and_then(|talk| keys.take(peer, self.shown, &talk).map_err(|error| error.to_string()));
        match taken {
            Ok(reply) => self.replies.extend(reply),
            Err(error) => tracing::warn!(peer, "a message about its key is not taken: {error}"),
        }
    }

    /// Says what is to be said, once the session is open, and has further paths follow the key of
    /// the other node.
    pub fn work(&mut self, keys: &NodeKeys, manager: &mut SessionManager, id: SessionId) {
        let changes = keys.changes();
        if self.seen == Some(changes) && self.replies.is_empty() {
            return;
        }
        let Some(session) = manager.session(id).filter(|session| session.is_open()) else { return };
        let control = session.control_mut();
        while let Some(reply) = self.replies.front() {
            if control.tell(Bytes::from(reply.encode())).is_err() {
                return;
            }
            self.replies.pop_front();
        }
        let announcement = keys.announcement();
        if let Some(talk) = announcement.filter(|talk| self.told != Some(*talk)) {
            if control.tell(Bytes::from(talk.encode())).is_err() {
                return;
            }
            self.told = announcement;
        }
        self.seen = Some(changes);
        let (shown, other) = match keys.next_of(self.shown) {
            None => (self.shown, None),
            Some(next) if next.stage == KeyStage::Staged => (self.shown, Some(next.to)),
            Some(next) => (next.to, Some(self.shown)),
        };
        follow_key(manager, id, shown, other);
    }
}
