//! The keys that the centre may show, and what is said about keys in the session with it.

use super::connection::Ending;
use super::{Served, Uplink};
use crate::keys::{NodeKeys, SessionKeys};
use skyhaul_quic::Fingerprint;
use skyhaul_units::Instant;
use std::collections::VecDeque;
use std::sync::Arc;

/// The keys of the centre: each that is accepted is expected in turn, until one is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CentreKeys {
    /// Those of the configuration.
    listed: Vec<Fingerprint>,
    /// Those that are accepted in their stead. None where all are revoked.
    accepted: VecDeque<Fingerprint>,
}

impl CentreKeys {
    /// As the configuration lists them: at least one.
    pub fn new(listed: impl Iterator<Item = Fingerprint>) -> Self {
        let listed: Vec<Fingerprint> = listed.collect();
        Self { accepted: listed.iter().copied().collect(), listed }
    }

    /// The one that is expected; none where all are revoked.
    pub fn current(&self) -> Option<Fingerprint> {
        self.accepted.front().copied()
    }

    /// The key of the configuration that one of a session stands for.
    pub fn listed(&self, shown: Fingerprint, keys: &NodeKeys) -> Fingerprint {
        let mut listed = self.listed.iter();
        listed.find(|key| keys.all(**key).contains(&shown)).copied().unwrap_or(shown)
    }

    /// Expects what is accepted now, as `accepted` says for each listed key.
    pub fn refresh(&mut self, accepted: impl Fn(Fingerprint) -> Vec<Fingerprint>) {
        let mut found = VecDeque::new();
        // The key in use first: a next one is not shown yet.
        for key in self.listed.iter().flat_map(|key| accepted(*key).into_iter().rev()) {
            if !found.contains(&key) {
                found.push_back(key);
            }
        }
        let is_same = found.len() == self.accepted.len()
            && found.iter().all(|key| self.accepted.contains(key));
        if !is_same {
            self.accepted = found;
        }
    }

    /// The far end refused, or showed another key: the next one is expected.
    pub(super) fn refused(&mut self) {
        self.accepted.rotate_left(self.accepted.len().min(1));
    }
}

/// What an uplink knows of keys.
#[derive(Debug)]
pub(super) struct UplinkKeys {
    node: Arc<NodeKeys>,
    /// The session with the centre.
    session: Option<SessionKeys>,
    /// The changes of keys that the uplink knows.
    seen: Option<u64>,
}

impl UplinkKeys {
    /// Before the first session.
    pub(super) const fn new(node: Arc<NodeKeys>) -> Self {
        Self { node, session: None, seen: None }
    }

    /// A session with the node `peer` began, in which it shows this key.
    pub(super) fn began(&mut self, peer: &str, shown: Fingerprint) {
        self.node.seen(peer, shown);
        self.session = Some(SessionKeys::new(shown));
    }

    /// A message about keys.
    pub(super) fn received(&mut self, peer: &str, body: &[u8]) {
        if let Some(session) = &mut self.session {
            session.received(&self.node, peer, body);
        }
    }
}

/// Follows changes of keys: says what is to be said, expects the keys that are accepted now, and
/// ends the session if its key is revoked.
pub(super) fn follow(uplink: &mut Uplink, now: Instant, served: &mut Served<'_>) {
    let changes = uplink.keys.node.changes();
    if uplink.keys.seen != Some(changes) {
        uplink.keys.seen = Some(changes);
        let keys = &uplink.keys.node;
        uplink.centre.keys.refresh(|listed| keys.accepted(listed));
        end_if_revoked(uplink, now, served);
    }
    if let Some((session, id)) = uplink.keys.session.as_mut().zip(uplink.connection.id()) {
        session.work(&uplink.keys.node, served.manager, id);
    }
}

fn end_if_revoked(uplink: &mut Uplink, now: Instant, served: &mut Served<'_>) {
    let shown = uplink.keys.session.as_ref().map(SessionKeys::shown);
    let is_over = shown.is_some_and(|key| uplink.keys.node.ends_session(key));
    if is_over && let Some(id) = uplink.connection.id() {
        let reason = "the key of this session is revoked";
        served.manager.close(now, id, reason);
        uplink.keys.session = None;
        uplink.down(served.guests, Ending::Refused, reason.to_owned());
    }
}

/// What guests are told of the centre's key: the one of the configuration.
pub(super) fn listed(uplink: &Uplink, shown: Fingerprint) -> Fingerprint {
    uplink.centre.keys.listed(shown, &uplink.keys.node)
}
