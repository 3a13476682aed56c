//! Changing the text of an accounts file: comments and what stands elsewhere stay.

use crate::access_key::AccessKey;
use crate::accounts::{Accounts, AccountsError, AccountsFile, TokenHash, check_name};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use skyhaul_units::Utc;
use toml_edit::{ArrayOfTables, DocumentMut, Item, Table, value};

/// A token. It cannot be shown but by [`NewToken::secret`].
pub struct NewToken(String);

/// A token of the file, without the token.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct KnownToken {
    /// The account.
    pub account: String,
    /// Its label.
    pub label: String,
    /// When it was made.
    pub created: String,
    /// When it expires, if it does.
    pub expires: Option<String>,
}

/// An access key of the file, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct KnownKey {
    /// The account.
    pub account: String,
    /// Its label.
    pub label: String,
    /// Its identifier.
    pub id: String,
    /// When it was made.
    pub created: String,
    /// When it expires, if it does.
    pub expires: Option<String>,
}

/// What a new token, or a new key, is for.
#[derive(Debug, Clone, Copy)]
pub struct TokenTerms<'a> {
    /// The account; it is made if it is not there.
    pub account: &'a str,
    /// A label that tells the tokens of an account apart.
    pub label: &'a str,
    /// Now.
    pub created: Utc,
    /// When it expires, if it does.
    pub expires: Option<Utc>,
}

impl NewToken {
    /// From random bytes.
    pub fn from_random(random: [u8; 32]) -> Self {
        Self(format!("sky_{}", BASE64_URL_SAFE_NO_PAD.encode(random)))
    }

    /// The token itself, to be printed once.
    pub fn secret(&self) -> &str {
        &self.0
    }
}

impl core::fmt::Debug for NewToken {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("NewToken(…)")
    }
}

/// The text of the file with one more token.
///
/// # Errors
/// The file cannot be used, or has a token of this label.
pub fn with_token(
    text: &str,
    token: &NewToken,
    terms: TokenTerms<'_>,
) -> Result<String, AccountsError> {
    let hash = TokenHash::of(token.secret()).to_hex();
    with_entry(text, "token", &[("sha256", &hash)], terms)
}

/// The text of the file with one more access key.
///
/// # Errors
/// The file cannot be used, or has a key of this label.
pub fn with_key(
    text: &str,
    key: &AccessKey,
    terms: TokenTerms<'_>,
) -> Result<String, AccountsError> {
    with_entry(text, "key", &[("id", &key.id), ("secret", key.secret.as_str())], terms)
}

fn with_entry(
    text: &str,
    what: &str,
    values: &[(&str, &str)],
    terms: TokenTerms<'_>,
) -> Result<String, AccountsError> {
    let TokenTerms { account, label, created, expires } = terms;
    check_name("account", account).map_err(AccountsError)?;
    check_name(what, label).map_err(AccountsError)?;
    if has_entry(text, what, account, label)? {
        let what = format!("account `{account}` has a {what} `{label}`; give another --label");
        return Err(AccountsError(what));
    }
    let mut document = document(text)?;
    let all = tables(document.as_table_mut(), "account")?;
    let is_it = |table: &Table| name_of(table, "name") == Some(account);
    if !all.iter().any(is_it) {
        let mut table = Table::new();
        table.insert("name", value(account));
        all.push(table);
    }
    let found = all.iter_mut().find(|table| is_it(table));
    let entry = found.expect("it was pushed if it was not there");
    let mut added = Table::new();
    added.insert("label", value(label));
    for (key, text) in values {
        added.insert(key, value(*text));
    }
    added.insert("created", value(created.to_string()));
    if let Some(expires) = expires {
        added.insert("expires", value(expires.to_string()));
    }
    tables(entry, what)?.push(added);
    checked(document.to_string())
}

/// The text of the file without a token.
///
/// # Errors
/// The file cannot be used, or has no such token.
pub fn without_token(text: &str, account: &str, label: &str) -> Result<String, AccountsError> {
    without_entry(text, "token", account, label)
}

/// The text of the file without an access key.
///
/// # Errors
/// The file cannot be used, or has no such key.
pub fn without_key(text: &str, account: &str, label: &str) -> Result<String, AccountsError> {
    without_entry(text, "key", account, label)
}

fn without_entry(
    text: &str,
    what: &str,
    account: &str,
    label: &str,
) -> Result<String, AccountsError> {
    if !has_entry(text, what, account, label)? {
        let account = skyhaul_units::printable(account, 64);
        let label = skyhaul_units::printable(label, 64);
        let help = format!("`skyhaul serve {what} list` shows what there is");
        return Err(AccountsError(format!("account `{account}` has no {what} `{label}`; {help}")));
    }
    let mut document = document(text)?;
    for table in tables(document.as_table_mut(), "account")?.iter_mut() {
        if name_of(table, "name") == Some(account) && table.contains_key(what) {
            tables(table, what)?.retain(|entry| name_of(entry, "label") != Some(label));
        }
    }
    checked(document.to_string())
}

fn has_entry(text: &str, what: &str, account: &str, label: &str) -> Result<bool, AccountsError> {
    Ok(match what {
        "key" => keys(text)?.iter().any(|key| key.account == account && key.label == label),
        _ => tokens(text)?.iter().any(|token| token.account == account && token.label == label),
    })
}

/// The tokens of a file, however its tables are written.
///
/// # Errors
/// The file cannot be used.
pub fn tokens(text: &str) -> Result<Vec<KnownToken>, AccountsError> {
    Accounts::parse(text)?;
    let mut found = Vec::new();
    for account in AccountsFile::parse(text)?.account {
        let name = account.name;
        found.extend(account.token.into_iter().map(|token| KnownToken {
            account: name.clone(),
            label: token.label,
            created: token.created,
            expires: token.expires,
        }));
    }
    Ok(found)
}

/// The access keys of a file, however its tables are written.
///
/// # Errors
/// The file cannot be used.
pub fn keys(text: &str) -> Result<Vec<KnownKey>, AccountsError> {
    Accounts::parse(text)?;
    let mut found = Vec::new();
    for account in AccountsFile::parse(text)?.account {
        let name = account.name;
        found.extend(account.key.into_iter().map(|key| KnownKey {
            account: name.clone(),
            label: key.label,
            id: key.id,
            created: key.created,
            expires: key.expires,
        }));
    }
    Ok(found)
}

fn document(text: &str) -> Result<DocumentMut, AccountsError> {
    text.parse().map_err(|error: toml_edit::TomlError| AccountsError(error.message().to_owned()))
}

fn name_of<'a>(table: &'a Table, key: &str) -> Option<&'a str> {
    table.get(key).and_then(Item::as_str)
}

fn tables<'a>(table: &'a mut Table, key: &str) -> Result<&'a mut ArrayOfTables, AccountsError> {
    let item = table.entry(key).or_insert(Item::ArrayOfTables(ArrayOfTables::new()));
    let what = format!("`{key}` is not written as tables [[…{key}]]; write it so");
    item.as_array_of_tables_mut().ok_or(AccountsError(what))
}

/// A text that was changed must be one that a node reads.
fn checked(text: String) -> Result<String, AccountsError> {
    Accounts::parse(&text).map(|_| text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms<'a>(account: &'a str, label: &'a str) -> TokenTerms<'a> {
        let created = Utc::from_rfc3339("2026-11-26T12:00:00Z").unwrap();
        TokenTerms { account, label, created, expires: None }
    }

    #[test]
    fn tokens_come_and_go_and_the_rest_stays() {
        let before = "# ours\n[[account]]\nname = \"lance\" # near real time\nconnections = 4\n";
        let token = NewToken::from_random([7; 32]);
        assert_eq!((token.secret().len(), &token.secret()[..4]), (47, "sky_"));
        let one = with_token(before, &token, terms("lance", "2026")).unwrap();
        assert!(one.starts_with(before) && !one.contains(token.secret()), "{one}");
        let other = NewToken::from_random([8; 32]);
        let two = with_token(&one, &other, terms("eumetsat", "a")).unwrap();
        let accounts = Accounts::parse(&two).unwrap();
        let found = accounts.of_token(other.secret(), Utc::default()).unwrap();
        assert_eq!(found.name, "eumetsat");
        let labels: Vec<(String, String)> =
            tokens(&two).unwrap().into_iter().map(|known| (known.account, known.label)).collect();
        let pair = |one: &str, other: &str| (one.to_owned(), other.to_owned());
        assert_eq!(labels, [pair("lance", "2026"), pair("eumetsat", "a")]);
        let gone = without_token(&two, "lance", "2026").unwrap();
        let accounts = Accounts::parse(&gone).unwrap();
        assert!(accounts.of_token(token.secret(), Utc::default()).is_none());
        assert!(gone.contains("# near real time"), "{gone}");
    }

    #[test]
    fn keys_come_and_go_beside_tokens() {
        let token = NewToken::from_random([7; 32]);
        let one = with_token("", &token, terms("a", "1")).unwrap();
        let key = AccessKey::from_random([9; 32], [8; 32]);
        let two = with_key(&one, &key, terms("a", "1")).unwrap();
        let accounts = Accounts::parse(&two).unwrap();
        let (account, secret) = accounts.of_key(&key.id, Utc::default()).unwrap();
        assert_eq!((account.name.as_str(), secret), ("a", &key.secret));
        let known = keys(&two).unwrap();
        assert_eq!((known.len(), &known[0].id), (1, &key.id));
        let error = with_key(&two, &key, terms("a", "1")).unwrap_err();
        assert!(error.0.contains("has a key `1`"), "{error}");
        assert_eq!(without_key(&two, "a", "1").unwrap(), one);
    }

    #[test]
    fn tokens_of_tables_in_one_line_are_listed_too() {
        let hash = TokenHash::of("x").to_hex();
        let text = format!(
            "account = [{{ name = \"a\", token = [{{ label = \"1\", sha256 = \"{hash}\", created \
             = \"2026-11-26T12:00:00Z\" }}] }}]"
        );
        assert_eq!(tokens(&text).unwrap()[0].label, "1");
        let error = without_token(&text, "a", "1").unwrap_err();
        assert!(error.0.contains("is not written as tables"), "{error}");
    }

    #[test]
    fn a_change_that_cannot_be_is_refused() {
        let token = NewToken::from_random([7; 32]);
        let one = with_token("", &token, terms("a", "1")).unwrap();
        for (result, said) in [
            (with_token(&one, &token, terms("a", "1")), "has a token `1`"),
            (with_token(&one, &token, terms("b", "1")), "is there twice"),
            (with_token(&one, &token, terms("a b", "1")), "`a b` cannot name the account"),
            (without_token(&one, "a", "2"), "account `a` has no token `2`"),
            (without_token("x", "a", "2"), "line 1"),
        ] {
            let error = result.unwrap_err();
            assert!(error.0.contains(said), "{error}");
        }
    }
}
