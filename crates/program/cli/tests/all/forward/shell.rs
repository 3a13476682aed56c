//! ssh, scp and rsync, to a server of OpenSSH that has its own keys in a folder of the test.

use super::ends::{Ends, are_installed, find, pattern, printed};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Command, Stdio};

/// Accepts connections and starts a server for each. Returns the target. Each server ends with its
/// connection.
fn start(folder: &Path) -> String {
    let path = |name: &str| folder.join(name).display().to_string();
    for name in ["host", "user"] {
        printed(&["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", &path(name)]);
    }
    let config = format!(
        "HostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nUsePAM no\nPidFile none\nSubsystem \
        sftp internal-sftp\n",
        path("host"),
        path("user.pub")
    );
    std::fs::write(folder.join("sshd_config"), config).unwrap();
    let host = std::fs::read_to_string(path("host.pub")).unwrap();
    std::fs::write(folder.join("known_hosts"), format!("* {host}")).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = listener.local_addr().unwrap().to_string();
    let (server, config) = (find("sshd").unwrap(), path("sshd_config"));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = OwnedFd::from(stream.unwrap());
            let mut command = Command::new(&server);
            command.args(["-i", "-f", &config]).stderr(Stdio::null());
            command.stdin(Stdio::from(stream.try_clone().unwrap())).stdout(Stdio::from(stream));
            let mut child = command.spawn().unwrap();
            drop(command);
            std::thread::spawn(move || child.wait());
        }
    });
    target
}

/// As root, the server needs an empty folder for its unprivileged part; as another user it needs
/// none.
fn can_serve() -> bool {
    let root = rustix::process::geteuid().is_root();
    let can = !root || std::fs::create_dir_all("/run/sshd").is_ok();
    if !can {
        eprintln!("SKIPPED: sshd started by root needs /run/sshd");
    }
    can
}

#[test]
fn ssh_scp_and_rsync_work_through_a_forward() {
    if !are_installed(&["ssh", "sshd", "ssh-keygen", "scp", "rsync"]) || !can_serve() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let target = start(folder);
    let ends = Ends::start(&["--allow", &target], &["-L", &format!("0=far:{target}")], 1);
    let known = format!("UserKnownHostsFile={}", folder.join("known_hosts").display());
    let (key, port) = (folder.join("user").display().to_string(), format!("Port={}", ends.port()));
    let options = ["-F", "none", "-i", &key, "-o", &known, "-o", &port, "-o", "BatchMode=yes"];
    let with = |first: &[&str], last: &[&str]| printed(&[first, &options, last].concat());

    let said = with(&["ssh"], &["127.0.0.1", "echo through; exit 0"]);
    assert_eq!(said, "through\n");

    let (big, copy, tree) = (folder.join("big"), folder.join("copy"), folder.join("tree"));
    std::fs::write(&big, pattern(4_000_000)).unwrap();
    with(&["scp", "-q"], &[big.to_str().unwrap(), &format!("127.0.0.1:{}", copy.display())]);
    assert!(std::fs::read(&copy).unwrap() == pattern(4_000_000));

    std::fs::create_dir(&tree).unwrap();
    for number in 0..20 {
        std::fs::write(tree.join(number.to_string()), pattern(number * 7_001)).unwrap();
    }
    let shell = [&["ssh"], &options[..]].concat().join(" ");
    let (from, to) = (format!("{}/", tree.display()), folder.join("mirror"));
    for direction in [
        [from.clone(), format!("127.0.0.1:{}/", to.display())],
        [format!("127.0.0.1:{from}"), format!("{}/", folder.join("back").display())],
    ] {
        printed(&["rsync", "-a", "--checksum", "-e", &shell, &direction[0], &direction[1]]);
    }
    for number in 0..20 {
        for copy in [&to, &folder.join("back")] {
            assert!(
                std::fs::read(copy.join(number.to_string())).unwrap() == pattern(number * 7_001)
            );
        }
    }
}
