//! Servers that do not answer, or always the same.

use crate::servers::{published, secret};
use skyhaul_dispatch::FailureKind;
use skyhaul_remote::{GoOn, RemoteAccess, RemotePlace, ResumeNote, S3Access, open};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::time::Duration;

/// Accepts, and does with each connection what it is told.
fn listen(serve: fn(TcpStream)) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || serve(stream));
        }
    });
    port
}

fn access(dir: &Path, port: u16) -> RemoteAccess {
    let keys = "[default]\naws_access_key_id = X\naws_secret_access_key = geheim\n";
    RemoteAccess {
        stall: Duration::from_millis(600),
        password_file: Some(secret(dir, "password", "geheim\n")),
        s3: S3Access {
            endpoint: Some(format!("http://127.0.0.1:{port}")),
            profile_file: Some(secret(dir, "keys", keys)),
            ..S3Access::default()
        },
        ..RemoteAccess::default()
    }
}

fn places(port: u16) -> Vec<RemotePlace> {
    let address = format!("127.0.0.1:{port}");
    [
        format!("sftp://a@{address}/in"),
        format!("ftps://a@{address}/in"),
        format!("https://a@{address}/in"),
        "s3://bucket/in".to_owned(),
    ]
    .iter()
    .map(|place| place.parse().unwrap())
    .collect()
}

#[test]
fn a_server_that_never_answers_holds_nobody_for_long() {
    let port = listen(|stream| {
        // Held open, and never read.
        std::thread::sleep(Duration::from_secs(60));
        drop(stream);
    });
    let dir = tempfile::tempdir().unwrap();
    let file = published(dir.path(), "a", 1 << 20);
    for place in places(port) {
        let mut sink = open(&place, &access(dir.path(), port), None).unwrap();
        let failure = sink.place(&file, &ResumeNote::Nothing, &mut |_| GoOn::Continue).unwrap_err();
        assert_eq!(failure.kind, FailureKind::Line, "{failure}");
        assert!(failure.sentence.contains("nothing moved"), "{failure}");
        assert!(!failure.sentence.contains("geheim"), "{failure}");
    }
}

#[test]
fn a_server_that_stops_reading_in_mid_file_is_given_up_and_a_caller_may_stop_before() {
    // It answers the question what is there, and then takes nothing of the file.
    let port = listen(|mut stream| {
        let mut request = [0; 4096];
        let length = stream.read(&mut request).unwrap_or(0);
        if request[..length].starts_with(b"HEAD") {
            stream.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n").ok();
        }
        std::thread::sleep(Duration::from_secs(60));
    });
    let dir = tempfile::tempdir().unwrap();
    let file = published(dir.path(), "a", 32 << 20);
    let known = skyhaul_remote::Abilities {
        server: String::new(),
        publish: skyhaul_remote::PublishWay::Whole,
        says_durable: true,
        resumes: true,
        refuses_existing: true,
        check: skyhaul_remote::StoreCheck::Crc64,
        replaces: None,
        free: None,
    };
    let place: RemotePlace = "s3://bucket/in".parse().unwrap();
    let mut sink = open(&place, &access(dir.path(), port), Some(&known)).unwrap();
    let failure = sink.place(&file, &ResumeNote::Nothing, &mut |_| GoOn::Continue).unwrap_err();
    assert!(failure.sentence.contains("nothing moved"), "{failure}");
    let patient = RemoteAccess { stall: Duration::from_secs(600), ..access(dir.path(), port) };
    let mut sink = open(&place, &patient, Some(&known)).unwrap();
    let mut asked = 0;
    let mut stop = |_: skyhaul_remote::PlaceProgress<'_>| {
        asked += 1;
        if asked > 1 { GoOn::Stop } else { GoOn::Continue }
    };
    let stopped = sink.place(&file, &ResumeNote::Nothing, &mut stop).unwrap();
    assert_eq!(stopped, skyhaul_remote::Placing::Stopped);
}

#[test]
fn a_server_that_is_always_busy_is_quoted() {
    let port = listen(|mut stream| {
        let body = "<Error><Code>SlowDown</Code><Message>Come back later</Message></Error>";
        let head = "HTTP/1.1 503 Service Unavailable\r\nx-amz-request-id: R17\r\n";
        let answer = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
        let mut request = [0; 4096];
        while stream.read(&mut request).is_ok_and(|length| length > 0) {
            let is_head = request.starts_with(b"HEAD");
            let end = if is_head { answer.len() - body.len() } else { answer.len() };
            stream.write_all(&answer.as_bytes()[..end]).ok();
        }
    });
    let dir = tempfile::tempdir().unwrap();
    let place: RemotePlace = "s3://bucket/in".parse().unwrap();
    let mut sink = open(&place, &access(dir.path(), port), None).unwrap();
    for _ in 0..2 {
        let failure = sink.write("a", b"x").unwrap_err();
        assert_eq!(failure.kind, FailureKind::Line, "{failure}");
        for word in ["503", "SlowDown", "Come back later", "R17"] {
            assert!(failure.sentence.contains(word), "{failure}");
        }
    }
}

#[test]
fn a_server_that_speaks_something_else_is_given_up() {
    let port = listen(|mut stream| {
        let noise: Vec<u8> = (0..100_000_u32).map(|byte| (byte % 251) as u8).collect();
        while stream.write_all(&noise).is_ok() {}
    });
    let dir = tempfile::tempdir().unwrap();
    for place in places(port) {
        let mut sink = open(&place, &access(dir.path(), port), None).unwrap();
        let failure = sink.list("").unwrap_err();
        assert_eq!(failure.kind, FailureKind::Line, "{failure}");
        eprintln!("{failure}");
    }
}
