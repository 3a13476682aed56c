//! Real stations and centres on a file system that is really full: what the nodes report, what
//! waits meanwhile, and that everything arrives once, without an operator, when there is room
//! again.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test that cannot go on says so by failing"
)]

mod pass;
pub mod site;
pub mod small_disk;

use crate::support::patience::now;
use crate::support::recordings::CLEAN;
use pass::{Frames, LIVE_CHANNEL, Player, all_recordings, delivered, file_channels, repeated};
use site::{Folders, Node, Site};
use skyhaul_events::AlarmStatus;
use skyhaul_node::status::{CentreStatus, ContactState, StationStatus, StoreState};
use small_disk::{RESERVE, SmallDisk, on_a_small_disk};
use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

/// How often the player plays its 65 CADUs: 28 MB, more than the queue of the station and the
/// buffers of the system hold.
const TIMES: usize = 420;
/// Longer than the silence that closes a contact, which is 2 s.
const HELD: Duration = Duration::from_millis(2_500);

fn all_done(centre: &CentreStatus) -> bool {
    centre.contacts.len() == CLEAN.len()
        && centre.contacts.iter().all(|contact| contact.state == ContactState::Done)
}

fn is_well(station: &StationStatus) -> bool {
    station.spool.blocks == 0 && station.spool.state == StoreState::Ok && station.alarms.is_empty()
}

/// Asserts that each recording has arrived once, and that both nodes are idle and report no alarm.
fn assert_delivered(site: &mut Site) {
    let centre = site.centre("products of all contacts", all_done);
    assert_eq!(delivered(&centre).into_iter().collect::<BTreeSet<Frames>>(), all_recordings());
    site.centre("centre without an alarm", |centre| {
        centre.store.state == StoreState::Ok && centre.alarms.is_empty()
    });
    site.station("station without an alarm", is_well);
    for entry in fs::read_dir(&site.products).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(!name.starts_with('.'), "{name} is left over");
    }
}

/// Whether an alarm is there: it comes a second after its condition.
fn is_told(alarms: &[AlarmStatus], parts: [&str; 2]) -> bool {
    alarms.iter().any(|alarm| parts.iter().all(|part| alarm.sentence.contains(part)))
}

fn assert_alarm(alarms: &[AlarmStatus], parts: &[&str]) {
    let alarms: Vec<&str> = alarms.iter().map(|alarm| &alarm.sentence[..]).collect();
    let is_it = |alarm: &&&str| parts.iter().all(|part| alarm.contains(part));
    assert!(alarms.iter().any(|alarm| is_it(&alarm)), "none of {alarms:?} holds {parts:?}");
    eprintln!("{}", alarms.join("\n"));
}

#[test]
fn a_full_centre_holds_the_station_back_and_goes_on_when_there_is_room() {
    on_a_small_disk(
        "a_full_centre_holds_the_station_back_and_goes_on_when_there_is_room",
        |disk| {
            disk.fill(RESERVE + (1 << 20));
            let folders = Folders {
                centre: Some(disk.folder("centre")),
                products: Some(disk.folder("products")),
                ..Folders::default()
            };
            let mut site = Site::prepare(folders, "", &file_channels());
            site.start(Node::Centre);
            site.start(Node::Station);
            let is_full = |centre: &CentreStatus| {
                centre.store.state == StoreState::Full
                    && is_told(&centre.alarms, ["are paused", "free space"])
            };
            let centre = site.centre("full centre", is_full);
            assert_alarm(&centre.alarms, &["stations are paused", "free space"]);
            let holds =
                |station: &StationStatus| station.line().held_back && station.spool.blocks > 0;
            site.station("station that holds what the centre does not take", holds);
            disk.fill(0);
            site.kill(Node::Centre);
            site.start(Node::Centre);
            let centre = site.centre("full centre after a restart", is_full);
            assert!(!all_done(&centre), "{centre:?}");
            disk.clear();
            assert_delivered(&mut site);
        },
    );
}

#[test]
fn products_wait_for_room_while_the_store_takes_data() {
    on_a_small_disk("products_wait_for_room_while_the_store_takes_data", |disk| {
        disk.fill(0);
        let folders = Folders { products: Some(disk.folder("products")), ..Folders::default() };
        let mut site = Site::prepare(folders, "", &file_channels());
        site.start(Node::Centre);
        site.start(Node::Station);
        site.station("station with everything in custody", |station| {
            station.contacts.len() == CLEAN.len()
                && station.contacts.iter().all(|contact| contact.state != ContactState::Open)
                && is_well(station)
        });
        let centre = site.centre("alarm about all contacts", |centre| {
            centre.contacts.len() == CLEAN.len() && !centre.alarms.is_empty()
        });
        let products = site.products.display().to_string();
        assert_alarm(&centre.alarms, &["products cannot be written", &products, "free space"]);
        let closed = |centre: &CentreStatus| {
            centre.contacts.iter().all(|contact| contact.state == ContactState::Closed)
        };
        let centre = site.centre("contacts that are closed and not done", closed);
        assert_eq!(centre.store.state, StoreState::Ok);
        disk.clear();
        assert_delivered(&mut site);
    });
}

/// A station on a disk with room for 4 MiB, and a player that it holds back.
fn held_back(disk: &SmallDisk, spool: &str, pace: Duration) -> (Site, Player) {
    disk.fill(RESERVE + (4 << 20));
    let folders = Folders { station: Some(disk.folder("station")), ..Folders::default() };
    let mut site = Site::prepare(folders, spool, LIVE_CHANNEL);
    site.start(Node::Station);
    let listens = |station: &StationStatus| station.channels[0].address.is_some();
    let station = site.station("station that listens", listens);
    let address = station.channels[0].address.as_ref().unwrap().parse().unwrap();
    let player = Player::start(address, TIMES, pace);
    let is_full = |station: &StationStatus| {
        station.spool.state == StoreState::Full
            && is_told(&station.alarms, ["are paused", "free space"])
    };
    let station = site.station("full station", is_full);
    assert_alarm(&station.alarms, &["the inputs are paused", "free space"]);
    let (mut played, mut since) = (player.played(), now());
    site.wait("player that is held back", || {
        if player.played() != played {
            (played, since) = (player.played(), now());
        }
        (since.elapsed() > HELD).then_some(())
    });
    assert!(played < player.length, "all {played} bytes were taken by a full station");
    (site, player)
}

/// Asserts that everything that was played has arrived, as one contact.
fn assert_one_contact(site: &mut Site, player: Player) {
    site.wait("end of the player", || (player.played() == player.length).then_some(()));
    player.end().unwrap();
    let done = |centre: &CentreStatus| {
        centre.contacts.iter().any(|contact| contact.state == ContactState::Done)
    };
    let centre = site.centre("products", done);
    assert_eq!(delivered(&centre), [repeated(TIMES)]);
    site.station("station without an alarm", is_well);
}

#[test]
fn a_full_station_holds_its_input_back_until_there_is_room() {
    on_a_small_disk("a_full_station_holds_its_input_back_until_there_is_room", |disk| {
        let (mut site, player) = held_back(disk, "", Duration::ZERO);
        disk.clear();
        site.station("station that takes data", |station| {
            station.spool.state == StoreState::Ok
                && station.contacts.iter().all(|contact| contact.state != ContactState::Open)
                && station.alarms.is_empty()
        });
        site.start(Node::Centre);
        assert_one_contact(&mut site, player);
    });
}

#[test]
fn a_full_station_goes_on_as_soon_as_the_line_makes_room() {
    on_a_small_disk("a_full_station_goes_on_as_soon_as_the_line_makes_room", |disk| {
        let (mut site, player) = held_back(disk, "", Duration::ZERO);
        site.start(Node::Centre);
        assert_one_contact(&mut site, player);
    });
}

#[test]
fn time_without_room_does_not_count_as_silence_of_the_input() {
    on_a_small_disk("time_without_room_does_not_count_as_silence_of_the_input", |disk| {
        // CADUs come one by one, and only a full block is passed on. The frame that fills the block
        // which waits for room is the last one read, so that only the clock shows that the input
        // was silent.
        let (mut site, player) =
            held_back(disk, "sync_interval = \"1 h\"", Duration::from_micros(200));
        disk.clear();
        site.start(Node::Centre);
        assert_one_contact(&mut site, player);
    });
}

#[test]
fn a_full_station_ends_on_request_and_starts_again_without_room() {
    on_a_small_disk("a_full_station_ends_on_request_and_starts_again_without_room", |disk| {
        disk.fill(RESERVE + (1 << 20));
        let folders = Folders { station: Some(disk.folder("station")), ..Folders::default() };
        let mut site = Site::prepare(folders, "", &file_channels());
        let is_full = |station: &StationStatus| station.spool.state == StoreState::Full;
        site.start(Node::Station);
        site.station("full station", is_full);
        disk.fill(0);
        let ended = site.stop(Node::Station);
        assert_eq!(ended, Some(0));
        site.start(Node::Station);
        site.station("full station after a stop", is_full);
        site.kill(Node::Station);
        site.start(Node::Station);
        site.station("full station after a kill", is_full);
        disk.clear();
        site.start(Node::Centre);
        assert_delivered(&mut site);
    });
}

#[test]
fn a_contact_cannot_begin_without_room_and_begins_when_there_is() {
    on_a_small_disk("a_contact_cannot_begin_without_room_and_begins_when_there_is", |disk| {
        disk.fill(0);
        let folders = Folders { station: Some(disk.folder("station")), ..Folders::default() };
        let mut site = Site::prepare(folders, "", &file_channels());
        let is_full = |station: &StationStatus| {
            station.spool.state == StoreState::Full
                && is_told(&station.alarms, ["cannot open", "free space"])
        };
        site.start(Node::Station);
        let station = site.station("full station", is_full);
        assert_alarm(&station.alarms, &["cannot open a contact", "free space"]);
        let ended = site.stop(Node::Station);
        assert_eq!(ended, Some(0));
        site.start(Node::Station);
        site.station("full station after a stop", is_full);
        disk.clear();
        site.start(Node::Centre);
        assert_delivered(&mut site);
    });
}

#[test]
fn a_killed_live_contact_is_closed_when_there_is_room() {
    on_a_small_disk("a_killed_live_contact_is_closed_when_there_is_room", |disk| {
        let (mut site, player) = held_back(disk, "", Duration::ZERO);
        disk.fill(0);
        site.kill(Node::Station);
        // What it had not read is lost with its connection.
        player.end().unwrap_err();
        site.start(Node::Station);
        let is_full = |station: &StationStatus| station.spool.state == StoreState::Full;
        site.station("full station after a kill", is_full);
        site.start(Node::Centre);
        disk.clear();
        let done = |centre: &CentreStatus| {
            centre.contacts.iter().any(|contact| contact.state == ContactState::Done)
        };
        let centre = site.centre("products of what was kept", done);
        let (frames, _) = &delivered(&centre)[0];
        assert!(*frames > 0, "{centre:?}");
        site.station("station without an alarm", is_well);
    });
}
