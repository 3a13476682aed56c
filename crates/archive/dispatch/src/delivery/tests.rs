//! What becomes of a delivery, for each input in each state.

use super::*;
use crate::rules::AnswerRules;
use crate::{FileAnswer, sips};
use proptest::prelude::*;

fn at(seconds: u64) -> Utc {
    Utc::from_day(20_783, Duration::from_secs(seconds))
}

fn rules(answer: Option<MissingAnswer>) -> DeliveryRules {
    let within = Duration::from_secs(600);
    DeliveryRules {
        answer: answer.map(|missing| AnswerRules { within, missing }),
        ..DeliveryRules::default()
    }
}

fn line() -> DeliveryInput {
    DeliveryInput::Failed(DeliveryFailure::new(FailureKind::Line, "connection reset"), 0)
}

fn files(answers: &[(&str, Option<&str>)]) -> DeliveryInput {
    let answer = |(name, failure): &(&str, Option<&str>)| FileAnswer {
        name: (*name).to_owned(),
        failure: failure.map(str::to_owned),
    };
    let answer = NoticeContent::Files(answers.iter().map(answer).collect());
    DeliveryInput::Noticed(Notice { sequence: None, answer })
}

/// One whose record is at the destination.
fn recorded(rules: &DeliveryRules) -> Delivery {
    let mut delivery = Delivery::offered(at(0));
    for input in [DeliveryInput::Begin, DeliveryInput::Placed(Proof::Size), DeliveryInput::Recorded]
    {
        assert_eq!(delivery.handle(at(1), input, rules), DeliveryOutput::Quiet);
    }
    delivery
}

#[test]
fn a_delivery_without_notices_is_accepted_when_its_record_is_there() {
    let delivery = recorded(&rules(None));
    assert_eq!((delivery.state, delivery.proof), (DeliveryState::Accepted, Some(Proof::Size)));
    assert_eq!(delivery.attempts, 1);
}

#[test]
fn a_failure_of_the_way_is_tried_again_with_growing_pauses_and_not_for_ever() {
    let (rules, mut delivery) = (rules(None), Delivery::offered(at(0)));
    let (mut now, mut pauses) = (at(0), Vec::new());
    let last = loop {
        assert!(delivery.is_due(now, &rules));
        delivery.handle(now, DeliveryInput::Begin, &rules);
        let output = delivery.handle(now, line(), &rules);
        if delivery.state.is_settled() {
            break output;
        }
        assert_eq!(output, DeliveryOutput::Quiet);
        let next = delivery.next.unwrap();
        assert!(!delivery.is_due(now, &rules));
        pauses.push(next.since(now).as_millis() / 1_000);
        now = next;
    };
    assert_eq!(pauses[..9], [10, 20, 40, 80, 160, 320, 640, 1_280, 1_800]);
    assert_eq!((delivery.state, last), (DeliveryState::Failed, DeliveryOutput::Alarm));
    assert!(now.since(at(0)) >= rules.retry.span);
    assert_eq!(delivery.reason.as_deref(), Some("tried for 3 d: connection reset"));
}

#[test]
fn a_full_destination_is_waited_for_without_end() {
    let (rules, mut delivery) = (rules(None), Delivery::offered(at(0)));
    let full = DeliveryFailure::new(FailureKind::Full, "no space left");
    for day in 0..30 {
        let now = at(day * 86_400);
        delivery.handle(now, DeliveryInput::Begin, &rules);
        let output = delivery.handle(now, DeliveryInput::Failed(full.clone(), 0), &rules);
        assert_eq!((delivery.state, output), (DeliveryState::Waiting, DeliveryOutput::Alarm));
    }
}

#[test]
fn what_is_there_with_other_content_is_refused_at_once_and_not_tried_again() {
    for kind in [FailureKind::Differs, FailureKind::Refused, FailureKind::Source] {
        let (rules, mut delivery) = (rules(None), Delivery::offered(at(0)));
        delivery.handle(at(0), DeliveryInput::Begin, &rules);
        let failed = DeliveryInput::Failed(DeliveryFailure::new(kind, "other content"), 0);
        assert_eq!(delivery.handle(at(0), failed, &rules), DeliveryOutput::Alarm);
        assert_eq!(delivery.state, DeliveryState::Refused);
        assert!(!delivery.is_due(at(1_000_000), &rules));
    }
}

#[test]
fn a_long_notice_repeats_only_the_files_that_it_names() {
    let rules = rules(Some(MissingAnswer::Settle));
    let mut delivery = recorded(&rules);
    let notice = files(&[("a.PDS", None), ("b.PDS", Some("CHECKSUM VERIFICATION FAILURE"))]);
    delivery.handle(at(2), notice, &rules);
    assert_eq!(delivery.state, DeliveryState::Waiting);
    assert_eq!(delivery.only, Some(["b.PDS".to_owned()].into()));
    assert_eq!(delivery.reason.as_deref(), Some("b.PDS: CHECKSUM VERIFICATION FAILURE"));
    assert!(delivery.is_due(at(2), &rules));
    for input in [DeliveryInput::Begin, DeliveryInput::Placed(Proof::Size), DeliveryInput::Recorded]
    {
        delivery.handle(at(3), input, &rules);
    }
    let accepted = Notice::parse(&sips::write_short(None, at(3))).unwrap();
    delivery.handle(at(4), DeliveryInput::Noticed(accepted), &rules);
    assert_eq!((delivery.state, delivery.proof), (DeliveryState::Accepted, Some(Proof::Notice)));
    assert_eq!((delivery.only, delivery.reason, delivery.attempts), (None, None, 2));
}

#[test]
fn an_invalid_record_is_an_alarm_and_an_internal_error_waits_long() {
    let rules = rules(Some(MissingAnswer::Settle));
    let mut delivery = recorded(&rules);
    let invalid = files(&[("a", Some("INVALID FILE SIZE")), ("b", Some("FILE I/O ERROR"))]);
    assert_eq!(delivery.handle(at(2), invalid, &rules), DeliveryOutput::Alarm);
    assert_eq!(delivery.state, DeliveryState::Refused);

    let mut delivery = recorded(&rules);
    delivery.handle(at(2), files(&[("a", Some("ECS INTERNAL ERROR"))]), &rules);
    assert_eq!(delivery.next, Some(at(2) + rules.retry.most));

    // And a fault of the way is not repeated more often than the rules say.
    let mut delivery = recorded(&rules);
    let network = || files(&[("a", Some("NETWORK FAILURE"))]);
    for _ in 1..rules.attempts {
        delivery.handle(at(2), network(), &rules);
        for input in
            [DeliveryInput::Begin, DeliveryInput::Placed(Proof::Size), DeliveryInput::Recorded]
        {
            delivery.handle(at(3), input, &rules);
        }
    }
    assert_eq!(delivery.handle(at(4), network(), &rules), DeliveryOutput::Alarm);
    assert_eq!((delivery.state, delivery.attempts), (DeliveryState::Refused, 3));
}

#[test]
fn a_notice_that_does_not_come_settles_reminds_or_repeats() {
    let due = |delivery: &Delivery, rules: &DeliveryRules| delivery.next_timeout(rules).unwrap();
    let settle = rules(Some(MissingAnswer::Settle));
    let mut delivery = recorded(&settle);
    assert_eq!(due(&delivery, &settle), at(601));
    let early = delivery.handle(at(600), DeliveryInput::Timeout, &settle);
    assert_eq!((delivery.state, early), (DeliveryState::Recorded, DeliveryOutput::Unfitting));
    delivery.handle(at(601), DeliveryInput::Timeout, &settle);
    assert_eq!(delivery.state, DeliveryState::Unanswered);
    // A late notice counts.
    delivery.handle(at(900), files(&[("a", None)]), &settle);
    assert_eq!(delivery.state, DeliveryState::Accepted);

    let remind = rules(Some(MissingAnswer::Remind));
    let mut delivery = recorded(&remind);
    let mut outputs = Vec::new();
    while !delivery.state.is_settled() {
        let now = due(&delivery, &remind);
        outputs.push(delivery.handle(now, DeliveryInput::Timeout, &remind));
    }
    let reminded = DeliveryOutput::Remind;
    assert_eq!(outputs, [reminded.clone(), reminded, DeliveryOutput::Alarm]);

    let again = rules(Some(MissingAnswer::Again));
    let mut delivery = recorded(&again);
    delivery.handle(due(&delivery, &again), DeliveryInput::Timeout, &again);
    assert_eq!(delivery.state, DeliveryState::Waiting);
}

#[test]
fn an_operator_holds_releases_cancels_and_repeats() {
    let (rules, mut delivery) = (rules(None), Delivery::offered(at(0)));
    let mut order = |order| {
        let output = delivery.handle(at(1), DeliveryInput::Ordered(order), &rules);
        (output, delivery.state)
    };
    assert_eq!(order(DeliveryOrder::Hold), (DeliveryOutput::Quiet, DeliveryState::Held));
    assert_eq!(order(DeliveryOrder::Hold).0, DeliveryOutput::Unfitting);
    assert_eq!(order(DeliveryOrder::Release), (DeliveryOutput::Quiet, DeliveryState::Waiting));
    assert_eq!(order(DeliveryOrder::Cancel), (DeliveryOutput::Quiet, DeliveryState::Cancelled));
    assert_eq!(order(DeliveryOrder::Cancel).0, DeliveryOutput::Unfitting);
    assert_eq!(order(DeliveryOrder::Again), (DeliveryOutput::Quiet, DeliveryState::Waiting));
}

#[test]
fn a_clock_that_is_set_back_by_a_year_delays_nothing() {
    let (rules, mut delivery) = (rules(None), Delivery::offered(at(0)));
    let year = Duration::from_secs(365 * 86_400);
    delivery.handle(at(0) + year, DeliveryInput::Begin, &rules);
    delivery.handle(at(0) + year, line(), &rules);
    assert!(delivery.is_due(at(1), &rules));
}

/// Any input.
fn input() -> impl Strategy<Value = DeliveryInput> {
    let kind = prop_oneof![
        Just(FailureKind::Line),
        Just(FailureKind::Full),
        Just(FailureKind::Access),
        Just(FailureKind::Differs),
        Just(FailureKind::Refused),
    ];
    let order = prop_oneof![
        Just(DeliveryOrder::Hold),
        Just(DeliveryOrder::Release),
        Just(DeliveryOrder::Cancel),
        Just(DeliveryOrder::Again),
    ];
    prop_oneof![
        3 => Just(DeliveryInput::Begin),
        3 => Just(DeliveryInput::Placed(Proof::Digest)),
        3 => Just(DeliveryInput::Recorded),
        1 => (kind, any::<u32>())
            .prop_map(|(kind, random)| {
                DeliveryInput::Failed(DeliveryFailure::new(kind, "x"), random)
            }),
        1 => Just(files(&[("a", Some("NETWORK FAILURE"))])),
        1 => Just(files(&[("a", None)])),
        1 => Just(DeliveryInput::Timeout),
        1 => Just(DeliveryInput::Superseded),
        1 => order.prop_map(DeliveryInput::Ordered),
    ]
}

proptest! {
    /// A delivery is accepted only with a proof, is there only after it was placed.
    #[test]
    fn nothing_is_accepted_without_proof(inputs in proptest::collection::vec(input(), 0..60)) {
        let rules = rules(Some(MissingAnswer::Again));
        let mut delivery = Delivery::offered(at(0));
        let mut is_placed = false;
        for (second, input) in inputs.into_iter().enumerate() {
            let before = delivery.clone();
            let input_placed = matches!(input, DeliveryInput::Placed(_));
            let output = delivery.handle(at(second as u64 * 100), input, &rules);
            if output == DeliveryOutput::Unfitting {
                prop_assert_eq!(&before, &delivery);
            }
            is_placed = match delivery.state {
                DeliveryState::Placed => is_placed || input_placed,
                DeliveryState::Waiting | DeliveryState::Sending => false,
                _ => is_placed,
            };
            if delivery.state.is_there() {
                prop_assert!(is_placed && delivery.proof.is_some());
            }
            if delivery.state == DeliveryState::Refused {
                prop_assert!(delivery.reason.is_some());
            }
        }
    }
}
