use super::AlarmKind::{InputsPaused, PeerSilent, SpoolNearlyFull};
use super::EventKind::{
    AlarmAcknowledged, AlarmCleared, AlarmRaised, ConfigRefused, ConfigReloaded, DeliveryFailed,
    DeliveryRefused, GapAsked, GapFilled, GapFound, KeyRevoked, KeyStaged, KeySwitched,
    NodeStarted, OrderDone, OrderGiven, PathBack, PathDown, PathStalled, PathUp, PeerConnected,
    PeerDisconnected, SpoolFull, SpoolOk,
};
use super::*;
use crate::event::Severity;
use proptest::prelude::*;
use serde_json::json;

/// Events one after the other, a second apart.
#[derive(Default)]
struct Told {
    book: CauseBook,
    last: u64,
}

impl Told {
    /// The number of the event that explains this one.
    fn tell(&mut self, kind: EventKind, subject: &str, data: Value) -> Option<u64> {
        self.last += 1;
        let seconds = Duration::from_secs(self.last);
        let event = NodeEvent {
            number: self.last,
            time: (Utc::from_micros(0) + seconds).to_string(),
            node: "c".to_owned(),
            kind,
            severity: Severity::Info,
            subject: subject.to_owned(),
            sentence: String::new(),
            cause: None,
            data: data.as_object().cloned().unwrap_or_default(),
        };
        self.book.follow(&event).map(|cause| cause.number)
    }

    fn path(&mut self, kind: EventKind, path: &str) -> Option<u64> {
        self.tell(kind, path, json!({"peer": "s"}))
    }

    fn peer(&mut self, kind: EventKind) -> Option<u64> {
        self.tell(kind, "node s", json!({"peer": "s"}))
    }

    fn alarm(&mut self, kind: EventKind, alarm: AlarmKind, subject: &str) -> Option<u64> {
        self.tell(kind, subject, json!({"alarm": alarm.name()}))
    }
}

#[test]
fn a_killed_node_is_a_chain_in_which_each_event_names_the_one_before() {
    let mut told = Told::default();
    assert_eq!(told.peer(PeerConnected), None);
    assert_eq!(told.path(PathUp, "path a"), None);
    assert_eq!(told.path(PathUp, "path b"), None);
    assert_eq!(told.path(PathStalled, "path b"), None);
    assert_eq!(told.path(PathStalled, "path a"), None);
    assert_eq!(told.path(PathDown, "path a"), Some(5));
    assert_eq!(told.peer(PeerDisconnected), Some(6), "the last path that ended");
    assert_eq!(told.path(PathDown, "path b"), Some(7), "it ends with the session");
    assert_eq!(told.alarm(AlarmRaised, PeerSilent, "node s"), Some(7));
    assert_eq!(told.alarm(AlarmAcknowledged, PeerSilent, "node s"), Some(9));
    assert_eq!(told.peer(PeerConnected), None);
    assert_eq!(told.alarm(AlarmCleared, PeerSilent, "node s"), Some(9));
    assert_eq!(told.alarm(AlarmRaised, PeerSilent, "node s"), None, "nothing is known of this");
}

#[test]
fn a_session_that_ends_while_a_path_carries_data_is_not_explained_by_another_path() {
    let mut told = Told::default();
    told.path(PathUp, "path a");
    told.path(PathUp, "path b");
    told.path(PathStalled, "path b");
    assert_eq!(told.path(PathBack, "path b"), Some(3));
    told.path(PathDown, "path b");
    assert_eq!(told.peer(PeerDisconnected), None, "path a carried data to the end");
}

#[test]
fn the_end_of_a_session_soon_after_a_revocation_has_that_as_its_cause() {
    let mut told = Told::default();
    told.path(PathUp, "path a");
    told.tell(KeyRevoked, "key x", json!({"peer": "s"}));
    assert_eq!(told.peer(PeerDisconnected), Some(2));
    told.peer(PeerConnected);
    told.tell(KeyRevoked, "key y", json!({"peer": "s"}));
    told.last += 31;
    assert_eq!(told.peer(PeerDisconnected), None, "it went on with another key");
}

#[test]
fn a_full_spool_explains_what_waits_and_its_end() {
    let mut told = Told::default();
    told.alarm(AlarmRaised, SpoolNearlyFull, "the spool");
    assert_eq!(told.tell(SpoolFull, "the spool", json!({})), Some(1));
    assert_eq!(told.alarm(AlarmRaised, InputsPaused, "the inputs"), Some(2));
    assert_eq!(told.tell(SpoolOk, "the spool", json!({})), Some(2));
    assert_eq!(told.alarm(AlarmRaised, InputsPaused, "the inputs"), None);
}

#[test]
fn orders_explain_what_they_do_and_their_outcome_and_a_restart_ends_them() {
    let mut told = Told::default();
    let order = |line: u64| json!({"audit": {"number": line, "hash": "x"}});
    told.tell(OrderGiven, "configuration", order(7));
    told.tell(OrderGiven, "the key of this node", order(8));
    assert_eq!(told.tell(ConfigReloaded, "configuration", json!({})), Some(1));
    assert_eq!(told.tell(OrderDone, "configuration", json!({"of": 7})), Some(1));
    assert_eq!(told.tell(ConfigRefused, "configuration", json!({})), None, "it is done");
    assert_eq!(told.tell(KeyStaged, "the key of this node", json!({})), Some(2));
    told.tell(OrderDone, "the key of this node", json!({"of": 8}));
    assert_eq!(told.tell(KeySwitched, "the key of this node", json!({})), Some(6));
    told.tell(OrderGiven, "delivery 3", order(9));
    told.tell(GapFound, "contact s-1", json!({}));
    told.tell(NodeStarted, "c", json!({}));
    assert_eq!(told.tell(OrderDone, "delivery 3", json!({"of": 9})), None);
    assert_eq!(told.tell(GapAsked, "contact s-1", json!({})), Some(10), "gaps go on");
    assert_eq!(told.tell(GapFilled, "contact s-1", json!({})), Some(13));
}

#[test]
fn a_delivery_that_fails_explains_its_alarm_and_is_explained_by_its_destination() {
    let mut told = Told::default();
    let to = json!({"destination": "d"});
    told.alarm(AlarmRaised, AlarmKind::DeliveryFailed, "products for d");
    assert_eq!(told.tell(DeliveryFailed, "delivery 1", to.clone()), Some(1));
    assert_eq!(told.alarm(AlarmRaised, AlarmKind::DeliveryLost, "a product for d"), Some(2));
    assert_eq!(told.tell(DeliveryRefused, "delivery 2", to), None);
    assert_eq!(told.alarm(AlarmRaised, AlarmKind::DeliveryRefused, "d"), Some(4));
}

#[test]
fn what_is_remembered_has_a_bound_and_the_oldest_goes_first() {
    let mut told = Told::default();
    let contact = |nth: usize| format!("contact s-{nth}");
    for nth in 0..OPEN_MAX + 10 {
        told.tell(GapFound, &contact(nth), json!({}));
    }
    assert_eq!(told.book.open.len(), OPEN_MAX);
    assert_eq!(told.tell(GapFilled, &contact(9), json!({})), None);
    assert_eq!(told.tell(GapFilled, &contact(10), json!({})), Some(11));
}

proptest! {
    /// Whatever comes: an event that explains another one came before it.
    #[test]
    fn a_cause_came_before(steps in proptest::collection::vec((0_usize..44, 0_u8..4), 1..300)) {
        let mut told = Told::default();
        for (kind, which) in steps {
            let kind = EventKind::ALL[kind % EventKind::ALL.len()];
            let data = json!({"peer": format!("s{which}"), "alarm": "peer-silent", "of": which,
                "destination": "d", "audit": {"number": which}});
            let cause = told.tell(kind, &format!("node s{which}"), data);
            prop_assert!(cause.is_none_or(|number| number < told.last));
        }
    }
}
