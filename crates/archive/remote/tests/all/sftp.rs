//! OpenSSH's server.

use crate::folder::SmallDisk;
use crate::life::{self, Breaks};
use crate::servers::{Line, Server, free_port, program, published, run, secret};
use skyhaul_dispatch::FailureKind;
use skyhaul_remote::{
    GoOn, PlaceProgress, PublishWay, RemoteAccess, RemoteFound, RemotePlace, RemoteSink,
    ResumeNote, open,
};
use std::path::Path;
use std::process::Command;

/// A server, its keys, and the folder that deliveries go to.
struct Sshd {
    dir: tempfile::TempDir,
    server: Server,
    user: String,
}

impl Sshd {
    fn start() -> Option<Self> {
        Self::start_with("internal-sftp")
    }

    fn start_with(subsystem: &str) -> Option<Self> {
        let (sshd, keygen) = (program("sshd")?, program("ssh-keygen")?);
        let dir = tempfile::tempdir().unwrap();
        for key in ["host", "other", "user", "stranger"] {
            let path = dir.path().join(key);
            run(Command::new(&keygen).args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(path));
        }
        std::fs::create_dir(dir.path().join("in")).unwrap();
        if rustix::process::geteuid().is_root() {
            // Where the server of a root user separates privileges.
            std::fs::create_dir_all("/run/sshd").unwrap();
        }
        let port = free_port();
        let path = dir.path().display();
        let config = format!(
            "ListenAddress 127.0.0.1\nPort {port}\nHostKey {path}/host\nPidFile none\n\
             UsePAM no\nStrictModes no\nAuthorizedKeysFile {path}/user.pub\n\
             PasswordAuthentication yes\nPermitRootLogin yes\nSubsystem sftp {subsystem}\n\
             LogLevel QUIET\n"
        );
        let config = secret(dir.path(), "config", &config);
        let mut command = Command::new(sshd);
        let server = Server::start(command.args(["-D", "-f"]).arg(config), port);
        let user = Command::new("id").arg("-un").output().unwrap().stdout;
        let user = String::from_utf8(user).unwrap().trim().to_owned();
        Some(Self { dir, server, user })
    }

    fn fingerprint(&self, key: &str) -> String {
        let path = self.dir.path().join(format!("{key}.pub"));
        let output = Command::new("ssh-keygen").args(["-l", "-f"]).arg(path).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        text.split_whitespace().nth(1).unwrap().to_owned()
    }

    fn access(&self) -> RemoteAccess {
        RemoteAccess {
            key_file: Some(self.dir.path().join("user")),
            host_keys: vec![self.fingerprint("host")],
            ..RemoteAccess::default()
        }
    }

    fn sink(&self, port: u16, folder: &Path, access: &RemoteAccess) -> Box<dyn RemoteSink> {
        let place = format!("sftp://{}@127.0.0.1:{port}{}", self.user, folder.display());
        open(&place.parse::<RemotePlace>().unwrap(), access, None).unwrap()
    }
}

#[test]
fn openssh_does_what_every_destination_must() {
    let Some(sshd) = Sshd::start() else { return };
    let folder = sshd.dir.path().join("in");
    let mut sink = sshd.sink(sshd.server.port, &folder, &sshd.access());
    let seen = |name: &str| std::fs::read(folder.join(name)).ok();
    let abilities = life::whole(&mut *sink, sshd.dir.path(), &seen);
    assert!(abilities.server.contains("OpenSSH"), "{abilities:?}");
    assert!(abilities.says_durable && abilities.resumes && abilities.refuses_existing);
    assert_eq!(abilities.publish, PublishWay::Rename);
    let file = published(sshd.dir.path(), "overtaken", 1 << 20);
    life::overtaken(&mut *sink, &file, &folder.join("overtaken"));
}

#[test]
fn a_broken_line_costs_what_was_not_durable() {
    let Some(sshd) = Sshd::start() else { return };
    let line = Line::to(sshd.server.port);
    let folder = sshd.dir.path().join("in");
    let mut sink = sshd.sink(line.port, &folder, &sshd.access());
    let file = published(sshd.dir.path(), "long", 130 << 20);
    // Two breaks, each of at most 32 MiB that were not noted and 4 MiB under way; 4 MiB of SSH.
    life::broken_line(&mut *sink, &line, &file, Breaks { after: &[2, 3], twice: 76 << 20 });
    assert!(std::fs::read(folder.join("long")).unwrap() == life::content(&file));
    assert!(!folder.join(".long.part").exists());
    life::stopped(&mut *sink, &published(sshd.dir.path(), "other", 40 << 20));
}

#[test]
fn a_part_that_is_not_what_was_noted_is_written_anew() {
    let Some(sshd) = Sshd::start() else { return };
    let folder = sshd.dir.path().join("in");
    let mut sink = sshd.sink(sshd.server.port, &folder, &sshd.access());
    let file = published(sshd.dir.path(), "a", 1 << 20);
    for part in [vec![7; 1 << 19], vec![7; 1 << 21], vec![7; 10]] {
        std::fs::write(folder.join(".a.part"), part).unwrap();
        let note = skyhaul_remote::PartNote { sha256: file.sha256, bytes: 1 << 18 };
        sink.place(&file, &ResumeNote::Part(note), &mut |_| GoOn::Continue).unwrap();
        assert!(std::fs::read(folder.join("a")).unwrap() == life::content(&file));
        std::fs::remove_file(folder.join("a")).unwrap();
    }
}

#[test]
fn a_server_that_cannot_be_entered_says_who_must_act() {
    let Some(sshd) = Sshd::start() else { return };
    let folder = sshd.dir.path().join("in");
    let good = sshd.access();
    let password = secret(sshd.dir.path(), "password", "geheim\n");
    let cases = [
        (
            RemoteAccess { host_keys: vec![sshd.fingerprint("other")], ..good.clone() },
            "none of those that are configured",
        ),
        (RemoteAccess { host_keys: Vec::new(), ..good.clone() }, "none is configured"),
        (
            RemoteAccess { key_file: Some(sshd.dir.path().join("stranger")), ..good.clone() },
            "does not take the key",
        ),
        (
            RemoteAccess { key_file: None, password_file: Some(password), ..good.clone() },
            "does not take the password",
        ),
        (RemoteAccess { key_file: None, ..good.clone() }, "neither a key nor a password"),
        (
            RemoteAccess { key_file: Some(sshd.dir.path().join("missing")), ..good.clone() },
            "cannot be read",
        ),
    ];
    for (access, sentence) in cases {
        let mut sink = sshd.sink(sshd.server.port, &folder, &access);
        let failure = sink.list("").unwrap_err();
        assert_eq!(failure.kind, FailureKind::Access, "{failure}");
        assert!(failure.sentence.contains(sentence), "{failure}");
        assert!(!failure.sentence.contains("geheim"));
        eprintln!("{failure}");
    }
    let failure = sshd.sink(free_port(), &folder, &good).list("").unwrap_err();
    assert_eq!(failure.kind, FailureKind::Line, "{failure}");
    let missing = sshd.dir.path().join("missing");
    let failure = sshd.sink(sshd.server.port, &missing, &good).abilities().unwrap_err();
    assert_eq!(failure.kind, FailureKind::Access, "{failure}");
}

#[test]
fn a_full_disk_there_is_said_and_gets_the_file_when_it_has_room() {
    let Some(sshd) = Sshd::start() else { return };
    let Some(disk) = SmallDisk::mount() else { return };
    let mut sink = sshd.sink(sshd.server.port, disk.0.path(), &sshd.access());
    std::fs::write(disk.0.path().join("old"), vec![1; 6 << 20]).unwrap();
    let file = published(sshd.dir.path(), "new", 4 << 20);
    let failure = sink.place(&file, &ResumeNote::Nothing, &mut |_| GoOn::Continue).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Full, "{failure}");
    assert_eq!(sink.look(&file).unwrap(), RemoteFound::Absent);
    std::fs::remove_file(disk.0.path().join("old")).unwrap();
    life::place(&mut *sink, &file);
}

#[test]
fn a_server_without_rename_gets_files_under_their_names_and_goes_on_over_what_it_began() {
    let Some(sshd) = Sshd::start_with("internal-sftp -P rename,posix-rename") else { return };
    let line = Line::to(sshd.server.port);
    let folder = sshd.dir.path().join("in");
    let mut sink = sshd.sink(line.port, &folder, &sshd.access());
    assert_eq!(sink.abilities().unwrap().publish, PublishWay::Direct);
    let file = published(sshd.dir.path(), "a", 8 << 20);
    line.break_after(4 << 20);
    let mut note = ResumeNote::Nothing;
    let broken = sink.place(&file, &ResumeNote::Nothing, &mut |progress| {
        if let PlaceProgress::Reached(step) = progress {
            note.apply(step);
        }
        GoOn::Continue
    });
    assert_eq!(broken.unwrap_err().kind, FailureKind::Line);
    line.mend();
    let failure = sink.place(&file, &ResumeNote::Nothing, &mut |_| GoOn::Continue).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Differs, "without the note it is anybody's: {failure}");
    sink.place(&file, &note, &mut |_| GoOn::Continue).unwrap();
    assert!(std::fs::read(folder.join("a")).unwrap() == life::content(&file));
    std::fs::write(folder.join("a"), vec![7; 9 << 20]).unwrap();
    let failure = sink.place(&file, &note, &mut |_| GoOn::Continue).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Differs, "{failure}");
    sink.write("record", b"one").unwrap();
    sink.write("record", b"two").unwrap();
    assert_eq!(std::fs::read(folder.join("record")).unwrap(), b"two");
}
