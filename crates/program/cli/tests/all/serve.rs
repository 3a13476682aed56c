//! Customers who come for products: a node with `[serve]`, its tokens, and programs of other people
//! as clients.
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test that cannot go on, or skips, says so"
)]

mod clients;
mod s3;

use crate::support::node;
use crate::support::patience::until;
use crate::support::process::{printed, run, text};
use crate::support::recordings::{CLEAN, recording, sha256};
use crate::support::refusal::assert_refused;
use crate::support::site::Site;
use crate::webdav::certificate;
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A centre with products, which it serves to the account `lance`.
struct Served {
    site: Site,
    token: String,
    /// `https://127.0.0.1:PORT`.
    base: String,
}

const TABLES: &str = "[serve]\nbind = \"127.0.0.1:0\"\ncertificate = \"tls.pem\"\nkey = \
                      \"tls.key\"\naccounts = \"accounts.toml\"\ninterfaces = [\"products\", \
                      \"stac\", \"prip\", \"cadip\", \"s3\"]\n";

fn token(folder: &Path, account: &str, label: &str) -> String {
    let add = ["serve", "token", "add", account, "--label", label, "--config", "centre.toml"];
    printed(&add, folder).trim().to_owned()
}

fn status(site: &Site) -> Value {
    node::status("centre.toml", site.folder()).unwrap_or_default()
}

impl Served {
    fn start() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        certificate(folder.path(), &[])?;
        let mut site = Site::with("");
        site.kill_centre();
        for file in ["tls.pem", "tls.key"] {
            fs::copy(folder.path().join(file), site.folder().join(file)).unwrap();
        }
        let config = site.folder().join("centre.toml");
        fs::write(&config, fs::read_to_string(&config).unwrap() + TABLES).unwrap();
        let token = token(site.folder(), "lance", "1");
        site.start_centre();
        let address = until(
            || status(&site)["serve"]["address"].as_str().map(str::to_owned),
            || "nothing is served".to_owned(),
        );
        let centre = status(&site)["centre"]["address"].as_str().unwrap().to_owned();
        let channel = format!(
            "[[channel]]\nname = \"first\"\ninput = \"file:{}\"\n",
            recording(CLEAN[0]).display()
        );
        site.write_by(&centre, &channel);
        assert_eq!(site.start().end().code, Some(0));
        until(
            || (status(&site)["centre"]["contacts"][0]["state"] == "done").then_some(()),
            || site.shown("centre.toml"),
        );
        Some(Self { site, token, base: format!("https://{address}") })
    }

    fn curl(&self, arguments: &[&str]) -> Option<Output> {
        let ca = self.site.folder().join("tls.pem");
        let mut curl = Command::new("curl");
        curl.args(["-sS", "--max-time", "60", "--cacert"]).arg(ca);
        curl.arg("-H").arg(format!("Authorization: Bearer {}", self.token));
        match curl.args(arguments).current_dir(self.site.folder()).output() {
            Ok(output) => Some(output),
            Err(_) => {
                eprintln!("SKIPPED: curl is not installed");
                None
            }
        }
    }

    fn json(&self, path: &str) -> Option<Value> {
        let output = self.curl(&[&format!("{}{path}", self.base)])?;
        let said = text(&output.stdout) + &text(&output.stderr);
        Some(serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{said}")))
    }

    /// The largest file that is served: its address, and its content.
    fn largest(&self) -> Option<(String, Vec<u8>)> {
        let found = self.json("/stac/search")?;
        let assets = found["features"].as_array().unwrap().iter().flat_map(|item| {
            item["assets"].as_object().unwrap().iter().map(|(name, asset)| (name.clone(), asset))
        });
        let (name, asset) = assets.max_by_key(|(_, asset)| asset["file:size"].as_u64()).unwrap();
        let bytes = fs::read(self.site.folder().join("products").join(name)).unwrap();
        assert_eq!(asset["file:checksum"], format!("1220{}", sha256(&bytes)));
        Some((asset["href"].as_str().unwrap().to_owned(), bytes))
    }
}

/// The Python with the readers of an interface, installed on first use.
pub fn python(of: &str) -> Option<String> {
    let install =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../space/level0/tests/readers/install.py");
    let folder = format!("{}/{of}-readers", env!("CARGO_TARGET_TMPDIR"));
    let wanted = format!("{}/tests/readers/{of}.txt", env!("CARGO_MANIFEST_DIR"));
    let installed = ran(Command::new("python3").args([install, &folder, &wanted]))?;
    if !installed.status.success() {
        let said = text(&installed.stderr);
        eprintln!("SKIPPED: {}", said.trim().lines().last().unwrap_or("no word from install.py"));
        return None;
    }
    Some(text(&installed.stdout).trim().to_owned())
}

/// The output of a program, where it is installed.
fn ran(command: &mut Command) -> Option<Output> {
    let name = command.get_program().to_string_lossy().into_owned();
    match command.stdin(Stdio::null()).output() {
        Ok(output) => Some(output),
        Err(_) => {
            eprintln!("SKIPPED: {name} is not installed");
            None
        }
    }
}

#[test]
fn a_customer_takes_products_over_https_and_goes_on_after_a_break() {
    let Some(served) = Served::start() else { return };
    let Some((address, bytes)) = served.largest() else { return };
    let folder = served.site.folder();
    // A file of which the first part is there.
    let part = folder.join("part");
    fs::write(&part, &bytes[..bytes.len() / 3]).unwrap();
    let output = served.curl(&["-C", "-", "-o", "part", &address]).unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(fs::read(&part).unwrap() == bytes, "it went on where it stopped");
    let heads = served.curl(&["-I", &address]).unwrap();
    let heads = text(&heads.stdout).to_ascii_lowercase();
    for head in ["etag: \"", "repr-digest: sha-256=:", "accept-ranges: bytes"] {
        assert!(heads.contains(head), "{heads}");
    }
    let ca = folder.join("tls.pem");
    let bearer = format!("Authorization: Bearer {}", served.token);
    let mut aria = Command::new("aria2c");
    aria.args(["-x16", "-s16", "-k1M", "--no-conf", "-q", "-o", "by-aria", "--header", &bearer]);
    aria.arg(format!("--ca-certificate={}", ca.display())).arg(&address).current_dir(folder);
    if let Some(output) = ran(&mut aria) {
        assert!(output.status.success(), "{}", text(&output.stdout));
        assert!(fs::read(folder.join("by-aria")).unwrap() == bytes);
    }
    let product = address.rsplit_once('/').unwrap().0.to_owned() + "/";
    let mut rclone = Command::new("rclone");
    rclone.args(["copy", ":http:", "by-rclone", "--http-url", &product, "--header", &bearer]);
    rclone.args(["--config", "/dev/null", "--ca-cert"]).arg(&ca).current_dir(folder);
    if let Some(output) = ran(&mut rclone) {
        assert!(output.status.success(), "{}", text(&output.stderr));
        let name = address.rsplit_once('/').unwrap().1;
        assert!(fs::read(folder.join("by-rclone").join(name)).unwrap() == bytes);
    }
    // Who asks without a token, or for what is not there, gets a sentence.
    let url = format!("{}/products/", served.base);
    let unknown = ran(Command::new("curl").args(["-sk", "-w", "%{http_code}", &url])).unwrap();
    assert!(text(&unknown.stdout).ends_with("401"), "{}", text(&unknown.stdout));
    // What is shown is up to 100 ms old.
    let shown = || served.site.shown("centre.toml");
    until(|| shown().contains("1 without a valid token").then_some(()), shown);
    assert!(shown().contains("products served at 127.0.0.1:"));
}

#[test]
fn tokens_and_certificates_are_replaced_while_the_node_runs() {
    let Some(mut served) = Served::start() else { return };
    let folder = served.site.folder().to_owned();
    let code = |served: &Served| {
        let arguments = ["-o", "/dev/null", "-w", "%{http_code}", &served.base];
        served.curl(&arguments).map(|output| text(&output.stdout))
    };
    if code(&served).is_none() {
        return;
    }
    let reload = |served: &Served| served.site.centre.signal(Signal::HUP);
    let second = token(&folder, "lance", "2");
    let list = printed(&["serve", "token", "list", "--config", "centre.toml"], &folder);
    assert!(list.lines().count() == 3 && !list.contains(&second), "{list}");
    let removed = ["serve", "token", "remove", "lance", "--config", "centre.toml"];
    assert_eq!(printed(&removed, &folder), "removed token 1 of lance\n");
    assert_eq!(code(&served).as_deref(), Some("200"), "it is read again on SIGHUP");
    reload(&served);
    until(
        || (code(&served).as_deref() == Some("401")).then_some(()),
        || "the old token is valid".to_owned(),
    );
    served.token = second;
    assert_eq!(code(&served).as_deref(), Some("200"));
    // A file with an error changes nothing; then another certificate comes.
    fs::write(folder.join("tls.pem"), "no certificate").unwrap();
    reload(&served);
    certificate(&folder, &[]).unwrap();
    reload(&served);
    until(
        || (code(&served).as_deref() == Some("200")).then_some(()),
        || "the new certificate is not used".to_owned(),
    );
    for (arguments, wanted) in [
        (["add", "lance", "--label", "2"], "account `lance` has a token `2`"),
        (["remove", "lance", "--label", "9"], "account `lance` has no token `9`"),
        (["add", "a b", "--label", "2"], "`a b` cannot name the account"),
    ] {
        let order = [&["serve", "token"], &arguments[..], &["--config", "centre.toml"]].concat();
        assert_refused(&run(&order, &folder), 2, &[wanted]);
    }
    let file = folder.join("accounts.toml");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("name = ", "nam = ")).unwrap();
    assert_refused(
        &run(&["serve", "token", "list", "--accounts", "accounts.toml"], &folder),
        2,
        &["the accounts file cannot be used: line 2: unknown field `nam`", "accounts.toml"],
    );
}

#[test]
fn stac_clients_find_every_product_once_and_its_documents_are_valid() {
    let Some(served) = Served::start() else { return };
    let Some(python) = python("stac") else { return };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/readers/stac.py");
    let output = Command::new(python)
        .arg(script)
        .arg(format!("{}/stac", served.base))
        .arg(&served.token)
        .env("REQUESTS_CA_BUNDLE", served.site.folder().join("tls.pem"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let products: Vec<PathBuf> = fs::read_dir(served.site.folder().join("products"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .collect();
    let files = found["files"].as_array().unwrap();
    assert!(files.len() > 2 && files.len() <= products.len(), "{found}");
    assert_eq!(found["by_page"], found["by_search"], "{found}");
}

#[test]
fn a_poller_takes_each_product_once_over_odata() {
    let Some(served) = Served::start() else { return };
    let Some(first) = served.json("/prip/odata/v1/Products?$count=true&$top=1") else { return };
    let count = first["@odata.count"].as_u64().unwrap();
    let (mut since, mut taken) = ("2020-01-01T00:00:00.000Z".to_owned(), 0);
    loop {
        let query = format!(
            "/prip/odata/v1/Products?$filter=PublicationDate%20gt%20{since}&$top=1&$orderby=\
             PublicationDate%20asc"
        );
        let page = served.json(&query).unwrap();
        let Some(product) = page["value"].as_array().unwrap().first() else { break };
        since = product["PublicationDate"].as_str().unwrap().to_owned();
        let id = product["Id"].as_str().unwrap();
        let url = format!("{}/prip/odata/v1/Products({id})/$value", served.base);
        let value = served.curl(&[&url]).unwrap().stdout;
        assert_eq!(product["ContentLength"], value.len());
        let checksums = product["Checksum"].as_array().unwrap();
        let has = |sum: &Value| sum["Algorithm"] == "SHA256" && sum["Value"] == sha256(&value);
        assert!(checksums.iter().any(has), "{product}");
        taken += 1;
    }
    assert!(count > 0 && taken == count, "{taken} of {count}");
}
