//! Who comes with a request, and whether that is enough for it.

use super::attempts::AttemptTable;
use super::order::LoginRequest;
use super::password::PasswordHash;
use super::role::WebRole;
use super::sessions::SessionTable;
use super::users::WebUsers;
use core::net::IpAddr;
use skyhaul_serve::{GateTime, ServeAnswer, ServeRequest};
use skyhaul_units::{Duration, Instant, Utc};
use std::collections::BTreeMap;

/// Users, tokens, sessions and attempts of a page.
#[derive(Debug)]
pub struct WebAccess {
    /// None: nobody can log in, and what is anonymous is for everybody.
    users: Option<WebUsers>,
    terms: AccessTerms,
    sessions: SessionTable,
    attempts: AttemptTable,
    uses: TokenUses,
    unauthorized: u64,
}

/// What does not change while the page runs.
#[derive(Debug, Clone)]
pub struct AccessTerms {
    /// What somebody without a token or a password may do.
    pub anonymous: Option<WebRole>,
    /// A session in which nobody does anything ends after so long.
    pub idle: Duration,
    /// Whether browsers reach the page over TLS.
    pub tls: WebTls,
    /// The port of the page: two nodes of one host have cookies of their own.
    pub port: u16,
}

/// Whether browsers reach the page over TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebTls {
    /// They do: cookies are for TLS alone.
    Here,
    /// They do not.
    No,
}

/// When tokens were used.
#[derive(Debug, Default)]
struct TokenUses {
    last: BTreeMap<String, Utc>,
    kept: Option<Instant>,
    is_new: bool,
}

/// What a request has of its caller: secrets.
#[derive(Clone, Default)]
pub struct WebCredential {
    session: Option<String>,
    token: Option<String>,
}

/// Who calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebCaller {
    /// Who.
    pub owner: WebOwner,
    /// What that one may do; none: nothing.
    pub role: Option<WebRole>,
}

/// Who has a role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WebOwner {
    /// It is not known.
    Nobody,
    /// A person, who has logged in.
    User(String),
    /// A program, with the token of this name.
    Token(String),
}

/// A login whose password is compared.
#[derive(Debug)]
pub struct LoginTrial {
    /// Compare the password with this one.
    pub hash: PasswordHash,
    /// Whose login it would be.
    pub user: String,
    /// Where it comes from.
    pub address: IpAddr,
    /// Whether the next one from there has to wait, if this fails.
    pub shuts: bool,
}

/// Uses of tokens are kept this often.
const KEPT_EVERY: Duration = Duration::from_secs(60);

impl WebCredential {
    /// Of a request to a page whose cookie has this name.
    pub fn of(request: &ServeRequest, cookie: &str) -> Self {
        let cookies = request.header("cookie").unwrap_or_default();
        // Several headers were joined by commas; values of ours have neither comma nor semicolon.
        let pairs = cookies.split([';', ',']).filter_map(|pair| pair.trim().split_once('='));
        let session = pairs.filter(|(name, _)| *name == cookie).map(|(_, value)| value).next();
        let token = request.header("authorization").map(|header| {
            let (scheme, rest) = header.trim().split_once(' ').unwrap_or(("", ""));
            // Another scheme shows no token, and is refused as a wrong one.
            if scheme.eq_ignore_ascii_case("bearer") { rest.trim() } else { "" }.to_owned()
        });
        Self { session: session.map(str::to_owned), token }
    }

    /// Whether a browser sent a cookie of this page.
    pub const fn has_cookie(&self) -> bool {
        self.session.is_some()
    }
}

impl core::fmt::Debug for WebCredential {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("WebCredential(…)")
    }
}

impl WebOwner {
    /// The name, for people.
    pub fn name(&self) -> &str {
        match self {
            Self::Nobody => "nobody",
            Self::User(name) | Self::Token(name) => name,
        }
    }
}

impl AccessTerms {
    /// The name of the cookie.
    pub fn cookie(&self) -> String {
        match self.tls {
            // RFC 6265bis 4.1.3.2: a browser takes it over TLS alone, and from this host alone.
            WebTls::Here => format!("__Host-skyhaul-{}", self.port),
            WebTls::No => format!("skyhaul-{}", self.port),
        }
    }

    /// The header that sets the cookie of a session, or removes it.
    fn set_cookie(&self, value: Option<&str>) -> String {
        let secure = match self.tls {
            WebTls::Here => "; Secure",
            WebTls::No => "",
        };
        let (value, end) = value.map_or(("", "; Max-Age=0"), |value| (value, ""));
        let name = self.cookie();
        format!("{name}={value}; Path=/; HttpOnly; SameSite=Strict{secure}{end}")
    }
}

impl WebAccess {
    /// With these users; without any, what is anonymous is for everybody.
    pub fn new(users: Option<WebUsers>, terms: AccessTerms) -> Self {
        Self {
            users,
            sessions: SessionTable::new(terms.idle),
            attempts: AttemptTable::default(),
            uses: TokenUses::default(),
            unauthorized: 0,
            terms,
        }
    }

    /// Takes other users: sessions of those who are gone, or have another password, end. Returns
    /// what has changed, a few words each.
    pub fn adopt(&mut self, users: Option<WebUsers>) -> Vec<String> {
        let (empty, before) = (WebUsers::default(), self.users.take());
        let old = before.as_ref().unwrap_or(&empty);
        let new = users.as_ref().unwrap_or(&empty);
        let changes = new.changes(old);
        self.sessions.retain(|user| {
            let (old, new) = (old.user(user), new.user(user));
            new.is_some_and(|new| old.is_some_and(|old| old.password == new.password))
        });
        self.uses.last.retain(|token, _| new.has_token(token));
        self.users = users;
        changes
    }

    /// Whether somebody can log in.
    pub const fn has_users(&self) -> bool {
        self.users.is_some()
    }

    /// The name of the cookie.
    pub fn cookie(&self) -> String {
        self.terms.cookie()
    }

    /// Requests that were refused because their caller is not known.
    pub const fn unauthorized(&self) -> u64 {
        self.unauthorized
    }

    /// Sessions of people now.
    pub fn sessions(&self, now: Instant) -> usize {
        self.sessions.count(now)
    }

    /// Who calls. A token that is not good is refused; a session that has ended is nobody's.
    ///
    /// # Errors
    /// The answer: 401.
    pub fn caller(
        &mut self,
        credential: &WebCredential,
        now: GateTime,
    ) -> Result<WebCaller, ServeAnswer> {
        let anonymous = WebCaller { owner: WebOwner::Nobody, role: self.terms.anonymous };
        let Some(users) = &self.users else { return Ok(anonymous) };
        if let Some(token) = &credential.token {
            let Some(known) = users.token(token, now.utc) else {
                self.unauthorized += 1;
                return Err(unauthorized(
                    "the token is not known, or has expired; ask the admin of the node for another",
                ));
            };
            self.uses.note(&known.name, now);
            let owner = WebOwner::Token(known.name.clone());
            return Ok(WebCaller { owner, role: Some(known.role) });
        }
        let session = credential.session.as_deref();
        let user = session.and_then(|secret| self.sessions.user(secret, now.now));
        let known = user.and_then(|name| Some((name, users.user(name)?)));
        Ok(known.map_or(anonymous, |(name, user)| WebCaller {
            owner: WebOwner::User(name.to_owned()),
            role: Some(user.role),
        }))
    }

    /// Who calls, if that one may do what needs `role`.
    ///
    /// # Errors
    /// The answer: 401 where the caller is not known, 403 where the role is less.
    pub fn admit(
        &mut self,
        credential: &WebCredential,
        role: WebRole,
        now: GateTime,
    ) -> Result<WebCaller, ServeAnswer> {
        let caller = self.caller(credential, now)?;
        if caller.role.is_some_and(|has| has >= role) {
            return Ok(caller);
        }
        if self.users.is_none() {
            let what = "nobody can give orders here: it is not known who does; write `users` into \
                        [web], or use the command `skyhaul`";
            return Err(ServeAnswer::problem(403, what));
        }
        self.unauthorized += 1;
        Err(match caller.owner {
            WebOwner::Nobody => unauthorized(
                "log in at the page of the node, or give a token, as `Authorization: Bearer TOKEN`",
            ),
            WebOwner::User(name) | WebOwner::Token(name) => {
                let has = caller.role.map_or("nobody", WebRole::name);
                let what =
                    format!("this needs the role {role}, and {name} is {has}; ask the admin");
                ServeAnswer::problem(403, &what)
            }
        })
    }

    /// A person does something: the session goes on.
    pub fn keep(&mut self, credential: &WebCredential, now: Instant) {
        if let Some(secret) = &credential.session {
            self.sessions.keep(secret, now);
        }
    }

    /// A login begins.
    ///
    /// # Errors
    /// The answer where nobody can log in (404), or too many attempts have failed (429).
    pub fn begin_login(
        &mut self,
        login: &LoginRequest,
        address: IpAddr,
        now: Instant,
    ) -> Result<LoginTrial, ServeAnswer> {
        let Some(users) = &self.users else {
            let what = "nobody can log in here; write `users` into [web]";
            return Err(ServeAnswer::problem(404, what));
        };
        let wait = self.attempts.wait(&login.name, address, now);
        if wait > Duration::ZERO {
            let seconds = wait.as_nanos().div_ceil(1_000_000_000).max(1);
            let what = format!("too many logins have failed; try again in {seconds} s");
            let refused = ServeAnswer::problem(429, &what);
            return Err(refused.header("retry-after", seconds.to_string()));
        }
        let shuts = self.attempts.begin(&login.name, address, now);
        // An unknown name takes as long as a wrong password.
        let hash = users.user(&login.name).map(|user| user.password.clone());
        let hash = hash.unwrap_or_else(PasswordHash::of_nobody);
        Ok(LoginTrial { hash, user: login.name.clone(), address, shuts })
    }

    /// The password was the user's: begins a session, whose cookie holds `secret`.
    ///
    /// # Errors
    /// The user has gone, or has another password meanwhile: 401.
    pub fn log_in(
        &mut self,
        trial: &LoginTrial,
        secret: &str,
        now: GateTime,
    ) -> Result<ServeAnswer, ServeAnswer> {
        let user = self.users.as_ref().and_then(|users| users.user(&trial.user));
        let Some(user) = user.filter(|user| user.password == trial.hash) else {
            return Err(self.login_failed());
        };
        let role = user.role;
        self.attempts.succeeded(&trial.user, trial.address);
        self.sessions.begin(secret, &trial.user, now.now);
        let caller = WebCaller { owner: WebOwner::User(trial.user.clone()), role: Some(role) };
        let answer = self.shown(&caller);
        Ok(answer.header("set-cookie", self.terms.set_cookie(Some(secret))))
    }

    /// The answer to a login with a wrong name or password.
    pub fn login_failed(&mut self) -> ServeAnswer {
        self.unauthorized += 1;
        ServeAnswer::problem(401, "the name or the password is wrong")
    }

    /// Ends a session.
    pub fn log_out(&mut self, credential: &WebCredential) -> ServeAnswer {
        if let Some(secret) = &credential.session {
            self.sessions.end(secret);
        }
        let caller = WebCaller { owner: WebOwner::Nobody, role: self.terms.anonymous };
        self.shown(&caller).header("set-cookie", self.terms.set_cookie(None))
    }

    /// Who calls, as an answer.
    pub fn shown(&self, caller: &WebCaller) -> ServeAnswer {
        let (user, token) = match &caller.owner {
            WebOwner::Nobody => (None, None),
            WebOwner::User(name) => (Some(name), None),
            WebOwner::Token(name) => (None, Some(name)),
        };
        let answer = serde_json::json!({
            "user": user, "token": token, "role": caller.role, "login": self.has_users(),
        });
        ServeAnswer::json(200, &answer).header("cache-control", "no-store")
    }

    /// Users and tokens, without a secret, as an answer.
    pub fn listed(&self, now: GateTime) -> ServeAnswer {
        let users = self.users.iter().flat_map(WebUsers::known_users);
        let users = users.map(|user| {
            let sessions = self.sessions.count_of(&user.name, now.now);
            let mut row = serde_json::json!(user);
            row["sessions"] = sessions.into();
            row
        });
        let mut tokens: Vec<_> = self.users.iter().flat_map(WebUsers::known_tokens).collect();
        for token in &mut tokens {
            token.last_used = self.uses.last.get(&token.name).map(ToString::to_string);
        }
        let users: Vec<serde_json::Value> = users.collect();
        let answer = serde_json::json!({"users": users, "tokens": tokens});
        ServeAnswer::json(200, &answer).header("cache-control", "no-store")
    }

    /// What was kept of the uses of tokens before the node started.
    pub fn recall(&mut self, uses: BTreeMap<String, Utc>) {
        let Some(users) = &self.users else { return };
        for (name, at) in uses.into_iter().filter(|(name, _)| users.has_token(name)) {
            let last = self.uses.last.entry(name).or_insert(at);
            *last = (*last).max(at);
        }
    }

    /// When tokens were last used, if that is to be kept now.
    pub fn uses_to_keep(&mut self, now: Instant) -> Option<BTreeMap<String, Utc>> {
        let is_early = self.uses.kept.is_some_and(|kept| now.since(kept) < KEPT_EVERY);
        if !self.uses.is_new || is_early {
            return None;
        }
        (self.uses.is_new, self.uses.kept) = (false, Some(now));
        Some(self.uses.last.clone())
    }
}

impl TokenUses {
    fn note(&mut self, name: &str, now: GateTime) {
        self.last.insert(name.to_owned(), now.utc);
        self.is_new = true;
    }
}

fn unauthorized(what: &str) -> ServeAnswer {
    // Without Basic: a browser would ask for a password by itself, and send it with every request
    // also of other sites.
    ServeAnswer::problem(401, what).header("www-authenticate", "Bearer")
}
