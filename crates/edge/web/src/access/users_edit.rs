//! Changing the text of a users file: comments and what stands elsewhere stay.

use super::known::{KnownWebToken, KnownWebUser};
use super::password::PasswordHash;
use super::role::WebRole;
use super::users::{UsersFile, WebUsers, WebUsersError, check_name};
use skyhaul_serve::{NewToken, TokenHash};
use skyhaul_units::Utc;
use toml_edit::{ArrayOfTables, DocumentMut, Item, Table, value};

/// A new user.
#[derive(Debug, Clone, Copy)]
pub struct WebUserTerms<'a> {
    /// The name.
    pub name: &'a str,
    /// The role.
    pub role: WebRole,
    /// Now.
    pub created: Utc,
}

/// A new token.
#[derive(Debug, Clone, Copy)]
pub struct WebTokenTerms<'a> {
    /// The name.
    pub name: &'a str,
    /// The role.
    pub role: WebRole,
    /// Now.
    pub created: Utc,
    /// When it expires, if it does.
    pub expires: Option<Utc>,
}

const USER: &str = "user";
const TOKEN: &str = "token";

/// The text of the file with one more user.
///
/// # Errors
/// The file cannot be used, or has a user of this name.
pub fn with_web_user(
    text: &str,
    terms: WebUserTerms<'_>,
    password: &PasswordHash,
) -> Result<String, WebUsersError> {
    let WebUserTerms { name, role, created } = terms;
    check_name(USER, name).map_err(WebUsersError)?;
    if web_users(text)?.iter().any(|user| user.name == name) {
        let help = "`skyhaul web user passwd` gives it another password";
        return Err(WebUsersError(format!("there is a user `{name}`; {help}")));
    }
    let entry = [
        ("name", name.to_owned()),
        ("role", role.to_string()),
        ("password", password.to_text()),
        ("created", created.to_string()),
    ];
    with_entry(text, USER, &entry)
}

/// The text of the file with another password of a user.
///
/// # Errors
/// The file cannot be used, or has no such user.
pub fn with_password(
    text: &str,
    name: &str,
    password: &PasswordHash,
) -> Result<String, WebUsersError> {
    if !web_users(text)?.iter().any(|user| user.name == name) {
        return Err(nobody(USER, name));
    }
    let mut document = document(text)?;
    for table in tables(&mut document, USER)?.iter_mut() {
        if name_of(table) == Some(name) {
            table.insert("password", value(password.to_text()));
        }
    }
    checked(document.to_string())
}

/// The text of the file without a user.
///
/// # Errors
/// The file cannot be used, or has no such user.
pub fn without_web_user(text: &str, name: &str) -> Result<String, WebUsersError> {
    match web_users(text)?.iter().any(|user| user.name == name) {
        true => without_entry(text, USER, name),
        false => Err(nobody(USER, name)),
    }
}

/// The text of the file with one more token.
///
/// # Errors
/// The file cannot be used, or has a token of this name.
pub fn with_web_token(
    text: &str,
    terms: WebTokenTerms<'_>,
    token: &NewToken,
) -> Result<String, WebUsersError> {
    let WebTokenTerms { name, role, created, expires } = terms;
    check_name(TOKEN, name).map_err(WebUsersError)?;
    if web_tokens(text)?.iter().any(|known| known.name == name) {
        return Err(WebUsersError(format!("there is a token `{name}`; give another name")));
    }
    let mut entry = vec![
        ("name", name.to_owned()),
        ("role", role.to_string()),
        ("sha256", TokenHash::of(token.secret()).to_hex()),
        ("created", created.to_string()),
    ];
    entry.extend(expires.map(|expires| ("expires", expires.to_string())));
    with_entry(text, TOKEN, &entry)
}

/// The text of the file without a token.
///
/// # Errors
/// The file cannot be used, or has no such token.
pub fn without_web_token(text: &str, name: &str) -> Result<String, WebUsersError> {
    match web_tokens(text)?.iter().any(|token| token.name == name) {
        true => without_entry(text, TOKEN, name),
        false => Err(nobody(TOKEN, name)),
    }
}

/// The users of a file.
///
/// # Errors
/// The file cannot be used.
pub fn web_users(text: &str) -> Result<Vec<KnownWebUser>, WebUsersError> {
    WebUsers::parse(text)?;
    let users = UsersFile::parse(text)?.user.into_iter();
    let known =
        users.map(|user| KnownWebUser { name: user.name, role: user.role, created: user.created });
    Ok(known.collect())
}

/// The tokens of a file; when they were used is not in it.
///
/// # Errors
/// The file cannot be used.
pub fn web_tokens(text: &str) -> Result<Vec<KnownWebToken>, WebUsersError> {
    WebUsers::parse(text)?;
    let tokens = UsersFile::parse(text)?.token.into_iter();
    let known = tokens.map(|token| KnownWebToken {
        name: token.name,
        role: token.role,
        created: token.created,
        expires: token.expires,
        last_used: None,
    });
    Ok(known.collect())
}

fn nobody(what: &str, name: &str) -> WebUsersError {
    let name = skyhaul_units::printable(name, 64);
    WebUsersError(format!(
        "there is no {what} `{name}`; `skyhaul web {what} list` shows what there is"
    ))
}

fn with_entry(text: &str, what: &str, entry: &[(&str, String)]) -> Result<String, WebUsersError> {
    let mut document = document(text)?;
    let mut table = Table::new();
    for (key, text) in entry {
        table.insert(key, value(text));
    }
    tables(&mut document, what)?.push(table);
    checked(document.to_string())
}

fn without_entry(text: &str, what: &str, name: &str) -> Result<String, WebUsersError> {
    let mut document = document(text)?;
    tables(&mut document, what)?.retain(|table| name_of(table) != Some(name));
    checked(document.to_string())
}

fn document(text: &str) -> Result<DocumentMut, WebUsersError> {
    text.parse().map_err(|error: toml_edit::TomlError| WebUsersError(error.message().to_owned()))
}

fn name_of(table: &Table) -> Option<&str> {
    table.get("name").and_then(Item::as_str)
}

fn tables<'a>(
    document: &'a mut DocumentMut,
    key: &str,
) -> Result<&'a mut ArrayOfTables, WebUsersError> {
    let item = document.entry(key).or_insert(Item::ArrayOfTables(ArrayOfTables::new()));
    let what = format!("`{key}` is not written as tables [[{key}]]; write it so");
    item.as_array_of_tables_mut().ok_or(WebUsersError(what))
}

/// A text that was changed must be one that a node reads.
fn checked(text: String) -> Result<String, WebUsersError> {
    WebUsers::parse(&text).map(|_| text)
}
