//! Clients over real sockets: whole files, parts, budgets, too many, too slow.

use crate::{ServeFiles, ServeNotice, ServeServer, ServeSetup, ServedProducts};
use sha2::{Digest, Sha256};
use skyhaul_catalogue::{Item, ItemFile, ItemForm, ItemState};
use skyhaul_catalogue_io::Catalogue;
use skyhaul_net::Clock;
use skyhaul_serve::{GateLimits, NewToken, ServeRoot, TokenTerms, with_token};
use skyhaul_units::{Duration, Utc};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};

/// A server with products `P1` to `P3` of some bytes.
struct Served {
    server: ServeServer,
    folder: tempfile::TempDir,
    notices: Arc<Mutex<Vec<ServeNotice>>>,
    _catalogue: Catalogue,
}

/// An answer as a client reads it.
struct Read1 {
    status: u16,
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

const LIMITS: GateLimits = GateLimits { connections: 600, per_address: 600 };
const SIZE: usize = 3_000_000;

fn content(number: usize) -> Vec<u8> {
    (0..SIZE).map(|place| (place * number / 7 % 251) as u8).collect()
}

impl Served {
    fn start(limits: GateLimits, idle: Duration, files: &ServeFiles) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let products = folder.path().join("products");
        std::fs::create_dir(&products).unwrap();
        let path = folder.path().join("catalogue.db");
        let catalogue = Catalogue::open(&path).unwrap();
        for number in 1..=3 {
            let bytes = content(number);
            let name = format!("P{number}.PDS");
            std::fs::write(products.join(&name), &bytes).unwrap();
            let file = ItemFile {
                name,
                size: SIZE as u64,
                sha256: Sha256::digest(&bytes).into(),
                md5: None,
                cksum: None,
                is_metadata: false,
            };
            let item = Item {
                name: format!("P{number}"),
                version: 1,
                form: ItemForm::Session,
                mission: "aqua".to_owned(),
                product: "modis".to_owned(),
                stations: Vec::new(),
                apids: Vec::new(),
                start: None,
                end: None,
                published: Utc::from_micros(number as i64),
                packets: 1,
                missing: 0,
                state: ItemState::Present,
                files: vec![file],
            };
            catalogue.publish(item, Vec::new(), Utc::default()).unwrap();
        }
        let notices = Arc::new(Mutex::new(Vec::new()));
        let kept = notices.clone();
        let setup = ServeSetup {
            bind: "127.0.0.1:0".parse().unwrap(),
            node: "centre".to_owned(),
            address: None,
            roots: ServeRoot::ALL.to_vec(),
            products: Some(ServedProducts { catalogue: path, folder: products }),
            contacts: None,
            limits,
            idle,
            clock: Clock::start(),
            notify: Box::new(move |notice| kept.lock().unwrap().push(notice)),
        };
        let server = ServeServer::start(setup, files).unwrap();
        Self { server, folder, notices, _catalogue: catalogue }
    }

    fn open() -> Self {
        Self::start(LIMITS, Duration::from_secs(60), &ServeFiles::default())
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.server.address()).unwrap();
        // A bound, so that a fault ends the test.
        stream.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
        stream
    }

    fn ask(&self, head: &str) -> Read1 {
        let stream = self.connect();
        send(&stream, head);
        read(&mut BufReader::new(&stream), head)
    }
}

fn send(mut stream: &TcpStream, head: &str) {
    let head = head.replace('\n', "\r\n");
    stream.write_all(format!("{head}\r\nHost: localhost\r\n\r\n").as_bytes()).unwrap();
}

fn read(from: &mut impl BufRead, asked: &str) -> Read1 {
    let mut line = String::new();
    from.read_line(&mut line).unwrap();
    let status = line.split(' ').nth(1).unwrap_or_else(|| panic!("{line:?}")).parse().unwrap();
    let mut headers = BTreeMap::new();
    loop {
        line.clear();
        from.read_line(&mut line).unwrap();
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.insert(name.to_owned(), value.to_owned());
    }
    let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; if asked.starts_with("HEAD") { 0 } else { length }];
    from.read_exact(&mut body).unwrap();
    Read1 { status, headers, body }
}

/// Waits until something is so, without a limit of its own: the test's runner has one.
fn until(mut is_so: impl FnMut() -> bool) {
    while !is_so() {
        std::thread::yield_now();
    }
}

#[test]
fn files_go_out_whole_and_in_parts_on_one_connection() {
    let served = Served::open();
    let stream = served.connect();
    let mut reader = BufReader::new(&stream);
    let bytes = content(2);
    let get = "GET /products/P2-v1/P2.PDS HTTP/1.1";
    for (head, status, body) in [
        (get.to_owned(), 200, bytes.clone()),
        (format!("{get}\nRange: bytes=1000000-2099999"), 206, bytes[1_000_000..2_100_000].to_vec()),
        (format!("{get}\nRange: bytes=-7"), 206, bytes[SIZE - 7..].to_vec()),
        (get.replacen("GET", "HEAD", 1), 200, Vec::new()),
        ("GET /products/P9-v1/P9.PDS HTTP/1.1".to_owned(), 404, Vec::new()),
        (format!("{get}\nRange: bytes=3000000-"), 416, Vec::new()),
    ] {
        send(&stream, &head);
        let answer = read(&mut reader, &head);
        assert_eq!(answer.status, status, "{head}");
        if status < 400 {
            assert!(answer.body == body, "{head}: {} bytes", answer.body.len());
            assert!(answer.headers["repr-digest"].starts_with("sha-256=:"));
        }
    }
    let tag = format!("\"{:x}\"", Sha256::digest(&bytes));
    send(&stream, &format!("{get}\nIf-None-Match: {tag}"));
    let answer = read(&mut reader, get);
    assert_eq!((answer.status, answer.headers.get("content-length")), (304, None));
    send(&stream, &format!("{get}\nRange: bytes=0-9,2999990-"));
    let answer = read(&mut reader, get);
    assert_eq!(answer.status, 206);
    let text = answer.body;
    let has = |part: &[u8]| text.windows(part.len()).any(|window| window == part);
    assert!(has(&bytes[..10]) && has(&bytes[SIZE - 10..]) && text.len() < 600);
    let counters = served.server.counters();
    assert_eq!((counters.connections, counters.answered, counters.refused), (1, 6, 2));
}

#[test]
fn a_file_that_is_gone_or_another_one_is_not_sent() {
    let served = Served::open();
    let path = served.folder.path().join("products/P2.PDS");
    std::fs::write(&path, "other").unwrap();
    assert_eq!(served.ask("GET /products/P2-v1/P2.PDS HTTP/1.1").status, 500);
    std::fs::remove_file(&path).unwrap();
    assert_eq!(served.ask("HEAD /products/P2-v1/P2.PDS HTTP/1.1").status, 410);
    std::fs::create_dir(&path).unwrap();
    assert_eq!(served.ask("GET /products/P2-v1/P2.PDS HTTP/1.1").status, 410);
    let notices = format!("{:?}", served.notices.lock().unwrap());
    assert!(notices.contains("the product file P2.PDS has another size"), "{notices}");
}

#[test]
fn what_a_page_of_another_site_or_a_broken_client_asks_is_refused() {
    let served = Served::open();
    for (request, status) in [
        ("GET / HTTP/1.1\r\nHost: evil.example.org\r\n\r\n".to_owned(), 421),
        ("GET / HTTP/1.1\r\n\r\n".to_owned(), 400),
        ("GET /products/..%2fcatalogue.db HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(), 400),
        (format!("GET /{} HTTP/1.1\r\nHost: localhost\r\n\r\n", "a".repeat(20_000)), 414),
        (format!("GET / HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n", "a".repeat(40_000)), 431),
        (format!("GET / HTTP/1.1\r\nHost: localhost\r\n{}\r\n", "A: b\r\n".repeat(70)), 431),
        ("GET / HTTP/1.1\r\nHost: localhost\r\nX: \u{e4}\r\n\r\n".to_owned(), 400),
        ("nonsense\r\n\r\n".to_owned(), 400),
        (
            "POST /stac/search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 70000\r\n\r\n"
                .to_owned()
                + &"x".repeat(70_000),
            413,
        ),
        ("DELETE /products/P1-v1/P1.PDS HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(), 405),
    ] {
        let mut stream = served.connect();
        // The server may close while the rest is on its way.
        let _ = stream.write_all(request.as_bytes());
        let head: String = request.chars().take(40).collect();
        assert_eq!(read(&mut BufReader::new(&stream), "HEAD").status, status, "{head}");
    }
}

#[test]
fn accounts_are_asked_for_their_tokens_and_replaced_while_it_runs() {
    let token = NewToken::from_random([7; 32]);
    let created = Utc::from_micros(0);
    let terms = TokenTerms { account: "lance", label: "1", created, expires: None };
    let text = with_token("", &token, terms).unwrap();
    let limited = text.replacen("name = \"lance\"", "name = \"lance\"\nvolume = \"5 MB\"", 1);
    let files = ServeFiles { accounts: Some(limited), ..ServeFiles::default() };
    let served = Served::start(LIMITS, Duration::from_secs(60), &files);
    let get = "GET /products/P1-v1/P1.PDS HTTP/1.1";
    let with = format!("{get}\nAuthorization: Bearer {}", token.secret());
    assert_eq!(served.ask(get).status, 401);
    assert_eq!(served.ask(&format!("{get}\nAuthorization: Bearer x")).status, 401);
    assert_eq!(served.ask(&with).status, 200);
    assert_eq!(served.ask(&with).status, 200);
    let over = served.ask(&with);
    assert_eq!(over.status, 429);
    // 1 MB too much of 5 MB a day.
    let wait: u64 = over.headers["retry-after"].parse().unwrap();
    assert!((17_000..=17_280).contains(&wait), "{wait}");
    let bad = ServeFiles { accounts: Some("[[account".to_owned()), ..ServeFiles::default() };
    assert!(served.server.adopt(&bad).is_err());
    let wide = ServeFiles { accounts: Some(text), ..ServeFiles::default() };
    assert_eq!(served.server.adopt(&wide).unwrap(), ["the accounts of [serve] changed"]);
    assert_eq!(served.ask(&with).status, 200);
    assert_eq!(served.server.adopt(&wide).unwrap(), [""; 0]);
    let usage = &served.server.usage()[0];
    until(|| served.server.usage()[0].requests == 0);
    assert_eq!((usage.name.as_str(), usage.answered), ("lance", 3));
    let notices = format!("{:?}", served.notices.lock().unwrap());
    assert!(notices.contains("lance 127.0.0.1 GET /products/P1-v1/P1.PDS: 200"), "{notices}");
    assert!(!notices.contains(token.secret()));
}

#[test]
fn connections_beyond_the_limits_are_closed_and_others_go_on() {
    let limits = GateLimits { connections: 3, per_address: 2 };
    let served = Served::start(limits, Duration::from_secs(60), &ServeFiles::default());
    let kept: Vec<TcpStream> = (0..2).map(|_| served.connect()).collect();
    until(|| served.server.counters().connections == 2);
    let mut third = served.connect();
    assert_eq!(third.read(&mut [0; 1]).unwrap(), 0, "it is closed");
    for stream in &kept {
        send(stream, "GET / HTTP/1.1");
        assert_eq!(read(&mut BufReader::new(stream), "GET").status, 200);
    }
    drop(kept);
    until(|| served.server.counters().connections == 0);
    assert_eq!(served.ask("GET / HTTP/1.1").status, 200);
    assert_eq!(served.server.counters().refused_connections, 1);
}

#[test]
fn a_client_that_reads_nothing_is_closed_and_one_that_is_held_back_is_not() {
    let token = NewToken::from_random([7; 32]);
    let created = Utc::from_micros(0);
    let terms = TokenTerms { account: "slow", label: "1", created, expires: None };
    let text = with_token("", &token, terms).unwrap();
    // 100 kB take a second: the second piece waits longer than a client may stand still.
    let text = text.replacen("name = \"slow\"", "name = \"slow\"\nrate = \"800 kbit/s\"", 1);
    let files = ServeFiles { accounts: Some(text), ..ServeFiles::default() };
    let served = Served::start(LIMITS, Duration::from_secs(2), &files);
    let head = |range: &str| {
        format!(
            "GET /products/P1-v1/P1.PDS HTTP/1.1\nAuthorization: Bearer {}\nRange: bytes={range}",
            token.secret()
        )
    };
    let held_back = served.ask(&head("0-299999"));
    assert_eq!((held_back.status, held_back.body.len()), (206, 300_000));
    assert_eq!(served.server.counters().stalled, 0);
    drop(served);
    let served = Served::start(LIMITS, Duration::from_millis(400), &ServeFiles::default());
    let silent: Vec<TcpStream> = (0..3)
        .map(|_| {
            let stream = served.connect();
            // All of it would fit into the buffers of the system otherwise.
            for _ in 0..20 {
                send(&stream, "GET /products/P1-v1/P1.PDS HTTP/1.1");
            }
            stream
        })
        .collect();
    until(|| served.server.counters().stalled == 3);
    until(|| served.server.counters().connections == 0);
    drop(silent);
}

/// The clients that read slowly hold neither the others nor memory.
#[test]
#[allow(clippy::disallowed_methods, reason = "the rung of the tests is told by the environment")]
fn many_slow_readers_delay_nobody() {
    let many = match std::env::var("SKYHAUL_RUNG") {
        Ok(rung) if rung == "all" => 2_000,
        _ => 300,
    };
    let limits = GateLimits { connections: 2_100, per_address: 2_100 };
    let served = Served::start(limits, Duration::from_secs(600), &ServeFiles::default());
    let head = "GET /products/P1-v1/P1.PDS HTTP/1.1";
    let slow: Vec<TcpStream> = (0..many)
        .map(|_| {
            let stream = served.connect();
            send(&stream, head);
            stream
        })
        .collect();
    until(|| served.server.counters().connections == many);
    let bytes = content(2);
    for _ in 0..20 {
        let whole = served.ask("GET /products/P2-v1/P2.PDS HTTP/1.1");
        assert!(whole.status == 200 && whole.body == bytes);
    }
    let wanted = content(1);
    for stream in slow.iter().take(20) {
        let answer = read(&mut BufReader::new(stream), head);
        assert!(answer.status == 200 && answer.body == wanted);
    }
    // The end does not wait for those that do not read.
    drop(served);
}
