//! `skyhaul serve`: the accounts of customers who come for products.

use super::secret_file::{SecretFile, fresh, now};
use skyhaul_exit::{Exit, Failure};
use skyhaul_serve::{AccessKey, AccountsError, KnownKey, KnownToken, NewToken, TokenTerms};
use skyhaul_units::Duration;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The accounts of `[serve]`.
#[derive(clap::Subcommand)]
pub enum ServeCommand {
    /// Makes, lists and removes the tokens of accounts.
    #[command(subcommand)]
    Token(TokenCommand),
    /// Makes, lists and removes the access keys of accounts, for S3.
    #[command(subcommand)]
    Key(KeyCommand),
}

/// Tokens of accounts.
#[derive(clap::Subcommand)]
pub enum TokenCommand {
    /// Makes a token, and prints it. It is not shown again: the file has its digest.
    #[command(after_help = "\
        Makes the account if it is not there. What an account may do is written into the file by \
        hand; a running node reads it again on SIGHUP.

Example:
  skyhaul serve token add lance --config centre.toml
  skyhaul serve token add lance --accounts accounts.toml --label 2027 --expires 365d")]
    Add(AddToken),
    /// Lists the tokens, without the tokens themselves.
    #[command(after_help = "\
Example:
  skyhaul serve token list --config centre.toml
  skyhaul serve token list --accounts accounts.toml --json")]
    List(ListTokens),
    /// Removes a token.
    #[command(after_help = "\
Example:
  skyhaul serve token remove lance --label 2026 --config centre.toml")]
    Remove(RemoveToken),
}

/// Access keys of accounts.
#[derive(clap::Subcommand)]
pub enum KeyCommand {
    /// Makes an access key, and prints it. Its secret is not shown again.
    #[command(after_help = "\
        Prints the key as the variables that S3's tools read. The file has the secret as it is: \
        only its owner may read it. A running node reads it again on SIGHUP.

Example:
  skyhaul serve key add lance --config centre.toml
  skyhaul serve key add lance --accounts accounts.toml --label 2027 --json")]
    Add(AddKey),
    /// Lists the access keys, without their secrets.
    #[command(after_help = "\
Example:
  skyhaul serve key list --config centre.toml")]
    List(ListTokens),
    /// Removes an access key.
    #[command(after_help = "\
Example:
  skyhaul serve key remove lance --label 2026 --config centre.toml")]
    Remove(RemoveToken),
}

/// Which accounts file is meant.
#[derive(clap::Args)]
pub struct AccountsPlace {
    /// The node's configuration, whose `[serve]` names the file.
    #[arg(long, value_name = "FILE", required_unless_present = "accounts")]
    config: Option<PathBuf>,
    /// The accounts file.
    #[arg(long, value_name = "FILE", conflicts_with = "config")]
    accounts: Option<PathBuf>,
}

/// The arguments of `skyhaul serve token add`.
#[derive(clap::Args)]
pub struct AddToken {
    /// The account.
    account: String,
    #[command(flatten)]
    place: AccountsPlace,
    /// Tells those of an account apart.
    #[arg(long, value_name = "LABEL", default_value = "1")]
    label: String,
    /// It is valid for so long; without it, until it is removed.
    #[arg(long, value_name = "DURATION")]
    expires: Option<Duration>,
}

/// The arguments of `skyhaul serve key add`.
#[derive(clap::Args)]
pub struct AddKey {
    #[command(flatten)]
    add: AddToken,
    /// Prints it as one line of JSON.
    #[arg(long)]
    json: bool,
}

/// The arguments of `skyhaul serve token list`, and of `key list`.
#[derive(clap::Args)]
pub struct ListTokens {
    #[command(flatten)]
    place: AccountsPlace,
    /// Prints them as one line of JSON.
    #[arg(long)]
    json: bool,
}

/// The arguments of `skyhaul serve token remove`, and of `key remove`.
#[derive(clap::Args)]
pub struct RemoveToken {
    /// The account.
    account: String,
    #[command(flatten)]
    place: AccountsPlace,
    /// Its label.
    #[arg(long, value_name = "LABEL", default_value = "1")]
    label: String,
}

/// Makes, lists or removes tokens and keys.
///
/// # Errors
/// The file cannot be read, used or written, or it has no such token.
pub fn run(command: &ServeCommand, out: &mut dyn Write) -> Result<(), Failure> {
    match command {
        ServeCommand::Token(TokenCommand::Add(add)) => add.token(out),
        ServeCommand::Token(TokenCommand::List(list)) => list.tokens(out),
        ServeCommand::Token(TokenCommand::Remove(remove)) => remove.token(out),
        ServeCommand::Key(KeyCommand::Add(add)) => add.run(out),
        ServeCommand::Key(KeyCommand::List(list)) => list.keys(out),
        ServeCommand::Key(KeyCommand::Remove(remove)) => remove.key(out),
    }
}

impl AccountsPlace {
    fn file(&self) -> Result<PathBuf, Failure> {
        if let Some(file) = &self.accounts {
            return Ok(file.clone());
        }
        let config = self.config.as_deref().unwrap_or(Path::new(""));
        let serve = skyhaul_config::load(config)?.serve;
        serve.and_then(|serve| serve.accounts).ok_or_else(|| {
            let help = "write `accounts` in [serve], or give --accounts";
            let failure = Failure::new(Exit::Usage, "the node has no accounts file", help);
            failure.at(&config.display().to_string())
        })
    }
}

impl AddToken {
    fn terms(&self) -> TokenTerms<'_> {
        let now = now();
        TokenTerms {
            account: &self.account,
            label: &self.label,
            created: now,
            expires: self.expires.map(|span| now + span),
        }
    }

    fn token(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let file = self.place.file()?;
        let token = NewToken::from_random(fresh()?);
        change(&file, |text| skyhaul_serve::with_token(text, &token, self.terms()))?;
        Ok(writeln!(out, "{}", token.secret())?)
    }
}

impl AddKey {
    fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let file = self.add.place.file()?;
        let key = AccessKey::from_random(fresh()?, fresh()?);
        change(&file, |text| skyhaul_serve::with_key(text, &key, self.add.terms()))?;
        let (id, secret) = (&key.id, key.secret.as_str());
        if self.json {
            let line = serde_json::json!({"id": id, "secret": secret});
            return Ok(writeln!(out, "{line}")?);
        }
        Ok(writeln!(out, "AWS_ACCESS_KEY_ID={id}\nAWS_SECRET_ACCESS_KEY={secret}")?)
    }
}

impl ListTokens {
    fn tokens(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let file = self.place.file()?;
        let tokens =
            skyhaul_serve::tokens(&read(&file)?).map_err(|error| unusable(&file, &error))?;
        if self.json {
            let line = serde_json::to_string(&tokens).expect("it has text keys only");
            return Ok(writeln!(out, "{line}")?);
        }
        if tokens.is_empty() {
            return Ok(writeln!(out, "no tokens")?);
        }
        writeln!(out, "{:<20} {:<12} {:<28} expires", "account", "label", "created")?;
        for KnownToken { account, label, created, expires } in &tokens {
            let expires = expires.as_deref().unwrap_or("never");
            writeln!(out, "{account:<20} {label:<12} {created:<28} {expires}")?;
        }
        Ok(())
    }

    fn keys(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let file = self.place.file()?;
        let keys = skyhaul_serve::keys(&read(&file)?).map_err(|error| unusable(&file, &error))?;
        if self.json {
            let line = serde_json::to_string(&keys).expect("it has text keys only");
            return Ok(writeln!(out, "{line}")?);
        }
        if keys.is_empty() {
            return Ok(writeln!(out, "no access keys")?);
        }
        writeln!(
            out,
            "{:<20} {:<12} {:<28} {:<28} expires",
            "account", "label", "access key", "created"
        )?;
        for KnownKey { account, label, id, created, expires } in &keys {
            let expires = expires.as_deref().unwrap_or("never");
            writeln!(out, "{account:<20} {label:<12} {id:<28} {created:<28} {expires}")?;
        }
        Ok(())
    }
}

impl RemoveToken {
    fn token(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let file = self.place.file()?;
        change(&file, |text| skyhaul_serve::without_token(text, &self.account, &self.label))?;
        Ok(writeln!(out, "removed token {} of {}", self.label, self.account)?)
    }

    fn key(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let file = self.place.file()?;
        change(&file, |text| skyhaul_serve::without_key(text, &self.account, &self.label))?;
        Ok(writeln!(out, "removed access key {} of {}", self.label, self.account)?)
    }
}

fn accounts(file: &Path) -> SecretFile<'_> {
    SecretFile { path: file, what: "the accounts file", flag: "--accounts" }
}

/// The text of the file; a file that is not there is empty.
fn read(file: &Path) -> Result<String, Failure> {
    accounts(file).read()
}

/// Changes the file as a whole; one command at a time does.
fn change(
    file: &Path,
    change: impl FnOnce(&str) -> Result<String, AccountsError>,
) -> Result<(), Failure> {
    let check =
        |text: &str| skyhaul_serve::tokens(text).map(drop).map_err(|error| unusable(file, &error));
    accounts(file).change(check, change)
}

fn unusable(file: &Path, error: &AccountsError) -> Failure {
    accounts(file).unusable(error, "`skyhaul serve token list` shows what it has")
}
