//! An object store that answers as a script says: what real ones do seldom.

use crate::servers::{publish, published, secret};
use sha2::{Digest, Sha256};
use skyhaul_dispatch::{FailureKind, Proof};
use skyhaul_remote::{
    Abilities, GoOn, OutgoingFile, PlaceProgress, Placing, PublishWay, RemoteAccess, RemotePlace,
    RemoteSink, ResumeNote, S3Access, StoreCheck, UploadNote, UploadedPart, open,
};
use skyhaul_units::ByteCount;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Duration;

/// Status line, headers and body of the answer to a method and a target.
type Script = fn(&str, &str) -> (&'static str, &'static str, &'static str);

fn store(script: Script) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || serve(stream, script));
        }
    });
    port
}

fn serve(mut stream: TcpStream, script: Script) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    loop {
        let (mut first, mut length) = (String::new(), 0);
        if reader.read_line(&mut first).unwrap_or(0) == 0 {
            return;
        }
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            if let Some(value) = line.strip_prefix("content-length: ") {
                length = value.trim().parse().unwrap();
            }
            if line == "\r\n" {
                break;
            }
        }
        std::io::copy(&mut reader.by_ref().take(length), &mut std::io::sink()).unwrap();
        let mut words = first.split(' ');
        let (method, target) = (words.next().unwrap(), words.next().unwrap());
        let (status, headers, body) = script(method, target);
        let length = body.len();
        let head = format!("HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\n\r\n");
        let head = if method == "HEAD" { head.replace("content-length: 0\r\n", "") } else { head };
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body.as_bytes()).unwrap();
    }
}

fn sink(dir: &Path, port: u16) -> Box<dyn RemoteSink> {
    sink_within(dir, port, RemoteAccess::default().stall)
}

/// One that waits so long for an answer.
fn sink_within(dir: &Path, port: u16, stall: Duration) -> Box<dyn RemoteSink> {
    let keys = "[default]\naws_access_key_id = X\naws_secret_access_key = geheim\n";
    let s3 = S3Access {
        endpoint: Some(format!("http://127.0.0.1:{port}")),
        profile_file: Some(secret(dir, "keys", keys)),
        least_part: ByteCount::mib(5),
        ..S3Access::default()
    };
    let access = RemoteAccess { s3, stall, ..RemoteAccess::default() };
    let known = Abilities {
        server: String::new(),
        publish: PublishWay::Whole,
        says_durable: true,
        resumes: true,
        refuses_existing: true,
        check: StoreCheck::Crc64,
        replaces: None,
        free: None,
    };
    let place: RemotePlace = "s3://bucket/in".parse().unwrap();
    open(&place, &access, Some(&known)).unwrap()
}

fn failure(sink: &mut dyn RemoteSink, file: &OutgoingFile) -> skyhaul_dispatch::DeliveryFailure {
    sink.place(file, &ResumeNote::Nothing, &mut |_| GoOn::Continue).unwrap_err()
}

#[test]
fn a_completion_that_says_200_and_failed_is_tried_again() {
    let port = store(|method, target| match (method, target) {
        ("HEAD", _) => ("404 Not Found", "", ""),
        ("POST", target) if target.contains("uploads=") => {
            ("200 OK", "", "<R><UploadId>u&amp;1</UploadId></R>")
        }
        ("PUT", target) if target.contains("uploadId=u%261") => ("200 OK", "etag: \"t\"\r\n", ""),
        ("POST", _) => (
            "200 OK",
            "",
            "  \n<?xml version=\"1.0\"?><Error><Code>InternalError</Code><Message>We broke it\
             </Message><RequestId>R9</RequestId></Error>",
        ),
        _ => ("400 Bad Request", "", ""),
    });
    let dir = tempfile::tempdir().unwrap();
    let failure = failure(&mut *sink(dir.path(), port), &published(dir.path(), "a", 6 << 20));
    assert_eq!(failure.kind, FailureKind::Line, "{failure}");
    for word in ["InternalError", "We broke it", "R9"] {
        assert!(failure.sentence.contains(word), "{failure}");
    }
}

#[test]
fn an_object_that_another_writer_put_there_meanwhile_stays() {
    // There is none at the first look; the put is refused; at the next look there is one of
    // another length.
    static LOOKS: AtomicU32 = AtomicU32::new(0);
    let port = store(|method, _| match method {
        "HEAD" if LOOKS.fetch_add(1, SeqCst) == 0 => ("404 Not Found", "", ""),
        "HEAD" => ("200 OK", "content-length: 5\r\n", ""),
        _ => ("412 Precondition Failed", "", "<Error><Code>PreconditionFailed</Code></Error>"),
    });
    let dir = tempfile::tempdir().unwrap();
    let failure = failure(&mut *sink(dir.path(), port), &published(dir.path(), "a", 1000));
    assert_eq!(failure.kind, FailureKind::Differs, "{failure}");
}

#[test]
fn a_store_without_room_or_without_a_right_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let file = published(dir.path(), "a", 1000);
    let full = store(|method, _| match method {
        "HEAD" => ("404 Not Found", "", ""),
        _ => ("400 Bad Request", "", "<Error><Code>QuotaExceeded</Code></Error>"),
    });
    let said = failure(&mut *sink(dir.path(), full), &file);
    assert_eq!(said.kind, FailureKind::Full, "{said}");
    let closed = store(|_, _| ("403 Forbidden", "", ""));
    let said = failure(&mut *sink(dir.path(), closed), &file);
    assert_eq!(said.kind, FailureKind::Access, "{said}");
    assert!(said.sentence.contains("may not list"), "{said}");
    let moved = store(|_, _| ("301 Moved Permanently", "location: https://b.example/\r\n", ""));
    let said = failure(&mut *sink(dir.path(), moved), &file);
    assert_eq!(said.kind, FailureKind::Access, "{said}");
    assert!(said.sentence.contains("https://b.example/"), "{said}");
}

#[test]
fn a_trial_gives_up_what_an_earlier_one_left_and_nothing_else() {
    static GIVEN_UP: std::sync::Mutex<Vec<String>> = std::sync::Mutex::new(Vec::new());
    static LISTED: std::sync::OnceLock<&str> = std::sync::OnceLock::new();
    let port = store(|method, target| match (method, target) {
        ("GET", target) if target.contains("uploads=") => {
            let key = target.split("prefix=").nth(1).and_then(|rest| rest.split('&').next());
            let key = key.unwrap_or_default().replace("%2F", "/");
            let of = |key: &str, id: &str| {
                format!("<Upload><Key>{key}</Key><UploadId>{id}</UploadId></Upload>")
            };
            let text = of(&key, "left&amp;1") + &of(&format!("{key}-of-another"), "other");
            ("200 OK", "", LISTED.get_or_init(|| text.leak()))
        }
        ("DELETE", target) if target.contains("uploadId=") => {
            GIVEN_UP.lock().unwrap().push(target.to_owned());
            ("204 No Content", "", "")
        }
        // It takes objects, and no checksums.
        ("PUT" | "DELETE", _) => ("200 OK", "", ""),
        _ => ("400 Bad Request", "", ""),
    });
    let dir = tempfile::tempdir().unwrap();
    let found = sink(dir.path(), port).abilities().unwrap();
    assert_eq!(found.check, StoreCheck::Nothing);
    let given_up = GIVEN_UP.lock().unwrap();
    let [one] = &given_up[..] else { panic!("{given_up:?}") };
    assert!(one.ends_with("uploadId=left%261"), "{one}");
}

/// A long file without content, and the note that all parts of it are at the store.
fn sent(dir: &Path, parts: usize) -> (OutgoingFile, ResumeNote) {
    let part_size = ByteCount::mib(16).as_u64();
    let file = publish(dir, "long", &vec![0; parts << 24]);
    let part = UploadedPart { tag: "t".to_owned(), crc: 0 };
    let note = UploadNote {
        sha256: file.sha256,
        upload: "u".to_owned(),
        part_size,
        check: StoreCheck::Nothing,
        parts: vec![part; parts],
    };
    (file, ResumeNote::Upload(note))
}

#[test]
fn a_store_may_put_a_long_object_together_for_longer_than_another_answer_takes() {
    const STALL: Duration = Duration::from_secs(4);
    const PARTS: usize = 20;
    let port = store(|method, target| match (method, target) {
        ("HEAD", _) => ("404 Not Found", "", ""),
        ("GET", target) if target.contains("uploadId=u") => {
            static LISTED: std::sync::OnceLock<&str> = std::sync::OnceLock::new();
            let part = |number| {
                format!(
                    "<Part><PartNumber>{number}</PartNumber><ETag>t</ETag><Size>{}</Size></Part>",
                    1 << 24
                )
            };
            ("200 OK", "", LISTED.get_or_init(|| (1..=PARTS).map(part).collect::<String>().leak()))
        }
        ("POST", target) if target.contains("uploadId=u") => {
            std::thread::sleep(STALL * 3 / 2);
            ("200 OK", "", "<CompleteMultipartUploadResult/>")
        }
        _ => ("400 Bad Request", "", ""),
    });
    let dir = tempfile::tempdir().unwrap();
    let (file, note) = sent(dir.path(), PARTS);
    let mut sink = sink_within(dir.path(), port, STALL);
    let placed = sink.place(&file, &note, &mut |_| GoOn::Continue).unwrap();
    assert_eq!(placed, Placing::Placed(Proof::Digest));
    // Whoever ends the node does not wait for the store.
    let mut asked = 0;
    let mut stop = |_: PlaceProgress<'_>| {
        asked += 1;
        if asked > 1 { GoOn::Stop } else { GoOn::Continue }
    };
    assert_eq!(sink.place(&file, &note, &mut stop).unwrap(), Placing::Stopped);
}

/// The headers of an object of 16 MiB that has no content.
fn whole() -> &'static str {
    static WHOLE: std::sync::OnceLock<&str> = std::sync::OnceLock::new();
    WHOLE.get_or_init(|| {
        let digest = Sha256::digest(vec![0; 1 << 24]);
        let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("content-length: {}\r\nx-amz-meta-sha256: {digest}\r\n", 1 << 24).leak()
    })
}

#[test]
fn an_object_whose_upload_is_gone_with_all_parts_is_waited_for() {
    // The node was killed while the store put the parts together: it has no upload of this name any
    // more, and shows the object at the third look.
    static LOOKS: AtomicU32 = AtomicU32::new(0);
    static OTHERS: AtomicU32 = AtomicU32::new(0);
    let port = store(|method, target| match method {
        "HEAD" if LOOKS.fetch_add(1, SeqCst) < 2 => ("404 Not Found", "", ""),
        "HEAD" => ("200 OK", whole(), ""),
        "GET" if target.contains("uploadId=u") => {
            ("404 Not Found", "", "<Error><Code>NoSuchUpload</Code></Error>")
        }
        _ => {
            OTHERS.fetch_add(1, SeqCst);
            ("400 Bad Request", "", "")
        }
    });
    let dir = tempfile::tempdir().unwrap();
    let (file, note) = sent(dir.path(), 1);
    let placed = sink(dir.path(), port).place(&file, &note, &mut |_| GoOn::Continue).unwrap();
    assert_eq!(placed, Placing::Placed(Proof::Digest));
    assert_eq!((LOOKS.load(SeqCst), OTHERS.load(SeqCst)), (3, 0));
}

#[test]
fn an_object_whose_upload_is_gone_at_its_completion_is_waited_for() {
    // Another attempt's completion is under way.
    static LOOKS: AtomicU32 = AtomicU32::new(0);
    let port = store(|method, target| match (method, target) {
        ("HEAD", _) if LOOKS.fetch_add(1, SeqCst) < 2 => ("404 Not Found", "", ""),
        ("HEAD", _) => ("200 OK", whole(), ""),
        ("GET", target) if target.contains("uploadId=u") => (
            "200 OK",
            "",
            "<Part><PartNumber>1</PartNumber><ETag>t</ETag><Size>16777216</Size></Part>",
        ),
        ("POST", target) if target.contains("uploadId=u") => {
            ("404 Not Found", "", "<Error><Code>NoSuchUpload</Code></Error>")
        }
        _ => ("400 Bad Request", "", ""),
    });
    let dir = tempfile::tempdir().unwrap();
    let (file, note) = sent(dir.path(), 1);
    let placed = sink(dir.path(), port).place(&file, &note, &mut |_| GoOn::Continue).unwrap();
    assert_eq!(placed, Placing::Placed(Proof::Digest));
    assert_eq!(LOOKS.load(SeqCst), 3);
}

#[test]
fn an_upload_that_a_store_gave_up_begins_anew_when_its_object_does_not_come() {
    static BEGUN: AtomicU32 = AtomicU32::new(0);
    let port = store(|method, target| match (method, target) {
        ("HEAD", _) => ("404 Not Found", "", ""),
        ("POST", target) if target.contains("uploads=") => {
            BEGUN.fetch_add(1, SeqCst);
            ("200 OK", "", "<R><UploadId>new</UploadId></R>")
        }
        ("PUT", target) if target.contains("uploadId=new") => ("200 OK", "etag: \"t\"\r\n", ""),
        // It gives up the next one, too.
        _ => ("404 Not Found", "", "<Error><Code>NoSuchUpload</Code></Error>"),
    });
    let dir = tempfile::tempdir().unwrap();
    let (file, mut note) = sent(dir.path(), 1);
    let begun = note.clone();
    let mut keep = |progress: PlaceProgress<'_>| {
        if let PlaceProgress::Reached(step) = progress {
            note.apply(step);
        }
        GoOn::Continue
    };
    let failure = sink(dir.path(), port).place(&file, &begun, &mut keep).unwrap_err();
    assert_eq!((failure.kind, BEGUN.load(SeqCst)), (FailureKind::Line, 1), "{failure}");
    assert_eq!(note, ResumeNote::Nothing);
}
