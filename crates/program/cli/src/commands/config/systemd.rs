//! `skyhaul config systemd`: what a node needs beyond the unit `skyhaul@.service`, as a drop-in.

mod needs;
mod paths;

use needs::{Need, NodeNeeds, PathUse};
use paths::{HostPlace, place, quoted};
use skyhaul_exit::{Exit, Failure};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Writes the drop-in for the node of `file` to `out`, and warnings to standard error.
///
/// # Errors
/// The file is not a configuration, its name or a path cannot be that of a service, or the result
/// cannot be written.
pub fn write(file: &Path, out: &mut dyn Write) -> Result<(), Failure> {
    let file = std::path::absolute(file).map_err(|error| {
        let help = "run the command in a folder that exists";
        Failure::io("the folder of the file is not known", &file.display().to_string(), help, error)
    })?;
    let config = skyhaul_config::load(&file)?;
    let unit = DropIn::new(&file, &NodeNeeds::of(&config))?;
    unit.write(out)?;
    out.flush()?;
    for warning in &unit.warnings {
        writeln!(io::stderr(), "warning: {warning}")?;
    }
    Ok(())
}

/// A drop-in in the making.
#[derive(Debug, Default)]
struct DropIn {
    file: PathBuf,
    instance: String,
    /// Settings that take lists, and settings of one value; with the keys that need them.
    settings: BTreeMap<String, BTreeSet<String>>,
    /// What an administrator has to know.
    remarks: Vec<String>,
    /// What would keep the service from starting.
    warnings: Vec<String>,
}

impl DropIn {
    fn new(file: &Path, needs: &NodeNeeds) -> Result<Self, Failure> {
        let file = paths::normal(file);
        let instance = instance(&file)?;
        let mut unit = Self { file: file.clone(), instance, ..Self::default() };
        if file != unit.usual_file() {
            let start = format!("skyhaul run --log-format journal {}", quoted(&file)?);
            unit.set("the file is not in /etc/skyhaul", "ExecStart=");
            // Behind the empty one, which removes the start of the unit.
            let program = format!("ExecStart=/usr/bin/{start}");
            unit.set("the file is not in /etc/skyhaul", &program);
            unit.path("this file", &file, PathUse::Read)?;
        }
        for (why, need) in needs.iter() {
            unit.take(why, need)?;
        }
        Ok(unit)
    }

    fn usual_file(&self) -> PathBuf {
        Path::new("/etc/skyhaul").join(format!("{}.toml", self.instance))
    }

    fn set(&mut self, why: &str, setting: &str) {
        self.settings.entry(setting.to_owned()).or_default().insert(why.to_owned());
    }

    fn take(&mut self, why: &str, need: &Need) -> Result<(), Failure> {
        match need {
            Need::Path(path, usage) => self.path(why, path, *usage)?,
            Need::Port(port) if (1..FIRST_FREE_PORT).contains(port) => {
                self.capability(&format!("{why}: port {port}"), "CAP_NET_BIND_SERVICE");
            }
            Need::Port(_) => {}
            Need::Diverted => self.capability(&format!("{why} transparent"), "CAP_NET_ADMIN"),
            Need::SharedMemory => self.set(why, "RemoveIPC=no"),
            Need::Program(command) => {
                let shown = skyhaul_units::printable(command, SHOWN);
                self.remarks.push(format!(
                    "{why} runs `{shown}` with the rights of this service: no other user, no \
                    home folders, no memory both writable and executable."
                ));
            }
            Need::Sendmail(program) => self.sendmail(why, program),
            Need::OpenFiles(files) if *files > USUAL_FILES => {
                self.set(why, &format!("LimitNOFILE={files}"));
            }
            Need::OpenFiles(_) => {}
        }
        Ok(())
    }

    /// A capability, which counts for nothing in a user namespace of the service.
    fn capability(&mut self, why: &str, name: &str) {
        self.set(why, &format!("AmbientCapabilities={name}"));
        self.set(why, &format!("CapabilityBoundingSet={name}"));
        self.set(why, "PrivateUsers=no");
    }

    fn path(&mut self, why: &str, path: &Path, usage: PathUse) -> Result<(), Failure> {
        let path = &paths::normal(path);
        let own = |root: &str| Path::new(root).join(&self.instance);
        if path.starts_with(own("/var/lib/skyhaul")) || path.starts_with(own("/run/skyhaul")) {
            return Ok(());
        }
        let shown = quoted(path)?;
        let (bind, access) = match usage {
            PathUse::Read => ("BindReadOnlyPaths", "r"),
            PathUse::Write => ("BindPaths", "rw"),
        };
        match (place(path), usage) {
            (HostPlace::State, PathUse::Write) => {
                let folder = paths::below("/var/lib", path)?;
                self.set(why, &format!("StateDirectory={folder}"));
                return Ok(());
            }
            (HostPlace::Runtime, PathUse::Write) => {
                let folder = paths::below("/run", path)?;
                self.set(why, &format!("RuntimeDirectory={folder}"));
                return Ok(());
            }
            (HostPlace::Home, _) => {
                paths::check_bound(path)?;
                self.set(why, "ProtectHome=tmpfs");
                self.set(why, &format!("{bind}={shown}"));
            }
            (HostPlace::Temporary, _) => {
                paths::check_bound(path)?;
                self.set(why, &format!("{bind}={shown}"));
            }
            (HostPlace::AllTemporary, _) => {
                self.set(why, "PrivateTmp=no");
                self.set(why, &format!("ReadWritePaths={shown}"));
            }
            (HostPlace::Device, _) => {
                self.set(why, "PrivateDevices=no");
                self.set(why, &format!("DeviceAllow={shown} {access}"));
                self.group_of_device(why, path);
            }
            (HostPlace::Elsewhere, PathUse::Write) => {
                self.set(why, &format!("ReadWritePaths={shown}"));
            }
            (HostPlace::Elsewhere | HostPlace::State | HostPlace::Runtime, PathUse::Read) => {
                return Ok(());
            }
            (HostPlace::Shared, _) => {
                self.set(why, "RemoveIPC=no");
                return Ok(());
            }
        }
        self.look_at(why, path, usage);
        Ok(())
    }

    /// Devices belong to a group, such as `dialout`, of which the service must be.
    fn group_of_device(&mut self, why: &str, path: &Path) {
        let found = std::fs::metadata(path);
        let found = found.ok().filter(|found| found.file_type().is_char_device());
        if let Some(found) = found.filter(|found| found.gid() != 0) {
            self.set(why, &format!("SupplementaryGroups={}", found.gid()));
        }
    }

    /// Warns of a path that is not there: systemd does not start a service without it.
    fn look_at(&mut self, why: &str, path: &Path, usage: PathUse) {
        if path.symlink_metadata().is_ok() {
            return;
        }
        let place = path.display();
        let help = match usage {
            PathUse::Read => "create it, or correct the key".to_owned(),
            PathUse::Write => format!("run `install -d -o skyhaul -g skyhaul -m 0750 {place}`"),
        };
        self.warnings.push(format!(
            "{place} ({why}) does not exist, and the service does not start without it; help: \
            {help}"
        ));
    }

    /// A program for mail that changes its group, as Postfix's, cannot do so in the service.
    fn sendmail(&mut self, why: &str, program: &Path) {
        let changes = |found: std::fs::Metadata| found.permissions().mode() & SET_IDS != 0;
        if std::fs::metadata(program).is_ok_and(changes) {
            self.warnings.push(format!(
                "{} ({why}) takes the rights of another user or group, which the service forbids: \
                no mail leaves; help: name a program that speaks SMTP itself, such as \
                /usr/bin/msmtp, or use [[webhook]]",
                program.display()
            ));
        }
    }

    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let Self { file, instance, settings, remarks, .. } = self;
        writeln!(out, "# /etc/systemd/system/skyhaul@{instance}.service.d/node.conf")?;
        writeln!(out, "# Written by `skyhaul config systemd` for {}.", file.display())?;
        writeln!(out, "# After a change of that file, write it again; then run")?;
        writeln!(out, "# `systemctl daemon-reload` and `systemctl restart skyhaul@{instance}`.")?;
        for remark in remarks {
            writeln!(out, "# {remark}")?;
        }
        writeln!(out, "\n[Service]")?;
        if settings.is_empty() {
            writeln!(out, "# This node needs no more than skyhaul@.service grants.")?;
        }
        for (setting, reasons) in settings {
            let reasons: Vec<&str> = reasons.iter().map(String::as_str).collect();
            writeln!(out, "# {}", reasons.join(", "))?;
            writeln!(out, "{setting}")?;
        }
        Ok(())
    }
}

/// The name of the service: that of the file.
fn instance(file: &Path) -> Result<String, Failure> {
    let name = file.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if !name.is_empty() && name.chars().all(is_plain) {
        return Ok(name.to_owned());
    }
    let what = "the name of the file cannot be that of a service";
    let help = "name it by letters, digits, `-`, `_` and `.`, such as station-1.toml";
    Err(Failure::new(Exit::Usage, what, help).at(&file.display().to_string()))
}

/// Lower ports need a capability (`net.ipv4.ip_unprivileged_port_start`).
const FIRST_FREE_PORT: u16 = 1024;
/// `LimitNOFILE=` of skyhaul@.service.
const USUAL_FILES: u64 = 65_536;
/// The bits of a file's mode by which a program takes its owner's or group's rights.
const SET_IDS: u32 = 0o6000;
/// Characters of a command in a remark.
const SHOWN: usize = 60;

#[cfg(test)]
mod tests;
