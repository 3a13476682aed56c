//! Figures are those of the rows, and causes are the elements that took more than usual.

use super::*;
use crate::latency::{BlockTimes, ConsumerTimes, ItemTimes};
use proptest::prelude::*;

const SECOND: i64 = 1_000_000;

fn at(seconds: i64) -> Utc {
    Utc::from_micros(1_790_000_000_000_000 + seconds * SECOND)
}

/// A row whose elements take so many seconds: on board, line, to the publication, to the hand-over.
fn row(number: i64, spans: [i64; 4]) -> AccountRow {
    let [on_board, line, publish, deliver] = spans;
    let begin = number * 10_000;
    let last_bit = at(begin + on_board);
    let arrived = at(begin + on_board + line);
    let published = at(begin + on_board + line + publish);
    let block = BlockTimes {
        frames: 1,
        last_received: last_bit,
        closed: last_bit,
        taken: last_bit,
        sent: last_bit,
        arrived,
        whole: arrived,
        stored: arrived,
        sorted: arrived,
    };
    AccountRow {
        mission: "aqua".to_owned(),
        product: "modis".to_owned(),
        form: ItemForm::Session,
        stations: vec![["svalbard-1", "inuvik"][usize::from(number % 10 == 7)].to_owned()],
        name: format!("aqua-modis-{number}"),
        version: 1,
        observed: Some(at(begin)),
        times: Some(ItemTimes { contact: format!("contact-{number}"), last_bit, block }),
        published,
        consumer: Some(ConsumerTimes {
            name: "lance-a".to_owned(),
            handed: Some(published + Duration::from_secs(deliver.unsigned_abs())),
            accepted: None,
            is_given_up: false,
        }),
    }
}

fn reporter(within: Option<u64>) -> LatencyReporter {
    let budget = |seconds| LatencyBudget {
        mission: Some("aqua".to_owned()),
        form: Some(ItemForm::Session),
        within: Duration::from_secs(seconds),
    };
    let budgets = within.into_iter().map(budget).collect();
    LatencyReporter::new(at(0), at(10_000_000), at(10_000_000), budgets)
}

#[test]
fn the_late_row_names_its_contact_and_the_element_that_took_more_than_usual() {
    let mut reporter = reporter(Some(200));
    (0..100).for_each(|number| reporter.add(&row(number, [50, 10, 30, 5])));
    // Its line took 100 s more; the wait on board is long for all of them.
    reporter.add(&row(107, [60, 110, 30, 5]));
    let report = reporter.finish();
    let whole = &report.whole;
    assert_eq!((whole.handed, whole.on_time, whole.late), (101, 100, 1));
    assert_eq!((whole.p50_s, whole.p95_s, whole.p99_s), (Some(95.0), Some(95.0), Some(95.0)));
    assert_eq!(whole.share_on_time, Some(100.0 / 101.0));
    let worst = whole.worst.as_ref().unwrap();
    assert_eq!((worst.contact.as_deref(), worst.took_s), (Some("contact-107"), 205.0));
    assert_eq!(worst.consumer.as_deref(), Some("lance-a"));
    let [inuvik, svalbard] = &report.cells[..] else { panic!("{:?}", report.cells) };
    assert_eq!((inuvik.station.as_str(), inuvik.figures.late), ("inuvik", 1));
    let cause = inuvik.cause.as_ref().unwrap();
    assert_eq!(cause.element, LatencyElement::Line);
    assert_eq!((cause.took_s, cause.usual_s, inuvik.budget_s), (110.0, 10.0, Some(200.0)));
    assert_eq!((svalbard.cause.as_ref(), svalbard.figures.late), (None, 0));
}

#[test]
fn where_nothing_took_longer_than_usual_the_longest_element_is_the_cause() {
    // Regression: of rows that were all late alike, an element of no length at all was named.
    let mut reporter = reporter(Some(200));
    (0..3).for_each(|number| reporter.add(&row(number, [10, 900, 30, 5])));
    let report = reporter.finish();
    let cause = report.cells[0].cause.as_ref().unwrap();
    assert_eq!(cause.element, LatencyElement::Line);
    assert_eq!((cause.took_s, cause.usual_s), (900.0, 900.0));
}

#[test]
fn what_is_still_to_come_is_open_until_its_time_is_over_and_then_late_for_its_consumer() {
    let mut waiting = row(1, [50, 10, 30, 5]);
    waiting.consumer.as_mut().unwrap().handed = None;
    let with = |waiting: &AccountRow, now: i64| {
        let mut reporter = reporter(Some(200));
        reporter.now = at(now);
        reporter.add(&row(0, [50, 10, 30, 5]));
        reporter.add(waiting);
        reporter.finish()
    };
    let open = with(&waiting, 10_150).whole;
    assert_eq!((open.handed, open.on_time, open.open, open.late), (1, 1, 1, 0));
    let late = with(&waiting, 10_250);
    assert_eq!((late.whole.open, late.whole.late), (0, 1));
    let cause = late.cells[0].cause.as_ref().unwrap();
    assert_eq!((cause.element, cause.took_s), (LatencyElement::Deliver, 160.0));
    waiting.consumer.as_mut().unwrap().is_given_up = true;
    let given_up = with(&waiting, 10_250).whole;
    assert_eq!((given_up.given_up, given_up.late), (1, 0));
}

#[test]
fn without_a_budget_nothing_is_late_and_the_first_budget_that_fits_counts() {
    let mut none = reporter(None);
    none.add(&row(0, [50, 10, 30, 5]));
    let whole = none.finish().whole;
    assert_eq!((whole.without_budget, whole.share_on_time, whole.late), (1, None, 0));
    let budget = |mission: Option<&str>, form, seconds| LatencyBudget {
        mission: mission.map(str::to_owned),
        form,
        within: Duration::from_secs(seconds),
    };
    let budgets = vec![
        budget(Some("aqua"), Some(ItemForm::Expedited), 180),
        budget(Some("aqua"), None, 10_800),
        budget(None, None, 60),
    ];
    let reporter = LatencyReporter::new(at(0), at(1), at(1), budgets);
    let found = |mission, form| reporter.budget(mission, form).unwrap().as_secs_f64();
    assert_eq!(found("aqua", ItemForm::Expedited), 180.0);
    assert_eq!(found("aqua", ItemForm::Time), 10_800.0);
    assert_eq!(found("terra", ItemForm::Time), 60.0);
}

#[test]
fn frames_are_counted_one_by_one() {
    let mut reporter = reporter(None);
    let mut times = ContactTimes::new("aqua");
    let spans = [(90, 1), (9, 5), (1, 60)];
    for (number, (frames, line)) in spans.into_iter().enumerate() {
        let from = at(number as i64 * 100);
        let arrived = from + Duration::from_secs(line);
        times.push(BlockTimes {
            frames,
            last_received: from,
            closed: from,
            taken: from,
            sent: from,
            arrived,
            whole: arrived,
            stored: arrived,
            sorted: arrived,
        });
    }
    reporter.contact(&times);
    let report = reporter.finish();
    let [aqua] = &report.frames[..] else { panic!("{:?}", report.frames) };
    assert_eq!((aqua.contacts, aqua.frames), (1, 100));
    let line = aqua.elements.iter().find(|one| one.element == Some(LatencyElement::Line)).unwrap();
    assert_eq!((line.p50_s, line.p95_s, line.p99_s, line.worst_s), (1.0, 5.0, 5.0, 60.0));
    assert!((line.mean_s - 1.95).abs() < 1e-9, "{}", line.mean_s);
}

proptest! {
    #[test]
    fn means_of_elements_add_up_to_the_mean_and_quantiles_are_those_of_the_rows(
        spans in proptest::collection::vec(proptest::array::uniform4(0i64..500), 1..40),
    ) {
        let mut reporter = reporter(Some(900));
        let rows: Vec<AccountRow> =
            spans.iter().enumerate().map(|(number, spans)| row(number as i64, *spans)).collect();
        rows.iter().for_each(|row| reporter.add(row));
        let report = reporter.finish();
        let mut totals: Vec<i64> = spans.iter().map(|spans| spans.iter().sum::<i64>()).collect();
        totals.sort_unstable();
        let mean = totals.iter().sum::<i64>() as f64 / totals.len() as f64;
        let sum: f64 = report.missions[0].elements.iter().map(|element| element.mean_s).sum();
        prop_assert!((mean - sum).abs() < 1e-3, "{} {}", mean, sum);
        let late = totals.iter().filter(|total| **total > 900).count() as u64;
        prop_assert_eq!(report.whole.late, late);
        let rank = (totals.len() * 95).div_ceil(100);
        prop_assert_eq!(report.whole.p95_s, Some(totals[rank - 1] as f64));
        let longest = totals.last().map(|total| *total as f64);
        prop_assert_eq!(report.whole.worst.map(|worst| worst.took_s), longest);
    }
}
