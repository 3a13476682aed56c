//! psql, to a PostgreSQL server of the test's own that listens at a socket file.

use super::ends::{Ends, are_installed, find, program};
use crate::support::patience::until;
use crate::support::process::{Running, text};
use rustix::process::Signal;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The program of the server. Distributions keep it in a folder of its release.
fn server() -> Option<PathBuf> {
    let releases = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> =
        releases.map(|release| release.path().join("bin/postgres")).collect();
    found.sort();
    found
        .into_iter()
        .rev()
        .chain(find("postgres"))
        .find(|path| path.with_file_name("initdb").is_file())
}

/// As root, the test runs the server as nobody, because the server refuses root.
fn unprivileged(program: &Path, folder: &Path) -> Command {
    let mut command = Command::new(program);
    if rustix::process::geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    command.current_dir(folder).stdin(Stdio::null()).stdout(Stdio::null());
    command
}

/// `nobody` and `nogroup`, on every Linux.
const NOBODY: u32 = 65_534;

#[test]
fn psql_queries_and_fills_a_database_through_a_forward() {
    let Some(server) = server().filter(|_| are_installed(&["psql"])) else {
        eprintln!("SKIPPED: no PostgreSQL server is installed");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    std::fs::create_dir(&data).unwrap();
    for path in [folder.path(), &data] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
        if rustix::process::geteuid().is_root() {
            chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
    }
    let made = unprivileged(&server.with_file_name("initdb"), folder.path())
        .args(["-D", "data", "-A", "trust", "-U", "tester", "-N", "-E", "UTF8", "--locale=C"])
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", text(&made.stderr));
    let place = folder.path().display().to_string();
    let settings = ["fsync=off", "listen_addresses=", &format!("unix_socket_directories={place}")];
    let settings: Vec<&str> = settings.iter().flat_map(|setting| ["-c", setting]).collect();
    let mut command = unprivileged(&server, folder.path());
    let running = Running::of(command.args(["-D", "data"]).args(settings).stderr(Stdio::null()));

    let target = format!("unix:{place}/.s.PGSQL.5432");
    let ends = Ends::start(&["--allow", &target], &["-L", &format!("0=far:{target}")], 1);
    let psql = |words: &[&str]| {
        let at =
            ["psql", "-X", "-h", "127.0.0.1", "-p", ends.port(), "-U", "tester", "-d", "postgres"];
        program(&[&at[..], &["-v", "ON_ERROR_STOP=1", "-Atq"], words].concat())
    };
    // It listens before it answers.
    until(|| psql(&["-c", "select 1"]).status.success().then_some(()), || "no answer".to_owned());
    let filled = "create table frames as select place, md5(place::text) as digest from \
                 generate_series(1, 50000) place";
    for words in [["-c", filled], ["-c", "insert into frames select place, digest from frames"]] {
        let done = psql(&words);
        assert!(done.status.success(), "{}", text(&done.stderr));
    }
    let rows = text(&psql(&["-c", "select place, digest from frames order by place"]).stdout);
    assert_eq!(rows.lines().count(), 100_000);
    assert!(rows.starts_with("1|c4ca4238a0b923820dcc509a6f75849b\n"));
    assert_eq!(text(&psql(&["-c", "select count(*) from frames"]).stdout), "100000\n");
    let wrong = psql(&["-c", "select nothing"]);
    assert!(text(&wrong.stderr).contains("does not exist"), "{}", text(&wrong.stderr));
    running.signal(Signal::QUIT);
    running.end();
}
