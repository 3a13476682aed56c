//! Paths as the settings of a service need them.

use skyhaul_exit::{Exit, Failure};
use std::path::{Component, Path, PathBuf};

/// What a service with restricted rights sees of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostPlace {
    /// Below `/var/lib/skyhaul`: systemd creates it for the service.
    State,
    /// Below `/run/skyhaul`: the same, and it goes with the service.
    Runtime,
    /// The home folders are hidden.
    Home,
    /// The service has temporary folders of its own; this is in those of the system.
    Temporary,
    /// Such a folder itself.
    AllTemporary,
    /// The service has no devices.
    Device,
    /// Memory that programs share by name.
    Shared,
    /// Can be read.
    Elsewhere,
}

/// Where a normal path is.
pub fn place(path: &Path) -> HostPlace {
    let is_in = |roots: &[&str]| roots.iter().any(|root| path.starts_with(root));
    let is_one = |roots: &[&str]| roots.iter().any(|root| path == Path::new(root));
    match () {
        () if is_in(&["/var/lib/skyhaul"]) => HostPlace::State,
        () if is_in(&["/run/skyhaul", "/var/run/skyhaul"]) => HostPlace::Runtime,
        () if is_in(&["/home", "/root", "/run/user"]) => HostPlace::Home,
        () if is_one(&["/tmp", "/var/tmp"]) => HostPlace::AllTemporary,
        () if is_in(&["/tmp", "/var/tmp"]) => HostPlace::Temporary,
        () if is_in(&["/dev/shm"]) => HostPlace::Shared,
        () if is_in(&["/dev"]) && !is_one(&OPEN_DEVICES) => HostPlace::Device,
        () => HostPlace::Elsewhere,
    }
}

/// The path without `.` and `..`, which systemd refuses.
pub fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                normal.pop();
            }
            other => normal.push(other),
        }
    }
    normal
}

/// A path as a word of a setting: `%` begins a specifier, spaces divide words.
///
/// # Errors
/// It has a control character.
pub fn quoted(path: &Path) -> Result<String, Failure> {
    let text = path.display().to_string();
    if text.chars().any(char::is_control) {
        let help = "rename it: a line of a service's file cannot hold it";
        return Err(refused(path, "has a control character", help));
    }
    let text = text.replace('%', "%%");
    let is_plain = |c: char| c.is_alphanumeric() || "/-_.,+=@%:".contains(c);
    if text.chars().all(is_plain) {
        return Ok(text);
    }
    Ok(format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")))
}

/// The path below `root`, as `StateDirectory=` takes it: without quotes and spaces.
///
/// # Errors
/// It has characters that such a setting does not take.
pub fn below(root: &str, path: &Path) -> Result<String, Failure> {
    let path =
        path.strip_prefix("/var/run").map_or(path.to_owned(), |rest| Path::new("/run").join(rest));
    let text = path.strip_prefix(root).unwrap_or(&path).display().to_string();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/-_.".contains(c);
    if text.chars().all(is_plain) {
        return Ok(text);
    }
    let help = "name it by letters, digits, `-`, `_` and `.`";
    Err(refused(&path, "cannot be a folder that systemd creates", help))
}

/// Checks a path that is made visible in the service: a colon divides its two places.
///
/// # Errors
/// It has a colon.
pub fn check_bound(path: &Path) -> Result<(), Failure> {
    if !path.display().to_string().contains(':') {
        return Ok(());
    }
    let help = "rename it, or move it out of the home folders and the temporary folders";
    Err(refused(path, "has a colon and cannot be made visible in the service", help))
}

fn refused(path: &Path, what: &str, help: &str) -> Failure {
    let shown = skyhaul_units::printable(&path.display().to_string(), SHOWN);
    Failure::new(Exit::Usage, &format!("the path `{shown}` {what}"), help)
}

/// Devices that every service has.
const OPEN_DEVICES: [&str; 6] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];
/// Characters of a path in a message.
const SHOWN: usize = 200;
