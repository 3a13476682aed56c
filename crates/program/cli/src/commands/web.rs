//! `skyhaul web`: the users and tokens of a node's page.

use super::password::new_password;
use super::secret_file::{SecretFile, fresh, now};
use skyhaul_exit::{Exit, Failure};
use skyhaul_serve::NewToken;
use skyhaul_units::Duration;
use skyhaul_web::access::{
    KnownWebToken, KnownWebUser, PasswordHash, WebRole, WebTokenTerms, WebUserTerms, WebUsersError,
    web_tokens, web_users, with_password, with_web_token, with_web_user, without_web_token,
    without_web_user,
};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The users and tokens of `[web]`.
#[derive(clap::Subcommand)]
pub enum WebCommand {
    /// Adds, lists and removes people who log in at the page.
    #[command(subcommand)]
    User(UserCommand),
    /// Makes, lists and removes the tokens of programs.
    #[command(subcommand)]
    Token(WebTokenCommand),
}

/// People.
#[derive(clap::Subcommand)]
pub enum UserCommand {
    /// Adds a user, and asks for the password.
    #[command(after_help = "\
        Roles: metrics reads /metrics, viewer sees every figure, operator gives orders, admin \
        sees who ordered what and changes keys. Where standard input is no terminal, its first \
        line is the password. A running node reads the file again on SIGHUP.

Example:
  skyhaul web user add kim --role operator --config centre.toml
  pass show centre/kim | skyhaul web user add kim --role viewer --users users.toml")]
    Add(AddUser),
    /// Lists the users.
    #[command(after_help = "\
Example:
  skyhaul web user list --config centre.toml
  skyhaul web user list --users users.toml --json")]
    List(ListWeb),
    /// Gives a user another password, and ends the user's sessions on SIGHUP.
    #[command(after_help = "\
Example:
  skyhaul web user passwd kim --config centre.toml")]
    Passwd(NameWeb),
    /// Removes a user.
    #[command(after_help = "\
Example:
  skyhaul web user remove kim --config centre.toml")]
    Remove(NameWeb),
}

/// Programs.
#[derive(clap::Subcommand)]
pub enum WebTokenCommand {
    /// Makes a token, and prints it. It is not shown again: the file has its digest.
    #[command(after_help = "\
        A running node reads the file again on SIGHUP.

Example:
  skyhaul web token add prometheus --role metrics --config centre.toml
  skyhaul web token add wall --role viewer --users users.toml --expires 365d")]
    Add(AddWebToken),
    /// Lists the tokens, and with --config when each was last used.
    #[command(after_help = "\
Example:
  skyhaul web token list --config centre.toml
  skyhaul web token list --users users.toml --json")]
    List(ListWeb),
    /// Removes a token.
    #[command(
        alias = "revoke",
        after_help = "\
Example:
  skyhaul web token remove prometheus --config centre.toml"
    )]
    Remove(NameWeb),
}

/// Which users file is meant.
#[derive(clap::Args)]
pub struct UsersPlace {
    /// The node's configuration, whose `[web]` names the file.
    #[arg(long, value_name = "FILE", required_unless_present = "users")]
    config: Option<PathBuf>,
    /// The users file.
    #[arg(long, value_name = "FILE", conflicts_with = "config")]
    users: Option<PathBuf>,
}

/// The arguments of `skyhaul web user add`.
#[derive(clap::Args)]
pub struct AddUser {
    /// The name.
    name: String,
    /// What the user may do: metrics, viewer, operator, admin.
    #[arg(long, value_name = "ROLE")]
    role: WebRole,
    #[command(flatten)]
    place: UsersPlace,
}

/// The arguments of `skyhaul web token add`.
#[derive(clap::Args)]
pub struct AddWebToken {
    /// The name.
    name: String,
    /// What the program may do: metrics, viewer, operator, admin.
    #[arg(long, value_name = "ROLE")]
    role: WebRole,
    #[command(flatten)]
    place: UsersPlace,
    /// It is valid for so long; without it, until it is removed.
    #[arg(long, value_name = "DURATION")]
    expires: Option<Duration>,
}

/// The arguments of the lists.
#[derive(clap::Args)]
pub struct ListWeb {
    #[command(flatten)]
    place: UsersPlace,
    /// Prints them as one line of JSON.
    #[arg(long)]
    json: bool,
}

/// The arguments of what is done with one user, or token.
#[derive(clap::Args)]
pub struct NameWeb {
    /// The name.
    name: String,
    #[command(flatten)]
    place: UsersPlace,
}

/// Adds, lists or removes users and tokens.
///
/// # Errors
/// The file cannot be read, used or written, or it has no such user.
pub fn run(command: &WebCommand, out: &mut dyn Write) -> Result<(), Failure> {
    match command {
        WebCommand::User(UserCommand::Add(add)) => add.run(out),
        WebCommand::User(UserCommand::List(list)) => list.users(out),
        WebCommand::User(UserCommand::Passwd(named)) => named.passwd(out),
        WebCommand::User(UserCommand::Remove(named)) => named.remove_user(out),
        WebCommand::Token(WebTokenCommand::Add(add)) => add.run(out),
        WebCommand::Token(WebTokenCommand::List(list)) => list.tokens(out),
        WebCommand::Token(WebTokenCommand::Remove(named)) => named.remove_token(out),
    }
}

/// The users file, and the folder where the node keeps when tokens were used.
struct UsersFilePlace {
    file: PathBuf,
    state: Option<PathBuf>,
}

impl UsersPlace {
    fn find(&self) -> Result<UsersFilePlace, Failure> {
        if let Some(file) = &self.users {
            return Ok(UsersFilePlace { file: file.clone(), state: None });
        }
        let config = self.config.as_deref().unwrap_or(Path::new(""));
        let node = skyhaul_config::load(config)?;
        let file = node.web.and_then(|web| web.users).ok_or_else(|| {
            let help = "write `users` in [web], or give --users";
            let failure = Failure::new(Exit::Usage, "the node has no users file", help);
            failure.at(&config.display().to_string())
        })?;
        Ok(UsersFilePlace { file, state: Some(node.node.state) })
    }
}

impl AddUser {
    fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let file = self.place.find()?.file;
        let Self { name, role, .. } = self;
        let hash = hash_of(&new_password(name)?)?;
        let terms = WebUserTerms { name, role: *role, created: now() };
        change(&file, |text| with_web_user(text, terms, &hash))?;
        Ok(writeln!(out, "added user {name} ({role})")?)
    }
}

impl AddWebToken {
    fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let file = self.place.find()?.file;
        let token = NewToken::from_random(fresh()?);
        let created = now();
        let expires = self.expires.map(|span| created + span);
        let terms = WebTokenTerms { name: &self.name, role: self.role, created, expires };
        change(&file, |text| with_web_token(text, terms, &token))?;
        Ok(writeln!(out, "{}", token.secret())?)
    }
}

impl ListWeb {
    fn users(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let file = self.place.find()?.file;
        let users =
            web_users(&users_file(&file).read()?).map_err(|error| unusable(&file, &error))?;
        if self.json {
            let line = serde_json::to_string(&users).expect("it has text keys only");
            return Ok(writeln!(out, "{line}")?);
        }
        if users.is_empty() {
            return Ok(writeln!(out, "no users")?);
        }
        writeln!(out, "{:<20} {:<9} created", "user", "role")?;
        for KnownWebUser { name, role, created } in &users {
            writeln!(out, "{name:<20} {:<9} {created}", role.name())?;
        }
        Ok(())
    }

    fn tokens(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let UsersFilePlace { file, state } = self.place.find()?;
        let found = web_tokens(&users_file(&file).read()?);
        let mut tokens = found.map_err(|error| unusable(&file, &error))?;
        let uses = state.as_deref().map(kept_uses).unwrap_or_default();
        for token in &mut tokens {
            token.last_used = uses.get(&token.name).cloned();
        }
        if self.json {
            let line = serde_json::to_string(&tokens).expect("it has text keys only");
            return Ok(writeln!(out, "{line}")?);
        }
        if tokens.is_empty() {
            return Ok(writeln!(out, "no tokens")?);
        }
        writeln!(
            out,
            "{:<20} {:<9} {:<28} {:<28} last used",
            "token", "role", "created", "expires"
        )?;
        for KnownWebToken { name, role, created, expires, last_used } in &tokens {
            let expires = expires.as_deref().unwrap_or("never");
            let used = last_used.as_deref().unwrap_or(if state.is_some() { "never" } else { "" });
            let role = role.name();
            writeln!(out, "{name:<20} {role:<9} {created:<28} {expires:<28} {used}")?;
        }
        Ok(())
    }
}

impl NameWeb {
    fn passwd(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let (file, name) = (self.place.find()?.file, &self.name);
        // Before the password is asked for.
        let users =
            web_users(&users_file(&file).read()?).map_err(|error| unusable(&file, &error))?;
        if !users.iter().any(|user| user.name == *name) {
            let what = format!("there is no user `{}`", skyhaul_units::printable(name, 64));
            let help = "`skyhaul web user list` shows what there is";
            return Err(Failure::new(Exit::Usage, &what, help));
        }
        let hash = hash_of(&new_password(name)?)?;
        change(&file, |text| with_password(text, name, &hash))?;
        Ok(writeln!(out, "user {name} has another password")?)
    }

    fn remove_user(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let (file, name) = (self.place.find()?.file, &self.name);
        change(&file, |text| without_web_user(text, name))?;
        Ok(writeln!(out, "removed user {name}")?)
    }

    fn remove_token(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let (file, name) = (self.place.find()?.file, &self.name);
        change(&file, |text| without_web_token(text, name))?;
        Ok(writeln!(out, "removed token {name}")?)
    }
}

fn hash_of(password: &str) -> Result<PasswordHash, Failure> {
    let mut salt = [0; 16];
    salt.copy_from_slice(&fresh()?[..16]);
    PasswordHash::make(password, salt).map_err(|what| {
        let help = "`skyhaul web user add --help` shows how it is given";
        Failure::new(Exit::Usage, &what, help)
    })
}

/// When tokens were last used; nothing where the node has kept nothing, or this user may not read
/// it.
fn kept_uses(state: &Path) -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(state.join(skyhaul_node::WEB_TOKEN_USES));
    text.ok().and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
}

fn users_file(file: &Path) -> SecretFile<'_> {
    SecretFile { path: file, what: "the users file", flag: "--users" }
}

fn change(
    file: &Path,
    change: impl FnOnce(&str) -> Result<String, WebUsersError>,
) -> Result<(), Failure> {
    let check = |text: &str| web_users(text).map(drop).map_err(|error| unusable(file, &error));
    users_file(file).change(check, change)
}

fn unusable(file: &Path, error: &WebUsersError) -> Failure {
    users_file(file).unusable(error, "`skyhaul web user list` shows what it has")
}
