use super::*;
use AfterFailure::{GiveUp, Wait};
use DialAttempt::{First, Second};
use DialFailure::{Decided, Undecided};

/// Names of sessions.
const ONE: u8 = 1;
const TWO: u8 = 2;
const THREE: u8 = 3;

const REPEATED: SecondAttempt = SecondAttempt::Repeated { every: Duration::from_secs(5) };

fn at(seconds: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(seconds)
}

fn ids(dialler: &Dialler<u8>) -> Vec<u8> {
    dialler.ids().collect()
}

/// The first attempt, under way from 0 s; the second is due at 3 s.
fn first(second: SecondAttempt) -> Dialler<u8> {
    let mut dialler = Dialler::default();
    dialler.start(at(0), DiallerSettings { fall_back_after: Duration::from_secs(3), second });
    assert_eq!((dialler.due_at(), dialler.due(at(0))), (Some(at(0)), Some(First)));
    dialler.begun(First, ONE);
    dialler
}

/// Both attempts, the second under way from 3 s.
fn both(second: SecondAttempt) -> Dialler<u8> {
    let mut dialler = first(second);
    assert_eq!((dialler.due_at(), dialler.due(at(2))), (Some(at(3)), None));
    assert_eq!(dialler.due(at(3)), Some(Second));
    dialler.begun(Second, TWO);
    dialler
}

#[test]
fn an_idle_dialler_has_nothing_to_begin_or_to_close() {
    let mut dialler = Dialler::<u8>::default();
    assert!(dialler.is_idle());
    assert_eq!((dialler.due(at(60)), dialler.due_at(), ids(&dialler)), (None, None, vec![]));
    assert_eq!((dialler.session(), dialler.attempt_of(ONE)), (None, None));
}

#[test]
fn the_second_attempt_begins_when_the_first_has_had_no_answer_for_the_time() {
    for second in [SecondAttempt::Once, REPEATED] {
        let dialler = both(second);
        assert_eq!(ids(&dialler), [ONE, TWO]);
        assert_eq!((dialler.attempt_of(ONE), dialler.attempt_of(TWO)), (Some(First), Some(Second)));
        assert_eq!(dialler.session(), None);
    }
}

#[test]
fn without_another_transport_there_is_no_second_attempt() {
    let mut dialler = first(SecondAttempt::Never);
    assert_eq!((dialler.due(at(60)), dialler.due_at()), (None, None));
    assert_eq!(dialler.failed(at(60), First, Undecided), GiveUp);
}

#[test]
fn a_second_attempt_under_way_is_not_begun_again() {
    for second in [SecondAttempt::Once, REPEATED] {
        let mut dialler = both(second);
        assert_eq!((dialler.due(at(60)), dialler.due_at()), (None, None), "{second:?}");
    }
}

#[test]
fn an_answer_to_the_first_attempt_before_the_second_begins_is_the_session() {
    let mut dialler = first(SecondAttempt::Once);
    assert_eq!(dialler.answered(ONE), None, "there is no other to close");
    assert_eq!((dialler.session(), ids(&dialler)), (Some(ONE), vec![ONE]));
    assert_eq!((dialler.due(at(60)), dialler.due_at()), (None, None), "no second attempt");
}

#[test]
fn the_attempt_that_is_answered_first_is_the_session_and_the_other_is_closed() {
    for (answered, other, attempt) in [(ONE, TWO, First), (TWO, ONE, Second)] {
        for second in [SecondAttempt::Once, REPEATED] {
            let mut dialler = both(second);
            assert_eq!(dialler.answered(answered), Some(other));
            assert_eq!((dialler.session(), ids(&dialler)), (Some(answered), vec![answered]));
            assert_eq!(dialler.attempt_of(answered), Some(attempt));
            assert_eq!(dialler.attempt_of(other), None);
            assert_eq!((dialler.due(at(60)), dialler.due_at()), (None, None));
        }
    }
}

#[test]
fn a_first_attempt_that_fails_before_the_second_begins_makes_it_due_at_once() {
    for second in [SecondAttempt::Once, REPEATED] {
        let mut dialler = first(second);
        assert_eq!(dialler.failed(at(1), First, Undecided), Wait);
        assert_eq!((dialler.due_at(), dialler.due(at(1))), (Some(at(1)), Some(Second)));
        dialler.begun(Second, TWO);
        assert_eq!((ids(&dialler), dialler.answered(TWO)), (vec![TWO], None));
    }
}

#[test]
fn a_failure_leaves_the_decision_to_the_attempt_that_is_under_way() {
    for second in [SecondAttempt::Once, REPEATED] {
        for (attempt, left) in [(First, TWO), (Second, ONE)] {
            let mut dialler = both(second);
            assert_eq!(dialler.failed(at(4), attempt, Undecided), Wait);
            assert_eq!((ids(&dialler), dialler.answered(left)), (vec![left], None));
        }
    }
}

#[test]
fn when_both_attempts_have_failed_there_is_nothing_left_to_wait_for() {
    for order in [[First, Second], [Second, First]] {
        let mut dialler = both(SecondAttempt::Once);
        assert_eq!(dialler.failed(at(4), order[0], Undecided), Wait);
        assert_eq!(dialler.failed(at(5), order[1], Undecided), GiveUp, "{order:?}");
        assert_eq!((dialler.due_at(), ids(&dialler)), (None, vec![]));
    }
}

#[test]
fn a_second_attempt_that_failed_is_begun_again_where_it_is_repeated() {
    let mut dialler = both(REPEATED);
    assert_eq!(dialler.failed(at(4), Second, Undecided), Wait);
    assert_eq!((dialler.due(at(7)), dialler.due_at()), (None, Some(at(8))), "5 s after the last");
    assert_eq!(dialler.due(at(8)), Some(Second));
    dialler.begun(Second, THREE);
    assert_eq!((ids(&dialler), dialler.attempt_of(TWO)), (vec![ONE, THREE], None));
    assert_eq!(dialler.failed(at(20), Second, Undecided), Wait);
    assert_eq!(dialler.due(at(20)), Some(Second), "its time has passed");
}

#[test]
fn a_repetition_is_hastened_when_the_first_attempt_fails_and_awaited_when_it_has_failed() {
    let mut dialler = both(REPEATED);
    assert_eq!(dialler.failed(at(4), Second, Undecided), Wait);
    assert_eq!(dialler.failed(at(5), First, Undecided), Wait);
    assert_eq!(dialler.due(at(5)), Some(Second));
    dialler.begun(Second, THREE);
    assert_eq!(dialler.failed(at(6), Second, Undecided), Wait);
    assert_eq!((dialler.due(at(9)), dialler.due_at()), (None, Some(at(10))));
}

#[test]
fn what_the_far_end_decided_ends_all_attempts_and_names_those_to_close() {
    for (attempt, left) in [(First, TWO), (Second, ONE)] {
        let mut dialler = both(REPEATED);
        assert_eq!(dialler.failed(at(4), attempt, Decided), GiveUp);
        assert_eq!(ids(&dialler), [left]);
        dialler.end();
        assert!(dialler.is_idle());
    }
    let mut dialler = first(REPEATED);
    assert_eq!(dialler.failed(at(1), First, Decided), GiveUp);
    assert_eq!(ids(&dialler), []);
}

#[test]
fn an_attempt_that_cannot_begin_is_one_that_failed() {
    let mut dialler = Dialler::<u8>::default();
    let fall_back_after = Duration::from_secs(3);
    dialler.start(at(0), DiallerSettings { fall_back_after, second: SecondAttempt::Once });
    assert_eq!(dialler.due(at(0)), Some(First));
    assert_eq!(dialler.failed(at(0), First, Undecided), Wait);
    assert_eq!(dialler.due(at(0)), Some(Second));
    assert_eq!(dialler.failed(at(0), Second, Undecided), GiveUp);
}

/// Each state, and each event that the caller may report late: nothing but `end` and `start` leads
/// out of `Idle` and `Connected`.
#[test]
fn a_late_event_changes_neither_the_idle_state_nor_the_session() {
    let connected = |id| {
        let mut dialler = both(REPEATED);
        dialler.answered(id);
        dialler
    };
    for (mut dialler, session) in
        [(Dialler::default(), None), (connected(ONE), Some(ONE)), (connected(TWO), Some(TWO))]
    {
        for attempt in [First, Second] {
            for failure in [Undecided, Decided] {
                assert_eq!(dialler.failed(at(9), attempt, failure), Wait);
            }
            dialler.begun(attempt, THREE);
        }
        assert_eq!(dialler.answered(THREE), None);
        assert_eq!((dialler.due(at(60)), dialler.due_at()), (None, None));
        assert_eq!((dialler.session(), ids(&dialler)), (session, session.into_iter().collect()));
        assert_eq!(dialler.attempt_of(THREE), None);
    }
}

#[test]
fn a_connection_lost_in_any_state_is_dialled_again_from_the_first_attempt() {
    let connected = |id| {
        let mut dialler = both(REPEATED);
        dialler.answered(id);
        dialler
    };
    let waiting = || {
        let mut dialler = both(REPEATED);
        dialler.failed(at(4), First, Undecided);
        dialler.failed(at(4), Second, Undecided);
        dialler
    };
    let states = [
        first(REPEATED),
        both(REPEATED),
        waiting(),
        connected(ONE),
        connected(TWO),
        Dialler::default(),
    ];
    for mut dialler in states {
        dialler.end();
        assert!(dialler.is_idle(), "{dialler:?}");
        assert_eq!((dialler.due(at(60)), ids(&dialler), dialler.session()), (None, vec![], None));
        assert_eq!((dialler.attempt_of(ONE), dialler.attempt_of(TWO)), (None, None));
        let fall_back_after = DiallerSettings::FALL_BACK_AFTER;
        dialler.start(at(60), DiallerSettings { fall_back_after, second: REPEATED });
        assert_eq!(dialler.due(at(60)), Some(First));
        dialler.begun(First, THREE);
        assert_eq!(dialler.due_at(), Some(at(63)));
    }
}
