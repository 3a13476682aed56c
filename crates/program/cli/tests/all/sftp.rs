//! Products at a consumer's SFTP server (OpenSSH), whatever dies on the way.
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test that cannot go on, or skips, says so"
)]

use crate::support::patience::until;
use crate::support::ports::free_port;
use crate::support::process::{Running, printed, run, text};
use crate::support::recordings::{CLEAN, recording, sha256};
use crate::support::refusal::assert_refused;
use crate::support::site::Site;
use rustix::process::Signal;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A server of the user who runs the test. It ends with the test.
pub struct Sshd {
    dir: tempfile::TempDir,
    process: Running,
    port: u16,
    program: PathBuf,
}

impl Sshd {
    /// Where OpenSSH is not installed, the test is skipped.
    pub fn start() -> Option<Self> {
        let program = PathBuf::from("/usr/sbin/sshd");
        if !program.exists() {
            eprintln!("SKIPPED: sshd is not installed");
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path();
        for key in ["host", "user"] {
            let mut keygen = Command::new("ssh-keygen");
            let made = keygen.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(path.join(key));
            assert!(made.status().unwrap().success());
        }
        fs::create_dir(path.join("in")).unwrap();
        if rustix::process::geteuid().is_root() {
            // Where the server of a root user separates privileges.
            fs::create_dir_all("/run/sshd").unwrap();
        }
        let port = free_port();
        let text = format!(
            "ListenAddress 127.0.0.1\nPort {port}\nHostKey {0}/host\nPidFile none\nUsePAM no\n\
             StrictModes no\nAuthorizedKeysFile {0}/user.pub\nPermitRootLogin yes\n\
             Subsystem sftp internal-sftp\nLogLevel QUIET\n",
            path.display()
        );
        fs::write(path.join("config"), text).unwrap();
        fs::set_permissions(path.join("config"), fs::Permissions::from_mode(0o600)).unwrap();
        let process = Self::listening(&program, path, port);
        Some(Self { dir, process, port, program })
    }

    fn listening(program: &Path, dir: &Path, port: u16) -> Running {
        let mut command = Command::new(program);
        command.args(["-D", "-f"]).arg(dir.join("config"));
        let process = Running::of(command.stdin(Stdio::null()).stderr(Stdio::null()));
        let listens = || TcpStream::connect(("127.0.0.1", port)).ok();
        until(listens, || "sshd does not listen".to_owned());
        process
    }

    /// The destination of this name, in the folder `in` there.
    pub fn destination(&self, name: &str, keys: &str) -> String {
        let (path, user) = (self.dir.path().display(), printed_by("id", &["-un"]));
        let public = self.dir.path().join("host.pub");
        let key = printed_by("ssh-keygen", &["-l", "-f", public.to_str().unwrap()]);
        let key = key.split_whitespace().nth(1).unwrap();
        format!(
            "[[destination]]\nname = \"{name}\"\nto = \"sftp://{}@127.0.0.1:{}{path}/in\"\nkey = \
             \"{path}/user\"\nhost_keys = [\"{key}\"]\ndirectory = \"/in\"\n{keys}",
            user.trim(),
            self.port
        )
    }

    /// The folder `in`.
    pub fn folder(&self) -> PathBuf {
        self.dir.path().join("in")
    }

    /// The tables of a consumer there.
    fn tables(&self) -> String {
        self.destination("lance", "")
            + "[[subscription]]\nof = \"products\"\nname = \"all\"\nto = \"lance\"\nrecord = \
               \"sips\"\n[subscription.answer]\nwithin = \"1 d\"\n"
            + "[subscription.retry]\nfirst = \"1 s\"\nmost = \"2 s\"\n"
    }

    /// The files there, by name.
    fn files(&self) -> BTreeMap<String, String> {
        let entries = fs::read_dir(self.dir.path().join("in")).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
        let named = |path: PathBuf| {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (name, sha256(&fs::read(path).unwrap()))
        };
        paths.map(named).collect()
    }
}

fn printed_by(program: &str, arguments: &[&str]) -> String {
    String::from_utf8(Command::new(program).args(arguments).output().unwrap().stdout).unwrap()
}

/// The deliveries, once there are so many and all are recorded.
fn recorded(site: &Site, count: usize) -> Vec<Value> {
    site.centre_until(|status| {
        let all = status["deliveries"].as_array()?;
        let is_there = |one: &Value| one["state"] == "recorded";
        (all.len() == count && all.iter().all(is_there)).then(|| all.clone())
    })
}

/// Each product is there as it was published, with its record, and nothing is there in part.
fn assert_there(site: &Site, sshd: &Sshd, all: &[Value]) {
    let (there, products) = (sshd.files(), site.folder().join("products"));
    for delivery in all {
        // A centre that is killed while it sends begins again: that is no new delivery.
        assert_eq!(delivery["sequence"], delivery["id"]);
        let stem = delivery["name"].as_str().unwrap();
        let id = delivery["id"].to_string();
        let show = ["deliveries", "show", &id, "--config", "centre.toml", "--json"];
        let shown: Value = serde_json::from_str(&printed(&show, site.folder())).unwrap();
        for name in shown["item"]["assets"].as_object().unwrap().keys() {
            let own = sha256(&fs::read(products.join(name)).unwrap());
            assert_eq!(there.get(name), Some(&own), "{name} of {stem}");
        }
        let record = format!("X{}.PDR", &stem[1..]);
        assert!(there.contains_key(&record) && there.contains_key(&format!("{record}.XFR")));
    }
    let is_partial = |name: &&String| name.starts_with('.');
    assert_eq!(there.keys().find(is_partial), None, "no part is left");
}

#[test]
fn products_are_at_an_sftp_server_once_although_both_ends_are_killed() {
    let Some(mut sshd) = Sshd::start() else { return };
    // The server is away while the products are made, and comes back.
    sshd.process.kill();
    let mut site = Site::with(&sshd.tables());
    let test = |name| run(&["destination", "test", name, "--config", "centre.toml"], site.folder());
    assert_refused(&test("x"), 2, &["there is no destination `x` of products"]);
    assert_refused(&test("lance"), 3, &["sftp://", "onnection refused"]);
    let tables = format!(
        "[[channel]]\nname = \"first\"\ninput = \"file:{}\"\n",
        recording(CLEAN[0]).display()
    );
    site.write(&tables);
    assert_eq!(site.start().end().code, Some(0));
    site.centre_until(|status| {
        let alarms = status["alarms"].as_array()?;
        let is_it = |alarm: &&Value| {
            let alarm = alarm["sentence"].as_str().unwrap_or_default();
            alarm.contains("products for lance cannot be delivered, retrying")
        };
        alarms.iter().find(is_it).map(|_| ())
    });
    let count = site.centre_until(|status| {
        let contact = &status["contacts"].as_array()?[0];
        (contact["state"] == "done").then(|| contact["products"].as_array().unwrap().len())
    });
    sshd.process = Sshd::listening(&sshd.program, sshd.dir.path(), sshd.port);
    let tested = text(&test("lance").stdout);
    assert!(tested.contains("OpenSSH") && tested.contains("then renamed"), "{tested}");
    // The centre is killed as soon as anything is on its way, and at any state of it.
    for _ in 0..3 {
        until(|| sshd.files().into_keys().next(), || "nothing is delivered".to_owned());
        site.kill_centre();
        site.start_centre();
    }
    let all = recorded(&site, count);
    assert_there(&site, &sshd, &all);
    // A notice comes back over the same line.
    let notices = sshd.dir.path().join("in/notices");
    fs::create_dir(&notices).unwrap();
    let stem = all[0]["name"].as_str().unwrap();
    let said = "MESSAGE_TYPE = SHORTPAN;\nDISPOSITION = \"SUCCESSFUL\";\n\
                TIME_STAMP = 2026-01-01T00:00:00Z;\n";
    fs::write(notices.join(format!("X{}.PAN", &stem[1..])), said).unwrap();
    site.kill_centre();
    site.start_centre();
    site.centre_until(|status| {
        let all = status["deliveries"].as_array()?;
        all.iter().find(|one| one["state"] == "accepted" && one["proof"] == "notice").map(|_| ())
    });
    sshd.process.signal(Signal::TERM);
}
