//! Changing the text of an accounts file: comments and what stands elsewhere stay.

use crate::accounts::{Accounts, AccountsError, TokenHash, check_name};
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

/// What a new token is for.
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
    let TokenTerms { account, label, created, expires } = terms;
    check_name("account", account).map_err(AccountsError)?;
    check_name("token", label).map_err(AccountsError)?;
    if tokens(text)?.iter().any(|known| known.account == account && known.label == label) {
        let what = format!("account `{account}` has a token `{label}`; give another --label");
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
    added.insert("sha256", value(TokenHash::of(token.secret()).to_hex()));
    added.insert("created", value(created.to_string()));
    if let Some(expires) = expires {
        added.insert("expires", value(expires.to_string()));
    }
    tables(entry, "token")?.push(added);
    checked(document.to_string())
}

/// The text of the file without a token.
///
/// # Errors
/// The file cannot be used, or has no such token.
pub fn without_token(text: &str, account: &str, label: &str) -> Result<String, AccountsError> {
    if !tokens(text)?.iter().any(|known| known.account == account && known.label == label) {
        let account = skyhaul_units::printable(account, 64);
        let label = skyhaul_units::printable(label, 64);
        let help = "`skyhaul serve token list` shows what there is";
        return Err(AccountsError(format!("account `{account}` has no token `{label}`; {help}")));
    }
    let mut document = document(text)?;
    for table in tables(document.as_table_mut(), "account")?.iter_mut() {
        if name_of(table, "name") == Some(account) && table.contains_key("token") {
            tables(table, "token")?.retain(|token| name_of(token, "label") != Some(label));
        }
    }
    checked(document.to_string())
}

/// The tokens of a file.
///
/// # Errors
/// The file cannot be used.
pub fn tokens(text: &str) -> Result<Vec<KnownToken>, AccountsError> {
    Accounts::parse(text)?;
    let document = document(text)?;
    let mut found = Vec::new();
    let accounts = document.get("account").and_then(Item::as_array_of_tables);
    for account in accounts.into_iter().flatten() {
        let tokens = account.get("token").and_then(Item::as_array_of_tables);
        for token in tokens.into_iter().flatten() {
            let text = |table: &Table, key: &str| name_of(table, key).map(str::to_owned);
            found.push(KnownToken {
                account: text(account, "name").unwrap_or_default(),
                label: text(token, "label").unwrap_or_default(),
                created: text(token, "created").unwrap_or_default(),
                expires: text(token, "expires"),
            });
        }
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
