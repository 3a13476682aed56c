//! nginx, with WebDAV, with PUT alone, and with certificates that are none.

use crate::folder::SmallDisk;
use crate::life;
use crate::servers::{Line, Server, certificates, free_port, program, published, secret};
use skyhaul_dispatch::FailureKind;
use skyhaul_remote::{
    DeliveryPace, GoOn, Placing, PublishWay, RemoteAccess, RemoteFound, RemotePlace, RemoteSink,
    ResumeNote, open,
};
use skyhaul_units::Rate;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

/// A server with a folder for WebDAV and one for PUT alone.
struct Nginx {
    dir: tempfile::TempDir,
    server: Server,
    expired: u16,
}

impl Nginx {
    fn start() -> Option<Self> {
        let nginx = program("nginx")?;
        let dir = tempfile::tempdir().unwrap();
        certificates(dir.path())?;
        let module = "/usr/lib/nginx/modules/ngx_http_dav_ext_module.so";
        if !Path::new(module).is_file() {
            eprintln!("SKIPPED: nginx has no module dav-ext");
            return None;
        }
        for folder in ["root/dav", "root/put", "tmp"] {
            std::fs::create_dir_all(dir.path().join(folder)).unwrap();
        }
        // `printf geheim | openssl passwd -apr1 -salt skyhaul1 -stdin`
        let hash = Command::new("openssl")
            .args(["passwd", "-apr1", "-salt", "skyhaul1", "geheim"])
            .output()
            .unwrap();
        let hash = String::from_utf8(hash.stdout).unwrap();
        secret(dir.path(), "users", &format!("sky:{hash}"));
        let (port, expired) = (free_port(), free_port());
        let user = if rustix::process::geteuid().is_root() { "user root;" } else { "" };
        let config = include_str!("nginx.conf")
            .replace("@USER", user)
            .replace("@MODULE", module)
            .replace("@EXPIRED", &expired.to_string())
            .replace("@PORT", &port.to_string())
            .replace("@DIR", &dir.path().display().to_string());
        let config = secret(dir.path(), "nginx.conf", &config);
        let mut command = Command::new(nginx);
        let server = Server::start(command.arg("-e").arg("stderr").arg("-c").arg(config), port);
        secret(dir.path(), "password", "geheim\n");
        Some(Self { dir, server, expired })
    }

    fn access(&self) -> RemoteAccess {
        RemoteAccess {
            ca_file: Some(self.dir.path().join("ca.pem")),
            password_file: Some(self.dir.path().join("password")),
            ..RemoteAccess::default()
        }
    }

    fn sink(&self, port: u16, folder: &str, access: &RemoteAccess) -> Box<dyn RemoteSink> {
        let place = format!("https://sky@127.0.0.1:{port}/{folder}");
        open(&place.parse::<RemotePlace>().unwrap(), access, None).unwrap()
    }
}

#[test]
fn webdav_does_what_every_destination_must() {
    let Some(nginx) = Nginx::start() else { return };
    let folder = nginx.dir.path().join("root/dav");
    let mut sink = nginx.sink(nginx.server.port, "dav", &nginx.access());
    let seen = |name: &str| std::fs::read(folder.join(name)).ok();
    let abilities = life::whole(&mut *sink, nginx.dir.path(), &seen);
    assert!(abilities.server.starts_with("nginx"), "{abilities:?}");
    assert_eq!(abilities.publish, PublishWay::Rename);
    assert!(abilities.refuses_existing, "{abilities:?}");
}

#[test]
fn a_server_with_put_alone_gets_whole_files_and_says_that_it_lists_none() {
    let Some(nginx) = Nginx::start() else { return };
    let mut sink = nginx.sink(nginx.server.port, "put", &nginx.access());
    let abilities = sink.abilities().unwrap();
    assert_eq!(abilities.publish, PublishWay::Direct);
    let file = published(nginx.dir.path(), "2026/a", 100_000);
    life::place(&mut *sink, &file);
    let there = nginx.dir.path().join("root/put/2026/a");
    assert!(std::fs::read(&there).unwrap() == life::content(&file));
    std::fs::write(&there, "other").unwrap();
    let failure = sink.place(&file, &ResumeNote::Nothing, &mut |_| GoOn::Continue).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Differs, "{failure}");
    let failure = sink.list("").unwrap_err();
    assert!(failure.sentence.contains("PROPFIND"), "{failure}");
}

#[test]
fn an_upload_whose_line_broke_begins_anew_and_is_not_seen_before() {
    let Some(nginx) = Nginx::start() else { return };
    let line = Line::to(nginx.server.port);
    // 20 MiB take more than a second.
    let pace = Some(Arc::new(DeliveryPace::new(Rate::from_mbps(160))));
    let access = RemoteAccess { pace, ..nginx.access() };
    let mut sink = nginx.sink(line.port, "dav", &access);
    let file = published(nginx.dir.path(), "long", 20 << 20);
    sink.abilities().unwrap();
    line.break_after(10 << 20);
    let failure = sink.place(&file, &ResumeNote::Nothing, &mut |_| GoOn::Continue).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Line, "{failure}");
    line.mend();
    assert_eq!(sink.look(&file).unwrap(), RemoteFound::Absent);
    assert_eq!(
        sink.place(&file, &ResumeNote::Nothing, &mut |_| GoOn::Stop).unwrap(),
        Placing::Stopped
    );
    life::place(&mut *sink, &file);
    sink.discard(&file, &ResumeNote::Nothing).unwrap();
}

#[test]
fn certificates_and_passwords_that_do_not_fit_are_for_an_operator() {
    let Some(nginx) = Nginx::start() else { return };
    let good = nginx.access();
    let stranger = Some(nginx.dir.path().join("stranger.pem"));
    let wrong = secret(nginx.dir.path(), "wrong", "falsch\n");
    let cases = [
        (nginx.expired, good.clone(), "expired"),
        (
            nginx.server.port,
            RemoteAccess { ca_file: stranger, ..good.clone() },
            "invalid peer certificate",
        ),
        (nginx.server.port, RemoteAccess { ca_file: None, ..good.clone() }, "certificate"),
        (nginx.server.port, RemoteAccess { password_file: Some(wrong), ..good.clone() }, "401"),
        (nginx.server.port, RemoteAccess { password_file: None, ..good }, "401"),
    ];
    for (port, access, word) in cases {
        let failure = nginx.sink(port, "dav", &access).write("a", b"x").unwrap_err();
        assert_eq!(failure.kind, FailureKind::Access, "{failure}");
        assert!(failure.sentence.contains(word), "{failure}");
        assert!(!failure.sentence.contains("falsch"), "{failure}");
        eprintln!("{failure}");
    }
}

#[test]
fn a_full_disk_there_is_tried_again() {
    let Some(nginx) = Nginx::start() else { return };
    let Some(disk) = SmallDisk::mount() else { return };
    std::os::unix::fs::symlink(disk.0.path(), nginx.dir.path().join("root/dav/small")).unwrap();
    let mut sink = nginx.sink(nginx.server.port, "dav/small", &nginx.access());
    std::fs::write(disk.0.path().join("old"), vec![1; 6 << 20]).unwrap();
    let file = published(nginx.dir.path(), "new", 4 << 20);
    let failure = sink.place(&file, &ResumeNote::Nothing, &mut |_| GoOn::Continue).unwrap_err();
    // nginx says 500, and 507 only of the disk of its own temporary files.
    assert!(matches!(failure.kind, FailureKind::Line | FailureKind::Full), "{failure}");
    assert_eq!(sink.look(&file).unwrap(), RemoteFound::Absent);
    std::fs::remove_file(disk.0.path().join("old")).unwrap();
    life::place(&mut *sink, &file);
}
