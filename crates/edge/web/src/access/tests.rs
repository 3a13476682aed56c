//! Callers, logins and those who guess.

use super::*;
use skyhaul_serve::{GateTime, NewToken, ServeAnswer, ServeMethod, ServeRequest};
use skyhaul_units::{Duration, Instant, Utc};
use std::net::IpAddr;

/// The hash of `password` by the reference implementation, which costs little.
const HASH: &str =
    "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4";

fn file() -> String {
    let token = NewToken::from_random([7; 32]);
    let created = Utc::from_rfc3339("2026-11-27T12:00:00Z").unwrap();
    let hash = PasswordHash::parse(HASH).unwrap();
    let mut text = "# ours\n".to_owned();
    for (name, role) in [("kim", WebRole::Operator), ("vera", WebRole::Viewer)] {
        text = with_web_user(&text, WebUserTerms { name, role, created }, &hash).unwrap();
    }
    let expires = Utc::from_rfc3339("2026-12-27T12:00:00Z");
    let terms = WebTokenTerms { name: "prom", role: WebRole::Metrics, created, expires };
    with_web_token(&text, terms, &token).unwrap()
}

fn secret() -> String {
    NewToken::from_random([7; 32]).secret().to_owned()
}

fn access(anonymous: Option<WebRole>, tls: WebTls) -> WebAccess {
    let users = WebUsers::parse(&file()).unwrap();
    let terms = AccessTerms { anonymous, idle: Duration::from_secs(600), tls, port: 8480 };
    WebAccess::new(Some(users), terms)
}

fn at(seconds: u64) -> GateTime {
    let utc = Utc::from_rfc3339("2026-11-27T12:00:00Z").unwrap();
    GateTime {
        now: Instant::ZERO + Duration::from_secs(seconds),
        utc: utc + Duration::from_secs(seconds),
    }
}

fn with(headers: &[(&str, &str)]) -> ServeRequest {
    let mut request = ServeRequest::new(ServeMethod::Post, "/api/v1/alarms/x/ack").unwrap();
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    request.headers.extend(headers.iter().map(owned));
    request
}

fn address(last: u8) -> IpAddr {
    IpAddr::from([192, 0, 2, last])
}

fn credential(access: &WebAccess, headers: &[(&str, &str)]) -> WebCredential {
    WebCredential::of(&with(headers), &access.cookie())
}

/// The answer to a login, as the server gives it.
fn log_in(
    access: &mut WebAccess,
    name: &str,
    password: &str,
    now: GateTime,
) -> Result<ServeAnswer, ServeAnswer> {
    let login = LoginRequest { name: name.to_owned(), password: password.to_owned() };
    let trial = access.begin_login(&login, address(1), now.now)?;
    match trial.hash.is_of(password) {
        true => access.log_in(&trial, &format!("secret-{}", now.now.as_nanos()), now),
        false => Err(access.login_failed()),
    }
}

fn cookie_of(answer: &ServeAnswer) -> String {
    let header = answer.header_of("set-cookie").unwrap();
    header.split(';').next().unwrap().to_owned()
}

#[test]
fn each_role_has_what_those_before_it_have() {
    let mut access = access(None, WebTls::Here);
    let bearer = format!("Bearer {}", secret());
    let program = credential(&access, &[("authorization", &bearer)]);
    assert!(access.admit(&program, WebRole::Metrics, at(0)).is_ok());
    let refused = access.admit(&program, WebRole::Viewer, at(0)).unwrap_err();
    assert_eq!(refused.status, 403);
    assert!(refused.text().contains("needs the role viewer, and prom is metrics"));
    // A month later it has expired.
    let late = access.admit(&program, WebRole::Metrics, at(30 * 86_400)).unwrap_err();
    assert_eq!((late.status, late.header_of("www-authenticate")), (401, Some("Bearer")));
    for wrong in ["Bearer x", "Basic a2ltOnBhc3N3b3Jk", ""] {
        let wrong = credential(&access, &[("authorization", wrong)]);
        assert_eq!(access.admit(&wrong, WebRole::Metrics, at(0)).unwrap_err().status, 401);
    }
    let nobody = access.admit(&WebCredential::default(), WebRole::Metrics, at(0)).unwrap_err();
    assert_eq!(nobody.status, 401);
    assert_eq!(access.unauthorized(), 6);
}

#[test]
fn a_session_begins_with_the_password_and_ends_when_nobody_does_anything() {
    let mut access = access(Some(WebRole::Viewer), WebTls::Here);
    assert_eq!(log_in(&mut access, "kim", "wrong", at(0)).unwrap_err().status, 401);
    assert_eq!(log_in(&mut access, "nobody", "password", at(0)).unwrap_err().status, 401);
    let answer = log_in(&mut access, "kim", "password", at(1)).unwrap();
    let header = answer.header_of("set-cookie").unwrap().to_owned();
    assert!(header.starts_with("__Host-skyhaul-8480="), "{header}");
    assert!(header.ends_with("; Path=/; HttpOnly; SameSite=Strict; Secure"), "{header}");
    let cookie = format!("other=1; {}", cookie_of(&answer));
    let kim = credential(&access, &[("cookie", &cookie)]);
    let caller = access.admit(&kim, WebRole::Operator, at(500)).unwrap();
    assert_eq!(caller.owner, WebOwner::User("kim".to_owned()));
    // What the page asks by itself does not keep it: a person does.
    assert!(access.admit(&kim, WebRole::Operator, at(601)).is_err());
    access.keep(&kim, at(500).now);
    assert!(access.admit(&kim, WebRole::Operator, at(601)).is_ok());
    // Nobody's session is anonymous, and may still look.
    assert_eq!(access.caller(&kim, at(1_200)).unwrap().owner, WebOwner::Nobody);
    assert!(access.admit(&kim, WebRole::Viewer, at(1_200)).is_ok());
    assert_eq!(access.admit(&kim, WebRole::Operator, at(1_200)).unwrap_err().status, 401);
    access.log_out(&kim);
    assert!(access.admit(&kim, WebRole::Operator, at(601)).is_err());
}

#[test]
fn no_session_lasts_longer_than_a_day() {
    let mut access = access(None, WebTls::No);
    let answer = log_in(&mut access, "kim", "password", at(0)).unwrap();
    let kim = credential(&access, &[("cookie", &cookie_of(&answer))]);
    (0..400).for_each(|turn| access.keep(&kim, at(turn * 300).now));
    assert!(access.admit(&kim, WebRole::Viewer, at(86_399)).is_ok());
    assert!(access.admit(&kim, WebRole::Viewer, at(86_400)).is_err());
    assert!(!answer.header_of("set-cookie").unwrap().contains("Secure"));
}

#[test]
fn sessions_end_with_their_user_or_the_old_password() {
    let mut access = access(None, WebTls::No);
    let answer = log_in(&mut access, "kim", "password", at(0)).unwrap();
    let kim = credential(&access, &[("cookie", &cookie_of(&answer))]);
    let promoted = file().replacen("\"operator\"", "\"admin\"", 1);
    let changes = access.adopt(Some(WebUsers::parse(&promoted).unwrap()));
    assert_eq!(changes, ["user kim is admin now"]);
    assert!(access.admit(&kim, WebRole::Admin, at(0)).is_ok());
    let other = HASH.replace("nf65", "nf66");
    let changed = promoted.replacen(HASH, &other, 1);
    let changes = access.adopt(Some(WebUsers::parse(&changed).unwrap()));
    assert_eq!(changes, ["user kim has another password"]);
    assert!(access.admit(&kim, WebRole::Viewer, at(0)).is_err());
    let gone = without_web_user(&without_web_token(&file(), "prom").unwrap(), "kim").unwrap();
    assert!(gone.contains("# ours\n"), "{gone}");
    let changes = access.adopt(Some(WebUsers::parse(&gone).unwrap()));
    assert_eq!(changes, ["user kim is gone", "token prom is gone"]);
}

#[test]
fn sessions_are_bounded_in_all_and_for_one_user() {
    let mut access = access(None, WebTls::No);
    let first = log_in(&mut access, "kim", "password", at(0)).unwrap();
    let vera = log_in(&mut access, "vera", "password", at(1)).unwrap();
    (2..40).for_each(|turn| drop(log_in(&mut access, "kim", "password", at(turn)).unwrap()));
    assert_eq!(access.sessions(at(40).now), 17);
    let of = |answer: &ServeAnswer| with(&[("cookie", &cookie_of(answer))]);
    let [first, vera] = [&first, &vera].map(|it| WebCredential::of(&of(it), &access.cookie()));
    assert!(access.admit(&first, WebRole::Viewer, at(40)).is_err());
    assert!(access.admit(&vera, WebRole::Viewer, at(40)).is_ok());
}

#[test]
fn who_guesses_waits_longer_each_time_and_the_right_password_waits_too() {
    let mut access = access(None, WebTls::No);
    let mut waits = Vec::new();
    let mut now = 0;
    for _ in 0..12 {
        let refused = loop {
            let refused = log_in(&mut access, "kim", "guess", at(now)).unwrap_err();
            let Some(wait) = refused.header_of("retry-after") else { break refused };
            waits.push(wait.parse::<u64>().unwrap());
            let right = log_in(&mut access, "kim", "password", at(now)).unwrap_err();
            assert_eq!(right.status, 429);
            now += wait.parse::<u64>().unwrap();
        };
        assert_eq!(refused.status, 401);
    }
    assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64, 128]);
    now += 300;
    assert!(log_in(&mut access, "kim", "password", at(now)).is_ok());
    assert_eq!(log_in(&mut access, "kim", "guess", at(now)).unwrap_err().status, 401);
}

#[test]
fn a_user_who_is_guessed_from_everywhere_waits_a_minute_at_most() {
    let mut access = access(None, WebTls::No);
    let login = LoginRequest { name: "kim".to_owned(), password: String::new() };
    for last in 0..40 {
        let _ = access.begin_login(&login, address(last), at(0).now);
    }
    assert_eq!(access.begin_login(&login, address(99), at(0).now).unwrap_err().status, 429);
    assert!(access.begin_login(&login, address(99), at(60).now).is_ok());
}

#[test]
fn the_table_of_attempts_is_bounded() {
    let mut table = attempts::AttemptTable::default();
    for number in 0..5_000_u32 {
        let address = IpAddr::from(number.to_be_bytes());
        table.begin(&format!("user-{number}"), address, at(u64::from(number)).now);
    }
    assert_eq!(table.len(), 1_024);
}

#[test]
fn a_post_of_another_site_is_refused() {
    let access = access(None, WebTls::Here);
    let json = ("content-type", "application/json; charset=utf-8");
    let host = ("host", "centre.example.org:8480");
    let cookie = ("cookie", "__Host-skyhaul-8480=x");
    let own = ("origin", "https://centre.example.org:8480");
    for (headers, status) in [
        (vec![json, host, cookie, own], 0),
        (vec![json, host, cookie, own, ("sec-fetch-site", "same-origin")], 0),
        (vec![json, host], 0),
        (vec![json, host, cookie], 403),
        (vec![json, host, own, ("sec-fetch-site", "cross-site")], 403),
        (vec![json, host, cookie, ("origin", "https://evil.example.com")], 403),
        (vec![json, host, cookie, ("origin", "http://centre.example.org:8480")], 403),
        (vec![json, host, cookie, ("origin", "https://centre.example.org")], 403),
        (vec![json, host, cookie, ("origin", "null")], 403),
        (vec![json, ("host", ""), cookie, ("origin", "https://")], 403),
        (vec![host, own, ("content-type", "text/plain")], 415),
        (vec![host, own], 415),
    ] {
        let request = with(&headers);
        let credential = WebCredential::of(&request, &access.cookie());
        let checked = check_post(&request, &credential, WebTls::Here);
        assert_eq!(checked.err().map_or(0, |answer| answer.status), status, "{headers:?}");
    }
}

#[test]
fn a_secret_in_an_address_is_refused() {
    for (target, is_good) in [
        ("/metrics?token=sky_x", false),
        ("/api/v1/status?Access_Token=x", false),
        ("/?password=x", false),
        ("/api/v1/contacts?mission=aqua", true),
    ] {
        let request = ServeRequest::new(ServeMethod::Get, target).unwrap();
        assert_eq!(check_address(&request).is_ok(), is_good, "{target}");
    }
}

#[test]
fn orders_are_read_from_path_and_body() {
    let post = |target: &str, body: &str| {
        let mut request = ServeRequest::new(ServeMethod::Post, target).unwrap();
        request.body = body.as_bytes().to_vec();
        WebOrder::read(&request)
    };
    let noted = post("/api/v1/alarms/peer-silent.node%20s/ack", "{\"note\":\"fibre\"}").unwrap();
    let alarm = "peer-silent.node s".to_owned();
    assert_eq!(noted, WebOrder::Acknowledge { alarm, note: "fibre".to_owned() });
    let again = WebOrder::Delivery { id: 7, action: WebDeliveryOrder::Again };
    assert_eq!(post("/api/v1/deliveries/7/again", "{}"), Ok(again));
    for (target, body, status) in [
        ("/api/v1/alarms/x/ack", "", 400),
        ("/api/v1/alarms/x/ack", "{\"by\":\"lee\"}", 400),
        ("/api/v1/deliveries/x/again", "{}", 404),
        ("/api/v1/deliveries/7/burn", "{}", 404),
        ("/api/v1/alarms/x", "{}", 404),
    ] {
        assert_eq!(post(target, body).unwrap_err().status, status, "{target} {body}");
    }
}

#[test]
fn uses_of_tokens_are_kept_once_a_minute_and_known_after_a_restart() {
    let mut access = access(None, WebTls::No);
    let bearer = format!("Bearer {}", secret());
    let program = credential(&access, &[("authorization", &bearer)]);
    assert_eq!(access.uses_to_keep(at(0).now), None);
    access.admit(&program, WebRole::Metrics, at(0)).unwrap();
    let kept = access.uses_to_keep(at(0).now).unwrap();
    assert_eq!(kept.get("prom"), Some(&at(0).utc));
    access.admit(&program, WebRole::Metrics, at(30)).unwrap();
    assert_eq!(access.uses_to_keep(at(59).now), None);
    assert_eq!(access.uses_to_keep(at(60).now).unwrap().get("prom"), Some(&at(30).utc));
    let mut again = self::access(None, WebTls::No);
    again.recall(kept.into_iter().chain([("gone".to_owned(), at(0).utc)]).collect());
    again.admit(&program, WebRole::Metrics, at(90)).unwrap();
    assert_eq!(again.uses_to_keep(at(90).now).unwrap().len(), 1);
}

#[test]
fn a_users_file_that_cannot_be_used_says_why() {
    let good = file();
    for (from, to, said) in [
        ("role = \"operator\"", "role = \"boss\"", "unknown variant `boss`"),
        ("$argon2id", "$argon2d", "the password of user `kim` is no argon2id hash"),
        ("\"vera\"", "\"kim\"", "user `kim` has two tables"),
        ("\"kim\"", "\"a b\"", "`a b` cannot name the user"),
        ("sha256 = \"", "sha256 = \"x", "token `prom`: `sha256` is not 64"),
        ("expires = \"2026", "expires = \"never", "is no time"),
        ("[[token]]", "[[tokens]]", "unknown field `tokens`"),
        ("# ours", "ours", "line 1"),
    ] {
        let error = WebUsers::parse(&good.replacen(from, to, 1)).unwrap_err();
        assert!(error.0.contains(said), "{error}");
    }
    let created = Utc::default();
    let hash = PasswordHash::parse(HASH).unwrap();
    let again = WebUserTerms { name: "kim", role: WebRole::Viewer, created };
    assert!(with_web_user(&good, again, &hash).unwrap_err().0.contains("there is a user `kim`"));
    assert!(with_password(&good, "lee", &hash).unwrap_err().0.contains("there is no user `lee`"));
    assert!(without_web_token(&good, "x").unwrap_err().0.contains("there is no token `x`"));
}
