//! Changes of the kernel's settings as a file that `sysctl -p` takes, the way back, and carrying
//! them out.

use crate::{HostLine, SettingChange};
use std::fmt::Write;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The file that makes these changes. `/etc/sysctl.d` is where it stays over a restart.
pub fn file(changes: &[&SettingChange], line: &HostLine) -> String {
    let mut text = format!(
        "# For a line of {} with a round trip of {}: {} under way.\n# Now: sysctl -p THIS_FILE; at \
        every start: put it into /etc/sysctl.d.\n",
        line.rate,
        line.round_trip,
        line.in_flight()
    );
    for SettingChange { key, to, from } in changes {
        let _ = writeln!(text, "# was: {from}\n{key} = {to}");
    }
    text
}

/// The file that takes them back.
pub fn undo(changes: &[&SettingChange]) -> String {
    let mut text = "# What was before; now: sysctl -p THIS_FILE.\n".to_owned();
    for SettingChange { key, from, .. } in changes {
        let _ = writeln!(text, "{key} = {from}");
    }
    text
}

/// Makes one change on the host whose `/proc` is under `root`.
///
/// # Errors
/// As the system says: only root may; a container may not.
pub fn apply(root: &Path, change: &SettingChange) -> io::Result<()> {
    fs::write(path(root, &change.key), &change.to)
}

/// Where the kernel shows a setting.
fn path(root: &Path, key: &str) -> PathBuf {
    root.join("proc/sys").join(key.replace('.', "/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_units::{Duration, Probability, Rate};

    #[test]
    fn the_file_and_its_undo_are_each_others_way_back() {
        let change = |key: &str, to: &str, from: &str| SettingChange {
            key: key.to_owned(),
            to: to.to_owned(),
            from: from.to_owned(),
        };
        let changes =
            [change("net.ipv4.tcp_rmem", "1 2 9", "1 2 3"), change("net.ipv4.tcp_sack", "1", "0")];
        let changes: Vec<&SettingChange> = changes.iter().collect();
        let line = HostLine {
            rate: Rate::from_mbps(93),
            round_trip: Duration::from_millis(160),
            loss: Probability::from_ppb(0),
        };
        let set = |text: &str| -> Vec<String> {
            text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
        };
        assert_eq!(
            set(&file(&changes, &line)),
            ["net.ipv4.tcp_rmem = 1 2 9", "net.ipv4.tcp_sack = 1"]
        );
        assert_eq!(set(&undo(&changes)), ["net.ipv4.tcp_rmem = 1 2 3", "net.ipv4.tcp_sack = 0"]);
        assert!(
            file(&changes, &line)
                .contains("93 Mbit/s with a round trip of 160 ms: 1.86 MB under way")
        );
    }
}
