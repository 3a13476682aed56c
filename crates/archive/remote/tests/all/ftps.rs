//! FTP servers with TLS: one that is strict about TLS sessions (vsftpd), and another (pure-ftpd).

use crate::life;
use crate::servers::{
    Line, Server, certificates, free_port, is_all, program, published, run, secret,
};
use skyhaul_dispatch::FailureKind;
use skyhaul_remote::{
    GoOn, PublishWay, RemoteAccess, RemoteFound, RemotePlace, RemoteSink, ResumeNote, open,
};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;

/// A server of virtual users, and the folder that its user sees as the root.
struct PureFtpd {
    dir: tempfile::TempDir,
    server: Server,
}

impl PureFtpd {
    fn start() -> Option<Self> {
        let (ftpd, accounts) = (program("pure-ftpd")?, program("pure-pw")?);
        if !rustix::process::geteuid().is_root() {
            eprintln!("SKIPPED: pure-ftpd needs root");
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        certificates(dir.path())?;
        let home = dir.path().join("home");
        std::fs::create_dir_all(home.join("in")).unwrap();
        // It wants a user with a number of its own; that of a system's `nobody` will do.
        for path in [dir.path().to_owned(), home.clone(), home.join("in")] {
            run(Command::new("chown").arg("65534:65534").arg(path));
        }
        let (passwords, database) = (dir.path().join("passwords"), dir.path().join("database"));
        let hash = Command::new("openssl")
            .args(["passwd", "-6", "-salt", "skyhaul1", "geheim"])
            .output()
            .unwrap();
        let hash = String::from_utf8(hash.stdout).unwrap();
        let (hash, home) = (hash.trim(), home.display());
        // The second one has room for 4 MiB.
        let users = format!(
            "sky:{hash}:65534:65534::{home}/./::::::::::::\n\
             small:{hash}:65534:65534::{home}/./::::::9:4194304:::::\n"
        );
        std::fs::write(&passwords, users).unwrap();
        run(Command::new(&accounts).arg("mkdb").arg(&database).arg("-f").arg(&passwords));
        let both = ["good.key", "good.pem"]
            .map(|name| std::fs::read_to_string(dir.path().join(name)).unwrap());
        secret(dir.path(), "both.pem", &both.concat());
        let port = free_port();
        let mut command = Command::new(ftpd);
        command
            .args(["-S", &format!("127.0.0.1,{port}"), "-Y", "2", "-H", "-4", "-E", "-D"])
            .arg(format!("-lpuredb:{}", database.display()))
            .arg("-2")
            .arg(dir.path().join("both.pem"))
            .args(["-u", "1000", "-g"])
            .arg(dir.path().join("pid"))
            .stdout(Stdio::null());
        let server = Server::start(&mut command, port);
        secret(dir.path(), "password", "geheim\n");
        Some(Self { dir, server })
    }

    fn access(&self) -> RemoteAccess {
        RemoteAccess {
            ca_file: Some(self.dir.path().join("ca.pem")),
            password_file: Some(self.dir.path().join("password")),
            ..RemoteAccess::default()
        }
    }

    fn folder(&self) -> PathBuf {
        self.dir.path().join("home/in")
    }
}

fn sink(port: u16, access: &RemoteAccess) -> Box<dyn RemoteSink> {
    let place: RemotePlace = format!("ftps://sky@127.0.0.1:{port}/in").parse().unwrap();
    open(&place, access, None).unwrap()
}

#[test]
fn pure_ftpd_does_what_every_destination_must() {
    let Some(ftpd) = PureFtpd::start() else { return };
    let mut sink = sink(ftpd.server.port, &ftpd.access());
    let seen = |name: &str| std::fs::read(ftpd.folder().join(name)).ok();
    let abilities = life::whole(&mut *sink, ftpd.dir.path(), &seen);
    eprintln!("{abilities:?}");
    assert_eq!(abilities.publish, PublishWay::Rename);
    assert!(abilities.resumes);
    let file = published(ftpd.dir.path(), "overtaken", 1 << 20);
    life::overtaken(&mut *sink, &file, &ftpd.folder().join("overtaken"));
}

/// Each file has data connections of its own, with the TLS session of the control connection.
fn many_uploads(port: u16, access: &RemoteAccess, place: &str, dir: &Path) {
    let count = if is_all() { 500 } else { 40 };
    let line = Line::to(port);
    let place = place.replace("PORT", &line.port.to_string());
    let mut sink = open(&place.parse::<RemotePlace>().unwrap(), access, None).unwrap();
    sink.abilities().unwrap();
    for number in 0..count {
        let file = published(dir, &format!("many-{number}"), 2_000 + number);
        life::place(&mut *sink, &file);
        std::fs::remove_file(&file.path).unwrap();
    }
    assert_eq!(line.connections.load(Ordering::SeqCst), 1, "all of them over one session");
}

#[test]
fn many_files_go_over_one_session() {
    let Some(ftpd) = PureFtpd::start() else { return };
    let place = "ftps://sky@127.0.0.1:PORT/in";
    many_uploads(ftpd.server.port, &ftpd.access(), place, ftpd.dir.path());
}

#[test]
fn an_upload_goes_on_at_the_size_of_its_part() {
    let Some(ftpd) = PureFtpd::start() else { return };
    let mut sink = sink(ftpd.server.port, &ftpd.access());
    let file = published(ftpd.dir.path(), "long", 40 << 20);
    life::stopped(&mut *sink, &file);
    let there = ftpd.folder().join("long");
    assert!(std::fs::read(&there).unwrap() == life::content(&file));
    let bytes = life::content(&file);
    for part in [&bytes[..17 << 20], &[7; 100_000][..], &[][..]] {
        std::fs::remove_file(&there).unwrap();
        let path = ftpd.folder().join(".long.part");
        std::fs::write(&path, part).unwrap();
        run(Command::new("chown").arg("65534:65534").arg(&path));
        let note = skyhaul_remote::PartNote { sha256: file.sha256, bytes: 16 << 20 };
        let mut first = None;
        sink.place(&file, &ResumeNote::Part(note), &mut |progress| {
            if let skyhaul_remote::PlaceProgress::Sent(bytes) = progress {
                first.get_or_insert(bytes.as_u64());
            }
            GoOn::Continue
        })
        .unwrap();
        let is_continued = first.unwrap() > 17 << 20;
        assert_eq!(is_continued, part.len() == 17 << 20);
        assert!(std::fs::read(&there).unwrap() == bytes);
    }
}

#[test]
fn a_broken_control_connection_and_wrong_passwords_are_told_apart() {
    let Some(ftpd) = PureFtpd::start() else { return };
    let line = Line::to(ftpd.server.port);
    let mut first = sink(line.port, &ftpd.access());
    line.break_after(200);
    let failure = first.abilities().unwrap_err();
    assert_eq!(failure.kind, FailureKind::Line, "{failure}");
    line.mend();
    first.abilities().unwrap();
    let wrong = secret(ftpd.dir.path(), "wrong", "falsch\n");
    let stranger = ftpd.dir.path().join("stranger.pem");
    for access in [
        RemoteAccess { password_file: Some(wrong), ..ftpd.access() },
        RemoteAccess { ca_file: Some(stranger), ..ftpd.access() },
    ] {
        let failure = sink(ftpd.server.port, &access).list("").unwrap_err();
        assert_eq!(failure.kind, FailureKind::Access, "{failure}");
        assert!(!failure.sentence.contains("falsch"), "{failure}");
        eprintln!("{failure}");
    }
}

#[test]
fn a_quota_is_a_full_disk() {
    let Some(ftpd) = PureFtpd::start() else { return };
    let place = format!("ftps://small@127.0.0.1:{}/in", ftpd.server.port);
    let place: RemotePlace = place.parse().unwrap();
    let mut sink = open(&place, &ftpd.access(), None).unwrap();
    let file = published(ftpd.dir.path(), "large", 6 << 20);
    let failure = sink.place(&file, &ResumeNote::Nothing, &mut |_| GoOn::Continue).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Full, "{failure}");
    assert_eq!(sink.look(&file).unwrap(), RemoteFound::Absent);
}

/// A server that takes a data connection only with the TLS session of the control connection.
#[test]
fn a_server_that_wants_its_tls_session_again_gets_it() {
    let Some(vsftpd) = program("vsftpd") else { return };
    if !rustix::process::geteuid().is_root() {
        return eprintln!("SKIPPED: vsftpd needs root for anonymous users");
    }
    let dir = tempfile::tempdir().unwrap();
    let Some(()) = certificates(dir.path()) else { return };
    let home = dir.path().join("home");
    for folder in ["home/in", "jail"] {
        std::fs::create_dir_all(dir.path().join(folder)).unwrap();
    }
    run(Command::new("chmod").args(["755"]).arg(dir.path()));
    // Its user, daemon, has a folder that exists, which the server wants of it.
    run(Command::new("chown").arg("daemon").arg(home.join("in")));
    let port = free_port();
    let config = include_str!("vsftpd.conf")
        .replace("@PORT", &port.to_string())
        .replace("@DIR", &dir.path().display().to_string());
    let config = secret(dir.path(), "vsftpd.conf", &config);
    let mut command = Command::new(vsftpd);
    let _server = Server::start(command.arg(config), port);
    let access = RemoteAccess {
        ca_file: Some(dir.path().join("ca.pem")),
        password_file: Some(secret(dir.path(), "password", "a@b.example\n")),
        ..RemoteAccess::default()
    };
    let place: RemotePlace = format!("ftps://ftp@127.0.0.1:{port}/in").parse().unwrap();
    let mut sink = open(&place, &access, None).unwrap();
    let seen = |name: &str| std::fs::read(home.join("in").join(name)).ok();
    let abilities = life::whole(&mut *sink, dir.path(), &seen);
    assert!(abilities.server.contains("vsFTPd"), "{abilities:?}");
    life::stopped(&mut *sink, &published(dir.path(), "long", 20 << 20));
    many_uploads(port, &access, "ftps://ftp@127.0.0.1:PORT/in", dir.path());
}
