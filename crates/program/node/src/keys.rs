//! The keys of a node: its own, which can change while it runs, and what it knows of the keys of
//! others beside its configuration.
//!
//! ```text
//! KEY                      the key in use, which the configuration names
//! KEY.rotation-next        the next one, or STATE/rotation-next where that folder is read only
//! KEY.rotation-former      the one before, until all other nodes know that it is out of use
//! STATE/keys.json          the change under way, keys that follow others, revoked keys
//! ```
//!
//! [`KeyKeeper`] has the rules. The thread of a line writes to the disk here, because what another
//! node is told must be durable before; that is a few times in the change of a key.

mod files;
mod record;
mod report;
mod session;

use crate::alarms::Alarms;
use crate::fault::Fault;
use crate::journal::{EventNote, EventSink};
use files::KeyFiles;
pub use record::{KEYS_FILE, check_record, known_keys};
pub use session::SessionKeys;
use skyhaul_config::{NodeConfig, PeerEntry};
use skyhaul_events::{AlarmKind, EventKind};
use skyhaul_identity::{
    Fingerprint, Identity, KeyChange, KeyKeeper, KeyNews, KeyOrderError, KeyTalk, NextKey, OwnKey,
};
use skyhaul_net::Clock;
use skyhaul_store::Disk;
use skyhaul_units::{Duration, Instant, Utc};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The keys of a node.
#[derive(Debug)]
pub struct NodeKeys {
    clock: Clock,
    events: EventSink,
    own: OwnKey,
    kept: Mutex<KeptKeys>,
    /// Changes of what is accepted, and of what is said of the own key.
    changes: AtomicU64,
}

#[derive(Debug)]
struct KeptKeys {
    keeper: KeyKeeper<KeyFiles>,
    /// The other nodes of the configuration, with the keys that it lists.
    listed: BTreeMap<String, Vec<Fingerprint>>,
    /// The alarm on the age of the key; none where there is none.
    old_after: Option<Duration>,
    /// When a step that failed is tried again.
    retry_at: Instant,
    look_at: Instant,
}

/// The other nodes of a configuration, with the keys that it lists for each.
#[derive(Debug)]
pub struct ListedKeys(BTreeMap<String, Vec<Fingerprint>>);

impl ListedKeys {
    /// Of this one.
    pub fn of(config: &NodeConfig) -> Self {
        let mut listed = BTreeMap::new();
        let mut add = |peer: &PeerEntry| {
            listed.insert(peer.name.to_string(), peer.fingerprints.iter().collect());
        };
        let called = config.station.iter().flat_map(|station| station.destinations.iter());
        called.for_each(|destination| add(&destination.peer));
        config.centre.iter().flat_map(|centre| centre.peer.iter()).for_each(add);
        Self(listed)
    }
}

/// Between two attempts at a step that failed.
const RETRY: Duration = Duration::from_secs(10);
/// Between two looks at what is an alarm.
const LOOK: Duration = Duration::from_secs(1);
/// The subjects of alarms.
const OWN: &str = "the key of this node";
const ROTATION: &str = "the change of the key of this node";

impl NodeKeys {
    /// Takes up the keys of a node, wherever the last run ended.
    ///
    /// # Errors
    /// The key, or what is kept beside it, cannot be used.
    pub fn open(
        config: &NodeConfig,
        disk: Arc<dyn Disk>,
        clock: Clock,
        events: EventSink,
    ) -> Result<Arc<Self>, Fault> {
        let node = &config.node;
        let files = KeyFiles::new(disk, node);
        let stored = files.read(node)?;
        let record = files.record()?;
        let keeper = KeyKeeper::open(files, stored, record, clock.utc());
        let kept = KeptKeys {
            keeper,
            listed: ListedKeys::of(config).0,
            old_after: node.key_old_after(),
            retry_at: Instant::ZERO,
            look_at: Instant::ZERO,
        };
        let own = kept.keeper.own().clone();
        let changes = AtomicU64::new(kept.keeper.changes());
        let this = Arc::new(Self { clock, events, own, kept: Mutex::new(kept), changes });
        this.with(|_, _| ());
        Ok(this)
    }

    /// The key that connections use.
    pub const fn own(&self) -> &OwnKey {
        &self.own
    }

    /// Uses the nodes of a configuration that was read again.
    pub fn adopt(&self, listed: ListedKeys) {
        self.kept().listed = listed.0;
    }

    fn kept(&self) -> MutexGuard<'_, KeptKeys> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something with the keeper, takes the step that it makes possible, and tells what
    /// happened.
    fn with<T>(&self, act: impl FnOnce(&mut KeyKeeper<KeyFiles>, Utc) -> T) -> T {
        let (now, utc) = (self.clock.now(), self.clock.utc());
        let mut kept = self.kept();
        let outcome = act(&mut kept.keeper, utc);
        let must_know = kept.must_know();
        if now >= kept.retry_at {
            // One step leads to the next where nobody has to be waited for.
            kept.keeper.advance(&must_know, utc);
            kept.keeper.advance(&must_know, utc);
            if kept.keeper.stuck().is_some() {
                kept.retry_at = now + RETRY;
            }
        }
        self.changes.store(kept.keeper.changes(), Ordering::Release);
        while let Some(news) = kept.keeper.poll() {
            self.tell(&news, &kept.listed);
        }
        outcome
    }

    /// Counts changes of what is accepted, and of what is said of the own key: whoever keeps
    /// something of it looks again at another number.
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// The keys that are accepted where a configuration lists this one, the newest first.
    pub fn accepted(&self, listed: Fingerprint) -> Vec<Fingerprint> {
        self.kept().keeper.record().known.accepted(listed)
    }

    /// The keys that a session may have for which a configuration lists this one.
    pub fn all(&self, listed: Fingerprint) -> Vec<Fingerprint> {
        self.kept().keeper.record().known.all(listed)
    }

    /// Whether a session with this key is to end: it is revoked, or what follows it is.
    pub fn ends_session(&self, shown: Fingerprint) -> bool {
        self.kept().keeper.record().known.ends_session(shown)
    }

    /// The key that follows another one.
    fn next_of(&self, key: Fingerprint) -> Option<NextKey> {
        let kept = self.kept();
        kept.keeper.record().known.next_keys().find(|(from, _)| *from == key).map(|(_, next)| next)
    }

    /// What is to be said of the own key in each session.
    fn announcement(&self) -> Option<KeyTalk> {
        self.kept().keeper.announcement()
    }

    /// A session with `peer` has begun, in which it has the key `shown`.
    pub fn seen(&self, peer: &str, shown: Fingerprint) {
        if let Err(error) = self.with(|keeper, now| keeper.seen(peer, shown, now)) {
            tracing::warn!("that {peer} uses its next key cannot be noted ({error})");
        }
    }

    /// Takes what a node says about its key, or about this node's. Returns the reply.
    fn take(
        &self,
        peer: &str,
        shown: Fingerprint,
        talk: &KeyTalk,
    ) -> Result<Option<KeyTalk>, KeyOrderError> {
        self.with(|keeper, now| keeper.take(peer, shown, talk, now))
    }

    /// Begins to change the key.
    ///
    /// # Errors
    /// A change is under way, or the next key cannot be written.
    pub fn rotate(&self) -> Result<String, Fault> {
        let next = Identity::generate().map_err(|error| refused(&error.into()))?;
        let key = next.fingerprint();
        self.with(|keeper, now| keeper.rotate(next, now)).map_err(|error| refused(&error))?;
        let kept = self.kept();
        Ok(match (kept.waits_for(), kept.keeper.stuck()) {
            (None, _) => format!("this node uses the key {key} from now on; it has no other nodes"),
            (Some(_), Some(reason)) => format!("the next key is {key}; {reason}"),
            (Some(names), None) => format!(
                "the next key is {key}; it is used as soon as these nodes know it: {}",
                names.join(", ")
            ),
        })
    }

    /// Takes the next step of the change that is under way, whoever knows of it.
    ///
    /// # Errors
    /// No change is under way, or the disk refuses.
    pub fn force(&self) -> Result<String, Fault> {
        let must_know = self.kept().must_know();
        let unaware = self.with(|keeper, now| keeper.force(&must_know, now));
        let unaware = unaware.map_err(|error| refused(&error))?;
        let key = self.own.fingerprint();
        let done = match self.kept().keeper.record().rotation {
            Some(_) => format!("this node uses the key {key} from now on"),
            None => format!("this node uses the key {key}, and the one before is removed"),
        };
        Ok(match unaware.is_empty() {
            true => done,
            false => format!(
                "{done}; these nodes do not know it, and refuse this node until it is in their \
                 configuration: {}",
                unaware.join(", ")
            ),
        })
    }

    /// Refuses a key from now on, and ends the sessions that have it.
    ///
    /// # Errors
    /// It is this node's own, or the disk refuses.
    pub fn revoke(&self, key: Fingerprint, reason: &str) -> Result<String, Fault> {
        let change = self.with(|keeper, now| keeper.revoke(key, reason, now));
        let change = change.map_err(|error| refused(&error))?;
        let kept = self.kept();
        let of = match kept.peer_of(key) {
            None => "no node of the configuration has it".to_owned(),
            Some(name) => {
                let left: Vec<String> =
                    kept.accepted_of(name).iter().map(ToString::to_string).collect();
                match left.is_empty() {
                    true => format!(
                        "it is a key of {name}, which cannot connect until the configuration has \
                         another one"
                    ),
                    false => format!("it is a key of {name}, of which stay {}", left.join(", ")),
                }
            }
        };
        Ok(match change {
            KeyChange::Changed => format!("the key {key} is revoked; {of}"),
            KeyChange::Same => format!("the key {key} was revoked already; {of}"),
        })
    }

    /// Takes a revocation back.
    ///
    /// # Errors
    /// The key is not revoked, or the disk refuses.
    pub fn allow(&self, key: Fingerprint) -> Result<String, Fault> {
        self.with(|keeper, now| keeper.allow(key, now)).map_err(|error| refused(&error))?;
        Ok(format!("the key {key} is accepted again where the configuration lists it"))
    }

    /// Goes on with what waits, and raises the alarms about keys.
    pub fn tick(&self, alarms: &Alarms) {
        let now = self.clock.now();
        {
            let mut kept = self.kept();
            if now < kept.look_at {
                return;
            }
            kept.look_at = now + LOOK;
        }
        self.with(|_, _| ());
        let kept = self.kept();
        match kept.old(self.clock.utc()) {
            Some(reason) => alarms.raise(AlarmKind::KeyOld, OWN, &reason),
            None => _ = alarms.clear(AlarmKind::KeyOld, OWN),
        }
        match kept.keeper.stuck() {
            Some(reason) => alarms.raise(AlarmKind::KeyStuck, ROTATION, reason),
            None => _ = alarms.clear(AlarmKind::KeyStuck, ROTATION),
        }
        for (name, listed) in &kept.listed {
            let known = &kept.keeper.record().known;
            let revoked = listed.iter().find(|key| known.is_revoked(**key));
            let subject = format!("node {name}");
            let reason = match revoked {
                Some(key) => format!(
                    "its key {key} is revoked and refused: remove it from `fingerprints`, or take \
                     the revocation back with `skyhaul key allow`"
                ),
                None if kept.accepted_of(name).is_empty() => {
                    "the key that follows those of the configuration is revoked: write its present \
                     key into `fingerprints`, or take the revocation back with `skyhaul key allow`"
                        .to_owned()
                }
                None => {
                    alarms.clear(AlarmKind::KeyRevoked, subject);
                    continue;
                }
            };
            alarms.raise(AlarmKind::KeyRevoked, subject, &reason);
        }
    }

    /// Tells what happened.
    fn tell(&self, news: &KeyNews, listed: &BTreeMap<String, Vec<Fingerprint>>) {
        let own = || OWN.to_owned();
        let of = |name: &str| format!("node {name}");
        let (kind, subject, key, sentence) = match news {
            KeyNews::Staged(key) => {
                (EventKind::KeyStaged, own(), key, format!("the next key of this node is {key}"))
            }
            KeyNews::Switched(key, unaware) => {
                let unaware = match unaware.is_empty() {
                    true => String::new(),
                    false => format!("; it is not known to {}", unaware.join(", ")),
                };
                let sentence = format!("this node uses the key {key} from now on{unaware}");
                (EventKind::KeySwitched, own(), key, sentence)
            }
            KeyNews::Retired(key) => {
                let sentence = format!("the former key of this node, {key}, is removed");
                (EventKind::KeyRetired, own(), key, sentence)
            }
            KeyNews::GivenUp(key) => {
                let sentence = format!(
                    "the change to the key {key} is given up: the key file of this node is another \
                     one than before"
                );
                (EventKind::KeyRetired, own(), key, sentence)
            }
            KeyNews::PeerStaged(name, key) => (
                EventKind::KeyStaged,
                of(name),
                key,
                format!("the next key of {name} is {key}; both are accepted"),
            ),
            KeyNews::PeerSwitched(name, key) => (
                EventKind::KeySwitched,
                of(name),
                key,
                format!("{name} uses the key {key}; the one before is not accepted any more"),
            ),
            KeyNews::Revoked(key, reason) => {
                let colon = if reason.is_empty() { "" } else { ": " };
                let sentence = format!("the key {key} is revoked{colon}{reason}");
                (EventKind::KeyRevoked, format!("key {key}"), key, sentence)
            }
            KeyNews::Allowed(key) => {
                let sentence = format!("the key {key} is accepted again");
                (EventKind::KeyAllowed, format!("key {key}"), key, sentence)
            }
        };
        tracing::info!("{sentence}");
        let note = EventNote::new(kind, subject, sentence).with("key", key.to_string());
        let peer = listed.iter().find(|(_, keys)| keys.contains(key)).map(|(name, _)| name.clone());
        self.events.note(match peer {
            Some(name) => note.with("peer", name),
            None => note,
        });
    }
}

impl KeptKeys {
    fn must_know(&self) -> BTreeSet<String> {
        self.listed.keys().cloned().collect()
    }

    /// Who has to note the present stage of the change; none where no change is under way.
    fn waits_for(&self) -> Option<Vec<String>> {
        let rotation = self.keeper.record().rotation.as_ref()?;
        Some(rotation.unaware(&self.must_know()))
    }

    /// The node whose key this is or was.
    fn peer_of(&self, key: Fingerprint) -> Option<&str> {
        let next: BTreeMap<Fingerprint, Fingerprint> = {
            let known = self.keeper.record().known.next_keys();
            known.map(|(from, next)| (from, next.to)).collect()
        };
        let leads = |listed: &Fingerprint| {
            let chain = std::iter::successors(Some(*listed), |key| next.get(key).copied());
            // What was read of a disk could lead in a ring.
            chain.take(next.len() + 1).any(|one| one == key)
        };
        let mut all = self.listed.iter();
        all.find(|(_, listed)| listed.iter().any(leads)).map(|(name, _)| &**name)
    }

    /// The keys that are accepted of a node.
    fn accepted_of(&self, name: &str) -> Vec<Fingerprint> {
        let known = &self.keeper.record().known;
        let listed = self.listed.get(name).into_iter().flatten();
        let mut found = Vec::new();
        for key in listed.flat_map(|key| known.accepted(*key)) {
            if !found.contains(&key) {
                found.push(key);
            }
        }
        found
    }

    /// Why the key is old, if it is.
    fn old(&self, now: Utc) -> Option<String> {
        let (birth, limit) = (self.keeper.record().own?, self.old_after?);
        let age = now.since(birth.since);
        let days = age.as_millis() / 86_400_000;
        (age > limit).then(|| format!("it is {days} days old: run `skyhaul key rotate`"))
    }
}

/// The fault of an order about keys.
fn refused(error: &KeyOrderError) -> Fault {
    let what = error.to_string();
    match error {
        KeyOrderError::Store(_) | KeyOrderError::Key(_) => {
            Fault::environment(what, "the keys", "do what it says, and give the order again")
        }
        KeyOrderError::UnderWay
        | KeyOrderError::NotUnderWay
        | KeyOrderError::Own
        | KeyOrderError::Refused(_) => {
            Fault::configuration(what, "the keys", "see `skyhaul key show`")
        }
    }
}

#[cfg(test)]
impl NodeKeys {
    /// With this key, of a node that knows no other one, on a disk in memory.
    pub fn fixed(identity: Identity, clock: Clock) -> Arc<Self> {
        let disk = skyhaul_store::sim::SimDisk::new(skyhaul_units::ByteCount::mib(1));
        let files = KeyFiles::in_memory(Arc::new(disk));
        let stored =
            skyhaul_identity::StoredKeys { current: identity, since: clock.utc(), next: None };
        let keeper = KeyKeeper::open(files, stored, Default::default(), clock.utc());
        let (own, changes) = (keeper.own().clone(), AtomicU64::new(keeper.changes()));
        let kept = KeptKeys {
            keeper,
            listed: BTreeMap::new(),
            old_after: None,
            retry_at: Instant::ZERO,
            look_at: Instant::ZERO,
        };
        Arc::new(Self { clock, events: EventSink::default(), own, kept: Mutex::new(kept), changes })
    }
}
