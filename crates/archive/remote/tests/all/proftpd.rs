//! ProFTPD: one server for FTPS, which wants its TLS session again for data, and for SFTP, which is
//! not OpenSSH's.

use crate::life::{self, Breaks};
use crate::servers::{Line, Server, certificates, free_port, program, published, run, secret};
use skyhaul_dispatch::FailureKind;
use skyhaul_remote::{RemoteAccess, RemotePlace, RemoteSink, open};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The server, and the folder that its user sees as the root.
struct ProFtpd {
    dir: tempfile::TempDir,
    server: Server,
    sftp: u16,
    host_key: String,
}

impl ProFtpd {
    fn start() -> Option<Self> {
        let (proftpd, keygen) = (program("proftpd")?, program("ssh-keygen")?);
        if !rustix::process::geteuid().is_root() {
            eprintln!("SKIPPED: proftpd needs root for users of its own");
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        certificates(dir.path())?;
        let home = dir.path().join("home");
        std::fs::create_dir_all(home.join("in")).unwrap();
        run(Command::new("chmod").arg("755").arg(dir.path()));
        run(Command::new("chown").args(["-R", "daemon"]).arg(&home));
        run(Command::new(keygen)
            .args(["-q", "-t", "ed25519", "-N", "", "-f"])
            .arg(dir.path().join("host")));
        let hash = Command::new("openssl").args(["passwd", "-6", "geheim"]).output().unwrap();
        let hash = String::from_utf8(hash.stdout).unwrap();
        // The user daemon of this machine.
        let user = format!("sky:{}:1:1::{}:/bin/sh\n", hash.trim(), home.display());
        let passwords = secret(dir.path(), "passwd", &user);
        run(Command::new("chmod").arg("600").arg(passwords));
        secret(dir.path(), "password", "geheim\n");
        // Beside the program, also where it is unpacked and not installed.
        let modules = proftpd.parent()?.join("../lib/proftpd");
        let (ftps, sftp) = (free_port(), free_port());
        let config = include_str!("proftpd.conf")
            .replace("@MODULES", &modules.display().to_string())
            .replace("@FTPS", &ftps.to_string())
            .replace("@SFTP", &sftp.to_string())
            .replace("@DIR", &dir.path().display().to_string());
        let config = secret(dir.path(), "proftpd.conf", &config);
        let mut command = Command::new(proftpd);
        command.args(["-n", "-c"]).arg(config).stdout(Stdio::null()).stderr(Stdio::null());
        let server = Server::start(&mut command, ftps);
        let public = dir.path().join("host.pub");
        let said = Command::new("ssh-keygen").args(["-l", "-f"]).arg(public).output().unwrap();
        let said = String::from_utf8(said.stdout).unwrap();
        let host_key = said.split_whitespace().nth(1).unwrap().to_owned();
        Some(Self { dir, server, sftp, host_key })
    }

    fn access(&self) -> RemoteAccess {
        RemoteAccess {
            ca_file: Some(self.dir.path().join("ca.pem")),
            password_file: Some(self.dir.path().join("password")),
            host_keys: vec![self.host_key.clone()],
            ..RemoteAccess::default()
        }
    }

    fn folder(&self) -> PathBuf {
        self.dir.path().join("home/in")
    }
}

fn sink(place: &str, access: &RemoteAccess) -> Box<dyn RemoteSink> {
    open(&place.parse::<RemotePlace>().unwrap(), access, None).unwrap()
}

/// What it does over one of its protocols, `breaks` of a long file.
fn delivers(proftpd: &ProFtpd, scheme: &str, port: u16, breaks: Breaks<'_>) {
    let line = Line::to(port);
    let place = format!("{scheme}://sky@127.0.0.1:{}/in", line.port);
    let mut sink = sink(&place, &proftpd.access());
    let (dir, folder) = (proftpd.dir.path(), proftpd.folder());
    let seen = |name: &str| std::fs::read(folder.join(name)).ok();
    let abilities = life::whole(&mut *sink, dir, &seen);
    eprintln!("{scheme}: {abilities:?}");
    assert!(abilities.resumes, "{abilities:?}");
    let file = published(dir, "overtaken", 1 << 20);
    life::overtaken(&mut *sink, &file, &folder.join("overtaken"));
    life::stopped(&mut *sink, &published(dir, "other", 40 << 20));
    if !breaks.after.is_empty() {
        let file = published(dir, "long", 130 << 20);
        life::broken_line(&mut *sink, &line, &file, breaks);
        assert!(seen("long").unwrap() == life::content(&file));
    }
}

#[test]
fn proftpd_does_what_every_destination_must_over_ftps() {
    let Some(proftpd) = ProFtpd::start() else { return };
    // Data goes over connections of its own, which this line does not see.
    delivers(&proftpd, "ftps", proftpd.server.port, Breaks { after: &[], twice: 0 });
    let wrong = secret(proftpd.dir.path(), "wrong", "falsch\n");
    let access = RemoteAccess { password_file: Some(wrong), ..proftpd.access() };
    let place = format!("ftps://sky@127.0.0.1:{}/in", proftpd.server.port);
    let failure = sink(&place, &access).list("").unwrap_err();
    assert_eq!(failure.kind, FailureKind::Access, "{failure}");
}

#[test]
fn proftpd_does_what_every_destination_must_over_sftp() {
    let Some(proftpd) = ProFtpd::start() else { return };
    // Two breaks, each of at most 32 MiB that were not noted and 4 MiB under way; 4 MiB of SSH.
    delivers(&proftpd, "sftp", proftpd.sftp, Breaks { after: &[2, 3], twice: 76 << 20 });
}
