//! Which keys are accepted, and what is said about keys in the sessions.

use super::{Caller, Downlink};
use crate::centre::admission::AdmittedStation;
use crate::keys::NodeKeys;
use skyhaul_net::SessionManager;
use skyhaul_quic::Fingerprint;
use skyhaul_sessions::SessionId;
use skyhaul_units::Instant;
use std::collections::BTreeMap;

/// The keys with which stations have sessions, beside those of the configuration.
#[derive(Debug, Default)]
pub(super) struct AdmittedKeys {
    /// Those that may be in use, by key.
    by_key: BTreeMap<Fingerprint, AdmittedStation>,
    /// The changes of keys that were taken in.
    seen: Option<u64>,
}

impl AdmittedKeys {
    /// The station with this key.
    pub(super) fn get(&self, key: Fingerprint) -> Option<&AdmittedStation> {
        self.by_key.get(&key)
    }

    fn take_in(&mut self, listed: &BTreeMap<Fingerprint, AdmittedStation>, keys: &NodeKeys) {
        self.by_key.clear();
        for (key, admitted) in listed {
            for key in keys.all(*key) {
                // A key that the configuration lists itself is that station's.
                let other = listed.get(&key).unwrap_or(admitted);
                self.by_key.insert(key, other.clone());
            }
        }
    }
}

impl Downlink {
    /// Follows changes of keys: accepts those that are accepted now, and ends the sessions of keys
    /// that are revoked.
    pub(super) fn follow_keys(&mut self, now: Instant, manager: &mut SessionManager) {
        if self.admitted.seen != Some(self.lines.keys.changes()) {
            self.accept_keys(manager);
            let is_over = |caller: &Caller| self.lines.keys.ends_session(caller.keys.shown());
            let revoked = self.connections.iter().filter(|(_, caller)| is_over(caller));
            for id in revoked.map(|(id, _)| *id).collect::<Vec<SessionId>>() {
                self.let_go(now, manager, id, "the key of this session is revoked");
            }
        }
        for (id, caller) in &mut self.connections {
            caller.keys.work(&self.lines.keys, manager, *id);
        }
    }

    /// Accepts the keys of the configuration, or those that follow them.
    pub(super) fn accept_keys(&mut self, manager: &mut SessionManager) {
        let keys = &self.lines.keys;
        self.admitted.seen = Some(keys.changes());
        for (endpoint, listen) in manager.endpoints_mut().zip(&self.lines.listens) {
            let listed = self.lines.trusted.get(*listen).into_iter().flatten();
            endpoint.set_trusted(listed.flat_map(|key| keys.accepted(*key)).collect());
        }
        self.admitted.take_in(&self.lines.peers, keys);
    }
}
