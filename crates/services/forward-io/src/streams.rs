//! What is kept for each stream: by the token of its socket, and by the stream's name.

use skyhaul_channels::ChannelKey;
use skyhaul_sessions::SessionId;
use std::collections::BTreeMap;

/// A stream among those of all sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct StreamKey {
    pub session: SessionId,
    pub stream: ChannelKey,
}

/// Something that belongs to one stream.
pub(super) trait OnStream {
    fn stream(&self) -> StreamKey;
}

/// Entries of one kind, each under the token that the poller reports for its socket.
#[derive(Debug)]
pub(super) struct StreamTable<T> {
    entries: BTreeMap<u64, T>,
    tokens: BTreeMap<StreamKey, u64>,
}

impl<T> Default for StreamTable<T> {
    fn default() -> Self {
        Self { entries: BTreeMap::new(), tokens: BTreeMap::new() }
    }
}

impl<T: OnStream> StreamTable<T> {
    pub fn insert(&mut self, token: u64, entry: T) {
        self.tokens.insert(entry.stream(), token);
        self.entries.insert(token, entry);
    }

    pub fn remove(&mut self, token: u64) -> Option<T> {
        let entry = self.entries.remove(&token)?;
        self.tokens.remove(&entry.stream());
        Some(entry)
    }

    /// The stream has ended, but its entry stays.
    pub fn detach(&mut self, stream: StreamKey) {
        self.tokens.remove(&stream);
    }

    pub fn get(&self, token: u64) -> Option<&T> {
        self.entries.get(&token)
    }

    pub fn get_mut(&mut self, token: u64) -> Option<&mut T> {
        self.entries.get_mut(&token)
    }

    pub fn contains(&self, token: u64) -> bool {
        self.entries.contains_key(&token)
    }

    pub fn token(&self, stream: StreamKey) -> Option<u64> {
        self.tokens.get(&stream).copied()
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.entries.values()
    }

    /// The entries of one session.
    pub fn of_session(&mut self, session: SessionId) -> impl Iterator<Item = &mut T> {
        self.entries.values_mut().filter(move |entry| entry.stream().session == session)
    }

    /// Takes out the entries of a session that has ended.
    pub fn take_session(&mut self, session: SessionId) -> Vec<T> {
        let of_it = self.tokens.iter().filter(|(stream, _)| stream.session == session);
        let tokens: Vec<u64> = of_it.map(|(_, token)| *token).collect();
        tokens.into_iter().filter_map(|token| self.remove(token)).collect()
    }

    /// Tokens of the entries that `which` chooses.
    pub fn tokens_where(&self, which: impl Fn(&T) -> bool) -> Vec<u64> {
        let chosen = self.entries.iter().filter(|(_, entry)| which(entry));
        chosen.map(|(token, _)| *token).collect()
    }
}
