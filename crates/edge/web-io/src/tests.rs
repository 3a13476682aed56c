//! Clients over real sockets: pages, names of the host, tokens, logins, orders, streams, too many
//! of them.

use crate::{
    AccessNews, EventsFound, FoundEvent, NumberHole, OrderGiver, STREAMS_MAX, WebDesk, WebFiles,
    WebServer, WebSetup,
};
use bytes::Bytes;
use skyhaul_history::HistoryQuery;
use skyhaul_net::Clock;
use skyhaul_serve::{ServeAnswer, TokenHash};
use skyhaul_units::{Duration, Utc};
use skyhaul_web::access::{WebOrder, WebOwner, WebRole};
use skyhaul_web::{
    EventsAsked, EventsFrom, ExpositionForm, RowVisit, WebLack, WebList, WebQuestion, WebSource,
};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// A look that says its number.
struct Numbered(u64, String);

impl Numbered {
    fn look(number: u64) -> Arc<Self> {
        Arc::new(Self(number, format!("{{\"number\":{number}}}")))
    }
}

impl WebSource for Numbered {
    fn number(&self) -> u64 {
        self.0
    }

    fn taken(&self) -> Utc {
        Utc::default()
    }

    fn summary(&self) -> &str {
        &self.1
    }

    fn rows(&self, _: WebList, _: &mut RowVisit<'_>) {}

    fn metrics(&self, _: ExpositionForm) -> Bytes {
        Bytes::new()
    }

    fn lacks(&self) -> Vec<WebLack> {
        Vec::new()
    }

    fn is_alive(&self) -> bool {
        true
    }
}

/// Keeps what it is given.
#[derive(Default)]
struct Noted {
    orders: Mutex<Vec<(WebOrder, OrderGiver)>>,
    news: Mutex<Vec<AccessNews>>,
    /// The number of the last event; the first three are not kept.
    last: AtomicU64,
}

impl WebDesk for Noted {
    fn give(&self, order: WebOrder, giver: &OrderGiver) -> ServeAnswer {
        self.orders.lock().unwrap().push((order, giver.clone()));
        ServeAnswer::empty(204)
    }

    fn ask(&self, _: &WebQuestion) -> ServeAnswer {
        ServeAnswer::empty(204)
    }

    fn history(&self, query: Option<HistoryQuery>) -> ServeAnswer {
        let series = query.map(|query| query.series);
        ServeAnswer::json(200, &serde_json::json!({ "series": series }))
    }

    fn events(&self, asked: &EventsAsked) -> Result<EventsFound, ServeAnswer> {
        let EventsFrom::Behind(since) = asked.from else { return Ok(EventsFound::default()) };
        let last = self.last.load(Ordering::Relaxed);
        let json = |number| format!("{{\"number\":{number}}}");
        let found = (since + 1).max(4)..=last;
        Ok(EventsFound {
            holes: (since < 3 && last > 3)
                .then_some(NumberHole { from: since + 1, to: 3 })
                .into_iter()
                .collect(),
            rows: found.map(|number| FoundEvent { number, json: json(number) }).collect(),
            next: Some(last.max(since)),
            last,
        })
    }

    fn last_event(&self) -> u64 {
        self.last.load(Ordering::Relaxed)
    }

    fn note(&self, news: AccessNews) {
        self.news.lock().unwrap().push(news);
    }

    fn keep_uses(&self, _: &BTreeMap<String, Utc>) {}
}

fn start(files: &WebFiles) -> WebServer {
    start_for(files, Arc::default())
}

fn start_for(files: &WebFiles, desk: Arc<Noted>) -> WebServer {
    let setup = WebSetup {
        bind: "127.0.0.1:0".parse().unwrap(),
        hosts: vec!["centre.example.org".to_owned()],
        look: Numbered::look(1),
        clock: Clock::start(),
        anonymous: files.users.is_none().then_some(WebRole::Viewer),
        session_idle: Duration::from_secs(600),
        uses: BTreeMap::new(),
        desk,
    };
    WebServer::start(setup, files).unwrap()
}

/// Kim, an operator with the password `password`, and a token of a viewer.
fn users() -> WebFiles {
    let users = format!(
        "[[user]]\nname = \"kim\"\nrole = \"operator\"\npassword = \
         \"$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4\"\n\
         created = \"2026-11-27T00:00:00Z\"\n[[token]]\nname = \"wall\"\nrole = \"viewer\"\n\
         sha256 = \"{}\"\ncreated = \"2026-11-27T00:00:00Z\"\n",
        TokenHash::of("secret").to_hex()
    );
    WebFiles { users: Some(users), ..WebFiles::default() }
}

/// The head of the answer to a POST with these headers.
fn post(server: &WebServer, path: &str, headers: &str, body: &str) -> String {
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: \
         application/json\r\ncontent-length: {}\r\n{headers}\r\n{body}",
        body.len()
    );
    let mut text = String::new();
    send(server, &head).read_to_string(&mut text).unwrap();
    text.split("\r\n\r\n").next().unwrap_or_default().to_owned()
}

fn send(server: &WebServer, head: &str) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.write_all(head.as_bytes()).unwrap();
    BufReader::new(stream)
}

/// The first line of the answer to a request with these headers.
fn status(server: &WebServer, path: &str, headers: &str) -> String {
    let head = format!("GET {path} HTTP/1.1\r\nconnection: close\r\n{headers}\r\n");
    let mut text = String::new();
    send(server, &head).read_to_string(&mut text).unwrap();
    text.lines().next().unwrap_or_default().to_owned()
}

#[test]
fn only_its_own_names_are_answered() {
    let server = start(&WebFiles::default());
    for (host, code) in [
        ("127.0.0.1:8480", "200"),
        ("localhost", "200"),
        ("centre.example.org:8480", "200"),
        ("Centre.Example.Org", "200"),
        ("evil.example.com", "421"),
        ("", "421"),
    ] {
        let line = status(&server, "/api/v1/status", &format!("host: {host}\r\n"));
        assert!(line.contains(code), "{host}: {line}");
    }
    let line = status(&server, "/", "host: localhost\r\ncontent-length: 70000\r\n");
    assert!(line.contains("413"), "{line}");
    let counters = server.counters();
    assert_eq!((counters.answered, counters.refused), (4, 3));
}

#[test]
fn with_users_a_token_is_needed_for_all_figures() {
    let server = start(&users());
    let ask = |path, token| {
        status(&server, path, &format!("host: localhost\r\nauthorization: Bearer {token}\r\n"))
    };
    for path in ["/metrics", "/readyz", "/api/v1/status", "/api/v1/stream", "/openapi.yaml"] {
        assert!(ask(path, "wrong").contains("401"), "{path}");
        assert!(status(&server, path, "host: localhost\r\n").contains("401"), "{path}");
    }
    for path in ["/livez", "/", "/main.js"] {
        assert!(status(&server, path, "host: localhost\r\n").contains("200"), "{path}");
    }
    assert!(ask("/api/v1/status", "secret").contains("200"));
    assert!(ask("/api/v1/audit", "secret").contains("403"), "that is for an admin");
    assert!(ask("/api/v1/status?token=secret", "secret").contains("400"));
    let gone = WebFiles { users: Some(String::new()), ..WebFiles::default() };
    let changes = server.adopt(&gone).unwrap();
    assert_eq!(changes, ["the users of [web] changed: user kim is gone, token wall is gone"]);
    assert!(ask("/api/v1/status", "secret").contains("401"));
    let broken = WebFiles { users: Some("x".to_owned()), ..WebFiles::default() };
    assert!(server.adopt(&broken).unwrap_err().to_string().contains("users file of [web]"));
}

#[test]
fn an_operator_logs_in_orders_and_logs_out() {
    let desk = Arc::<Noted>::default();
    let server = start_for(&users(), desk.clone());
    let origin = "origin: http://localhost\r\n";
    let login = |password: &str| {
        let body = format!("{{\"name\":\"kim\",\"password\":\"{password}\"}}");
        post(&server, "/api/v1/session", origin, &body)
    };
    assert!(login("wrong").contains(" 401 "));
    let head = login("password");
    assert!(head.contains(" 200 "), "{head}");
    let cookie = head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    assert!(cookie.contains("; HttpOnly; SameSite=Strict") && !cookie.contains("Secure"));
    let cookie = cookie.split(';').next().unwrap();
    let with = format!("{origin}cookie: {cookie}\r\n");
    let ack = "/api/v1/alarms/peer-silent.node%20s/ack";
    assert!(post(&server, ack, &with, "{\"note\":\"fibre\"}").contains(" 204 "));
    let other = format!("origin: http://evil.example.com\r\ncookie: {cookie}\r\n");
    assert!(post(&server, ack, &other, "{}").contains(" 403 "));
    let viewer = "authorization: Bearer secret\r\n";
    assert!(post(&server, ack, viewer, "{}").contains(" 403 "));
    assert!(post(&server, ack, "", "{}").contains(" 401 "));
    let long = format!("{{\"note\":\"{}\"}}", "x".repeat(9_000));
    assert!(post(&server, ack, &with, &long).contains(" 413 "));
    assert!(post(&server, "/api/v1/status", &with, "{}").contains(" 405 "));
    assert_eq!(server.counters().sessions, 1);
    assert!(post(&server, "/api/v1/session/end", &with, "").contains("Max-Age=0"));
    assert!(post(&server, ack, &with, "{}").contains(" 401 "));
    let orders = desk.orders.lock().unwrap();
    let [(order, giver)] = &orders[..] else { panic!("{orders:?}") };
    let alarm = "peer-silent.node s".to_owned();
    assert_eq!(order, &WebOrder::Acknowledge { alarm, note: "fibre".to_owned() });
    assert_eq!(giver.owner, WebOwner::User("kim".to_owned()));
    let news = desk.news.lock().unwrap();
    assert!(matches!(&news[..], [AccessNews::LoggedIn { user, .. }] if user == "kim"), "{news:?}");
}

#[test]
fn who_guesses_waits_and_the_node_is_told_once() {
    let desk = Arc::<Noted>::default();
    let server = start_for(&users(), desk.clone());
    let login = || post(&server, "/api/v1/session", "", "{\"name\":\"kim\",\"password\":\"x\"}");
    let heads: Vec<String> = (0..4).map(|_| login()).collect();
    assert!(heads.iter().all(|head| head.contains(" 401 ")), "{heads:?}");
    let head = login();
    assert!(head.contains(" 429 ") && head.contains("retry-after: "), "{head}");
    assert_eq!(desk.news.lock().unwrap().len(), 1);
}

#[test]
fn a_stream_ends_when_who_watches_may_not_look_any_more() {
    let server = start(&users());
    let head = "GET /api/v1/stream HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer \
                secret\r\n\r\n";
    let reader = send(&server, head);
    let mut data = reader.lines().map_while(Result::ok).filter(|line| line.starts_with("data: "));
    assert_eq!(data.next().as_deref(), Some("data: {\"number\":1}"));
    server.adopt(&WebFiles { users: Some(String::new()), ..WebFiles::default() }).unwrap();
    server.show(Numbered::look(2));
    assert_eq!(data.next(), None);
}

#[test]
fn a_stream_has_the_newest_look_at_once_and_each_one_that_comes() {
    let server = start(&WebFiles::default());
    server.show(Numbered::look(2));
    let head = "GET /api/v1/stream HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let reader = send(&server, head);
    let mut data = reader.lines().map(Result::unwrap).filter(|line| line.starts_with("data: "));
    assert_eq!(data.next().as_deref(), Some("data: {\"number\":2}"));
    server.show(Numbered::look(3));
    assert_eq!(data.next().as_deref(), Some("data: {\"number\":3}"));
}

#[test]
fn streams_are_limited_and_a_place_is_free_when_one_ends() {
    let server = start(&WebFiles::default());
    let head = "GET /api/v1/stream HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let first = |reader: &mut BufReader<TcpStream>| {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        line
    };
    let mut open: Vec<_> = (0..STREAMS_MAX).map(|_| send(&server, head)).collect();
    assert!(open.iter_mut().all(|reader| first(reader).contains("200")));
    assert!(first(&mut send(&server, head)).contains("503"));
    assert_eq!(server.counters().streams, STREAMS_MAX);
    open.pop();
    while server.counters().streams == STREAMS_MAX {
        server.show(Numbered::look(4));
        std::thread::yield_now();
    }
    assert!(first(&mut send(&server, head)).contains("200"));
}

#[test]
fn who_says_nothing_is_closed_after_five_seconds() {
    let server = start(&WebFiles::default());
    let mut text = String::new();
    send(&server, "GET / HTT").read_to_string(&mut text).unwrap();
    assert!(text.is_empty() || text.contains("408") || text.contains("400"), "{text}");
}

/// The body of the answer to a GET.
fn body(server: &WebServer, path: &str) -> String {
    let head = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    let mut answer = String::new();
    send(server, &head).read_to_string(&mut answer).unwrap();
    answer.split_once("\r\n\r\n").unwrap().1.to_owned()
}

#[test]
fn who_waits_for_events_gets_them_when_they_come_and_is_told_of_holes() {
    let desk = Arc::<Noted>::default();
    let server = start_for(&WebFiles::default(), desk.clone());
    let none = body(&server, "/api/v1/events?since=5");
    assert_eq!(none, "{\"rows\":[],\"holes\":[],\"next\":5,\"last\":0}");
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| body(&server, "/api/v1/events?since=0&timeout=60"));
        while server.counters().streams == 0 {
            std::thread::yield_now();
        }
        desk.last.store(5, Ordering::Relaxed);
        server.show(Numbered::look(2));
        let found = waits.join().unwrap();
        let hole = "\"holes\":[{\"from\":1,\"to\":3}]";
        assert!(
            found.contains("[{\"number\":4},{\"number\":5}]") && found.contains(hole),
            "{found}"
        );
    });
    assert_eq!(server.counters().streams, 0);
    assert!(body(&server, "/api/v1/history?series=x").contains("\"series\":\"x\""));
    assert!(body(&server, "/api/v1/history?sort=x").contains("`sort` is no parameter"));
}

#[test]
fn a_stream_of_events_goes_on_where_the_client_was_and_says_what_lacks() {
    let desk = Arc::<Noted>::default();
    desk.last.store(5, Ordering::Relaxed);
    let server = start_for(&WebFiles::default(), desk.clone());
    let lines = |headers: &str| {
        let head =
            format!("GET /api/v1/events/stream HTTP/1.1\r\nhost: localhost\r\n{headers}\r\n");
        let lines = send(&server, &head).lines().map_while(Result::ok);
        let wanted = ["id: ", "data: ", "event: "];
        lines.filter(move |line| wanted.iter().any(|word| line.starts_with(word)))
    };
    let mut again = lines("last-event-id: 0\r\n");
    let hole = ["event: hole", "id: 3", "data: {\"from\":1,\"to\":3}"];
    let four = ["id: 4", "data: {\"number\":4}"];
    for wanted in hole.iter().chain(&four) {
        assert_eq!(again.next().as_deref(), Some(*wanted));
    }
    // Without a number it begins with what comes.
    let mut fresh = lines("");
    while server.counters().streams < 2 {
        std::thread::yield_now();
    }
    desk.last.store(6, Ordering::Relaxed);
    server.show(Numbered::look(2));
    assert_eq!(fresh.next().as_deref(), Some("id: 6"));
}
