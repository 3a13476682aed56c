//! The accounts file: who may ask, for what, and how much.
//!
//! ```toml
//! [[account]]
//! name = "lance"
//! filter = "mission = 'aqua'"        # CQL2 text; without it all products
//! roots = ["products", "stac"]       # without it all interfaces
//! connections = 16                   # at a time
//! rate = "200 Mbit/s"
//! volume = "500 GB"                  # a day
//! requests = 600                     # a minute
//!
//! [[account.token]]
//! label = "2026"
//! sha256 = "…"                       # of the token
//! created = "2026-11-26T12:00:00Z"
//! expires = "2027-11-26T00:00:00Z"   # without it never
//!
//! [[account.key]]                     # for S3
//! label = "2026"
//! id = "SKY…"
//! secret = "…"                       # the file is for its owner alone then
//! created = "2026-11-26T12:00:00Z"
//! ```

use crate::access_key::{AccessKey, KeySecret};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use skyhaul_catalogue::Filter;
use skyhaul_units::{ByteCount, Rate, Utc};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Accounts by the digests of their tokens.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Accounts {
    accounts: Vec<Arc<ServeAccount>>,
    /// For each token its account's index, and when it expires.
    tokens: BTreeMap<TokenHash, TokenUse>,
    /// The same for each access key, with its secret.
    keys: BTreeMap<String, KeyUse>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TokenUse {
    account: usize,
    expires: Option<Utc>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct KeyUse {
    of: TokenUse,
    secret: KeySecret,
}

/// Who asks, and what of.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ServeAccount {
    /// Its name.
    pub name: String,
    /// The items that are there for it; all without one.
    pub filter: Option<Filter>,
    /// The interfaces that it may use.
    pub roots: Vec<ServeRoot>,
    /// Requests that may be answered at a time.
    pub connections: Option<u32>,
    /// What all of its answers together may take.
    pub rate: Option<Rate>,
    /// The bytes of a day.
    pub volume: Option<ByteCount>,
    /// Requests of a minute.
    pub requests: Option<u32>,
}

/// The SHA-256 of a token.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TokenHash([u8; 32]);

/// An interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ServeRoot {
    /// `/products`: files.
    Products,
    /// `/stac`: STAC API.
    Stac,
    /// `/prip`: OData of products.
    Prip,
    /// `/cadip`: OData of contacts.
    Cadip,
    /// Requests of S3, which are signed, and `/s3`.
    S3,
}

/// An accounts file that cannot be used: one sentence, with the line where there is one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct AccountsError(pub String);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AccountsFile {
    #[serde(default)]
    pub account: Vec<AccountEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AccountEntry {
    pub name: String,
    filter: Option<String>,
    roots: Option<Vec<ServeRoot>>,
    connections: Option<u32>,
    rate: Option<Rate>,
    volume: Option<ByteCount>,
    requests: Option<u32>,
    #[serde(default)]
    pub token: Vec<TokenEntry>,
    #[serde(default)]
    pub key: Vec<KeyEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TokenEntry {
    pub label: String,
    sha256: String,
    pub created: String,
    pub expires: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct KeyEntry {
    pub label: String,
    pub id: String,
    secret: String,
    pub created: String,
    pub expires: Option<String>,
}

/// Accounts of one file.
const ACCOUNTS_MAX: usize = 1_000;
/// Tokens of one account, and keys of one.
const TOKENS_MAX: usize = 16;

impl TokenHash {
    /// Of a token. A token has 256 random bits: a digest without salt and rounds tells nothing.
    pub fn of(token: &str) -> Self {
        Self(Sha256::digest(token.as_bytes()).into())
    }

    /// From 64 hexadecimal digits.
    pub fn from_hex(text: &str) -> Option<Self> {
        crate::file_answer::from_hex(text).map(Self)
    }

    /// As 64 hexadecimal digits.
    pub fn to_hex(self) -> String {
        crate::file_answer::hex(&self.0)
    }
}

impl core::fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("TokenHash(…)")
    }
}

impl ServeRoot {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Products, Self::Stac, Self::Prip, Self::Cadip, Self::S3];
    /// Those that a node has unless it is told otherwise: files of contacts take their room on the
    /// disk once more, and keys of S3 stand in the accounts file as they are.
    pub const USUAL: [Self; 3] = [Self::Products, Self::Stac, Self::Prip];

    /// The first segment of its paths.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Products => "products",
            Self::Stac => "stac",
            Self::Prip => "prip",
            Self::Cadip => "cadip",
            Self::S3 => "s3",
        }
    }

    /// The interface of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|root| root.name() == name)
    }
}

impl Accounts {
    /// Reads the text of a file.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn parse(text: &str) -> Result<Self, AccountsError> {
        let file = AccountsFile::parse(text)?;
        let mut accounts = Self::default();
        for entry in file.account {
            accounts.add(entry).map_err(AccountsError)?;
        }
        Ok(accounts)
    }

    fn add(&mut self, entry: AccountEntry) -> Result<(), String> {
        let AccountEntry { name, filter, roots, connections, rate, volume, requests, token, key } =
            entry;
        check_name("account", &name)?;
        if self.accounts.iter().any(|known| known.name == name) {
            return Err(format!("account `{name}` has two tables; write one"));
        }
        let filter = filter
            .map(|text| text.parse::<Filter>())
            .transpose()
            .map_err(|error| format!("the filter of account `{name}`: {error}"))?;
        let zero = connections == Some(0)
            || requests == Some(0)
            || rate == Some(Rate::ZERO)
            || volume == Some(ByteCount::ZERO);
        if zero {
            return Err(format!("account `{name}` has a limit of zero; remove its table instead"));
        }
        if token.len().max(key.len()) > TOKENS_MAX {
            return Err(format!("account `{name}` has more than {TOKENS_MAX} tokens, or keys"));
        }
        token.into_iter().try_for_each(|entry| self.add_token(&name, entry))?;
        key.into_iter().try_for_each(|entry| self.add_key(&name, entry))?;
        let roots = roots.unwrap_or_else(|| ServeRoot::ALL.to_vec());
        let account = ServeAccount { name, filter, roots, connections, rate, volume, requests };
        self.accounts.push(Arc::new(account));
        Ok(())
    }

    /// Adds a token of the account that is added next.
    fn add_token(&mut self, name: &str, entry: TokenEntry) -> Result<(), String> {
        let TokenEntry { label, sha256, created, expires } = entry;
        check_name("token", &label)?;
        let of = || format!("token `{label}` of account `{name}`");
        let known = self.used(&created, expires.as_deref()).map_err(|what| of() + &what)?;
        let hash = TokenHash::from_hex(&sha256)
            .ok_or_else(|| format!("{}: `sha256` is not 64 hexadecimal digits", of()))?;
        match self.tokens.insert(hash, known) {
            Some(_) => Err(format!("{} is there twice", of())),
            None => Ok(()),
        }
    }

    /// Adds an access key of the account that is added next.
    fn add_key(&mut self, name: &str, entry: KeyEntry) -> Result<(), String> {
        let KeyEntry { label, id, secret, created, expires } = entry;
        check_name("key", &label)?;
        let of = || format!("key `{label}` of account `{name}`");
        let known = self.used(&created, expires.as_deref()).map_err(|what| of() + &what)?;
        let key = AccessKey::new(id, secret).map_err(|what| format!("{}: {what}", of()))?;
        match self.keys.insert(key.id, KeyUse { of: known, secret: key.secret }) {
            Some(_) => Err(format!("{} is there twice", of())),
            None => Ok(()),
        }
    }

    /// What is kept of a token or a key of the account that is added next.
    fn used(&self, created: &str, expires: Option<&str>) -> Result<TokenUse, String> {
        let time = |text: &str| {
            Utc::from_rfc3339(text).ok_or_else(|| format!(": `{text}` is no time (RFC 3339)"))
        };
        time(created)?;
        Ok(TokenUse { account: self.accounts.len(), expires: expires.map(time).transpose()? })
    }

    /// The account of a token at a time; none where it has none, or has expired.
    pub fn of_token(&self, token: &str, now: Utc) -> Option<&Arc<ServeAccount>> {
        let TokenUse { account, expires } = self.tokens.get(&TokenHash::of(token))?;
        let is_valid = expires.is_none_or(|expires| now < expires);
        is_valid.then(|| &self.accounts[*account])
    }

    /// The account of an access key at a time, with the key's secret; none where it has none, or
    /// has expired.
    pub fn of_key(&self, id: &str, now: Utc) -> Option<(&Arc<ServeAccount>, &KeySecret)> {
        let KeyUse { of: TokenUse { account, expires }, secret } = self.keys.get(id)?;
        let is_valid = expires.is_none_or(|expires| now < expires);
        is_valid.then(|| (&self.accounts[*account], secret))
    }

    /// Whether it has secrets of access keys: the file is not for others then.
    pub fn has_keys(&self) -> bool {
        !self.keys.is_empty()
    }

    /// All accounts, in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<ServeAccount>> {
        self.accounts.iter()
    }
}

impl AccountsFile {
    /// Reads the text of a file, as far as its form goes.
    pub fn parse(text: &str) -> Result<Self, AccountsError> {
        let file: Self = toml::from_str(text).map_err(|error| {
            let line = error.span().map(|span| text[..span.start].matches('\n').count() + 1);
            let at = line.map_or(String::new(), |line| format!("line {line}: "));
            AccountsError(format!("{at}{}", error.message().replace('\n', "; ")))
        })?;
        if file.account.len() > ACCOUNTS_MAX {
            return Err(AccountsError(format!("there are more than {ACCOUNTS_MAX} accounts")));
        }
        Ok(file)
    }
}

/// Checks the name of an account or the label of a token.
pub(crate) fn check_name(what: &str, name: &str) -> Result<(), String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if (1..=64).contains(&name.len()) && name.chars().all(is_plain) {
        return Ok(());
    }
    let name = skyhaul_units::printable(name, 64);
    Err(format!("`{name}` cannot name the {what}; write 1 to 64 letters, digits, `-`, `_` or `.`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(token: &str) -> String {
        format!(
            "[[account]]\nname = \"lance\"\nfilter = \"mission = 'aqua'\"\nroots = \
             [\"products\"]\nrate = \"8 Mbit/s\"\nvolume = \"1 GB\"\n[[account.token]]\nlabel = \
             \"2026\"\nsha256 = \"{}\"\ncreated = \"2026-11-26T00:00:00Z\"\nexpires = \
             \"2026-12-01T00:00:00Z\"\n",
            TokenHash::of(token).to_hex()
        )
    }

    #[test]
    fn a_token_leads_to_its_account_until_it_expires() {
        let accounts = Accounts::parse(&text("secret")).unwrap();
        let at = |time| Utc::from_rfc3339(time).unwrap();
        let found = accounts.of_token("secret", at("2026-11-27T00:00:00Z")).unwrap();
        assert_eq!((found.name.as_str(), &found.roots[..]), ("lance", &[ServeRoot::Products][..]));
        assert!(accounts.of_token("Secret", at("2026-11-27T00:00:00Z")).is_none());
        assert!(accounts.of_token("secret", at("2026-12-01T00:00:00Z")).is_none());
        assert!(!format!("{accounts:?}").contains(&TokenHash::of("secret").to_hex()));
    }

    #[test]
    fn what_is_wrong_with_a_file_is_said() {
        let good = text("secret");
        for (from, to, said) in [
            ("name =", "nam =", "line 2: unknown field `nam`"),
            ("lance", "a b", "`a b` cannot name the account"),
            ("aqua'", "aqua", "the filter of account `lance`: at"),
            ("\"products\"", "\"files\"", "unknown variant `files`"),
            ("8 Mbit/s", "0 Mbit/s", "account `lance` has a limit of zero"),
            ("sha256 = \"", "sha256 = \"x", "`sha256` is not 64 hexadecimal digits"),
            ("2026-12-01", "2026-13-01", "is no time (RFC 3339)"),
            ("[[account.token]]", "[[account]]\nname = \"lance\"\n[[account.token]]", "two tables"),
        ] {
            let error = Accounts::parse(&good.replacen(from, to, 1)).unwrap_err();
            assert!(error.0.contains(said), "{error}");
        }
        let key = |id: &str, secret: &str| {
            let times = "created = \"2026-11-26T00:00:00Z\"";
            let key = format!("[[account.key]]\nlabel = \"k\"\nid = \"{id}\"\nsecret = ");
            Accounts::parse(&format!("{good}{key}\"{secret}\"\n{times}\n"))
        };
        let accounts = key("SKYABCDEFGHIJKLM", &"s".repeat(40)).unwrap();
        let (found, _) = accounts.of_key("SKYABCDEFGHIJKLM", Utc::default()).unwrap();
        assert!(accounts.has_keys() && found.name == "lance");
        assert!(!format!("{accounts:?}").contains("sssss"));
        for (id, secret) in [("SKY/", "s"), ("SKYABCDEFGHIJKLM", "short")] {
            let error = key(id, secret).unwrap_err();
            assert!(error.0.contains("key `k` of account `lance`: "), "{error}");
        }
        let twice = format!("{good}{}", &good[good.find("[[account.t").unwrap()..]);
        let error = Accounts::parse(&twice).unwrap_err();
        assert!(error.0.contains("is there twice"), "{error}");
    }
}
