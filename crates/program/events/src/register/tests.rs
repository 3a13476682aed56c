use super::*;
use proptest::prelude::*;
use skyhaul_units::Utc;

fn at(millis: u64) -> Moment {
    let span = Duration::from_millis(millis);
    Moment { now: Instant::ZERO + span, utc: Utc::from_micros(0) + span }
}

/// What was announced, in short.
fn told(register: &mut AlarmRegister) -> Vec<String> {
    let mut told = Vec::new();
    while let Some(news) = register.poll() {
        told.push(match news {
            AlarmNews::Raised(alarm) => format!("raised {} {}", alarm.kind, alarm.subject),
            AlarmNews::Changed(alarm) => format!("changed {} {}", alarm.subject, alarm.reason),
            AlarmNews::Cleared(alarm) => format!("cleared {} {}", alarm.kind, alarm.subject),
            AlarmNews::Acknowledged(alarm) => format!("acknowledged {}", alarm.subject),
            AlarmNews::LeftOut(count) => format!("{count} left out"),
        });
    }
    told
}

fn subject(name: &str) -> AlarmSubject {
    AlarmSubject::from(name)
}

const FULL: AlarmKind = AlarmKind::InputsPaused;
const PATH: AlarmKind = AlarmKind::PathBlackHole;

#[test]
fn what_is_over_within_a_second_is_no_alarm() {
    let mut register = AlarmRegister::default();
    register.raise(at(0), FULL, "the inputs", "full");
    register.tick(at(999));
    assert!(register.clear(at(999), FULL, &subject("the inputs")), "the condition held");
    register.tick(at(5_000));
    assert_eq!(told(&mut register), [""; 0]);
    assert_eq!(register.standing(), []);
}

#[test]
fn an_alarm_that_comes_and_goes_is_one_until_it_has_been_over_for_five_seconds() {
    let mut register = AlarmRegister::default();
    for second in 0..10 {
        register.raise(at(second * 4_000), FULL, "the inputs", "full");
        register.tick(at(second * 4_000 + 1_000));
        register.clear(at(second * 4_000 + 1_500), FULL, &subject("the inputs"));
        register.tick(at(second * 4_000 + 3_999));
    }
    assert_eq!(told(&mut register), ["raised inputs-paused the inputs"]);
    register.tick(at(37_500 + 4_999));
    assert_eq!(register.standing().len(), 1);
    register.tick(at(37_500 + 5_000));
    assert_eq!(told(&mut register), ["cleared inputs-paused the inputs"]);
    assert_eq!(register.standing(), []);
}

#[test]
fn a_new_reason_is_told_once_and_the_time_stays() {
    let mut register = AlarmRegister::default();
    register.raise(at(0), AlarmKind::SpoolDamaged, "the spool", "1 block");
    for reason in ["1 block", "2 blocks", "2 blocks"] {
        register.raise(at(9_000), AlarmKind::SpoolDamaged, "the spool", reason);
    }
    let news = ["raised spool-damaged the spool", "changed the spool 2 blocks"];
    assert_eq!(told(&mut register), news);
    let [alarm] = &register.standing()[..] else { panic!("one stands") };
    assert_eq!(alarm.sentence, "the spool is damaged: 2 blocks");
    assert_eq!(alarm.since, at(0).utc.to_string());
}

#[test]
fn a_node_that_is_killed_is_one_alarm_and_not_ten() {
    let mut register = AlarmRegister::default();
    register.expect(at(0), "polar", Duration::from_secs(60));
    register.connected(at(100), "polar");
    register.lost(at(1_000), "polar");
    for path in 0..9 {
        let path = subject(&format!("path {path}")).behind("polar");
        register.raise(at(1_000), PATH, path, "silent");
    }
    register.raise(at(1_000), FULL, "the inputs", "full");
    register.tick(at(60_999));
    assert_eq!(told(&mut register), ["raised inputs-paused the inputs"], "nothing is decided yet");
    register.tick(at(61_000));
    assert_eq!(told(&mut register), ["raised peer-silent node polar"]);
    let standing = register.standing();
    assert_eq!(standing.len(), 11);
    let cause = AlarmKey { kind: AlarmKind::PeerSilent, subject: "node polar".to_owned() };
    let caused = standing.iter().filter(|alarm| alarm.caused_by.as_ref() == Some(&cause));
    assert_eq!(caused.count(), 9);
    // It is back, and so are all its paths but one.
    register.connected(at(70_000), "polar");
    for path in 1..9 {
        register.clear(at(71_000), PATH, &subject(&format!("path {path}")));
    }
    register.tick(at(75_000));
    register.tick(at(80_000));
    let news = ["cleared peer-silent node polar", "raised path-black-hole path 0"];
    assert_eq!(told(&mut register), news);
}

#[test]
fn a_short_absence_is_no_alarm_and_holds_nothing_back_afterwards() {
    let mut register = AlarmRegister::default();
    register.expect(at(0), "polar", Duration::from_secs(60));
    register.tick(at(59_999));
    register.connected(at(59_999), "polar");
    register.raise(at(61_000), PATH, subject("path a").behind("polar"), "short");
    register.tick(at(62_000));
    assert_eq!(told(&mut register), ["raised path-black-hole path a"]);
}

#[test]
fn an_acknowledged_alarm_stands_until_its_condition_is_over() {
    let mut register = AlarmRegister::default();
    let key = AlarmKey { kind: FULL, subject: "the inputs".to_owned() };
    let said = |by: &str| Acknowledgement {
        by: by.to_owned(),
        note: "disk ordered".to_owned(),
        at: at(0).utc.to_string(),
    };
    assert_eq!(register.acknowledge(&key, said("kim")), Err(AckError::Unknown(key.clone())));
    register.raise(at(0), FULL, "the inputs", "full");
    assert_eq!(register.acknowledge(&key, said("kim")), Err(AckError::Unknown(key.clone())));
    register.tick(at(1_000));
    assert_eq!(register.acknowledge(&key, said("")), Err(AckError::Text));
    assert_eq!(register.acknowledge(&key, said("kim")), Ok(()));
    register.tick(at(1_000_000));
    assert_eq!(register.standing()[0].acknowledged, Some(said("kim")));
    register.clear(at(1_000_000), FULL, &subject("the inputs"));
    register.tick(at(1_005_000));
    register.raise(at(1_006_000), FULL, "the inputs", "full");
    register.tick(at(1_007_000));
    assert_eq!(register.standing()[0].acknowledged, None, "it is another one");
}

fn said(by: &str) -> Acknowledgement {
    Acknowledgement { by: by.to_owned(), note: String::new(), at: at(0).utc.to_string() }
}

fn key(kind: AlarmKind, subject: &str) -> AlarmKey {
    AlarmKey { kind, subject: subject.to_owned() }
}

/// A register that goes on with these acknowledgements.
fn recalled(keys: &[AlarmKey]) -> AlarmRegister {
    let mut register = AlarmRegister::default();
    register.recall(at(0), keys.iter().map(|key| (key.clone(), said("kim"))));
    register
}

#[test]
fn an_alarm_that_stands_again_after_a_restart_is_still_acknowledged() {
    let kept = key(FULL, "the inputs");
    let mut register = recalled(std::slice::from_ref(&kept));
    assert_eq!(register.acknowledged(), [(kept.clone(), said("kim"))]);
    register.raise(at(5_000), FULL, "the inputs", "full");
    register.tick(at(6_000));
    assert_eq!(register.standing()[0].acknowledged, Some(said("kim")));
    assert_eq!(told(&mut register), ["raised inputs-paused the inputs"]);
    assert_eq!((register.ack_changes(), register.acknowledged().len()), (0, 1));
    register.clear(at(7_000), FULL, &subject("the inputs"));
    register.tick(at(12_000));
    assert_eq!((register.ack_changes(), register.acknowledged().len()), (1, 0));
    register.raise(at(13_000), FULL, "the inputs", "full");
    register.tick(at(14_000));
    assert_eq!(register.standing()[0].acknowledged, None, "it is another one");
}

#[test]
fn what_was_said_of_an_alarm_that_is_over_is_forgotten() {
    let mut register = recalled(&[key(FULL, "the inputs"), key(PATH, "path a")]);
    register.clear(at(1_000), FULL, &subject("the inputs"));
    assert_eq!(register.acknowledged().len(), 1, "its condition is over");
    register.tick(at(3_599_999));
    assert_eq!(register.acknowledged().len(), 1);
    register.tick(at(3_600_000));
    assert_eq!((register.acknowledged().len(), register.ack_changes()), (0, 2));
}

#[test]
fn a_node_that_may_be_silent_for_long_keeps_its_acknowledgement_until_that_is_decided() {
    let silent = key(AlarmKind::PeerSilent, "node polar");
    let mut register = recalled(&[silent.clone(), key(AlarmKind::PeerSilent, "node other")]);
    register.expect(at(0), "polar", Duration::from_secs(7_200));
    register.tick(at(4_000_000));
    assert_eq!(register.acknowledged(), [(silent, said("kim"))]);
    register.tick(at(7_200_000));
    assert_eq!(register.standing()[0].acknowledged, Some(said("kim")));
    let mut register = recalled(&[key(AlarmKind::PeerSilent, "node polar")]);
    register.expect(at(0), "polar", Duration::from_secs(7_200));
    register.connected(at(1_000), "polar");
    assert_eq!(register.acknowledged(), [], "it is back");
}

#[test]
fn what_is_to_be_written_is_known_before_it_is_said() {
    let mut register = AlarmRegister::default();
    let full = key(FULL, "the inputs");
    assert_eq!(
        register.with_acknowledged(&full, &said("kim")),
        Err(AckError::Unknown(full.clone()))
    );
    register.raise(at(0), FULL, "the inputs", "full");
    register.tick(at(1_000));
    register.acknowledge(&full, said("ada")).unwrap();
    let written = register.with_acknowledged(&full, &said("kim")).unwrap();
    assert_eq!(written, [(full, said("kim"))]);
    assert_eq!(register.acknowledged()[0].1, said("ada"), "nothing has changed yet");
}

#[test]
fn a_thousand_alarms_are_enough_and_the_rest_is_counted() {
    let mut register = AlarmRegister::default();
    for nth in 0..ALARMS_MAX + 3 {
        register.raise(at(0), AlarmKind::ContactLate, format!("contact {nth}"), "late");
    }
    assert_eq!(register.standing().len(), ALARMS_MAX);
    let told = told(&mut register);
    assert_eq!(told[ALARMS_MAX..], ["1 left out", "2 left out"]);
}

proptest! {
    /// Whatever happens: for each alarm, raised and cleared alternate, and at the end of all
    /// conditions nothing stands.
    #[test]
    fn raised_and_cleared_alternate(
        steps in proptest::collection::vec((0_u8..6, 0_u8..4, 0_u64..4_000), 1..200)
    ) {
        let mut register = AlarmRegister::default();
        let mut time = 0;
        let mut standing = std::collections::BTreeSet::new();
        register.expect(at(0), "polar", Duration::from_secs(8));
        let mut follow = |register: &mut AlarmRegister| {
            while let Some(news) = register.poll() {
                match news {
                    AlarmNews::Raised(alarm) => {
                        assert!(standing.insert((alarm.kind, alarm.subject)));
                    }
                    AlarmNews::Cleared(alarm) => {
                        assert!(standing.remove(&(alarm.kind, alarm.subject)));
                    }
                    _ => {}
                }
            }
            standing.len()
        };
        for (what, which, pause) in steps {
            time += pause;
            let path = subject(&format!("path {which}")).behind("polar");
            match what {
                0 => register.raise(at(time), PATH, path, "x"),
                1 => drop(register.clear(at(time), PATH, &path)),
                2 => register.connected(at(time), "polar"),
                3 => register.lost(at(time), "polar"),
                _ => register.tick(at(time)),
            }
            follow(&mut register);
        }
        register.forget(at(time), "polar");
        for which in 0..4 {
            register.clear(at(time), PATH, &subject(&format!("path {which}")));
        }
        register.tick(at(time + 5_000));
        prop_assert_eq!(follow(&mut register), 0);
        prop_assert!(register.standing().is_empty());
    }
}
