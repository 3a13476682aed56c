//! The comparison of the shares of two missions with their classes.

use super::course::{RateSeries, ends, mean, reaches, steps};
use super::{Sharer, Sharers, Sharing, Tree};
use crate::sheet::{BarVerdict, CaptionedTable};
use crate::table::mbps;
use serde::Serialize;
use skyhaul_units::Duration;

/// What one sharer made of one tree.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SharerResult {
    /// Received by both missions in each phase, once it has come to rest, bit/s.
    pub together_bps: [f64; 3],
    /// By the first mission in the second phase.
    pub first_bps: f64,
    pub second_bps: f64,
    /// The second mission's part of both, in the second phase.
    pub second_part: f64,
    /// By how much a mission's part is off its own, relative to it; the greater of the two.
    pub deviation: f64,
    /// From the second mission's first byte until it has nine tenths of its part.
    pub given_s: Option<f64>,
    /// From the second mission's last byte until the first one has nine tenths of the line again.
    pub taken_back_s: Option<f64>,
}

impl SharerResult {
    /// Of a course.
    pub fn of(experiment: &Sharing, tree: &Tree, course: &RateSeries) -> Self {
        let phase = experiment.sharing.phase;
        let rest = SETTLING.min(phase.scaled(1, 3));
        let at = |course: &[f64], number: u64| {
            mean(
                course,
                phase.scaled(number, 1) + rest,
                phase.scaled(number + 1, 1).saturating_sub(EDGE),
            )
        };
        let together =
            [0, 1, 2].map(|number| at(&course.first, number) + at(&course.second, number));
        let (first, second) = (at(&course.first, 1), at(&course.second, 1));
        let part = second / (first + second).max(1.0);
        let own = tree.second_part(experiment.rate());
        let off = |found: f64, own: f64| if own < LEAST { 0.0 } else { (found / own - 1.0).abs() };
        let line = experiment.rate().as_bps() as f64;
        let presence = ends(&course.second);
        let last = steps(phase.scaled(2, 1));
        let given = presence
            .and_then(|(begin, _)| reaches(&course.second, begin..last, line * own * NEARLY));
        let back =
            presence.and_then(|(_, end)| reaches(&course.first, end..usize::MAX, line * NEARLY));
        Self {
            together_bps: together,
            first_bps: first,
            second_bps: second,
            second_part: part,
            deviation: off(part, own).max(off(1.0 - part, 1.0 - own)),
            given_s: given.map(Duration::as_secs_f64),
            taken_back_s: back.map(Duration::as_secs_f64),
        }
    }

    /// The least that both received in any phase, as a part of the line.
    fn least_use(&self, experiment: &Sharing) -> f64 {
        let line = (experiment.rate().as_bps() as f64).max(1.0);
        self.together_bps.iter().fold(f64::INFINITY, |least, rate| least.min(rate / line))
    }
}

/// The result of the tree with index `at`.
fn finding(sharers: &Sharers<'_>, at: usize, sharer: Sharer) -> Option<SharerResult> {
    let course = sharers.courses.get(&(at, sharer))?;
    Some(SharerResult::of(sharers.experiment, &sharers.experiment.sharing.trees[at], course))
}

/// The bars: all are ours.
pub fn verdicts(sharers: &Sharers<'_>) -> Vec<BarVerdict> {
    let mut verdicts = Vec::new();
    for (at, tree) in sharers.experiment.sharing.trees.iter().enumerate() {
        let Some(ours) = finding(sharers, at, Sharer::Ours) else { continue };
        let percent = |part: f64| format!("{:.1} %", part * 100.0);
        let label = &tree.label;
        verdicts.push(BarVerdict {
            words: format!(
                "{label}: ours is off the missions' parts by {}, at most {}",
                percent(ours.deviation),
                percent(HELD)
            ),
            is_reached: ours.deviation <= HELD,
        });
        let least = ours.least_use(sharers.experiment);
        verdicts.push(BarVerdict {
            words: format!(
                "{label}: ours carries {} of the line in every phase, at least {}",
                percent(least),
                percent(USED)
            ),
            is_reached: least >= USED,
        });
        if let Some(htb) = finding(sharers, at, Sharer::Kernel) {
            verdicts.push(BarVerdict {
                words: format!(
                    "{label}: ours is off by no more than htb, which is off by {}, and {} for what \
                    cannot be told apart",
                    percent(htb.deviation),
                    percent(ALIKE)
                ),
                is_reached: ours.deviation <= htb.deviation + ALIKE,
            });
        }
    }
    verdicts
}

/// A table for each tree.
pub fn tables(sharers: &Sharers<'_>) -> Vec<CaptionedTable> {
    let experiment = sharers.experiment;
    let trees = experiment.sharing.trees.iter().enumerate();
    let tables = trees.filter_map(|(at, tree)| {
        let rows: Vec<Vec<String>> = Sharer::ALL
            .into_iter()
            .filter_map(|sharer| Some(row(sharer, &finding(sharers, at, sharer)?)))
            .collect();
        let head = [
            "",
            "first alone",
            "both: first",
            "second",
            "second's part",
            "off by",
            "given \
                                                                                   within",
            "first \
                                                                                       again",
            "taken back within",
        ];
        let own = tree.second_part(experiment.rate()) * 100.0;
        (!rows.is_empty()).then(|| CaptionedTable {
            caption: format!(
                "{}; Mbit/s at the receiver of a line of {}, once a phase of {} has come to rest; \
                {own:.0} % are the second's",
                tree.label,
                experiment.rate(),
                experiment.sharing.phase,
            ),
            head: head.map(str::to_owned).into(),
            rows,
        })
    });
    tables.collect()
}

fn row(sharer: Sharer, found: &SharerResult) -> Vec<String> {
    let seconds = |span: Option<f64>| span.map_or("not".to_owned(), |span| format!("{span:.1} s"));
    vec![
        sharer.name().to_owned(),
        mbps(found.together_bps[0]),
        mbps(found.first_bps),
        mbps(found.second_bps),
        format!("{:.1} %", found.second_part * 100.0),
        format!("{:.1} %", found.deviation * 100.0),
        seconds(found.given_s),
        mbps(found.together_bps[2]),
        seconds(found.taken_back_s),
    ]
}

/// The time at a phase's beginning that is not judged: slow start, and standing queues.
const SETTLING: Duration = Duration::from_secs(2);

/// The time at a phase's end that is not judged: data still under way.
const EDGE: Duration = Duration::from_millis(300);

/// A mission with a smaller share is not judged: one percent of it is less than the precision of
/// the measurement.
const LEAST: f64 = 0.05;

/// A share that is so much of one's own counts as given.
const NEARLY: f64 = 0.9;

/// Guarantees hold within this.
const HELD: f64 = 0.05;

/// Unused guarantees are borrowed: at least this share of the line is used, without headers.
const USED: f64 = 0.9;

/// Deviations that differ by less are alike: a tenth of a second of a phase.
const ALIKE: f64 = 0.01;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::text_of;

    /// The first mission has `first` of the line while both have data, and comes back after `pause`
    /// steps.
    fn course(part: f64, pause: usize) -> RateSeries {
        let line = 48e6;
        let first = (0..300).map(|step| match step {
            100..200 => line * (1.0 - part),
            200.. if step < 200 + pause => 0.0,
            _ => line,
        });
        let second =
            (0..300).map(|step| if (102..201).contains(&step) { line * part } else { 0.0 });
        RateSeries { first: first.collect(), second: second.collect() }
    }

    fn experiment() -> Sharing {
        Sharing::parse(&text_of("qos").unwrap(), "qos").unwrap()
    }

    fn verdicts_of(experiment: &Sharing, ours: RateSeries, htb: RateSeries) -> Vec<bool> {
        let mut sharers = Sharers::new(experiment, Vec::new());
        sharers.courses.insert((0, Sharer::Ours), ours);
        sharers.courses.insert((0, Sharer::Kernel), htb);
        verdicts(&sharers).iter().map(|verdict| verdict.is_reached).collect()
    }

    #[test]
    fn shares_and_times_are_read_off_the_courses() {
        let experiment = experiment();
        let found = SharerResult::of(&experiment, &experiment.sharing.trees[0], &course(0.7, 12));
        assert!(found.deviation < 1e-9 && (found.second_part - 0.7).abs() < 1e-9, "{found:?}");
        assert_eq!(found.given_s, Some(0.0));
        // The second one's last byte is one step after the phase's end.
        assert!((found.taken_back_s.unwrap() - 1.1).abs() < 1e-9, "{found:?}");
        assert!(
            found.together_bps.iter().all(|rate| (rate / 48e6 - 1.0).abs() < 0.01),
            "{found:?}"
        );
        let none =
            SharerResult::of(&experiment, &experiment.sharing.trees[0], &RateSeries::default());
        assert_eq!((none.given_s, none.taken_back_s, none.second_part), (None, None, 0.0));
    }

    #[test]
    fn a_share_that_is_off_or_a_line_that_idles_misses_its_bar() {
        let experiment = experiment();
        assert_eq!(verdicts_of(&experiment, course(0.7, 0), course(0.7, 0)), [true; 3]);
        assert_eq!(verdicts_of(&experiment, course(0.6, 0), course(0.7, 0)), [false, true, false]);
        assert_eq!(verdicts_of(&experiment, course(0.6, 0), course(0.5, 0)), [false, true, true]);
        let mut idle = course(0.7, 0);
        idle.first.iter_mut().take(100).for_each(|rate| *rate *= 0.5);
        assert_eq!(verdicts_of(&experiment, idle, course(0.7, 0)), [true, false, true]);
    }

    #[test]
    fn where_the_kernel_lacks_htb_ours_is_judged_alone() {
        let experiment = experiment();
        let mut sharers = Sharers::new(&experiment, Vec::new());
        sharers.courses.insert((0, Sharer::Ours), course(0.7, 0));
        assert_eq!(verdicts(&sharers).len(), 2);
        assert_eq!(tables(&sharers).len(), 1);
        assert_eq!(tables(&sharers)[0].rows.len(), 1);
    }
}
