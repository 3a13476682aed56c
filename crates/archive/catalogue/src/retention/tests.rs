//! What leaves, what stays, and that no clock and no rule empties an archive.

use super::*;
use crate::item::ItemState;
use proptest::prelude::*;
use skyhaul_units::Instant;

const NOW: Utc = Utc::from_micros(1_764_000_000_000_000);
const DAY: Duration = Duration::from_secs(86_400);

fn rule(filter: &str) -> RetentionRule {
    RetentionRule {
        filter: Some(filter.parse().unwrap()),
        keep: Some(Duration::from_secs(30 * 86_400)),
        from: RetentionStart::Published,
        max_size: None,
        leaves: RetentionLeaves::Record,
        copies: CopyRule::None,
    }
}

fn item(form: ItemForm) -> Item {
    Item {
        name: "aqua-imager-polar-7".to_owned(),
        version: 1,
        form,
        mission: "aqua".to_owned(),
        product: "imager".to_owned(),
        stations: vec!["polar".to_owned()],
        apids: vec![64],
        start: Some(NOW - DAY),
        end: Some(NOW - DAY),
        published: NOW,
        packets: 1,
        missing: 0,
        state: ItemState::Present,
        files: Vec::new(),
    }
}

fn free() -> RetentionStanding {
    RetentionStanding { copies: 1, ..RetentionStanding::default() }
}

#[test]
fn an_item_leaves_when_its_time_is_over_and_stays_where_something_needs_it() {
    let mut rule = rule("mission = 'aqua'");
    rule.copies = CopyRule::One;
    let mut run = RetentionRun::new(&rule, NOW, RetentionFigures::default(), 10);
    let old = NOW - Duration::from_secs(31 * 86_400);
    let mut judge = |at, standing| run.judge(at, ByteCount::new(1), &standing);
    let reason = RetentionReason::Age {
        from: RetentionStart::Published,
        at: old,
        keep: Duration::from_secs(30 * 86_400),
    };
    assert_eq!(reason.to_string(), format!("published at {old}, kept for 30 d"));
    assert_eq!(judge(old, free()), RetentionVerdict::Leaves(reason));
    assert_eq!(judge(NOW - DAY, free()), RetentionVerdict::Stays);
    let pending = PendingDelivery { id: 7, destination: "lance".into(), state: "waiting".into() };
    for (standing, name) in [
        (RetentionStanding { held: Some("study".to_owned()), ..free() }, "held"),
        (RetentionStanding { pending: Some(pending), ..free() }, "pending"),
        (RetentionStanding { absent: Some("a.PDS".to_owned()), ..free() }, "absent"),
        (RetentionStanding::default(), "last-copy"),
    ] {
        let RetentionVerdict::IsKept(_, obstacle) = judge(old, standing) else { panic!("{name}") };
        assert_eq!(obstacle.name(), name);
    }
}

#[test]
fn the_oldest_leave_until_the_rest_has_room() {
    let mut rule = rule("TRUE");
    (rule.keep, rule.max_size) = (None, Some(ByteCount::new(250)));
    let figures = RetentionFigures { items: 5, bytes: 500, recent: 0 };
    let mut run = RetentionRun::new(&rule, NOW, figures, 10);
    let held = RetentionStanding { held: Some("study".to_owned()), ..free() };
    let mut left = Vec::new();
    for (number, standing) in [free(), held, free(), free(), free()].iter().enumerate() {
        match run.judge(NOW - DAY, ByteCount::new(100), standing) {
            RetentionVerdict::Leaves(_) => left.push(number),
            RetentionVerdict::IsKept(..) => {}
            RetentionVerdict::Stays => break,
        }
    }
    assert_eq!(left, [0, 2, 3], "what is held takes room too");
}

#[test]
fn contacts_are_only_of_rules_that_are_for_contacts_alone() {
    let (contact, product) = (item(ItemForm::Contact), item(ItemForm::Session));
    let products = rule("mission = 'aqua'");
    assert!(products.takes(&product) && !products.takes(&contact));
    let contacts = rule("kind = 'contact' AND mission = 'aqua'");
    assert!(contacts.takes(&contact) && !contacts.takes(&product));
    assert!(contacts.is_for_contacts() && !products.is_for_contacts());
    assert!(!rule("kind IN ('contact', 'session')").is_for_contacts());
    let all = RetentionRule { filter: None, ..products };
    assert!(all.takes(&product) && !all.takes(&contact));
}

#[test]
fn the_time_begins_where_the_rule_says_or_with_the_publication() {
    let (mut rule, item) = (rule("TRUE"), item(ItemForm::Session));
    let received = NOW - Duration::from_secs(60);
    for (from, start) in [
        (RetentionStart::Published, NOW),
        (RetentionStart::Observed, NOW - DAY),
        (RetentionStart::Received, received),
    ] {
        rule.from = from;
        assert_eq!(rule.start(&item, Some(received)), start, "{}", from.name());
    }
    assert_eq!(rule.start(&item, None), NOW);
}

#[test]
fn a_clock_that_jumps_is_not_believed_until_it_is_back_or_confirmed() {
    let (year, minute) = (DAY.scaled(365, 1), Duration::from_secs(60));
    let mut clock = RetentionClock::new(Some(NOW));
    assert_eq!(clock.look(NOW + minute), Ok(()));
    let jump = clock.look(NOW + year).unwrap_err();
    assert!(jump.to_string().starts_with("the clock is 364 days ahead"), "{jump}");
    assert!(clock.look(NOW + year + minute).is_err(), "it stays");
    assert_eq!(clock.look(NOW + minute.scaled(4, 1)), Ok(()), "it is back");
    assert!(clock.look(NOW + year).is_err());
    clock.confirm(NOW + year);
    assert_eq!(clock.look(NOW + year + minute), Ok(()));
    assert_eq!(clock.look(NOW), Ok(()), "a clock that is set back makes nothing old");
}

#[test]
fn a_node_may_be_off_for_a_week_and_not_for_a_year() {
    let off = |days| RetentionClock::new(Some(NOW)).look(NOW + DAY.scaled(days, 1));
    assert_eq!(off(7), Ok(()));
    assert!(off(8).is_err());
    assert_eq!(RetentionClock::new(None).look(NOW), Ok(()));
}

#[test]
fn a_share_of_a_day_grows_with_what_came_and_begins_anew_after_a_day() {
    let mut share = RetentionShare::default();
    let many = RetentionFigures { items: 10_000, bytes: 0, recent: 300 };
    assert_eq!(share.room(Instant::ZERO, many), 1_300);
    share.took(1_300);
    let rest = RetentionFigures { items: 8_700, ..many };
    assert_eq!(share.room(Instant::ZERO + Duration::from_secs(60), rest), 0);
    assert_eq!(share.room(Instant::ZERO + DAY, rest), 1_170);
    let few = RetentionFigures { items: 3, ..RetentionFigures::default() };
    assert_eq!(RetentionShare::default().room(Instant::ZERO, few), 100);
}

proptest! {
    /// Whatever the clock, the rule and the items: nothing that is needed leaves, no more than the
    /// room, and the rest fits where anything may leave.
    #[test]
    fn nothing_that_is_needed_leaves_and_no_more_than_the_room(
        items in prop::collection::vec((0i64..100, 1u64..1_000, any::<bool>()), 0..60),
        keep in prop::option::of(0u64..100),
        most in prop::option::of(0u64..20_000),
        room in 0u64..60,
    ) {
        let mut items = items;
        items.sort_unstable();
        let mut rule = rule("TRUE");
        rule.keep = keep.map(|days| DAY.scaled(days, 1));
        rule.max_size = most.map(ByteCount::new);
        let bytes: u64 = items.iter().map(|(_, size, _)| size).sum();
        let figures = RetentionFigures { items: items.len() as u64, bytes, recent: 0 };
        let mut run = RetentionRun::new(&rule, NOW, figures, room);
        let (mut left, mut gone) = (0, 0);
        for (day, size, is_held) in &items {
            let at = NOW - DAY.scaled(100, 1) + DAY.scaled(*day as u64, 1);
            let mut standing = free();
            standing.held = is_held.then(|| "study".to_owned());
            match run.judge(at, ByteCount::new(*size), &standing) {
                RetentionVerdict::Leaves(_) => {
                    prop_assert!(!is_held);
                    (left, gone) = (left + 1, gone + size);
                }
                RetentionVerdict::IsKept(..) => {}
                RetentionVerdict::Stays => break,
            }
        }
        prop_assert!(left <= room);
        if keep.is_none() {
            let over = bytes.saturating_sub(most.unwrap_or(u64::MAX));
            let largest = items.iter().map(|(_, size, _)| *size).max().unwrap_or(0);
            prop_assert!(gone < over + largest || over == 0 && gone == 0);
        }
    }
}
