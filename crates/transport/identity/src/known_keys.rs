//! What a node knows of the keys of others beside its configuration: which key follows which, and
//! which are revoked.

use crate::{Fingerprint, KeyStage, Succession};
use skyhaul_units::Utc;
use std::collections::BTreeMap;

/// The key that follows another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NextKey {
    /// Its fingerprint.
    pub to: Fingerprint,
    /// Staged: both are accepted. Switched: only the next one.
    pub stage: KeyStage,
    /// Since when it is known at that stage.
    pub since: Utc,
}

/// Why a key is revoked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revocation {
    /// In the words of who revoked it.
    pub reason: String,
    /// When.
    pub at: Utc,
}

/// Keys that follow others, and revoked ones.
///
/// A configuration lists the keys of a node; what is here goes before: a listed key stands for
/// those that follow it, and a revoked key is accepted nowhere.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KnownKeys {
    /// By the key that is followed.
    next: BTreeMap<Fingerprint, NextKey>,
    revoked: BTreeMap<Fingerprint, Revocation>,
}

/// Keys that are followed by others, of all nodes: 256 nodes with 16 keys each.
const NEXT_MAX: usize = 4_096;
/// Keys before the present one of a node. The first one, which a configuration may list, and the
/// newest ones stay.
const FORMER_MAX: usize = 16;
/// Revoked keys.
const REVOKED_MAX: usize = 4_096;
/// The longest reason in bytes.
const REASON_MAX: usize = 500;

/// Why a statement about a key, or an order for one, is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyRefusal {
    /// The session has neither of the two keys.
    #[error("it speaks of a key that its session does not have")]
    NotItsKey,
    /// The followed key is out of use already.
    #[error("its key {0} is out of use since another one follows it")]
    Followed(Fingerprint),
    /// The next key was in use before.
    #[error("its next key {0} was in use before: a key is never used again")]
    UsedBefore(Fingerprint),
    /// A key is revoked here.
    #[error("its key {0} is revoked here")]
    Revoked(Fingerprint),
    /// No more fit.
    #[error(
        "{0} keys are noted already: remove {file} of the state folder while the node is \
             stopped, and list the present keys in the configuration",
        file = "keys.json"
    )]
    Full(usize),
    /// The reason is too long.
    #[error("the reason is longer than {REASON_MAX} bytes")]
    LongReason,
    /// The key is not revoked, and no other one follows it.
    #[error("this key is neither revoked nor out of use")]
    NotRevoked,
}

/// Whether something changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyChange {
    /// It did.
    Changed,
    /// It was so already.
    Same,
}

impl KnownKeys {
    /// Of what was kept; more than fits is left out.
    pub fn new(
        next: impl IntoIterator<Item = (Fingerprint, NextKey)>,
        revoked: impl IntoIterator<Item = (Fingerprint, Revocation)>,
    ) -> Self {
        let next = next.into_iter().take(NEXT_MAX).collect();
        Self { next, revoked: revoked.into_iter().take(REVOKED_MAX).collect() }
    }

    /// The keys that are followed by others.
    pub fn next_keys(&self) -> impl Iterator<Item = (Fingerprint, NextKey)> + '_ {
        self.next.iter().map(|(from, next)| (*from, *next))
    }

    /// The revoked keys.
    pub fn revoked(&self) -> impl Iterator<Item = (Fingerprint, &Revocation)> {
        self.revoked.iter().map(|(key, why)| (*key, why))
    }

    /// Whether a key is revoked.
    pub fn is_revoked(&self, key: Fingerprint) -> bool {
        self.revoked.contains_key(&key)
    }

    /// Whether a session with this key is to end: it is revoked, or all keys that may be used in
    /// its stead are.
    pub fn ends_session(&self, shown: Fingerprint) -> bool {
        self.is_revoked(shown) || self.accepted(shown).is_empty()
    }

    /// Takes a statement of the node at the other end of a session, which has the key `shown`.
    ///
    /// # Errors
    /// See [`KeyRefusal`]; nothing has changed.
    pub fn follow(
        &mut self,
        shown: Fingerprint,
        stage: KeyStage,
        succession: &Succession,
        at: Utc,
    ) -> Result<KeyChange, KeyRefusal> {
        let (from, to) = (succession.from(), succession.to());
        if shown != from && shown != to {
            return Err(KeyRefusal::NotItsKey);
        }
        if let Some(key) = [from, to].into_iter().find(|key| self.is_revoked(*key)) {
            return Err(KeyRefusal::Revoked(key));
        }
        match self.next.get(&from) {
            Some(known) if known.to == to && known.stage >= stage => return Ok(KeyChange::Same),
            Some(known) if known.to != to && known.stage == KeyStage::Switched => {
                return Err(KeyRefusal::Followed(from));
            }
            // Whoever has the next key alone must not choose which one it follows.
            Some(known) if known.to != to && shown != from => return Err(KeyRefusal::NotItsKey),
            None if self.next.len() >= NEXT_MAX => return Err(KeyRefusal::Full(NEXT_MAX)),
            Some(_) | None => {}
        }
        if self.chain(to).any(|key| key == from) || self.next.contains_key(&to) {
            return Err(KeyRefusal::UsedBefore(to));
        }
        self.next.insert(from, NextKey { to, stage, since: at });
        self.forget_former(to);
        Ok(KeyChange::Changed)
    }

    /// A session shows a key: the one that it follows is out of use from now on.
    pub fn seen(&mut self, shown: Fingerprint, at: Utc) -> KeyChange {
        let mut change = KeyChange::Same;
        for next in self.next.values_mut() {
            if next.to == shown && next.stage == KeyStage::Staged {
                (next.stage, next.since) = (KeyStage::Switched, at);
                change = KeyChange::Changed;
            }
        }
        change
    }

    /// Refuses a key from now on. A next key that it announced and that is not in use yet may be
    /// another one's, and is forgotten.
    ///
    /// # Errors
    /// See [`KeyRefusal`].
    pub fn revoke(
        &mut self,
        key: Fingerprint,
        reason: &str,
        at: Utc,
    ) -> Result<KeyChange, KeyRefusal> {
        if reason.len() > REASON_MAX {
            return Err(KeyRefusal::LongReason);
        }
        if self.is_revoked(key) {
            return Ok(KeyChange::Same);
        }
        if self.revoked.len() >= REVOKED_MAX {
            return Err(KeyRefusal::Full(REVOKED_MAX));
        }
        if self.next.get(&key).is_some_and(|next| next.stage == KeyStage::Staged) {
            self.next.remove(&key);
        }
        self.revoked.insert(key, Revocation { reason: reason.to_owned(), at });
        Ok(KeyChange::Changed)
    }

    /// Takes a revocation back. A key that is out of use because another one follows it is accepted
    /// again, until that one is seen.
    ///
    /// # Errors
    /// See [`KeyRefusal`].
    pub fn allow(&mut self, key: Fingerprint, at: Utc) -> Result<(), KeyRefusal> {
        let was_revoked = self.revoked.remove(&key).is_some();
        let out_of_use = self.next.get_mut(&key).filter(|next| next.stage == KeyStage::Switched);
        match out_of_use {
            Some(next) => (next.stage, next.since) = (KeyStage::Staged, at),
            None if was_revoked => {}
            None => return Err(KeyRefusal::NotRevoked),
        }
        Ok(())
    }

    /// The keys that are accepted where a configuration lists this one, the newest first. None
    /// where all are revoked.
    pub fn accepted(&self, listed: Fingerprint) -> Vec<Fingerprint> {
        let is_in_use = |key: &Fingerprint| {
            self.next.get(key).is_none_or(|next| next.stage == KeyStage::Staged)
        };
        let mut keys: Vec<Fingerprint> = self.all(listed).into_iter().filter(is_in_use).collect();
        keys.reverse();
        keys
    }

    /// The keys that a session of the node may have for which a configuration lists this one: also
    /// those that are out of use, with which a session may have begun.
    pub fn all(&self, listed: Fingerprint) -> Vec<Fingerprint> {
        self.chain(listed).filter(|key| !self.is_revoked(*key)).collect()
    }

    /// The key, and those that follow it.
    fn chain(&self, first: Fingerprint) -> impl Iterator<Item = Fingerprint> {
        let next = |key: &Fingerprint| self.next.get(key).map(|next| next.to);
        // What was read of a disk could lead in a ring.
        core::iter::successors(Some(first), next).take(NEXT_MAX)
    }

    /// Leaves out keys between the first and the newest ones before `last`.
    fn forget_former(&mut self, last: Fingerprint) {
        loop {
            let leads = |key: &Fingerprint| self.chain(*key).last() == Some(last);
            let mut former: Vec<(Utc, Fingerprint)> = {
                let all = self.next.iter().filter(|(key, _)| leads(key));
                all.map(|(key, next)| (next.since, *key)).collect()
            };
            former.sort_unstable();
            let is_over = former.len() > FORMER_MAX;
            let is_out = |key: &Fingerprint| {
                self.next.get(key).map(|it| it.stage) == Some(KeyStage::Switched)
            };
            let middle = former.iter().skip(1).map(|(_, key)| *key).find(|key| is_out(key));
            let Some(gone) = middle
                .filter(|_| is_over)
                .and_then(|key| self.next.remove(&key).map(|next| (key, next.to)))
            else {
                return;
            };
            for next in self.next.values_mut().filter(|next| next.to == gone.0) {
                next.to = gone.1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Identity;

    fn key(seed: u8) -> Identity {
        Identity::from_seed(&[seed; 32]).unwrap()
    }

    fn print(seed: u8) -> Fingerprint {
        key(seed).fingerprint()
    }

    fn at(seconds: i64) -> Utc {
        Utc::from_micros(seconds * 1_000_000)
    }

    fn step(
        known: &mut KnownKeys,
        shown: u8,
        stage: KeyStage,
        [from, to]: [u8; 2],
    ) -> Result<KeyChange, KeyRefusal> {
        let succession = Succession::make(&key(from), &key(to)).unwrap();
        known.follow(print(shown), stage, &succession, at(i64::from(to)))
    }

    #[test]
    fn a_listed_key_stands_for_those_that_follow_it() {
        let mut known = KnownKeys::default();
        assert_eq!(known.accepted(print(1)), [print(1)]);
        assert_eq!(step(&mut known, 1, KeyStage::Staged, [1, 2]), Ok(KeyChange::Changed));
        assert_eq!(step(&mut known, 1, KeyStage::Staged, [1, 2]), Ok(KeyChange::Same));
        assert_eq!(known.accepted(print(1)), [print(2), print(1)]);
        assert_eq!(known.seen(print(2), at(9)), KeyChange::Changed);
        assert_eq!(known.accepted(print(1)), [print(2)]);
        assert_eq!(known.all(print(1)), [print(1), print(2)]);
        assert!(!known.ends_session(print(1)), "a session goes on with the key that it began with");
        step(&mut known, 2, KeyStage::Switched, [2, 3]).unwrap();
        assert_eq!(known.accepted(print(1)), [print(3)]);
        assert_eq!(known.accepted(print(2)), [print(3)]);
    }

    #[test]
    fn who_has_another_key_or_a_former_one_cannot_say_what_follows() {
        let mut known = KnownKeys::default();
        let refused = step(&mut known, 5, KeyStage::Staged, [1, 2]);
        assert_eq!(refused, Err(KeyRefusal::NotItsKey));
        step(&mut known, 1, KeyStage::Switched, [1, 2]).unwrap();
        // A thief of the former key in a session that still lasts.
        let refused = step(&mut known, 1, KeyStage::Staged, [1, 3]);
        assert_eq!(refused, Err(KeyRefusal::Followed(print(1))));
        let back = step(&mut known, 2, KeyStage::Staged, [2, 1]);
        assert_eq!(back, Err(KeyRefusal::UsedBefore(print(1))));
        step(&mut known, 4, KeyStage::Staged, [4, 5]).unwrap();
        let stolen = step(&mut known, 6, KeyStage::Switched, [4, 6]);
        assert_eq!(stolen, Err(KeyRefusal::NotItsKey));
        // A rotation that is begun anew.
        assert_eq!(step(&mut known, 4, KeyStage::Staged, [4, 6]), Ok(KeyChange::Changed));
        assert_eq!(known.accepted(print(4)), [print(6), print(4)]);
    }

    #[test]
    fn the_session_of_a_former_key_ends_with_the_key_that_follows_it() {
        let mut known = KnownKeys::default();
        step(&mut known, 1, KeyStage::Switched, [1, 2]).unwrap();
        known.revoke(print(2), "stolen", at(3)).unwrap();
        assert!(known.ends_session(print(1)) && known.ends_session(print(2)));
        known.allow(print(2), at(4)).unwrap();
        assert!(!known.ends_session(print(1)) && !known.ends_session(print(2)));
        known.revoke(print(1), "stolen long ago", at(5)).unwrap();
        assert!(known.ends_session(print(1)) && !known.ends_session(print(2)));
    }

    #[test]
    fn a_revoked_key_is_accepted_nowhere_until_it_is_allowed() {
        let mut known = KnownKeys::default();
        step(&mut known, 1, KeyStage::Staged, [1, 2]).unwrap();
        assert_eq!(known.revoke(print(1), "stolen", at(3)), Ok(KeyChange::Changed));
        assert_eq!(known.revoke(print(1), "again", at(4)), Ok(KeyChange::Same));
        assert_eq!(known.accepted(print(1)), []);
        let refused = step(&mut known, 1, KeyStage::Staged, [1, 2]);
        assert_eq!(refused, Err(KeyRefusal::Revoked(print(1))));
        known.allow(print(1), at(5)).unwrap();
        assert_eq!(known.accepted(print(1)), [print(1)], "what a thief announced is forgotten");
        assert_eq!(known.allow(print(1), at(6)), Err(KeyRefusal::NotRevoked));
        // What follows a key that was in use long ago does not go with it.
        step(&mut known, 7, KeyStage::Switched, [7, 8]).unwrap();
        known.revoke(print(7), "", at(9)).unwrap();
        assert_eq!(known.accepted(print(7)), [print(8)]);
        known.allow(print(7), at(9)).unwrap();
        assert_eq!(known.accepted(print(7)), [print(8), print(7)]);
    }

    #[test]
    fn a_node_that_changes_its_key_for_ever_takes_no_more_room() {
        let mut known = KnownKeys::default();
        for seed in 1..200 {
            step(&mut known, seed, KeyStage::Switched, [seed, seed + 1]).unwrap();
        }
        assert!(known.next_keys().count() <= FORMER_MAX);
        assert_eq!(known.accepted(print(1)), [print(200)], "the first one may be listed");
        assert_eq!(known.accepted(print(190)), [print(200)]);
    }
}
