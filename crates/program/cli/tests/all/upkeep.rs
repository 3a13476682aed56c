//! Real stations and centres on whose machines somebody works: a state folder that is removed or
//! damaged, its permissions, a configuration that changes.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by failing")]

use crate::disk_full::site::{Folders, Node, Site};
use crate::support::recordings::{WHOLE_CADUS, recording};
use rustix::process::Signal;
use skyhaul_events::AlarmStatus;
use skyhaul_node::status::{LineState, StationStatus};
use std::fs;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A channel whose contact stays open between two plays.
const LIVE_CHANNEL: &str =
    "[[channel]]\nname = \"live\"\ninput = \"tcp-listen:127.0.0.1:0\"\nsilence = \"600 s\"\n";
/// CADUs of the recording, each one frame.
const FRAMES: u64 = 65;

/// A connection to the station's channel, once it listens.
fn player(site: &mut Site) -> TcpStream {
    let listens = |station: &StationStatus| station.channels[0].address.is_some();
    let station = site.station("station that listens", listens);
    let address: SocketAddr = station.channels[0].address.as_ref().unwrap().parse().unwrap();
    TcpStream::connect(address).unwrap()
}

fn play(player: &mut TcpStream) {
    player.write_all(&fs::read(recording(WHOLE_CADUS)).unwrap()).unwrap();
}

/// How far the station is with the data that was played to it: the number of captured frames.
fn captured(station: &StationStatus) -> u64 {
    station.contacts.iter().map(|contact| contact.frames).sum()
}

/// Waits until what was played once is at the centre, and the station knows it.
fn in_custody(site: &mut Site) {
    // A frame is complete when the next marker has arrived.
    site.centre("centre with the first frames", |centre| {
        centre.contacts.iter().any(|contact| contact.reception.frames + 1 >= FRAMES)
    });
    site.station("station with nothing left", |station| station.spool.blocks == 0);
}

#[test]
fn a_centre_whose_folder_is_removed_gives_no_receipt_and_ends_with_a_sentence() {
    let mut site = Site::prepare(Folders::default(), "", LIVE_CHANNEL);
    site.start(Node::Centre);
    site.start(Node::Station);
    let mut player = player(&mut site);
    play(&mut player);
    in_custody(&mut site);
    fs::remove_dir_all(&site.states[Node::Centre as usize]).unwrap();
    play(&mut player);
    let (code, log) = site.ended(Node::Centre);
    assert_eq!(code, Some(3), "{log}");
    assert!(log.contains("is missing"), "{log}");
    let station =
        site.station("station with all frames", |station| captured(station) >= 2 * FRAMES - 1);
    assert!(station.spool.blocks > 0, "the station has freed what is nowhere: {station:?}");
}

#[test]
fn a_station_whose_folder_is_removed_ends_with_a_sentence() {
    for plays in [false, true] {
        let mut site = Site::prepare(Folders::default(), "", LIVE_CHANNEL);
        site.start(Node::Station);
        let mut player = player(&mut site);
        play(&mut player);
        site.station("station with frames", |station| captured(station) >= FRAMES - 1);
        // At once, as an unmounted file system goes: the station writes into the folder meanwhile.
        let state = &site.states[Node::Station as usize];
        fs::rename(state, state.with_extension("gone")).unwrap();
        if plays {
            play(&mut player);
        }
        let (code, log) = site.ended(Node::Station);
        assert_eq!(code, Some(3), "{log}");
        assert!(log.contains("is missing"), "{log}");
    }
}

/// The segments below a folder.
fn segments(folder: &Path) -> Vec<PathBuf> {
    let (mut found, mut waiting) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                waiting.push(path);
            } else if path.extension().is_some_and(|end| end == "seg") {
                found.push(path);
            }
        }
    }
    assert!(!found.is_empty());
    found
}

/// Flips one bit, `part` of 8 into the file.
fn flip(file: &Path, part: usize) {
    let mut bytes = fs::read(file).unwrap();
    let at = bytes.len() * part / 8;
    bytes[at] ^= 4;
    fs::write(file, bytes).unwrap();
}

fn is_told(alarms: &[AlarmStatus], part: &str) -> bool {
    let mut told = alarms.iter().map(|alarm| &alarm.sentence);
    told.any(|alarm| alarm.contains(part) && alarm.contains("no data is lost"))
}

#[test]
fn three_flipped_bits_of_a_spool_and_one_of_its_state_cost_no_frame_and_are_reported() {
    let mut site = Site::prepare(Folders::default(), "", LIVE_CHANNEL);
    site.start(Node::Station);
    let mut player = player(&mut site);
    (0..4).for_each(|_| play(&mut player));
    site.station("station with frames", |station| captured(station) >= 4 * FRAMES - 1);
    // A kill would lose what is not on the disk yet.
    assert_eq!(site.stop(Node::Station), Some(0));
    let spool = site.states[Node::Station as usize].join("spool");
    [1, 3, 5].into_iter().for_each(|part| flip(&segments(&spool)[0], part));
    flip(&spool.join("flows"), 2);
    site.start(Node::Station);
    site.start(Node::Centre);
    let centre = site.centre("centre with all frames", |centre| {
        centre.contacts.iter().any(|contact| contact.reception.frames + 1 >= 4 * FRAMES)
    });
    assert!(
        centre.contacts.iter().all(|contact| contact.integrity.damaged_blocks == 0),
        "{centre:?}"
    );
    site.station("station that tells of its disk", |station| {
        is_told(&station.alarms, "damage in the spool was repaired")
            && is_told(&station.alarms, "the spool's state")
    });
}

#[test]
fn a_flipped_bit_in_the_store_of_a_centre_costs_no_frame_and_is_reported() {
    let mut site = Site::prepare(Folders::default(), "", LIVE_CHANNEL);
    site.start(Node::Centre);
    site.start(Node::Station);
    let mut player = player(&mut site);
    play(&mut player);
    in_custody(&mut site);
    site.kill(Node::Centre);
    flip(&segments(&site.states[Node::Centre as usize])[0], 4);
    site.start(Node::Centre);
    site.centre("centre that has all frames and tells of its disk", |centre| {
        let whole = |frames: u64| frames + 1 >= FRAMES;
        centre
            .contacts
            .iter()
            .any(|contact| whole(contact.reception.frames) && contact.integrity.damaged_blocks == 0)
            && is_told(&centre.alarms, "damage in the store was repaired")
    });
}

#[test]
fn only_its_own_user_can_read_the_files_of_a_node() {
    let mut site = Site::prepare(Folders::default(), "", LIVE_CHANNEL);
    site.start(Node::Centre);
    site.start(Node::Station);
    let mut player = player(&mut site);
    play(&mut player);
    in_custody(&mut site);
    let (mut files, mut waiting) = (0, site.states.to_vec());
    while let Some(folder) = waiting.pop() {
        let mode = fs::metadata(&folder).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "{}", folder.display());
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            // Files that are written anew all the time may be missing.
            let Ok(metadata) = fs::metadata(&path) else { continue };
            if metadata.is_dir() {
                waiting.push(path);
            } else {
                assert_eq!(metadata.permissions().mode() & 0o777, 0o600, "{}", path.display());
                files += 1;
            }
        }
    }
    assert!(files >= 8, "lock, socket and segment of both, and more: {files}");
}

#[test]
fn a_centre_accepts_and_disconnects_stations_when_its_configuration_changes() {
    let mut site = Site::prepare(Folders::default(), "", LIVE_CHANNEL);
    let file = site.file("centre.toml");
    let text = fs::read_to_string(&file).unwrap();
    let (before, rest) = text.split_once("[[peer]]").unwrap();
    let (_, behind) = rest.split_once("[products]").unwrap();
    let nobody = format!("{before}[products]{behind}");
    fs::write(&file, &nobody).unwrap();
    site.start(Node::Centre);
    site.start(Node::Station);
    let is = |state: LineState| move |station: &StationStatus| station.line().state == state;
    site.station("station that is refused", is(LineState::Refused));
    fs::write(&file, format!("{text}\nno_key = 1\n")).unwrap();
    site.signal(Node::Centre, Signal::HUP);
    site.logged(Node::Centre, "configuration reload failed, the old one stays in force: ");
    site.station("station that is still refused", is(LineState::Refused));
    fs::write(&file, text.replace("[[listen]]", "[store]\nsync_interval = \"20 ms\"\n[[listen]]"))
        .unwrap();
    site.signal(Node::Centre, Signal::HUP);
    site.logged(Node::Centre, "peer station added");
    site.logged(Node::Centre, "`sync_interval` in [store] cannot change while the node runs");
    site.station("station that is connected", is(LineState::Open));
    let mut player = player(&mut site);
    play(&mut player);
    in_custody(&mut site);
    fs::write(&file, &nobody).unwrap();
    site.signal(Node::Centre, Signal::HUP);
    site.logged(Node::Centre, "peer station removed");
    site.station("station that is refused again", is(LineState::Refused));
    assert_eq!(site.stop(Node::Centre), Some(0));
}

#[test]
fn sockets_and_sessions_that_a_changed_configuration_does_not_concern_stay() {
    let mut site = Site::prepare(Folders::default(), "", LIVE_CHANNEL);
    site.start(Node::Centre);
    site.start(Node::Station);
    let mut player = player(&mut site);
    play(&mut player);
    in_custody(&mut site);
    let sockets = [Node::Station, Node::Centre].map(|node| site.sockets(node));
    assert!(sockets.iter().all(|sockets| sockets.len() >= 2), "{sockets:?}");
    for (file, tables) in [
        (
            "station.toml",
            "[[class]]\nname = \"live\"\n[[subscription]]\nof = \"contacts\"\nclass = \
            \"live\"\n",
        ),
        ("centre.toml", "[[class]]\nname = \"reports\"\n[store]\nmax_size = \"1 GB\"\n"),
    ] {
        let file = site.file(file);
        let text = fs::read_to_string(&file).unwrap();
        let text = text.replace("[spool]\n", "[spool]\nretention = \"1 s\"\n");
        fs::write(&file, format!("{text}{tables}")).unwrap();
    }
    site.signal(Node::Centre, Signal::HUP);
    site.logged(Node::Centre, "limits of the store changed; the classes of the lines are changed");
    site.signal(Node::Station, Signal::HUP);
    site.logged(Node::Station, "limits of the spool changed");
    play(&mut player);
    site.centre("centre with the frames after that", |centre| {
        centre.contacts.iter().any(|contact| contact.reception.frames + 1 >= 2 * FRAMES)
    });
    assert_eq!([Node::Station, Node::Centre].map(|node| site.sockets(node)), sockets);
    for name in ["station.log", "centre.log"] {
        let log = fs::read_to_string(site.file(name)).unwrap();
        assert!(!log.contains("disconnected") && !log.contains("restart the node"), "{log}");
    }
}
