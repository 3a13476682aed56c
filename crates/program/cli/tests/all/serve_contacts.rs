//! Pollers of contacts (CADIP): a contact comes in files while it is received, and its frames are
//! those that the station sent, also when the centre is killed meanwhile.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so")]

use crate::support::node;
use crate::support::patience::until;
use crate::support::recordings::{DAMAGED, expected};
use crate::support::site::{Site, channel};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;

const TABLES: &str = "[serve]\nbind = \"127.0.0.1:0\"\ninterfaces = [\"cadip\"]\n";

fn status_of(site: &Site, node: &str) -> Value {
    node::status(node, site.folder()).unwrap_or_default()
}

fn status(site: &Site) -> Value {
    status_of(site, "centre.toml")
}

/// A poller, which speaks HTTP by itself.
struct Poller {
    address: String,
}

impl Poller {
    /// Of the server of a site's centre.
    fn of(site: &Site) -> Self {
        Self::of_node(site, "centre.toml")
    }

    /// Of the server of a node.
    fn of_node(site: &Site, node: &str) -> Self {
        let address = until(
            || status_of(site, node)["serve"]["address"].as_str().map(str::to_owned),
            || "nothing is served".to_owned(),
        );
        Self { address }
    }

    /// The status of an answer, and its body.
    fn get(&self, path: &str, headers: &str) -> Option<(u16, Vec<u8>)> {
        let mut stream = TcpStream::connect(&self.address).ok()?;
        let path = path.replace(' ', "%20");
        let head = format!(
            "GET /cadip/odata/v1/{path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n{headers}\r\n",
            self.address
        );
        stream.write_all(head.as_bytes()).ok()?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).ok()?;
        let end = answer.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
        let status = String::from_utf8_lossy(&answer[..end]).split(' ').nth(1)?.parse().ok()?;
        Some((status, answer.split_off(end)))
    }

    fn list(&self, path: &str) -> Vec<Value> {
        let answer = self.get(path, "");
        let value: Option<Value> = answer.and_then(|(_, body)| serde_json::from_slice(&body).ok());
        value.and_then(|value| value["value"].as_array().cloned()).unwrap_or_default()
    }

    /// The files of the only contact, once it is over.
    fn over(&self) -> Option<Vec<Value>> {
        let files = self.list("Files?$orderby=BlockNumber asc");
        files.last().is_some_and(|last| last["FinalBlock"] == true).then_some(files)
    }

    /// Takes the files of the only contact: the digest of its frames, which are those that
    /// independent programs find, as its quality says.
    fn take(&self, files: &[Value]) -> String {
        let session = self.list("Sessions?$expand=QualityInfo&$filter=Retransfer eq false");
        let [session] = &session[..] else { panic!("{session:?}") };
        assert_eq!(session["DeliveryPushOK"], true, "{session}");
        let quality = &session["QualityInfo"][0];
        let known = expected(DAMAGED);
        assert_eq!(quality["UncorrectableTFs"], known["rs_uncorrectable_frames"]);
        let good = known["good_frames"].as_u64().unwrap();
        let acquired = quality["AcquiredTFs"].as_u64().unwrap();
        assert_eq!(acquired - quality["UncorrectableTFs"].as_u64().unwrap(), good);
        assert_eq!(quality["TotalChunks"], files.len());
        // The frames behind their markers.
        let (mut frames, mut volume) = (Sha256::new(), 0);
        for file in files {
            let target = format!("Files({})/$value", file["Id"].as_str().unwrap());
            let (status, bytes) = self.get(&target, "").unwrap();
            assert_eq!((status, bytes.len() as u64), (200, file["Size"].as_u64().unwrap()));
            let (status, tail) = self.get(&target, "range: bytes=4-\r\n").unwrap();
            assert_eq!((status, &tail[..]), (206, &bytes[4..]));
            volume += bytes.len() as u64;
            for cadu in cadus(&bytes) {
                frames.update(cadu);
            }
        }
        assert_eq!(quality["TotalVolume"], volume);
        let digest: String = frames.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(known["good_frames_sha256"], digest);
        digest
    }
}

#[test]
fn a_poller_takes_contacts_of_a_station_that_reaches_no_centre() {
    let mut site = Site::with("");
    site.kill_centre();
    site.write(&format!("{}{TABLES}", channel("")));
    let mut station = site.start_to_stay();
    let poller = Poller::of_node(&site, "station.toml");
    let files = until(|| poller.over(), || site.shown("station.toml"));
    poller.take(&files);
    let session = poller.list("Sessions");
    assert_eq!(session[0]["StationUnitId"], "s");
    // What is no contact is not there, and says so.
    let (status, _) = poller.get("Products", "").unwrap();
    assert_eq!(status, 404);
    // The same after a kill, and nothing twice.
    station.kill();
    let mut station = site.start_to_stay();
    let again = Poller::of_node(&site, "station.toml");
    assert_eq!(until(|| again.over(), || site.shown("station.toml")), files);
    again.take(&files);
    station.kill();
}

#[test]
fn a_poller_gets_every_frame_of_a_contact_although_the_centre_is_killed() {
    let mut site = Site::with("");
    site.kill_centre();
    let config = site.folder().join("centre.toml");
    fs::write(&config, fs::read_to_string(&config).unwrap() + TABLES).unwrap();
    site.start_centre();
    let address = until(
        || status(&site)["centre"]["address"].as_str().map(str::to_owned),
        || "the centre does not answer".to_owned(),
    );
    site.write_by(&address, &channel(""));
    assert_eq!(site.start().end().code, Some(0));
    let contact = until(
        || Some(status(&site)["centre"]["contacts"][0].clone()).filter(|it| it["state"] == "done"),
        || site.shown("centre.toml"),
    );
    let poller = Poller::of(&site);
    let files = until(|| poller.over(), || site.shown("centre.toml"));
    let digest = poller.take(&files);
    assert_eq!(contact["frames_sha256"], digest);
    // The same after a kill.
    site.kill_centre();
    site.start_centre();
    let again = Poller::of(&site);
    assert_eq!(until(|| again.over(), || site.shown("centre.toml")), files);
    let folder = site.folder().join("state/contact-files");
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let hidden = names.filter(|name| name.to_string_lossy().starts_with('.'));
    assert_eq!(hidden.count(), 0, "no part is left");
}

/// The frames behind their markers.
fn cadus(bytes: &[u8]) -> Vec<&[u8]> {
    const MARKER: [u8; 4] = [0x1a, 0xcf, 0xfc, 0x1d];
    assert!(bytes.starts_with(&MARKER), "a file begins with a marker");
    let length = bytes[4..].windows(4).position(|four| four == MARKER).unwrap_or(bytes.len() - 4);
    let cadus: Vec<&[u8]> = bytes.chunks(length + 4).collect();
    assert!(cadus.iter().all(|cadu| cadu.starts_with(&MARKER)), "each frame has its marker");
    cadus.into_iter().map(|cadu| &cadu[4..]).collect()
}
