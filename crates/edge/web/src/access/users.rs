//! The users file: who may come to the page, as what.
//!
//! ```toml
//! [[user]]
//! name = "kim"
//! role = "operator"
//! password = "$argon2id$v=19$m=19456,t=2,p=1$…"
//! created = "2026-11-27T12:00:00Z"
//!
//! [[token]]
//! name = "prometheus"
//! role = "metrics"
//! sha256 = "…"                       # of the token
//! created = "2026-11-27T12:00:00Z"
//! expires = "2027-11-27T00:00:00Z"   # without it never
//! ```

use super::known::{KnownWebToken, KnownWebUser};
use super::password::PasswordHash;
use super::role::WebRole;
use serde::Deserialize;
use skyhaul_serve::TokenHash;
use skyhaul_units::Utc;
use std::collections::BTreeMap;

/// Users by name, tokens by digest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WebUsers {
    users: BTreeMap<String, WebUser>,
    tokens: BTreeMap<TokenHash, WebToken>,
}

/// A person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WebUser {
    pub role: WebRole,
    pub password: PasswordHash,
    created: String,
}

/// What a program shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WebToken {
    pub name: String,
    pub role: WebRole,
    pub expires: Option<Utc>,
    created: String,
}

/// A users file that cannot be used: one sentence, with the line where there is one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct WebUsersError(pub String);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct UsersFile {
    #[serde(default)]
    pub user: Vec<UserEntry>,
    #[serde(default)]
    pub token: Vec<WebTokenEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct UserEntry {
    pub name: String,
    pub role: WebRole,
    password: String,
    pub created: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WebTokenEntry {
    pub name: String,
    pub role: WebRole,
    sha256: String,
    pub created: String,
    pub expires: Option<String>,
}

/// Users of a file, and tokens of it.
const ENTRIES_MAX: usize = 1_000;
/// The longest name.
pub(super) const NAME_MAX: usize = 64;

impl WebUsers {
    /// Reads the text of a file.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn parse(text: &str) -> Result<Self, WebUsersError> {
        let file = UsersFile::parse(text)?;
        if file.user.len().max(file.token.len()) > ENTRIES_MAX {
            return Err(WebUsersError(format!(
                "there are more than {ENTRIES_MAX} users or tokens"
            )));
        }
        let mut all = Self::default();
        file.user.into_iter().try_for_each(|entry| all.add_user(entry)).map_err(WebUsersError)?;
        let mut tokens = file.token.into_iter();
        tokens.try_for_each(|entry| all.add_token(entry)).map_err(WebUsersError)?;
        Ok(all)
    }

    fn add_user(&mut self, entry: UserEntry) -> Result<(), String> {
        let UserEntry { name, role, password, created } = entry;
        check_name("user", &name)?;
        time(&created).map_err(|what| format!("user `{name}`: {what}"))?;
        let password = PasswordHash::parse(&password).ok_or_else(|| {
            format!(
                "the password of user `{name}` is no argon2id hash; set it with `skyhaul web user \
                 passwd`"
            )
        })?;
        match self.users.insert(name.clone(), WebUser { role, password, created }) {
            Some(_) => Err(format!("user `{name}` has two tables; write one")),
            None => Ok(()),
        }
    }

    fn add_token(&mut self, entry: WebTokenEntry) -> Result<(), String> {
        let WebTokenEntry { name, role, sha256, created, expires } = entry;
        check_name("token", &name)?;
        let of = |what: String| format!("token `{name}`: {what}");
        time(&created).map_err(of)?;
        let expires = expires.as_deref().map(time).transpose().map_err(of)?;
        let hash = TokenHash::from_hex(&sha256)
            .ok_or_else(|| of("`sha256` is not 64 hexadecimal digits".to_owned()))?;
        let is_there = self.tokens.values().any(|known| known.name == name);
        let token = WebToken { name: name.clone(), role, expires, created };
        match self.tokens.insert(hash, token) {
            None if !is_there => Ok(()),
            _ => Err(format!("token `{name}` is there twice; remove one")),
        }
    }

    pub(super) fn user(&self, name: &str) -> Option<&WebUser> {
        self.users.get(name)
    }

    pub(super) fn token(&self, token: &str, now: Utc) -> Option<&WebToken> {
        let found = self.tokens.get(&TokenHash::of(token))?;
        found.expires.is_none_or(|expires| now < expires).then_some(found)
    }

    /// The users without their passwords, by name.
    pub(super) fn known_users(&self) -> impl Iterator<Item = KnownWebUser> {
        self.users.iter().map(|(name, user)| {
            let (name, created) = (name.clone(), user.created.clone());
            KnownWebUser { name, role: user.role, created }
        })
    }

    /// The tokens without their digests, by name; when they were used is not in the file.
    pub(super) fn known_tokens(&self) -> Vec<KnownWebToken> {
        let known = self.tokens.values().map(|token| KnownWebToken {
            name: token.name.clone(),
            role: token.role,
            created: token.created.clone(),
            expires: token.expires.map(|expires| expires.to_string()),
            last_used: None,
        });
        let mut known: Vec<KnownWebToken> = known.collect();
        known.sort_by(|one, other| one.name.cmp(&other.name));
        known
    }

    pub(super) fn has_token(&self, name: &str) -> bool {
        self.tokens.values().any(|token| token.name == name)
    }

    /// What differs from the users before, a few words each.
    pub fn changes(&self, before: &Self) -> Vec<String> {
        let mut changes = Vec::new();
        for (name, user) in &self.users {
            match before.users.get(name) {
                None => changes.push(format!("user {name} ({}) came", user.role)),
                Some(old) if old.role != user.role => {
                    changes.push(format!("user {name} is {} now", user.role));
                }
                Some(old) if old.password != user.password => {
                    changes.push(format!("user {name} has another password"));
                }
                Some(_) => {}
            }
        }
        let gone = before.users.keys().filter(|name| !self.users.contains_key(*name));
        changes.extend(gone.map(|name| format!("user {name} is gone")));
        let new = self
            .tokens
            .iter()
            .filter(|(hash, token)| before.tokens.get(hash).is_none_or(|old| old != *token));
        changes.extend(new.map(|(_, token)| format!("token {} ({}) came", token.name, token.role)));
        let gone = before.tokens.iter().filter(|(hash, _)| !self.tokens.contains_key(hash));
        changes.extend(gone.map(|(_, token)| format!("token {} is gone", token.name)));
        changes
    }
}

impl UsersFile {
    /// Reads the text of a file, as far as its form goes.
    pub fn parse(text: &str) -> Result<Self, WebUsersError> {
        toml::from_str(text).map_err(|error| {
            let line = error.span().map(|span| {
                let before = text.get(..span.start).unwrap_or_default();
                format!("line {}: ", before.matches('\n').count() + 1)
            });
            WebUsersError(format!("{}{}", line.unwrap_or_default(), error.message()))
        })
    }
}

fn time(text: &str) -> Result<Utc, String> {
    Utc::from_rfc3339(text).ok_or_else(|| {
        let shown = skyhaul_units::printable(text, 64);
        format!("`{shown}` is no time; write it like 2026-11-27T12:00:00Z")
    })
}

pub(super) fn check_name(what: &str, name: &str) -> Result<(), String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if (1..=NAME_MAX).contains(&name.len()) && name.chars().all(is_plain) {
        return Ok(());
    }
    let name = skyhaul_units::printable(name, NAME_MAX);
    Err(format!("`{name}` cannot name the {what}; write 1 to 64 letters, digits, `-`, `_` or `.`"))
}
