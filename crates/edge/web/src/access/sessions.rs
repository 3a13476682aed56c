//! Sessions of browsers: who logged in, and until when that is good.

use skyhaul_serve::TokenHash;
use skyhaul_units::{Duration, Instant};
use std::collections::BTreeMap;

/// Sessions by the digests of what their cookies hold. They end with the node.
#[derive(Debug)]
pub(super) struct SessionTable {
    idle: Duration,
    sessions: BTreeMap<TokenHash, WebSession>,
}

#[derive(Debug)]
struct WebSession {
    user: String,
    began: Instant,
    used: Instant,
}

/// Sessions at a time; the one that was unused for longest makes room.
pub const SESSIONS_MAX: usize = 256;
/// Of them of one user: a person has a few browsers.
const PER_USER_MAX: usize = 16;
/// A longer one ends, used or not: a day has two shifts.
const LONGEST: Duration = Duration::from_secs(86_400);

impl SessionTable {
    pub const fn new(idle: Duration) -> Self {
        Self { idle, sessions: BTreeMap::new() }
    }

    /// Begins the session of a user who has shown the password.
    pub fn begin(&mut self, secret: &str, user: &str, now: Instant) {
        self.expire(now);
        let own = self.sessions.values().filter(|session| session.user == user).count();
        if own >= PER_USER_MAX {
            self.end_oldest(Some(user));
        }
        if self.sessions.len() >= SESSIONS_MAX {
            self.end_oldest(None);
        }
        let session = WebSession { user: user.to_owned(), began: now, used: now };
        self.sessions.insert(TokenHash::of(secret), session);
    }

    fn end_oldest(&mut self, user: Option<&str>) {
        let own = |session: &WebSession| user.is_none_or(|user| session.user == user);
        let candidates = self.sessions.iter().filter(|(_, session)| own(session));
        let oldest = candidates.min_by_key(|(_, session)| session.used).map(|(key, _)| *key);
        if let Some(key) = oldest {
            self.sessions.remove(&key);
        }
    }

    /// Whose it is, if it is still good.
    pub fn user(&self, secret: &str, now: Instant) -> Option<&str> {
        let session = self.sessions.get(&TokenHash::of(secret))?;
        self.is_good(session, now).then_some(session.user.as_str())
    }

    /// A person does something: the session goes on.
    pub fn keep(&mut self, secret: &str, now: Instant) {
        if let Some(session) = self.sessions.get_mut(&TokenHash::of(secret)) {
            session.used = session.used.max(now);
        }
    }

    /// Ends it.
    pub fn end(&mut self, secret: &str) {
        self.sessions.remove(&TokenHash::of(secret));
    }

    /// Ends those of users who are gone, or have another password.
    pub fn retain(&mut self, stays: impl Fn(&str) -> bool) {
        self.sessions.retain(|_, session| stays(&session.user));
    }

    /// Sessions of a user that are good.
    pub fn count_of(&self, user: &str, now: Instant) -> usize {
        let is_own = |session: &&WebSession| session.user == user && self.is_good(session, now);
        self.sessions.values().filter(is_own).count()
    }

    /// Sessions that are good.
    pub fn count(&self, now: Instant) -> usize {
        self.sessions.values().filter(|session| self.is_good(session, now)).count()
    }

    fn expire(&mut self, now: Instant) {
        let idle = self.idle;
        self.sessions.retain(|_, session| is_good(idle, session, now));
    }

    fn is_good(&self, session: &WebSession, now: Instant) -> bool {
        is_good(self.idle, session, now)
    }
}

fn is_good(idle: Duration, session: &WebSession, now: Instant) -> bool {
    now.since(session.used) < idle && now.since(session.began) < LONGEST
}
