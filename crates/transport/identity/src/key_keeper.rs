//! How a node changes its key: the next one is staged, used, and the one before is retired. Each
//! step is durable before it is told to anyone, and a node that was killed goes on with the next.
//!
//! ```text
//!           rotate              all who must know have noted it, or force
//!   Steady ───────► Staged ───────────────────────────────────────────────► Switched
//!     ▲                                                                        │
//!     └────────────────────────────────────────────────────────────────────────┘
//!                    all have noted that it is in use, or force
//! ```
//!
//! What others say of their keys is kept in the same record ([`KnownKeys`]).

#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;

use crate::known_keys::{KeyChange, KeyRefusal, KnownKeys};
use crate::{Fingerprint, Identity, IdentityError, KeyStage, KeyTalk, OwnKey, Succession};
use skyhaul_units::Utc;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What a node keeps of its key and of those of others.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KeyRecord {
    /// The key in use, and since when.
    pub own: Option<KeyBirth>,
    /// The change of the own key that is under way.
    pub rotation: Option<Rotation>,
    /// The keys of others.
    pub known: KnownKeys,
}

/// Since when a key is in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyBirth {
    /// The key.
    pub key: Fingerprint,
    /// Since when.
    pub since: Utc,
}

/// A change of the own key that is under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rotation {
    /// Both keys.
    pub succession: Succession,
    /// Which is used.
    pub stage: KeyStage,
    /// When that stage began.
    pub since: Utc,
    /// What each node has noted, by its name.
    pub noted: BTreeMap<String, KeyStage>,
}

/// Where keys and the record are kept. Each call is durable when it returns without an error; after
/// an error it may have been carried out or not.
pub trait KeyStore {
    /// Keeps the record.
    ///
    /// # Errors
    /// A sentence: it cannot be written.
    fn save(&mut self, record: &KeyRecord) -> Result<(), String>;

    /// Keeps the next key beside the one in use.
    ///
    /// # Errors
    /// A sentence: it cannot be written.
    fn write_next(&mut self, next: &Identity) -> Result<(), String>;

    /// Puts the next key in the place of the one in use, in one step; that one is kept beside it.
    ///
    /// # Errors
    /// A sentence: what the operator has to do.
    fn install(&mut self) -> Result<(), String>;

    /// Removes what is kept beside the key in use, where there is any.
    ///
    /// # Errors
    /// A sentence: it cannot be removed.
    fn clean(&mut self) -> Result<(), String>;
}

/// The keys that a store has when a node starts.
#[derive(Debug, Clone)]
pub struct StoredKeys {
    /// The one in use.
    pub current: Identity,
    /// Since when it is there, as far as the disk tells.
    pub since: Utc,
    /// The next one.
    pub next: Option<Identity>,
}

/// What happened to keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyNews {
    /// This node has a next key.
    Staged(Fingerprint),
    /// This node uses its next key. These nodes had not noted it.
    Switched(Fingerprint, Vec<String>),
    /// This node's former key is gone.
    Retired(Fingerprint),
    /// A change of this node's key was given up, because its files are other ones than before.
    GivenUp(Fingerprint),
    /// A node has a next key.
    PeerStaged(String, Fingerprint),
    /// A node uses its next key: the one before is not accepted any more.
    PeerSwitched(String, Fingerprint),
    /// A key was revoked, for this reason.
    Revoked(Fingerprint, String),
    /// A revocation was taken back.
    Allowed(Fingerprint),
}

/// Why an order about keys is not carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyOrderError {
    /// A change is under way.
    #[error("the key is being changed already; see `skyhaul key show`")]
    UnderWay,
    /// No change is under way.
    #[error("the key is not being changed; begin with `skyhaul key rotate`")]
    NotUnderWay,
    /// It is this node's own key.
    #[error("this is a key of this node itself; change it with `skyhaul key rotate`")]
    Own,
    /// It cannot be.
    #[error(transparent)]
    Refused(#[from] KeyRefusal),
    /// No key can be made.
    #[error(transparent)]
    Key(#[from] IdentityError),
    /// The disk refuses.
    #[error("{0}")]
    Store(String),
}

/// News that wait. Older ones go first beyond that.
const NEWS_MAX: usize = 1_024;

/// Keeps the keys of a node.
#[derive(Debug)]
pub struct KeyKeeper<S> {
    store: S,
    own: OwnKey,
    next: Option<Identity>,
    record: KeyRecord,
    /// Why the change under way cannot go on.
    stuck: Option<String>,
    news: VecDeque<KeyNews>,
    changes: u64,
}

impl<S: KeyStore> KeyKeeper<S> {
    /// Goes on where the last run ended, which may have been at any step. A node also starts where
    /// its disk is full: what it finds here, the next start finds again.
    pub fn open(store: S, keys: StoredKeys, record: KeyRecord, now: Utc) -> Self {
        let StoredKeys { current, since, next } = keys;
        let own = OwnKey::from(current);
        let news = VecDeque::new();
        let mut this = Self { store, own, next, record, stuck: None, news, changes: 0 };
        let mut record = this.record.clone();
        this.resume(&mut record, now);
        let key = this.own.fingerprint();
        if record.own.is_none_or(|birth| birth.key != key) {
            record.own = Some(KeyBirth { key, since: since.min(now) });
        }
        if record != this.record && this.save(record.clone()).is_err() {
            this.record = record;
        }
        if this.record.rotation.is_none() {
            // What was left of a step that did not begin, or had ended. It does no harm.
            let _ = this.store.clean();
            this.next = None;
        }
        this
    }

    /// What became of a change that was under way.
    fn resume(&mut self, record: &mut KeyRecord, now: Utc) {
        let Some(rotation) = &mut record.rotation else { return };
        let (from, to) = (rotation.succession.from(), rotation.succession.to());
        let current = self.own.fingerprint();
        let has_next = self.next.as_ref().is_some_and(|next| next.fingerprint() == to);
        match rotation.stage {
            KeyStage::Staged if current == from && has_next => {}
            // Installed, by the last run or by the operator.
            KeyStage::Staged if current == to => {
                (rotation.stage, rotation.since) = (KeyStage::Switched, now);
                let unaware = Vec::new();
                self.tell(KeyNews::Switched(to, unaware));
            }
            KeyStage::Switched if current == to => {}
            KeyStage::Staged | KeyStage::Switched => {
                record.rotation = None;
                self.tell(KeyNews::GivenUp(to));
            }
        }
    }

    /// The key that connections use.
    pub const fn own(&self) -> &OwnKey {
        &self.own
    }

    /// What is kept.
    pub const fn record(&self) -> &KeyRecord {
        &self.record
    }

    /// Why the change under way cannot go on.
    pub fn stuck(&self) -> Option<&str> {
        self.stuck.as_deref()
    }

    /// Counts changes of what is accepted, and of what is said of the own key.
    pub const fn changes(&self) -> u64 {
        self.changes
    }

    /// What happened next.
    pub fn poll(&mut self) -> Option<KeyNews> {
        self.news.pop_front()
    }

    /// Begins to change the key: `next` follows the one in use.
    ///
    /// # Errors
    /// See [`KeyOrderError`]; nothing has changed.
    pub fn rotate(&mut self, next: Identity, now: Utc) -> Result<(), KeyOrderError> {
        if self.record.rotation.is_some() {
            return Err(KeyOrderError::UnderWay);
        }
        let succession = Succession::make(&self.own.current(), &next)?;
        self.store.write_next(&next).map_err(KeyOrderError::Store)?;
        let stage = KeyStage::Staged;
        let rotation = Rotation { succession, stage, since: now, noted: BTreeMap::new() };
        let record = KeyRecord { rotation: Some(rotation), ..self.record.clone() };
        if let Err(error) = self.save(record) {
            // A key that nobody will use; a restart tries again to remove it.
            let _ = self.store.clean();
            return Err(KeyOrderError::Store(error));
        }
        self.tell(KeyNews::Staged(next.fingerprint()));
        self.next = Some(next);
        Ok(())
    }

    /// Takes the next step if all nodes of these names have noted the one before.
    pub fn advance(&mut self, must_know: &BTreeSet<String>, now: Utc) {
        let Some(rotation) = &self.record.rotation else { return };
        if rotation.unaware(must_know).is_empty() {
            self.step(Vec::new(), now);
        }
    }

    /// Takes the next step although some of the nodes of these names may not have noted the one
    /// before. Returns which.
    ///
    /// # Errors
    /// See [`KeyOrderError`].
    pub fn force(
        &mut self,
        must_know: &BTreeSet<String>,
        now: Utc,
    ) -> Result<Vec<String>, KeyOrderError> {
        let rotation = self.record.rotation.as_ref().ok_or(KeyOrderError::NotUnderWay)?;
        let unaware = rotation.unaware(must_know);
        self.step(unaware.clone(), now);
        match &self.stuck {
            Some(reason) => Err(KeyOrderError::Store(reason.clone())),
            None => Ok(unaware),
        }
    }

    fn step(&mut self, unaware: Vec<String>, now: Utc) {
        let Some(rotation) = &self.record.rotation else { return };
        let done = match rotation.stage {
            KeyStage::Staged => self.switch(unaware, now),
            KeyStage::Switched => self.retire(),
        };
        self.stuck = done.err();
    }

    fn switch(&mut self, unaware: Vec<String>, now: Utc) -> Result<(), String> {
        let (Some(next), Some(mut rotation)) = (self.next.clone(), self.record.rotation.clone())
        else {
            return Err("the next key is not there".to_owned());
        };
        self.store.install()?;
        // From here on a restart uses the next key: this run does too, whatever else fails.
        let key = next.fingerprint();
        self.own.switch(next);
        (rotation.stage, rotation.since) = (KeyStage::Switched, now);
        let own = Some(KeyBirth { key, since: self.staged_at().unwrap_or(now) });
        let record = KeyRecord { own, rotation: Some(rotation), ..self.record.clone() };
        let saved = self.save(record.clone());
        if saved.is_err() {
            // A restart finds the key in its place, and comes to the same record.
            self.record = record;
            self.changes += 1;
        }
        self.tell(KeyNews::Switched(key, unaware));
        saved
    }

    fn staged_at(&self) -> Option<Utc> {
        self.record.rotation.as_ref().map(|rotation| rotation.since)
    }

    fn retire(&mut self) -> Result<(), String> {
        let Some(rotation) = &self.record.rotation else { return Ok(()) };
        let former = rotation.succession.from();
        self.store.clean()?;
        self.save(KeyRecord { rotation: None, ..self.record.clone() })?;
        self.next = None;
        self.tell(KeyNews::Retired(former));
        Ok(())
    }

    /// What is to be said in each session, as long as the change is under way.
    pub fn announcement(&self) -> Option<KeyTalk> {
        let rotation = self.record.rotation.as_ref()?;
        Some(KeyTalk::Follows(rotation.stage, rotation.succession))
    }

    /// Takes what the node `peer` says in a session in which it has the key `shown`. Returns what
    /// is to be said in return.
    ///
    /// # Errors
    /// A sentence for the log: it cannot be, or the disk refuses. Nothing has changed.
    pub fn take(
        &mut self,
        peer: &str,
        shown: Fingerprint,
        talk: &KeyTalk,
        now: Utc,
    ) -> Result<Option<KeyTalk>, KeyOrderError> {
        match talk {
            KeyTalk::Follows(stage, succession) => {
                let mut record = self.record.clone();
                let change = record.known.follow(shown, *stage, succession, now)?;
                let to = succession.to();
                if change == KeyChange::Changed {
                    self.save(record).map_err(KeyOrderError::Store)?;
                    self.tell(match stage {
                        KeyStage::Staged => KeyNews::PeerStaged(peer.to_owned(), to),
                        KeyStage::Switched => KeyNews::PeerSwitched(peer.to_owned(), to),
                    });
                }
                Ok(Some(KeyTalk::Noted(*stage, to)))
            }
            KeyTalk::Noted(stage, to) => {
                let mut record = self.record.clone();
                let Some(rotation) = record
                    .rotation
                    .as_mut()
                    .filter(|rotation| rotation.succession.to() == *to && *stage <= rotation.stage)
                else {
                    return Ok(None);
                };
                if rotation.noted.get(peer).is_none_or(|noted| noted < stage) {
                    rotation.noted.insert(peer.to_owned(), *stage);
                    self.save(record).map_err(KeyOrderError::Store)?;
                }
                Ok(None)
            }
        }
    }

    /// A session with the node `peer` has begun, in which it has the key `shown`.
    ///
    /// # Errors
    /// A sentence: the disk refuses. Nothing has changed.
    pub fn seen(&mut self, peer: &str, shown: Fingerprint, now: Utc) -> Result<(), String> {
        let mut record = self.record.clone();
        if record.known.seen(shown, now) == KeyChange::Changed {
            self.save(record)?;
            self.tell(KeyNews::PeerSwitched(peer.to_owned(), shown));
        }
        Ok(())
    }

    /// Refuses a key from now on.
    ///
    /// # Errors
    /// See [`KeyOrderError`]; nothing has changed.
    pub fn revoke(
        &mut self,
        key: Fingerprint,
        reason: &str,
        now: Utc,
    ) -> Result<KeyChange, KeyOrderError> {
        let next = self.next.as_ref().map(Identity::fingerprint);
        if key == self.own.fingerprint() || Some(key) == next {
            return Err(KeyOrderError::Own);
        }
        let mut record = self.record.clone();
        let change = record.known.revoke(key, reason, now)?;
        if change == KeyChange::Changed {
            self.save(record).map_err(KeyOrderError::Store)?;
            self.tell(KeyNews::Revoked(key, reason.to_owned()));
        }
        Ok(change)
    }

    /// Takes a revocation back.
    ///
    /// # Errors
    /// See [`KeyOrderError`]; nothing has changed.
    pub fn allow(&mut self, key: Fingerprint, now: Utc) -> Result<(), KeyOrderError> {
        let mut record = self.record.clone();
        record.known.allow(key, now)?;
        self.save(record).map_err(KeyOrderError::Store)?;
        self.tell(KeyNews::Allowed(key));
        Ok(())
    }

    /// Makes a record durable, then that of this node.
    fn save(&mut self, record: KeyRecord) -> Result<(), String> {
        self.store.save(&record)?;
        self.record = record;
        self.changes += 1;
        Ok(())
    }

    fn tell(&mut self, news: KeyNews) {
        if self.news.len() >= NEWS_MAX {
            self.news.pop_front();
        }
        self.news.push_back(news);
    }
}

impl Rotation {
    /// Who of these has not noted the present stage.
    pub fn unaware(&self, must_know: &BTreeSet<String>) -> Vec<String> {
        let is_aware = |name: &&String| self.noted.get(*name).is_some_and(|it| *it >= self.stage);
        must_know.iter().filter(|name| !is_aware(name)).cloned().collect()
    }
}
