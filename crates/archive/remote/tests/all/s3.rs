//! Object stores.

use crate::life::{self, Breaks};
use crate::servers::{Line, Server, free_port, program, publish, published, run, secret};
use skyhaul_dispatch::{FailureKind, Proof};
use skyhaul_remote::{
    GoOn, OutgoingFile, Placing, RemoteAccess, RemotePlace, RemoteSink, ResumeNote, S3Access,
    StoreCheck, open,
};
use skyhaul_units::ByteCount;
use std::path::Path;
use std::process::{Command, Stdio};

fn access(dir: &Path, port: u16, secret_key: &str) -> RemoteAccess {
    let text = format!(
        "[other]\naws_access_key_id = X\n[sky]\naws_access_key_id = SKY\n\
         aws_secret_access_key = {secret_key}\n"
    );
    let s3 = S3Access {
        endpoint: Some(format!("http://127.0.0.1:{port}")),
        profile_file: Some(secret(dir, "credentials", &text)),
        profile: Some("sky".to_owned()),
        least_part: ByteCount::mib(5),
        ..S3Access::default()
    };
    RemoteAccess { s3, ..RemoteAccess::default() }
}

fn sink(access: &RemoteAccess) -> Box<dyn RemoteSink> {
    open(&"s3://bucket/in/sky".parse::<RemotePlace>().unwrap(), access, None).unwrap()
}

/// A store in memory, which checks no signatures.
fn moto() -> Option<Server> {
    let moto = program("moto_server")?;
    let port = free_port();
    let mut command = Command::new(moto);
    command.args(["-H", "127.0.0.1", "-p", &port.to_string()]);
    let server = Server::start(command.stdout(Stdio::null()).stderr(Stdio::null()), port);
    let url = format!("http://127.0.0.1:{port}/bucket");
    run(Command::new("curl").args(["-sf", "-X", "PUT", &url]));
    Some(server)
}

/// The SHA-256 of nothing.
const NO_BODY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// `curl` that signs its requests.
fn signed(secret: &str) -> Command {
    let mut curl = Command::new("curl");
    curl.args(["-sf", "--aws-sigv4", "aws:amz:us-east-1:s3", "--user", &format!("SKY:{secret}")]);
    // Stores want the digest of the body, of which there is none.
    curl.args(["-H", &format!("x-amz-content-sha256: {NO_BODY}")]);
    curl
}

/// An object.
fn seen(port: u16, name: &str, secret: &str) -> Option<Vec<u8>> {
    // As a signature has it: nothing is encoded that need not be.
    let encoded = |byte: u8| match byte {
        b'-' | b'.' | b'_' | b'~' | b'/' => char::from(byte).to_string(),
        byte if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    let encoded: String = name.bytes().map(encoded).collect();
    let url = format!("http://127.0.0.1:{port}/bucket/in/sky/{encoded}");
    let output = signed(secret).arg(&url).output().unwrap();
    output.status.success().then_some(output.stdout)
}

#[test]
fn a_store_without_checks_does_what_every_destination_must() {
    let Some(moto) = moto() else { return };
    let dir = tempfile::tempdir().unwrap();
    let mut sink = sink(&access(dir.path(), moto.port, "geheim"));
    let abilities = life::whole(&mut *sink, dir.path(), &|name| seen(moto.port, name, "geheim"));
    eprintln!("{abilities:?}");
    life::stopped(&mut *sink, &published(dir.path(), "stopped", 11 << 20));
}

#[test]
fn an_upload_that_is_broken_three_times_sends_at_most_one_part_twice_for_each() {
    let Some(moto) = moto() else { return };
    let dir = tempfile::tempdir().unwrap();
    let line = Line::to(moto.port);
    let mut sink = sink(&access(dir.path(), line.port, "geheim"));
    sink.abilities().unwrap();
    let file = published(dir.path(), "long", 46 << 20);
    // A break costs at most the part of 5 MiB that was under way; a mebibyte is of the protocol.
    let breaks = Breaks { after: &[4, 4, 4], twice: (3 * 5 + 1) << 20 };
    let note = life::broken_line(&mut *sink, &line, &file, breaks);
    assert!(seen(moto.port, "long", "geheim").unwrap() == life::content(&file));
    assert!(matches!(note, ResumeNote::Upload(_)));
    // The upload is gone: the same note begins another one.
    let again = OutgoingFile { name: "again".to_owned(), ..file.clone() };
    assert!(matches!(
        sink.place(&again, &note, &mut |_| GoOn::Continue).unwrap(),
        Placing::Placed(_)
    ));
    sink.discard(&again, &note).unwrap();
}

#[test]
fn an_object_that_another_program_wrote_is_known_by_its_tag() {
    let Some(moto) = moto() else { return };
    let dir = tempfile::tempdir().unwrap();
    let mut sink = sink(&access(dir.path(), moto.port, "geheim"));
    sink.write("x", b"123456789").unwrap();
    // `printf 123456789 | md5sum`
    let md5 = 0x25f9_e794_323b_4538_85f5_181f_1b62_4d0b_u128.to_be_bytes();
    let file = OutgoingFile { md5: Some(md5), ..publish(dir.path(), "x", b"123456789") };
    assert_eq!(life::place(&mut *sink, &file), Placing::Placed(Proof::Digest));
}

#[test]
fn a_missing_bucket_and_missing_keys_are_for_an_operator() {
    let Some(moto) = moto() else { return };
    let dir = tempfile::tempdir().unwrap();
    let good = access(dir.path(), moto.port, "geheim");
    let place: RemotePlace = "s3://missing".parse().unwrap();
    let failure = open(&place, &good, None).unwrap().abilities().unwrap_err();
    assert_eq!(failure.kind, FailureKind::Access, "{failure}");
    assert!(failure.sentence.contains("NoSuchBucket"), "{failure}");
    let bad = RemoteAccess {
        s3: S3Access { profile: Some("other".to_owned()), ..good.s3.clone() },
        ..good.clone()
    };
    let failure = open(&place, &bad, None).err().unwrap();
    assert_eq!(failure.kind, FailureKind::Access, "{failure}");
}

/// A store of one make that checks signatures, with its bucket and the secret of its key.
struct SignedStore {
    server: Server,
    secret: &'static str,
}

/// A store on a file system.
fn versity(dir: &Path) -> Option<SignedStore> {
    let gateway = program("versitygw")?;
    let (port, secret) = (free_port(), "geheim");
    std::fs::create_dir_all(dir.join("store/bucket")).unwrap();
    let mut command = Command::new(gateway);
    command
        .args(["--access", "SKY", "--secret", secret])
        .args(["--port", &format!("127.0.0.1:{port}"), "posix"])
        .arg(dir.join("store"))
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    Some(SignedStore { server: Server::start(&mut command, port), secret })
}

/// A store that many still run, although nobody keeps it any more.
fn minio(dir: &Path) -> Option<SignedStore> {
    let minio = program("minio")?;
    // It takes no shorter secret.
    let (port, secret) = (free_port(), "geheimnis");
    let mut command = Command::new(minio);
    command
        .env("MINIO_ROOT_USER", "SKY")
        .env("MINIO_ROOT_PASSWORD", secret)
        .args(["server", "--quiet", "--address", &format!("127.0.0.1:{port}")])
        .args(["--console-address", "127.0.0.1:0"])
        .arg(dir.join("store"))
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let server = Server::start(&mut command, port);
    let url = format!("http://127.0.0.1:{port}/bucket");
    let mut made = signed(secret);
    // It listens before it takes requests.
    made.args(["--retry", "60", "--retry-all-errors", "--retry-delay", "1", "-X", "PUT", &url]);
    run(&mut made);
    Some(SignedStore { server, secret })
}

#[test]
fn stores_that_check_signatures_and_checksums_prove_what_they_took() {
    for store in [versity, minio] {
        let dir = tempfile::tempdir().unwrap();
        let Some(SignedStore { server, secret }) = store(dir.path()) else { continue };
        let good = access(dir.path(), server.port, secret);
        let seen = |name: &str| seen(server.port, name, secret);
        let mut sink = sink(&good);
        let abilities = life::whole(&mut *sink, dir.path(), &seen);
        eprintln!("{abilities:?}");
        assert_eq!(abilities.check, StoreCheck::Crc64);
        let file = published(dir.path(), "proved", 12 << 20);
        assert_eq!(life::place(&mut *sink, &file), Placing::Placed(Proof::Digest));
        assert!(seen("proved").unwrap() == life::content(&file));
        life::stopped(&mut *sink, &published(dir.path(), "stopped", 11 << 20));

        let wrong = access(dir.path(), server.port, "falsch");
        let failure = self::sink(&wrong).abilities().unwrap_err();
        assert_eq!(failure.kind, FailureKind::Access, "{failure}");
        assert!(failure.sentence.contains("SignatureDoesNotMatch"), "{failure}");
    }
}
