//! 24 customers, four of each kind: each product is at each of them once, whatever dies, and
//! nothing is there in part under its final name.
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test that cannot go on, or skips, says so"
)]

mod line;
mod long_object;
mod store;

use crate::outlets::{backfill, deliveries, destination, files, publish, subscription};
use crate::serve::python;
use crate::sftp::Sshd;
use crate::support::node;
use crate::support::patience::until;
use crate::support::ports::free_address;
use crate::support::ports::free_port;
use crate::support::process::{Running, run};
use crate::support::recordings::sha256;
use crate::support::rung::is_all;
use crate::support::site::Site;
use crate::webdav::{WebDav, certificate};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use store::Store;

/// A file that only its owner reads.
pub fn secret(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

/// A server of FTP over TLS in a folder of its own.
struct Ftps {
    dir: tempfile::TempDir,
    _process: Running,
    port: u16,
}

impl Ftps {
    /// It is installed where everything is tested.
    fn start() -> Option<Self> {
        if !is_all() {
            eprintln!("SKIPPED: pyftpdlib is installed where all is tested");
            return None;
        }
        let python = python("ftps")?;
        let dir = tempfile::tempdir().unwrap();
        certificate(dir.path(), &["basicConstraints=critical,CA:FALSE"])?;
        fs::create_dir(dir.path().join("root")).unwrap();
        secret(&dir.path().join("password"), "secret\n");
        let port = free_port();
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/readers/ftps_server.py");
        let mut command = Command::new(python);
        command.args([script, "root", &port.to_string(), "tls.pem", "tls.key", "secret"]);
        command.current_dir(dir.path()).stdin(Stdio::piped());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let process = Running::of(&mut command);
        let listens = || TcpStream::connect(("127.0.0.1", port)).ok().map(drop);
        until(listens, || "pyftpdlib does not listen".to_owned());
        Some(Self { dir, _process: process, port })
    }

    fn destination(&self, name: &str, keys: &str) -> String {
        let path = self.dir.path().display();
        format!(
            "[[destination]]\nname = \"{name}\"\nto = \"ftps://sky@127.0.0.1:{}/\"\npassword = \
             \"{path}/password\"\nca = \"{path}/tls.pem\"\n{keys}",
            self.port
        )
    }
}

/// Another node that gets files.
struct FarNode {
    dir: tempfile::TempDir,
    fingerprint: String,
    address: String,
    process: Option<Running>,
}

impl FarNode {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let fingerprint = node::make_key("customer", dir.path()).to_string();
        Self { dir, fingerprint, address: free_address().to_string(), process: None }
    }

    /// How the centre knows it.
    fn peer(&self) -> String {
        format!(
            "[[peer]]\nname = \"customer\"\nfingerprints = [\"{}\"]\naddresses = [\"{}\"]\n",
            self.fingerprint, self.address
        )
    }

    fn destination(name: &str, keys: &str) -> String {
        format!("[[destination]]\nname = \"{name}\"\nto = \"node:customer/in\"\n{keys}")
    }

    fn start(&mut self, site: &Site) {
        let text = format!(
            "{}[[listen]]\nbind = \"{}\"\n[[peer]]\nname = \"c\"\nfingerprints = [\"{}\"]\n\
             [peer.files]\nroot = \"got\"\n",
            node::table("customer", Path::new("state")),
            self.address,
            site.key(),
        );
        fs::write(self.dir.path().join("customer.toml"), text).unwrap();
        self.process = Some(node::start("customer", self.dir.path(), &[]));
    }
}

/// Where a customer's files are seen, past the node.
enum Seen {
    Folder(PathBuf),
    /// Below this prefix of the store.
    Store(String),
}

/// The servers that are there.
struct Servers {
    sshd: Option<Sshd>,
    web: Option<WebDav>,
    ftps: Option<Ftps>,
    store: Option<Store>,
    node: FarNode,
}

/// The customers of a site.
struct Customers {
    tables: String,
    /// Their names and places; of folders below the site's, relative ones.
    places: Vec<(String, Seen)>,
    /// The names of those.
    folders: Vec<String>,
    subscriptions: Vec<String>,
}

impl Servers {
    fn start() -> Self {
        Self {
            sshd: Sshd::start(),
            web: WebDav::start(),
            ftps: Ftps::start(),
            store: Store::start(),
            node: FarNode::new(),
        }
    }

    /// The table of a customer, where its kind of server is there, and where its files come to be.
    fn place(&self, customer: usize, name: &str, keys: &str) -> Option<(String, Seen)> {
        let below = |root: PathBuf| Seen::Folder(root.join(name));
        match customer / 4 {
            0 => self.sshd.as_ref().map(|it| (it.destination(name, keys), below(it.folder()))),
            1 => self.web.as_ref().map(|it| (it.destination(name, keys), below(it.folder()))),
            2 => {
                let ftps = self.ftps.as_ref()?;
                Some((ftps.destination(name, keys), below(ftps.dir.path().join("root"))))
            }
            3 => {
                let table = self.store.as_ref()?.destination(name, keys);
                Some((table, Seen::Store(format!("{name}/"))))
            }
            4 => {
                let got = self.node.dir.path().join("got/in");
                Some((FarNode::destination(name, keys), below(got)))
            }
            _ => None,
        }
    }

    /// Four customers share each server that there is, each in a folder of its own; all others have
    /// folders.
    fn customers(&self) -> Customers {
        let mut tables = self.node.peer();
        let mut places: Vec<(String, Seen)> = Vec::new();
        let (mut folders, mut subscriptions) = (Vec::new(), vec!["folders".to_owned()]);
        for customer in 0..24 {
            let name = format!("c{customer}");
            let keys = format!("connections = {}\n", customer % 4 + 1);
            match self.place(customer, &name, &keys) {
                Some((table, seen)) => {
                    let own = format!("{name}-all");
                    tables.push_str(&table);
                    let keys = format!("to = \"{name}\"\ninto = \"{name}\"\n");
                    tables.push_str(&subscription(&own, &keys));
                    places.push((name, seen));
                    subscriptions.push(own);
                }
                None => {
                    tables.push_str(&destination(&name, &keys));
                    places.push((name.clone(), Seen::Folder(Path::new("out").join(&name))));
                    folders.push(name);
                }
            }
        }
        let keys = format!("to = {folders:?}\nrecord = \"sips\"\n");
        tables.push_str(&subscription("folders", &keys));
        Customers { tables, places, folders, subscriptions }
    }

    /// The visible files of a place, with their lengths.
    fn there(&self, seen: &Seen) -> BTreeMap<String, u64> {
        match (seen, &self.store) {
            (Seen::Store(prefix), Some(store)) => store.objects(prefix),
            (Seen::Store(_), None) => BTreeMap::new(),
            (Seen::Folder(folder), _) => {
                let length = |path: PathBuf| path.metadata().map_or(0, |found| found.len());
                files(folder).into_iter().map(|(name, path)| (name, length(path))).collect()
            }
        }
    }

    fn content(&self, seen: &Seen, name: &str) -> Vec<u8> {
        match (seen, &self.store) {
            (Seen::Store(prefix), Some(store)) => store.object(&format!("{prefix}{name}")),
            (Seen::Store(_), None) => Vec::new(),
            (Seen::Folder(folder), _) => fs::read(folder.join(name)).unwrap(),
        }
    }
}

/// Files that stay hidden in a folder: parts of others.
fn parts(seen: &Seen) -> Vec<String> {
    let Seen::Folder(folder) = seen else { return Vec::new() };
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let names = names.map(|name| name.into_string().unwrap());
    names.filter(|name| name.starts_with('.')).collect()
}

fn deliveries_in(site: &Site, destination: &str, state: &str) -> Vec<Value> {
    deliveries(site, &json!({ "destination": destination, "state": state }))
}

/// A centre with these tables, which answers.
fn site(tables: &str) -> Site {
    let mut site = Site::with("");
    site.kill_centre();
    let config = site.folder().join("centre.toml");
    fs::write(&config, fs::read_to_string(&config).unwrap() + tables).unwrap();
    site.start_centre();
    answers(&site);
    site
}

/// Waits until the centre answers.
fn answers(site: &Site) {
    let status = ["status", "--config", "centre.toml"];
    let is_up = || run(&status, site.folder()).status.success().then_some(());
    until(is_up, || "the centre does not answer".to_owned());
}

#[test]
fn each_product_is_at_24_customers_once_whatever_dies() {
    let (count, kills) = if is_all() { (1_000, 5) } else { (6, 2) };
    let mut servers = Servers::start();
    let Customers { tables, mut places, folders, subscriptions } = servers.customers();
    let mut site = site(&tables);
    for (_, seen) in &mut places {
        if let Seen::Folder(path) = seen {
            // One of another server stays as it is.
            *path = site.folder().join(&path);
        }
    }
    servers.node.start(&site);
    publish(&site, 0..count, 1);
    let products = files(&site.folder().join("products"));
    let mut begun = 0;
    for name in &subscriptions {
        let page = backfill(&site, name);
        assert_eq!(page["items"], count);
        begun += page["destinations"].as_array().unwrap().len() * count as usize;
    }
    assert_eq!(begun, 24 * count as usize);
    // Two files of each product, and at folders a record and its signal. What is visible is whole.
    let there = || {
        let mut sum = 0;
        for (customer, seen) in &places {
            let found = servers.there(seen);
            for (name, length) in &found {
                let own = products.get(name).map(|path| path.metadata().unwrap().len());
                assert!(own.is_none_or(|own| own == *length), "{name} at {customer} is whole");
            }
            sum += found.len();
        }
        sum
    };
    let all = (places.len() * 2 + folders.len() * 2) * count as usize;
    let come = |wanted: usize| {
        // A thousand products take longer than other things that tests wait for.
        let mut last = there();
        while last < wanted {
            last = until(|| Some(there()).filter(|now| *now > last), || format!("{last} of {all}"));
        }
    };
    for kill in 1..=kills {
        come(all * kill / (kills + 2));
        site.kill_centre();
        there();
        site.start_centre();
    }
    come(all);
    for (name, seen) in &places {
        let accepted = || {
            Some(deliveries_in(&site, name, "accepted")).filter(|its| its.len() == count as usize)
        };
        let its =
            until(accepted, || format!("{name}: {:?}", deliveries_in(&site, name, "sending")));
        // A centre that is killed while it sends begins again, and nothing else is tried twice.
        let few =
            |one: &Value| one["attempts"].as_u64().is_some_and(|tried| tried <= 1 + kills as u64);
        assert!(its.iter().all(few), "{name}: {its:?}");
        for (file, own) in &products {
            let far = servers.content(seen, file);
            assert_eq!(sha256(&far), sha256(&fs::read(own).unwrap()), "{file} at {name}");
        }
        assert_eq!(parts(seen), Vec::<String>::new(), "{name}: no part is left");
    }
    assert_eq!(there(), all);
    eprintln!("{count} products at 24 customers, {} of them folders, {kills} kills", folders.len());
}
