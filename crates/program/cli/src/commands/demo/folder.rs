//! The demonstration's folder: keys, configurations, logs, state and products of both nodes.

use super::page::DemoPage;
use skyhaul_exit::{Exit, Failure};
use skyhaul_quic::{Fingerprint, Identity};
use skyhaul_units::Rate;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// A folder that only this demonstration uses while it runs.
#[derive(Debug)]
pub struct Folder {
    root: PathBuf,
    centre_key: Fingerprint,
    backup_key: Fingerprint,
    station_key: Fingerprint,
    customer_key: Fingerprint,
    /// Sockets have short paths: where the folder's own is too long, they are elsewhere.
    sockets: PathBuf,
    page: DemoPage,
    /// Locked while the demonstration runs.
    _mark: File,
}

impl Folder {
    /// Makes the folder, or clears what an earlier demonstration left in it, and makes both nodes'
    /// keys.
    ///
    /// # Errors
    /// The folder holds something else, another demonstration runs in it, or it cannot be written.
    pub fn prepare(root: &Path, page: DemoPage) -> Result<Self, Failure> {
        let refused = |source| refused(root, source);
        fs::create_dir_all(root).map_err(refused)?;
        let root = root.canonicalize().map_err(refused)?;
        let mark_path = root.join(MARK);
        if !mark_path.exists() && fs::read_dir(&root).map_err(refused)?.next().is_some() {
            let help =
                "give --dir a folder that is new or empty, or one of an earlier demonstration";
            return Err(
                Failure::new(Exit::Usage, "the folder holds something else", help).at(&show(&root))
            );
        }
        let mark = File::create(&mark_path).map_err(refused)?;
        if mark.try_lock().is_err() {
            let help = "wait until it has ended, or give --dir another folder";
            let what = "another demonstration runs in this folder";
            return Err(Failure::new(Exit::Environment, what, help).at(&show(&root)));
        }
        OURS.iter().try_for_each(|name| remove(&root.join(name))).map_err(refused)?;
        let centre_key = make_key(&root.join("centre.key"))?;
        let backup_key = make_key(&root.join("backup.key"))?;
        let station_key = make_key(&root.join("station.key"))?;
        let customer_key = make_key(&root.join("customer.key"))?;
        let longest = root.join("station/status.sock").as_os_str().len();
        let sockets = if longest <= LONGEST_SOCKET {
            root.clone()
        } else {
            std::env::temp_dir().join(format!("skyhaul-demo-{}", std::process::id()))
        };
        for name in ["centre", BACKUP, "station", CUSTOMER] {
            fs::create_dir_all(sockets.join(name)).map_err(refused)?;
        }
        let _mark = mark;
        Ok(Self { root, centre_key, backup_key, station_key, customer_key, sockets, page, _mark })
    }

    /// The folder's path from the file system's root.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where products appear.
    pub fn products(&self) -> PathBuf {
        self.root.join("products")
    }

    /// Where the products of the backup centre appear.
    pub fn backup_products(&self) -> PathBuf {
        self.root.join("backup-products")
    }

    /// Where a node's log is written.
    pub fn log(&self, node: &str) -> PathBuf {
        self.root.join(format!("{node}.log"))
    }

    /// Where a node answers `skyhaul status`.
    pub fn socket(&self, node: &str) -> PathBuf {
        self.sockets.join(node).join("status.sock")
    }

    /// The key of the node that gets products.
    pub const fn customer_key(&self) -> Fingerprint {
        self.customer_key
    }

    /// Writes the operational centre's configuration; `tables` say where its products go.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write_centre(&self, tables: &str) -> Result<(), Failure> {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        self.write("centre.toml", &(self.receiving("centre", any, "products") + tables))
    }

    /// Writes the configuration of the node that gets products: it calls the centre at `address`.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write_customer(&self, address: SocketAddr) -> Result<(), Failure> {
        let text = format!(
            "{HEAD}{}
[[peer]]
name = \"centre\"
addresses = [\"{address}\"]
fingerprints = [\"{}\"]

[peer.files]
root = \"delivered\"

[[destination]]
to = \"node:centre\"
",
            self.node(CUSTOMER),
            self.centre_key
        );
        self.write("customer.toml", &text)
    }

    /// Writes the backup centre's configuration: it listens on `bind`.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write_backup(&self, bind: SocketAddr) -> Result<(), Failure> {
        self.write("backup.toml", &self.receiving(BACKUP, bind, "backup-products"))
    }

    fn receiving(&self, name: &str, bind: SocketAddr, products: &str) -> String {
        format!(
            "{HEAD}{}
[[listen]]
bind = \"{bind}\"

[[peer]]
name = \"station\"
fingerprints = [\"{}\"]

[products]
dir = \"{products}\"
",
            self.node(name),
            self.station_key
        )
    }

    /// Writes the configuration of a station that sends to both centres over the near ends `lines`
    /// of a line of `rate`, and has an input for each of `channels`.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write_station(
        &self,
        lines: [SocketAddr; 2],
        rate: Rate,
        channels: &[String],
    ) -> Result<(), Failure> {
        let mut text = format!(
            "{HEAD}{}
[[peer]]
name = \"centre\"
addresses = [\"{}\"]
fingerprints = [\"{}\"]

[[peer]]
name = \"{BACKUP}\"
addresses = [\"{}\"]
fingerprints = [\"{}\"]

[[destination]]
to = \"node:centre\"

[[destination]]
to = \"node:{BACKUP}\"

[line]
rate = \"{rate}\"
",
            self.node("station"),
            lines[0],
            self.centre_key,
            lines[1],
            self.backup_key
        );
        for channel in channels {
            text += &format!(
                "\n[[channel]]\nname = \"{channel}\"\ninput = \"tcp-listen:127.0.0.1:0\"\n"
            );
        }
        self.write("station.toml", &text)
    }

    fn node(&self, name: &str) -> String {
        let socket = self.socket(name);
        let socket = socket.strip_prefix(&self.root).unwrap_or(&socket);
        format!(
            "[node]\nname = \"{name}\"\nkey = \"{name}.key\"\nstate = \"{name}\"\nstatus_socket = \
            {}\n{}",
            toml::Value::from(show(socket)),
            if name == CUSTOMER { "" } else { self.page.table() }
        )
    }

    fn write(&self, name: &str, text: &str) -> Result<(), Failure> {
        let path = self.root.join(name);
        fs::write(&path, text).map_err(|source| refused(&path, source))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if self.sockets != self.root {
            // Only empty folders in the system's temporary folder can remain.
            let _ = fs::remove_dir_all(&self.sockets);
        }
    }
}

fn make_key(path: &Path) -> Result<Fingerprint, Failure> {
    let identity = Identity::generate()
        .map_err(|error| Failure::from_sentence(Exit::Environment, &error.to_string()))?;
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    file.and_then(|mut file| file.write_all(identity.to_pem().as_bytes()))
        .map_err(|source| refused(path, source))?;
    Ok(identity.fingerprint())
}

fn remove(path: &Path) -> io::Result<()> {
    let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    removed
        .or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
}

fn refused(place: &Path, source: io::Error) -> Failure {
    let help = "give --dir a folder that this user can write to, on a disk with free space";
    Failure::io("the demonstration's folder cannot be used", &show(place), help, source)
}

fn show(path: &Path) -> String {
    path.display().to_string()
}

/// The file that marks a demonstration's folder, so that the next demonstration can clear it.
const MARK: &str = ".skyhaul-demo";

/// What a demonstration makes in its folder; nothing else is ever removed.
const OURS: &[&str] = &[
    "centre",
    "backup",
    "station",
    "products",
    "backup-products",
    "centre.toml",
    "backup.toml",
    "station.toml",
    "centre.key",
    "backup.key",
    "station.key",
    "centre.log",
    "backup.log",
    "station.log",
    "customer",
    "customer.toml",
    "customer.key",
    "customer.log",
    "delivered",
    "sftp",
    "store",
    "report.html",
];

/// The name of the backup centre.
pub const BACKUP: &str = "backup";
/// The name of the node that gets products.
pub const CUSTOMER: &str = "customer";

const HEAD: &str = "# Written by `skyhaul demo`, which writes it anew each time.\n\n";

/// A local socket's path has room for 107 bytes.
const LONGEST_SOCKET: usize = 107;

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_config::load;

    #[test]
    fn a_node_accepts_both_configurations() {
        let parent = tempfile::tempdir().unwrap();
        for name in ["short".to_owned(), "long-".repeat(24)] {
            let folder = Folder::prepare(&parent.path().join(name), DemoPage::Shown).unwrap();
            folder.write_centre("").unwrap();
            folder.write_customer("127.0.0.1:4700".parse().unwrap()).unwrap();
            let node = load(&folder.root().join("customer.toml")).unwrap();
            assert!(node.station.unwrap().destinations[0].peer.files.is_some());
            let channels = ["antenna-1".to_owned(), "antenna-2".to_owned()];
            folder
                .write_station(
                    ["127.0.0.1:4700", "127.0.0.1:4701"].map(|line| line.parse().unwrap()),
                    Rate::from_mbps(93),
                    &channels,
                )
                .unwrap();
            let node = load(&folder.root().join("centre.toml")).unwrap();
            assert_eq!(node.node.status_socket(), folder.socket("centre"));
            let trusted = node.centre.unwrap().trusted();
            assert!(trusted[0].contains(&folder.station_key));
            let node = load(&folder.root().join("station.toml")).unwrap();
            let station = node.station.unwrap();
            assert_eq!((station.channel.len(), station.line.rate), (2, Some(Rate::from_mbps(93))));
            assert!(folder.socket("station").as_os_str().len() <= LONGEST_SOCKET);
        }
    }

    #[test]
    fn only_the_folder_of_a_demonstration_is_reused() {
        let parent = tempfile::tempdir().unwrap();
        let root = parent.path().join("demo");
        let first = Folder::prepare(&root, DemoPage::Left).unwrap();
        let running = Folder::prepare(&root, DemoPage::Left).unwrap_err().to_string();
        assert!(running.contains("another demonstration runs"), "{running}");
        fs::create_dir(first.products()).unwrap();
        fs::write(first.products().join("old.PDS"), "old").unwrap();
        drop(first);
        let second = Folder::prepare(&root, DemoPage::Left).unwrap();
        assert!(!second.products().exists());

        fs::write(parent.path().join("thesis.txt"), "precious").unwrap();
        let other = Folder::prepare(parent.path(), DemoPage::Left).unwrap_err().to_string();
        assert!(other.contains("holds something else"), "{other}");
        assert!(parent.path().join("thesis.txt").exists());
    }
}
