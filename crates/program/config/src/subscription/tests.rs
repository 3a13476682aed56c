use super::*;
use crate::{NodeConfig, StationConfig, parse};
use skyhaul_units::Duration;
use std::path::Path;

const KEYS: [char; 3] = ['a', 'b', 'c'];

/// A node `station-1` with channels `x` and `y`, destinations `oper`, `backup` and the shadow
/// `trial`, and these tables behind.
fn node(tables: &str) -> Result<NodeConfig, ConfigError> {
    let peers = ["oper", "backup", "trial"].into_iter().zip(KEYS).map(|(name, key)| {
        let key = key.to_string().repeat(64);
        format!(
            "[[peer]]\nname = \"{name}\"\naddresses = [\"192.0.2.1:4700\"]\nfingerprints = \
            [\"SHA256:{key}\"]\n"
        )
    });
    let text = format!(
        "[node]\nname = \"station-1\"\nkey = \"k\"\nstate = \"s\"\n{}[[destination]]\nto = \
        \"node:oper\"\n[[destination]]\nto = \"node:backup\"\n[[destination]]\nto = \
        \"node:trial\"\nshadow = true\n[[channel]]\nname = \"x\"\ninput = \
        \"stdin\"\n[[channel]]\nname = \"y\"\ninput = \"udp:127.0.0.1:5000\"\n{tables}",
        peers.collect::<String>()
    );
    parse(&text, Path::new("node.toml"))
}

fn station(tables: &str) -> StationConfig {
    *node(tables).unwrap().station.unwrap()
}

fn label(station: &str, channel: &str, mission: &str) -> ContactLabel {
    ContactLabel {
        station: station.to_owned(),
        channel: channel.to_owned(),
        mission: mission.to_owned(),
    }
}

#[test]
fn without_subscriptions_each_contact_of_this_node_goes_everywhere() {
    let config = station("");
    let all = ContactRoute { settle: SettleName::All, to: vec![0, 1, 2] };
    assert_eq!(config.route(&label("station-1", "x", "aqua")), all);
    assert_eq!(config.route(&label("station-2", "x", "aqua")).to, [] as [usize; 0]);
}

#[test]
fn a_mission_goes_its_own_way_and_the_rest_as_before() {
    let config = station(
        "[[class]]\nname = \"rest\"\n[[class]]\nname = \"urgent\"\n[[subscription]]\nof = \
        \"contacts\"\nmission = [\"aqua\"]\nto = [\"backup\", \"oper\"]\nsettle = \
        \"first\"\nclass = \"urgent\"\ndeadline = \"20 s\"\n[[subscription]]\nof = \
        \"contacts\"\nchannel = [\"y\"]\nto = [\"oper\"]\nsettle = \"any\"\n",
    );
    let route = |mission, channel| config.route(&label("station-1", channel, mission));
    assert_eq!(
        route("aqua", "x"),
        ContactRoute { settle: SettleName::First, to: vec![1, 0, 2] },
        "in the order of the subscription, and the shadow too"
    );
    assert_eq!(route("jpss", "y"), ContactRoute { settle: SettleName::Any, to: vec![0, 2] });
    assert_eq!(route("jpss", "x"), ContactRoute { settle: SettleName::All, to: vec![0, 1, 2] });
    let of =
        |place, mission, channel| config.sharing(place).of(&label("station-1", channel, mission));
    let urgent = config.sharing(0).tree.find("urgent").unwrap();
    for place in 0..3 {
        assert_eq!(of(place, "aqua", "x").class, urgent, "also at the shadow");
        assert_eq!(of(place, "aqua", "x").deadline, Some(Duration::from_secs(20)));
        assert_eq!(of(place, "jpss", "x"), config.sharing(place).usual());
    }
}

#[test]
fn the_first_subscription_that_names_the_destination_decides_and_the_stricter_rule_counts() {
    let config = station(
        "[[subscription]]\nof = \"contacts\"\nmission = [\"aqua\"]\nto = [\"oper\"]\nsettle = \
        \"any\"\npriority = 0\n[[subscription]]\nof = \"contacts\"\npriority = 5\n",
    );
    let aqua = label("station-1", "x", "aqua");
    assert_eq!(config.route(&aqua), ContactRoute { settle: SettleName::All, to: vec![0, 1, 2] });
    let priority = |place: usize| config.sharing(place).of(&aqua).priority;
    assert_eq!((priority(0), priority(1)), (0, 5));
}

#[test]
fn received_contacts_go_on_where_a_subscription_names_their_station() {
    let config =
        station("[[subscription]]\nof = \"contacts\"\nstation = [\"trial\"]\nto = [\"oper\"]\n");
    assert_eq!(config.route(&label("trial", "z", "aqua")).to, [0, 2]);
    assert_eq!(config.route(&label("station-1", "x", "aqua")).to, [0, 1, 2], "as before");
}

#[test]
fn a_node_that_receives_may_subscribe_to_stations_that_other_nodes_pass_on() {
    let text = "[[listen]]\nbind = \"127.0.0.1:0\"\n[[subscription]]\nof = \"contacts\"\nstation \
                = [\"far\"]\nto = [\"oper\"]\n";
    let config = node(text).unwrap().station.unwrap();
    assert_eq!(config.route(&label("far", "z", "aqua")).to, [0, 2]);
}

#[test]
fn the_backlog_has_a_class_of_its_own_behind_live_data() {
    let text = "[[class]]\nname = \"live\"\n[[class]]\nname = \"late\"\n";
    let config = station(text);
    let sharing = config.sharing(0);
    let backlog = sharing.catch_up().unwrap();
    assert_eq!(backlog.after, Duration::from_secs(60));
    let live = sharing.of(&label("station-1", "x", "aqua"));
    assert_eq!(backlog.of(live).class, live.class);
    assert!(backlog.of(live).priority > live.priority);
    assert!(sharing.deliveries().contains(&backlog.of(live)));
}

#[test]
fn what_names_nothing_or_decides_nothing_is_refused_with_the_line() {
    let subscription = "[[subscription]]\nof = \"contacts\"\n";
    for (tables, what) in [
        ("to = [\"nowhere\"]", "there is no destination `nowhere` for a subscription"),
        ("channel = [\"z\"]", "there is no channel `z` for a subscription"),
        ("station = [\"other\"]", "there is no node `other` for a subscription"),
        ("class = \"none\"", "there is no class `none` for a subscription"),
        ("channel = []", "has an empty list `channel`"),
        ("priority = 8", "has priority 8"),
        ("deadline = \"0 s\"", "a deadline of zero"),
        ("settle = \"some\"", "`some` is not a rule of `settle`"),
        (
            "priority = 2\n[[subscription]]\nof = \"contacts\"\nmission = [\"aqua\"]",
            "subscription 2 has no effect: subscription 1 takes the same contacts",
        ),
    ] {
        let error = node(&format!("{subscription}{tables}\n")).unwrap_err();
        assert!(error.to_string().contains(what), "{error}");
        assert!(error.line().is_some(), "{error}");
    }
    assert!(node("[[subscription]]\nof = \"packets\"\n").is_err());
    let nowhere = station(&format!("{subscription}to = []\n"));
    assert_eq!(nowhere.route(&label("station-1", "x", "aqua")).to, [2], "the shadow alone");
}

#[test]
fn a_subscription_to_nobody_keeps_later_ones_from_its_contacts() {
    let config = station(
        "[[subscription]]\nof = \"contacts\"\nmission = [\"aqua\"]\nto = \
        []\n[[subscription]]\nof = \"contacts\"\nto = [\"oper\"]\n",
    );
    assert_eq!(config.route(&label("station-1", "x", "aqua")).to, [2], "the shadow alone");
    assert_eq!(config.route(&label("station-1", "x", "jpss")).to, [0, 2]);
    let before = station(
        "[[subscription]]\nof = \"contacts\"\nmission = [\"aqua\"]\nto = \
        [\"oper\"]\n[[subscription]]\nof = \"contacts\"\nto = []\n",
    );
    assert_eq!(before.route(&label("station-1", "x", "aqua")).to, [0, 2], "the first decides");
    assert_eq!(before.route(&label("station-1", "x", "jpss")).to, [2]);
    let hidden = node(
        "[[subscription]]\nof = \"contacts\"\nto = []\n[[subscription]]\nof = \"contacts\"\nto = \
        [\"oper\"]\n",
    );
    let hidden = hidden.unwrap_err().to_string();
    assert!(hidden.contains("subscription 2 has no effect"), "{hidden}");
}
