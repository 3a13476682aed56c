//! Who may come in, and how much of it: connections, tokens, budgets, and what is counted.

use crate::accounts::{Accounts, ServeAccount, ServeRoot};
use crate::answer::ServeAnswer;
use crate::meter::UseMeter;
use crate::request::{ServeMethod, ServeRequest};
use crate::s3::{SignatureClaim, read_only, refusal};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use core::net::IpAddr;
use skyhaul_units::{ByteCount, Duration, Instant, Utc};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Limits of all callers together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GateLimits {
    /// Connections at a time.
    pub connections: u32,
    /// Of them from one address: an IPv4 address, or a network of 64 bits of IPv6.
    pub per_address: u32,
}

/// Admits connections and requests.
#[derive(Debug)]
pub struct Gate {
    limits: GateLimits,
    /// None: everybody may ask for everything. The configuration allows that on loopback alone.
    accounts: Option<Accounts>,
    uses: BTreeMap<String, AccountUse>,
    addresses: BTreeMap<IpAddr, u32>,
    counters: GateCounters,
}

/// What an account uses.
#[derive(Debug)]
struct AccountUse {
    requests: u32,
    rate: UseMeter,
    volume: UseMeter,
    per_minute: UseMeter,
    sent: u64,
    answered: u64,
}

/// What has happened since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GateCounters {
    /// Connections now.
    pub connections: u32,
    /// Connections that were closed at once: too many at a time, or too many from one address.
    pub refused_connections: u64,
    /// Requests that were answered with a success.
    pub answered: u64,
    /// Requests without a valid token.
    pub unauthorized: u64,
    /// Requests beyond the budget of an account.
    pub over_budget: u64,
    /// Other requests that were refused, or could not be answered.
    pub refused: u64,
    /// Connections that were closed because their client did not read, or said nothing.
    pub stalled: u64,
    /// Bytes of bodies that went out.
    pub sent: u64,
}

/// What an account has used since the start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountUsage {
    /// Its name.
    pub name: String,
    /// Requests that are being answered.
    pub requests: u32,
    /// Requests that were answered with a success.
    pub answered: u64,
    /// Bytes of bodies that went out.
    pub sent: u64,
}

/// A request that was admitted. It ends with [`Gate::end`].
#[derive(Debug, Clone)]
pub struct ServeAdmission {
    /// Who asks; none where there are no accounts.
    pub account: Option<Arc<ServeAccount>>,
}

/// Why a connection is closed at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GateRefusal {
    /// There are too many.
    Full,
    /// There are too many from this address.
    Address,
}

/// A limit that nobody reaches stands for none.
const UNLIMITED: u64 = u64::MAX;
/// What may go out at once after a pause: a fifth of a second is a few pieces at 1 Gbit/s.
const RATE_BURST: Duration = Duration::from_millis(200);
const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(86_400);

impl AccountUse {
    fn new(account: &ServeAccount) -> Self {
        let (rate, volume, requests) = quantities(account);
        Self {
            requests: 0,
            rate: UseMeter::new(rate, Duration::from_secs(1), RATE_BURST),
            volume: UseMeter::new(volume, DAY, DAY),
            per_minute: UseMeter::new(requests, MINUTE, MINUTE),
            sent: 0,
            answered: 0,
        }
    }
}

fn quantities(account: &ServeAccount) -> (u64, u64, u64) {
    (
        account.rate.map_or(UNLIMITED, |rate| rate.as_bps() / 8),
        account.volume.map_or(UNLIMITED, ByteCount::as_u64),
        account.requests.map_or(UNLIMITED, u64::from),
    )
}

impl Gate {
    /// A gate; without accounts it is open.
    pub fn new(limits: GateLimits, accounts: Option<Accounts>) -> Self {
        let mut gate = Self {
            limits,
            accounts: None,
            uses: BTreeMap::new(),
            addresses: BTreeMap::new(),
            counters: GateCounters::default(),
        };
        gate.adopt(accounts, Instant::ZERO);
        gate
    }

    /// Replaces the accounts. What they have used stays used.
    pub fn adopt(&mut self, accounts: Option<Accounts>, now: Instant) {
        let all = || accounts.iter().flat_map(Accounts::iter);
        let names: Vec<&str> = all().map(|account| account.name.as_str()).collect();
        // An account that is gone stays while it is being answered.
        self.uses.retain(|name, used| used.requests > 0 || names.contains(&name.as_str()));
        for account in all() {
            let used =
                self.uses.entry(account.name.clone()).or_insert_with(|| AccountUse::new(account));
            let (rate, volume, requests) = quantities(account);
            used.rate = used.rate.changed(now, rate);
            used.volume = used.volume.changed(now, volume);
            used.per_minute = used.per_minute.changed(now, requests);
        }
        self.accounts = accounts;
    }

    /// Whether callers need a token.
    pub const fn has_accounts(&self) -> bool {
        self.accounts.is_some()
    }

    /// A connection comes.
    ///
    /// # Errors
    /// It is one too many: close it.
    pub fn connect(&mut self, address: IpAddr) -> Result<(), GateRefusal> {
        let refusal = if self.counters.connections >= self.limits.connections {
            Some(GateRefusal::Full)
        } else {
            let from = self.addresses.entry(network(address)).or_default();
            (*from >= self.limits.per_address).then_some(GateRefusal::Address)
        };
        if let Some(refusal) = refusal {
            self.counters.refused_connections += 1;
            return Err(refusal);
        }
        *self.addresses.entry(network(address)).or_default() += 1;
        self.counters.connections += 1;
        Ok(())
    }

    /// A connection that was admitted ends.
    pub fn disconnect(&mut self, address: IpAddr) {
        let network = network(address);
        if let Some(count) = self.addresses.get_mut(&network) {
            *count -= 1;
            if *count == 0 {
                self.addresses.remove(&network);
            }
            self.counters.connections -= 1;
        }
    }

    /// A connection was closed because nothing moved on it.
    pub const fn stalled(&mut self) {
        self.counters.stalled += 1;
    }

    /// Admits a request to an interface.
    ///
    /// # Errors
    /// The answer to one that is not: 401, 403 or 429.
    pub fn admit(
        &mut self,
        request: &ServeRequest,
        root: Option<ServeRoot>,
        now: GateTime,
    ) -> Result<ServeAdmission, ServeAnswer> {
        let Some(accounts) = &self.accounts else { return Ok(ServeAdmission { account: None }) };
        let found = match SignatureClaim::of(request) {
            Err(refused) => Err(refused),
            Ok(Some(claim)) => of_signature(accounts, request, &claim, now.utc),
            Ok(None) => of_token(accounts, request, now.utc),
        };
        let account = found.inspect_err(|_| self.counters.unauthorized += 1)?;
        if root.is_some_and(|root| !account.roots.contains(&root)) {
            self.counters.refused += 1;
            let what = "this account may not use this interface; ask the operator";
            return Err(ServeAnswer::problem(403, what));
        }
        let used =
            self.uses.entry(account.name.clone()).or_insert_with(|| AccountUse::new(&account));
        let over = if account.connections.is_some_and(|most| used.requests >= most) {
            Some((Duration::from_secs(1), "too many requests are being answered at a time"))
        } else {
            let waits = [
                (used.volume.wait(now.now), "the volume of the account is used up"),
                (used.per_minute.wait(now.now), "too many requests in a minute"),
            ];
            waits.into_iter().find(|(wait, _)| *wait > Duration::ZERO)
        };
        if let Some((wait, what)) = over {
            self.counters.over_budget += 1;
            let seconds = wait.as_nanos().div_ceil(1_000_000_000).max(1);
            return Err(ServeAnswer::problem(429, what).header("retry-after", seconds.to_string()));
        }
        used.per_minute.charge(now.now, 1);
        used.requests += 1;
        Ok(ServeAdmission { account: Some(account) })
    }

    /// A request was answered with a status; its body may still be going out.
    pub fn answered(&mut self, admission: &ServeAdmission, status: u16) {
        if status >= 400 {
            self.counters.refused += 1;
            return;
        }
        self.counters.answered += 1;
        if let Some(used) = self.used(admission) {
            used.answered += 1;
        }
    }

    /// A request was refused before it was admitted.
    pub const fn refused(&mut self) {
        self.counters.refused += 1;
    }

    /// Bytes of an answer are to go out. Returns how long to wait before.
    pub fn charge(&mut self, admission: &ServeAdmission, bytes: u64, now: Instant) -> Duration {
        self.counters.sent += bytes;
        let Some(used) = self.used(admission) else { return Duration::ZERO };
        used.sent += bytes;
        used.volume.charge(now, bytes);
        let wait = used.rate.wait(now);
        used.rate.charge(now, bytes);
        wait
    }

    /// An admitted request ends: its answer has gone out, or its connection is gone.
    pub fn end(&mut self, admission: &ServeAdmission) {
        if let Some(used) = self.used(admission) {
            used.requests = used.requests.saturating_sub(1);
        }
    }

    fn used(&mut self, admission: &ServeAdmission) -> Option<&mut AccountUse> {
        self.uses.get_mut(&admission.account.as_ref()?.name)
    }

    /// What has happened since the start.
    pub const fn counters(&self) -> GateCounters {
        self.counters
    }

    /// What each account uses, by name.
    pub fn usage(&self) -> Vec<AccountUsage> {
        let shown = |(name, used): (&String, &AccountUse)| AccountUsage {
            name: name.clone(),
            requests: used.requests,
            answered: used.answered,
            sent: used.sent,
        };
        self.uses.iter().map(shown).collect()
    }
}

/// When a request comes.
#[derive(Debug, Clone, Copy)]
pub struct GateTime {
    /// For budgets.
    pub now: Instant,
    /// For tokens that expire.
    pub utc: Utc,
}

/// The account that signed a request.
fn of_signature(
    accounts: &Accounts,
    request: &ServeRequest,
    claim: &SignatureClaim,
    now: Utc,
) -> Result<Arc<ServeAccount>, ServeAnswer> {
    let unknown = || {
        let what = "the access key is not known, or has expired; ask the operator for another";
        refusal(403, "InvalidAccessKeyId", what)
    };
    let (account, secret) = accounts.of_key(&claim.key, now).ok_or_else(unknown)?;
    claim.check_time(now)?;
    if request.method == ServeMethod::Other {
        // Which method it was signed with is not known any more, and none of them is answered.
        return Err(read_only());
    }
    match claim.is_by(request, secret) {
        true => Ok(account.clone()),
        false => {
            let what = "the request was signed with another secret, or was changed on its way";
            Err(refusal(403, "SignatureDoesNotMatch", what))
        }
    }
}

/// The account of the token of a request.
fn of_token(
    accounts: &Accounts,
    request: &ServeRequest,
    now: Utc,
) -> Result<Arc<ServeAccount>, ServeAnswer> {
    let header = request.header("authorization");
    let token = header.and_then(token_of);
    let found = token.and_then(|token| accounts.of_token(&token, now));
    found.cloned().ok_or_else(|| {
        let what = match header {
            None => "give a token, as `Authorization: Bearer TOKEN`, or as the password of Basic",
            Some(_) => "the token is not known, or has expired; ask the operator for another",
        };
        ServeAnswer::problem(401, what)
            .header("www-authenticate", "Bearer, Basic realm=\"skyhaul\", charset=\"UTF-8\"")
    })
}

/// The token of an `Authorization` header: of `Bearer`, or the password of `Basic`, whose user name
/// is not looked at.
fn token_of(header: &str) -> Option<String> {
    let (scheme, rest) = header.trim().split_once(' ')?;
    if scheme.eq_ignore_ascii_case("bearer") {
        return Some(rest.trim().to_owned());
    }
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let text = String::from_utf8(BASE64_STANDARD.decode(rest.trim()).ok()?).ok()?;
    Some(text.split_once(':')?.1.to_owned())
}

/// What is counted as one address: who has one of IPv6 has a network of them.
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => IpAddr::V6((u128::from(address) & !u128::from(u64::MAX)).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accounts::TokenHash;

    const LIMITS: GateLimits = GateLimits { connections: 3, per_address: 2 };

    fn accounts(limits: &str) -> Accounts {
        let hash = TokenHash::of("secret").to_hex();
        Accounts::parse(&format!(
            "[[account]]\nname = \"a\"\nroots = [\"stac\"]\n{limits}\n[[account.token]]\nlabel = \
             \"1\"\nsha256 = \"{hash}\"\ncreated = \"2026-11-26T00:00:00Z\"\n"
        ))
        .unwrap()
    }

    fn at(ms: u64) -> GateTime {
        GateTime { now: Instant::ZERO + Duration::from_millis(ms), utc: Utc::default() }
    }

    fn with(authorization: &str) -> ServeRequest {
        let mut request = ServeRequest::new(ServeMethod::Get, "/stac").unwrap();
        request.headers.insert("authorization".to_owned(), authorization.to_owned());
        request
    }

    #[test]
    fn connections_are_limited_in_all_and_from_one_address() {
        let mut gate = Gate::new(LIMITS, None);
        let [one, other, third] =
            ["192.0.2.1", "2001:db8::1", "192.0.2.3"].map(|a| a.parse().unwrap());
        assert_eq!(gate.connect(one), Ok(()));
        assert_eq!(gate.connect("::ffff:192.0.2.1".parse().unwrap()), Ok(()));
        assert_eq!(gate.connect(one), Err(GateRefusal::Address));
        assert_eq!(gate.connect(other), Ok(()));
        assert_eq!(gate.connect(third), Err(GateRefusal::Full));
        gate.disconnect("2001:db8::2".parse().unwrap());
        assert_eq!(gate.connect(third), Ok(()));
        for address in [one, one, third] {
            gate.disconnect(address);
        }
        assert!(gate.addresses.is_empty());
        assert_eq!(gate.counters().refused_connections, 2);
        assert_eq!(gate.counters().connections, 0);
    }

    #[test]
    fn a_token_is_taken_as_bearer_or_password_and_else_the_answer_is_401_or_403() {
        let mut gate = Gate::new(LIMITS, Some(accounts("")));
        let basic = format!("Basic {}", BASE64_STANDARD.encode("anybody:secret"));
        for good in ["Bearer secret", "bearer  secret", &basic] {
            assert!(gate.admit(&with(good), Some(ServeRoot::Stac), at(0)).is_ok(), "{good}");
        }
        for bad in ["Bearer x", "secret", "Basic !", "Basic c2VjcmV0", "Digest secret", ""] {
            let answer = gate.admit(&with(bad), Some(ServeRoot::Stac), at(0)).unwrap_err();
            assert_eq!(answer.status, 401, "{bad}");
            assert!(answer.header_of("www-authenticate").is_some());
            assert!(!answer.text().contains("secret"));
        }
        let answer = gate.admit(&with("Bearer secret"), Some(ServeRoot::Prip), at(0)).unwrap_err();
        assert_eq!(answer.status, 403);
        assert_eq!(gate.counters().unauthorized, 6);
    }

    #[test]
    fn budgets_are_429_with_the_time_to_wait_and_last_over_a_reload() {
        let limits = "connections = 2\nvolume = \"1 kB\"\nrate = \"800 bit/s\"\nrequests = 60";
        let mut gate = Gate::new(LIMITS, Some(accounts(limits)));
        let ask = |gate: &mut Gate, ms| gate.admit(&with("Bearer secret"), None, at(ms));
        let one = ask(&mut gate, 0).unwrap();
        let two = ask(&mut gate, 0).unwrap();
        assert_eq!(ask(&mut gate, 0).unwrap_err().header_of("retry-after"), Some("1"));
        assert_eq!(gate.charge(&one, 50, at(0).now), Duration::ZERO);
        assert_eq!(gate.charge(&one, 50, at(0).now), Duration::from_millis(300));
        gate.charge(&two, 2_000, at(0).now);
        gate.end(&one);
        gate.end(&two);
        gate.adopt(Some(accounts(limits)), at(0).now);
        // 1,100 bytes too many of 1,000 a day.
        let over = ask(&mut gate, 0).unwrap_err();
        assert_eq!((over.status, over.header_of("retry-after")), (429, Some("95040")));
        assert!(ask(&mut gate, 95_040_000).is_ok());
        gate.adopt(Some(Accounts::default()), at(0).now);
        assert_eq!(ask(&mut gate, 0).unwrap_err().status, 401);
    }

    #[test]
    fn requests_of_a_minute_are_counted() {
        let mut gate = Gate::new(LIMITS, Some(accounts("requests = 2")));
        let mut ask = |ms| gate.admit(&with("Bearer secret"), None, at(ms)).map(drop);
        let first: Vec<bool> = (0..4).map(|_| ask(0).is_ok()).collect();
        // A request may begin while less than a minute is used.
        assert_eq!(first, [true, true, true, false]);
        assert_eq!(ask(0).unwrap_err().header_of("retry-after"), Some("30"));
        assert!(ask(30_000).is_ok());
    }
}
