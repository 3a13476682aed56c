//! Clients over real sockets: pages, names of the host, tokens, streams, too many of them.

use crate::{STREAMS_MAX, WebFiles, WebServer, WebSetup};
use skyhaul_net::Clock;
use skyhaul_serve::TokenHash;
use skyhaul_units::Utc;
use skyhaul_web::{MetricFamily, RowVisit, WebLack, WebList, WebSource};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

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

    fn metrics(&self) -> Vec<MetricFamily> {
        Vec::new()
    }

    fn lacks(&self) -> Vec<WebLack> {
        Vec::new()
    }

    fn is_alive(&self) -> bool {
        true
    }
}

fn start(files: &WebFiles) -> WebServer {
    let setup = WebSetup {
        bind: "127.0.0.1:0".parse().unwrap(),
        hosts: vec!["centre.example.org".to_owned()],
        look: Numbered::look(1),
        clock: Clock::start(),
    };
    WebServer::start(setup, files).unwrap()
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
fn with_accounts_a_token_is_needed_for_all_but_livez() {
    let accounts = format!(
        "[[account]]\nname = \"wall\"\n[[account.token]]\nlabel = \"1\"\nsha256 = \
         \"{}\"\ncreated = \"2026-11-26T00:00:00Z\"\n",
        TokenHash::of("secret").to_hex()
    );
    let files = WebFiles { accounts: Some(accounts), ..WebFiles::default() };
    let server = start(&files);
    let ask = |path, token| {
        status(&server, path, &format!("host: localhost\r\nauthorization: Bearer {token}\r\n"))
    };
    for path in ["/", "/metrics", "/readyz", "/api/v1/status", "/api/v1/stream"] {
        assert!(ask(path, "wrong").contains("401"), "{path}");
    }
    assert!(ask("/livez", "wrong").contains("200"));
    assert!(ask("/api/v1/status", "secret").contains("200"));
    let open = server.adopt(&WebFiles::default()).unwrap();
    assert_eq!(open, ["the accounts of [web] changed"]);
    assert!(ask("/api/v1/status", "wrong").contains("200"));
    let broken = WebFiles { accounts: Some("x".to_owned()), ..WebFiles::default() };
    assert!(server.adopt(&broken).unwrap_err().to_string().contains("accounts file of [web]"));
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
