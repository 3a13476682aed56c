//! A WebDAV server over HTTPS (rclone's), in a folder of its own.
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test that cannot go on, or skips, says so"
)]

use crate::support::patience::until;
use crate::support::ports::free_port;
use crate::support::process::Running;
use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The server. It ends with the test.
pub struct WebDav {
    dir: tempfile::TempDir,
    _process: Running,
    port: u16,
}

/// A certificate for this host, which vouches for itself: `tls.pem` and `tls.key` in a folder, with
/// these further extensions.
pub fn certificate(folder: &Path, further: &[&str]) -> Option<()> {
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"])
        .args(["-days", "3650", "-subj", "/CN=127.0.0.1", "-addext"])
        .args(["subjectAltName=IP:127.0.0.1", "-keyout", "tls.key", "-out", "tls.pem"])
        .args(further.iter().flat_map(|extension| ["-addext", extension]))
        .current_dir(folder)
        .stderr(Stdio::null())
        .status();
    if !made.is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: openssl is not installed");
        return None;
    }
    Some(())
}

impl WebDav {
    /// Where rclone is not installed, the test is skipped.
    pub fn start() -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        // The node takes no certificate of an authority for that of a server.
        certificate(dir.path(), &["basicConstraints=critical,CA:FALSE"])?;
        fs::create_dir(dir.path().join("root")).unwrap();
        fs::write(dir.path().join("password"), "secret\n").unwrap();
        let rights = fs::Permissions::from_mode(0o600);
        fs::set_permissions(dir.path().join("password"), rights).unwrap();
        let port = free_port();
        let mut command = Command::new("rclone");
        command.args(["serve", "webdav", "root", "--addr", &format!("127.0.0.1:{port}")]);
        command.args(["--cert", "tls.pem", "--key", "tls.key", "--user", "sky"]);
        command.args(["--pass", "secret", "--config", "/dev/null", "--dir-cache-time", "0s"]);
        command.current_dir(dir.path()).stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        if Command::new("rclone").arg("version").stdout(Stdio::null()).status().is_err() {
            eprintln!("SKIPPED: rclone is not installed");
            return None;
        }
        let process = Running::of(&mut command);
        until(
            || TcpStream::connect(("127.0.0.1", port)).ok().map(drop),
            || "rclone does not listen".to_owned(),
        );
        Some(Self { dir, _process: process, port })
    }

    /// A destination there.
    pub fn destination(&self, name: &str, keys: &str) -> String {
        let path = self.dir.path().display();
        format!(
            "[[destination]]\nname = \"{name}\"\nto = \"https://sky@127.0.0.1:{}/\"\npassword = \
             \"{path}/password\"\nca = \"{path}/tls.pem\"\n{keys}",
            self.port
        )
    }

    /// Where its files are.
    pub fn folder(&self) -> PathBuf {
        self.dir.path().join("root")
    }
}
