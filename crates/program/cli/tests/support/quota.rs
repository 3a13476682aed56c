//! A processor quota for one process: a control group of the kernel, which is stopped when it has
//! used its share of each period.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A control group whose processes run for no more than a share of each tenth of a second. It is
/// removed when this is dropped; its processes must have ended before.
pub struct Quota(PathBuf);

impl Quota {
    /// Makes a group with this many per cent of one processor. An error is the reason why it cannot
    /// be made here.
    pub fn of(percent: u32) -> Result<Self, String> {
        if !rustix::process::geteuid().is_root() {
            return Err("a quota is set by root alone".to_owned());
        }
        let name = format!("skyhaul-test-quota-{}", std::process::id());
        let run = percent * PERIOD / 100;
        let v1 = ["cpu", "cpu,cpuacct"].map(|place| Path::new(ROOT).join(place));
        let v1 = v1.iter().find(|place| {
            place.join("cpu.cfs_quota_us").exists() || place.join("cpu.stat").exists()
        });
        let (place, key, value) = match v1 {
            Some(place) => (place.clone(), "cpu.cfs_quota_us", run.to_string()),
            None => {
                // It may exist already. If it cannot be made, the next line reports it.
                let _ = fs::write(Path::new(ROOT).join("cgroup.subtree_control"), "+cpu");
                (PathBuf::from(ROOT), "cpu.max", format!("{run} {PERIOD}"))
            }
        };
        let this = Self(place.join(name));
        let refused =
            |error: std::io::Error| format!("{} cannot be used ({error})", this.0.display());
        fs::create_dir(&this.0).map_err(refused)?;
        fs::write(this.0.join(key), value).map_err(refused)?;
        Ok(this)
    }

    /// The words of a shell that put the process into the group and then run it.
    pub fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new("sh");
        let enter =
            format!("echo $$ > {} && exec \"$0\" \"$@\"", self.0.join("cgroup.procs").display());
        command.args(["-c", &enter, program]).args(arguments);
        command
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

const ROOT: &str = "/sys/fs/cgroup";
/// Microseconds.
const PERIOD: u32 = 100_000;
