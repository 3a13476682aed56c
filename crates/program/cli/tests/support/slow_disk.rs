//! A disk that is slow for one process: a control group of the kernel limits its writes.

use super::patience::now;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A control group whose processes write to the disk of a folder at no more than a rate. It is
/// removed when this is dropped; its processes must have ended before.
pub struct SlowDisk(PathBuf, MutexGuard<'static, ()>);

/// One at a time: two slow processes on one disk wait for each other.
static ONE: Mutex<()> = Mutex::new(());

impl SlowDisk {
    /// Slows the disk of `folder` down to this many bytes a second. An error is the reason why this
    /// cannot be done here.
    pub fn below(folder: &Path, bytes_a_second: u64) -> Result<Self, String> {
        if !rustix::process::geteuid().is_root() {
            return Err("a disk is slowed down by root alone".to_owned());
        }
        let disk = disk_of(folder)?;
        let alone = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let name = format!("skyhaul-test-{}", std::process::id());
        let (place, key, value) = if Path::new(V1).join("blkio.throttle.write_bps_device").exists()
        {
            (Path::new(V1), "blkio.throttle.write_bps_device", format!("{disk} {bytes_a_second}"))
        } else {
            // It may exist already. If it cannot be made, the next line reports it.
            let _ = fs::write(Path::new(V2).join("cgroup.subtree_control"), "+io");
            (Path::new(V2), "io.max", format!("{disk} wbps={bytes_a_second}"))
        };
        let this = Self(place.join(name), alone);
        let refused =
            |error: std::io::Error| format!("{} cannot be used ({error})", this.0.display());
        fs::create_dir(&this.0).map_err(refused)?;
        fs::write(this.0.join(key), value).map_err(refused)?;
        this.try_out(folder, bytes_a_second)?;
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

    /// Some file systems write in the name of other processes: then nothing is slow.
    fn try_out(&self, folder: &Path, bytes_a_second: u64) -> Result<(), String> {
        let file = folder.join("slow.try");
        let into = format!("of={}", file.display());
        let count = format!("count={}", bytes_a_second >> 16);
        let arguments = ["if=/dev/zero", &into, "bs=65536", &count, "conv=fdatasync"];
        let begun = now();
        let ended = self.command("dd", &arguments).output().map_err(|error| error.to_string())?;
        let seconds = begun.elapsed().as_secs_f64();
        let _ = fs::remove_file(&file);
        if !ended.status.success() {
            return Err(format!("dd: {}", String::from_utf8_lossy(&ended.stderr)));
        }
        // It was the data of a second.
        if seconds < 0.5 {
            Err("this kernel does not slow the file system down".to_owned())
        } else {
            Ok(())
        }
    }
}

impl Drop for SlowDisk {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

/// The number that the kernel gives to the whole disk on which a folder is.
fn disk_of(folder: &Path) -> Result<String, String> {
    let device = fs::metadata(folder).map_err(|error| error.to_string())?.dev();
    let number = format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device));
    let known = Path::new("/sys/dev/block").join(&number);
    let whole =
        if known.join("partition").exists() { known.join("../dev") } else { known.join("dev") };
    let text =
        fs::read_to_string(whole).map_err(|_| format!("{} is on no disk", folder.display()))?;
    Ok(text.trim().to_owned())
}

const V1: &str = "/sys/fs/cgroup/blkio";
const V2: &str = "/sys/fs/cgroup";
