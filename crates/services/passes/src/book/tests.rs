use super::*;
use proptest::prelude::*;

/// A node that began at second 0, and passes of 600 s: one at second 1,000 of `suomi-npp`, and
/// others as they are named.
fn at(second: i64) -> Utc {
    Utc::from_micros(1_800_000_000_000_000 + second * 1_000_000)
}

fn pass(start: i64, mission: &str) -> PlannedPass {
    PlannedPass {
        start: at(start),
        end: at(start + 600),
        mission: Some(mission.to_owned()),
        station: Some("svalbard".to_owned()),
        channel: None,
        name: None,
        peak: None,
    }
}

fn book(passes: &[PlannedPass]) -> PassBook {
    let mut book = PassBook::new(at(0), Duration::from_secs(60));
    book.adopt(passes.iter().fold(PlannedPasses::default(), |plan, pass| {
        let line = format!(
            "start,end,mission,station\n{},{},{},svalbard\n",
            pass.start,
            pass.end,
            pass.mission.as_deref().unwrap_or_default()
        );
        plan.with(PlannedPasses::parse(line.as_bytes()).unwrap())
    }));
    book
}

fn contact(opened: i64, closed: Option<i64>) -> SeenContact<'static> {
    SeenContact {
        id: "svalbard-7",
        station: "svalbard",
        channel: "x",
        mission: "suomi-npp",
        opened: at(opened),
        closed: closed.map(at),
    }
}

fn state(book: &mut PassBook, second: i64, contacts: &[SeenContact<'_>]) -> PassState {
    book.look(at(second), contacts)[0].state
}

fn news(book: &mut PassBook) -> Vec<&'static str> {
    let word = |news| match news {
        PassNews::Due(_) => "due",
        PassNews::NoLock(_) => "no lock",
        PassNews::Locked(_) => "locked",
        PassNews::Missed(_) => "missed",
        PassNews::Found(_) => "found",
    };
    core::iter::from_fn(|| book.poll()).map(word).collect()
}

#[test]
fn a_pass_is_ahead_due_under_way_and_came() {
    let mut book = book(&[pass(1_000, "suomi-npp")]);
    assert_eq!(state(&mut book, 10, &[]), PassState::Ahead);
    assert_eq!(state(&mut book, 1_000, &[]), PassState::Due);
    assert_eq!(state(&mut book, 1_030, &[contact(1_020, None)]), PassState::UnderWay);
    assert_eq!(state(&mut book, 1_590, &[contact(1_020, Some(1_580))]), PassState::UnderWay);
    assert_eq!(state(&mut book, 1_600, &[contact(1_020, Some(1_580))]), PassState::Came);
    // A node forgets contacts, and not that they came.
    assert_eq!(state(&mut book, 9_000, &[]), PassState::Came);
    let shown = book.look(at(9_000), &[]);
    assert_eq!(
        (&*shown[0].contacts, shown[0].locked),
        (&["svalbard-7".to_owned()][..], Some(at(1_020)))
    );
    assert_eq!(news(&mut book), ["due"]);
}

#[test]
fn a_pass_without_a_lock_is_told_while_it_goes_on_and_missed_behind_it() {
    let mut book = book(&[pass(1_000, "suomi-npp")]);
    let others = [
        SeenContact { station: "wallops", ..contact(1_020, None) },
        SeenContact { mission: "noaa-21", ..contact(1_020, None) },
        contact(100, Some(800)),
        contact(1_800, None),
    ];
    for (second, wanted) in [
        (1_059, PassState::Due),
        (1_060, PassState::NoLock),
        (1_599, PassState::NoLock),
        (1_659, PassState::Due),
        (1_660, PassState::Missed),
        (9_000, PassState::Missed),
    ] {
        assert_eq!(state(&mut book, second, &others[..3]), wanted, "{second}");
    }
    assert_eq!(news(&mut book), ["due", "no lock", "locked", "missed", "found"]);
    // It came over another way, hours later.
    assert_eq!(state(&mut book, 9_001, &[contact(1_010, Some(1_500))]), PassState::Came);
    assert_eq!(state(&mut book, 9_001, &others[3..]), PassState::Came);
}

#[test]
fn a_lock_that_is_lost_in_the_middle_is_told_and_one_that_is_lost_at_the_horizon_is_not() {
    let mut book = book(&[pass(1_000, "suomi-npp")]);
    let lost = [contact(1_010, Some(1_200))];
    assert_eq!(state(&mut book, 1_250, &lost), PassState::UnderWay);
    assert_eq!(state(&mut book, 1_261, &lost), PassState::NoLock);
    let again = [lost[0], SeenContact { id: "svalbard-8", ..contact(1_300, None) }];
    assert_eq!(state(&mut book, 1_301, &again), PassState::UnderWay);
    assert_eq!(news(&mut book), ["due", "no lock", "locked"]);
    assert_eq!(state(&mut book, 1_599, &[contact(1_300, Some(1_530))]), PassState::UnderWay);
    assert_eq!(state(&mut book, 1_601, &[]), PassState::Came);
    assert_eq!(news(&mut book), [""; 0]);
}

#[test]
fn what_was_over_at_the_start_of_the_node_is_not_known() {
    let mut book = book(&[pass(-2_000, "suomi-npp")]);
    assert_eq!(state(&mut book, 10, &[]), PassState::Unknown);
    assert_eq!(news(&mut book), [""; 0]);
    assert_eq!(state(&mut book, 11, &[contact(-1_990, Some(-1_500))]), PassState::Came);
}

#[test]
fn another_plan_keeps_what_is_known_and_ends_the_alarms_of_what_is_planned_no_more() {
    let (first, second) = (pass(1_000, "suomi-npp"), pass(1_100, "noaa-21"));
    let mut book = book(&[first.clone(), second.clone()]);
    book.look(at(1_200), &[contact(1_010, Some(1_050))]);
    assert_eq!(news(&mut book), ["due", "no lock", "due", "no lock"]);
    book.adopt(self::book(&[pass(900, "aqua"), first]).plan);
    assert_eq!(news(&mut book), ["locked"]);
    let shown = book.look(at(1_210), &[]);
    assert_eq!(shown[1].contacts, ["svalbard-7"]);
    assert_eq!(news(&mut book), ["due", "no lock"]);
}

#[test]
fn a_day_behind_and_ahead_is_shown() {
    let passes: Vec<PlannedPass> = (-40..40).map(|n| pass(n * 6_000, "suomi-npp")).collect();
    let shown = book(&passes).look(at(0), &[]);
    assert!(shown.iter().all(|one| one.planned.end >= at(-86_400)));
    assert_eq!(shown.len(), 14 + 15);
}

proptest! {
    /// Alarms begin and end in turn, whatever comes.
    #[test]
    fn alarms_of_a_pass_begin_and_end_in_turn(
        steps in proptest::collection::vec((1_i64..400, 0_u8..4), 1..60),
    ) {
        let mut book = book(&[pass(1_000, "suomi-npp"), pass(1_400, "suomi-npp")]);
        let mut now = 0;
        let (mut dark, mut missed) = (0, 0);
        for (step, what) in steps {
            now += step;
            let seen = match what {
                0 => vec![contact(now - 5, None)],
                1 => vec![contact(now - 50, Some(now - 10))],
                _ => Vec::new(),
            };
            book.look(at(now), &seen);
            for word in news(&mut book) {
                match word {
                    "no lock" => dark += 1,
                    "locked" => dark -= 1,
                    "missed" => missed += 1,
                    "found" => missed -= 1,
                    _ => {}
                }
            }
            prop_assert!((0..=2).contains(&dark) && (0..=2).contains(&missed));
        }
    }
}
