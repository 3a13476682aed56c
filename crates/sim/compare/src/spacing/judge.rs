//! The verdict on each spacing and each loss process, compared with the settings of the line.

use super::{HEADERS, LossSeries, SpacingSweep};
use crate::sheet::{BarVerdict, CaptionedTable};
use crate::table::mbps;
use serde::Serialize;
use serde_json::Value;
use skyhaul_link::Loss;
use skyhaul_units::Rate;

/// The result of one spacing.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SpacingResult {
    pub spacing_us: f64,
    /// The mean of what became of it.
    pub sent_spacing_us: f64,
    /// UDP payload.
    pub sent_bps: f64,
    pub received_bps: f64,
    pub sent: u64,
    /// Between the hosts; what a host dropped is not the line's.
    pub lost: u64,
    /// Dropped by one of the hosts, or unexplained.
    pub dropped: u64,
    pub reordered: u64,
    /// The greatest, in datagrams (RFC 4737).
    pub reordering_extent: u64,
}

/// The result of one loss process.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LossResult {
    pub sent: u64,
    pub lost: u64,
    /// As the probe reports it.
    pub character: String,
    pub fit: Option<Fit>,
    /// Intervals between losses in datagrams, and how many there were of each, the shortest first.
    pub intervals: Vec<(u64, u64)>,
}

/// An exponential distribution fitted to intervals between losses.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Fit {
    /// Datagrams.
    pub mean: f64,
    /// Kolmogorov and Smirnov's.
    pub distance: f64,
    /// One in twenty exponential samples lies above it.
    pub critical: f64,
    /// Of such a distance or a greater one by chance, between 0.01 and 0.15.
    pub probability: f64,
}

impl SpacingResult {
    /// Those of the JSON form of `skyhaul probe sweep`, the least spacing first.
    pub fn all(found: &Value) -> Option<Vec<Self>> {
        let mut points =
            found["points"].as_array()?.iter().map(Self::of).collect::<Option<Vec<_>>>()?;
        points.sort_by(|one, other| one.spacing_us.total_cmp(&other.spacing_us));
        Some(points)
    }

    fn of(found: &Value) -> Option<Self> {
        let account = &found["account"];
        let (offered, received) = (account["offered"].as_u64()?, account["received"].as_u64()?);
        let lost = account["lost_on_path"].as_u64()?;
        Some(Self {
            spacing_us: found["spacing_us"].as_f64()?,
            sent_spacing_us: found["sent_spacing_us"].as_f64()?,
            sent_bps: found["sent_bps"].as_f64()?,
            received_bps: found["received_bps"].as_f64()?,
            sent: offered,
            lost,
            dropped: offered.saturating_sub(received).saturating_sub(lost),
            reordered: found["reordering"]["reordered"].as_u64()?,
            reordering_extent: found["reordering"]["extent_max"].as_u64()?,
        })
    }

    pub fn loss(&self) -> f64 {
        self.lost as f64 / self.sent.max(1) as f64
    }

    pub fn reordering(&self) -> f64 {
        self.reordered as f64 / self.sent.saturating_sub(self.lost).max(1) as f64
    }
}

impl LossResult {
    /// That of the JSON form of `skyhaul probe loss`.
    pub fn of(found: &Value) -> Option<Self> {
        let process = &found["process"];
        let number = |of: &Value, key: &str| of[key].as_f64();
        let fit = Some(&process["intervals"]).filter(|fit| !fit.is_null()).map(|fit| {
            Some(Fit {
                mean: number(fit, "mean")?,
                distance: number(fit, "distance")?,
                critical: number(fit, "critical")?,
                probability: number(fit, "probability")?,
            })
        });
        Some(Self {
            sent: process["sent"].as_u64()?,
            lost: process["lost"].as_u64()?,
            character: process["character"].as_str()?.to_owned(),
            fit: match fit {
                Some(fit) => Some(fit?),
                None => None,
            },
            intervals: serde_json::from_value(found["interval_counts"].clone()).ok()?,
        })
    }
}

/// The rate of the line in UDP payload, bit/s.
pub fn line_rate(sweep: &SpacingSweep<'_>) -> f64 {
    Rate::over(sweep.experiment.spacing.payload, sweep.experiment.wire_time()).as_bps() as f64
}

/// Where received rate and loss leave the sent: the spacing that the line's rate, as it was
/// received, gives, in microseconds. `None` without a stream that is much faster than the line.
pub fn knee(sweep: &SpacingSweep<'_>) -> Option<f64> {
    let wire = sweep.experiment.wire_time().as_secs_f64() * 1e6;
    let mut full: Vec<f64> = sweep
        .points
        .iter()
        .filter(|point| point.sent_spacing_us < wire * (1.0 - MARGIN))
        .map(|point| point.received_bps)
        .collect();
    full.sort_by(f64::total_cmp);
    // What is lost behind the narrowest place went through it.
    let rate =
        full.get(full.len() / 2).copied().filter(|rate| *rate > 0.0)? / (1.0 - up_loss(sweep));
    Some(sweep.experiment.spacing.payload.as_u64() as f64 * 8.0 / rate * 1e6)
}

/// The bars.
pub fn verdicts(sweep: &SpacingSweep<'_>) -> Vec<BarVerdict> {
    let mut verdicts = Vec::new();
    if !sweep.points.is_empty() {
        verdicts.extend([knee_verdict(sweep), onset_verdict(sweep), floor_verdict(sweep)]);
    }
    let plans = &sweep.experiment.spacing.processes;
    verdicts
        .extend(sweep.processes.iter().map(|(at, process)| process_verdict(&plans[*at], process)));
    verdicts
}

fn knee_verdict(sweep: &SpacingSweep<'_>) -> BarVerdict {
    let wire = sweep.experiment.wire_time().as_secs_f64() * 1e6;
    let Some(knee) = knee(sweep) else {
        let words = "the knee: no stream was sent faster than the line".to_owned();
        return BarVerdict { words, is_reached: false };
    };
    let words = format!(
        "the received rate stops following at a spacing of {knee:.1} us; size and rate of the line \
        give {wire:.1} us, ±{:.0} %",
        KNEE_TOLERANCE * 100.0
    );
    BarVerdict { words, is_reached: (knee / wire - 1.0).abs() <= KNEE_TOLERANCE }
}

/// Faster than the line, every stream loses more than by chance.
fn onset_verdict(sweep: &SpacingSweep<'_>) -> BarVerdict {
    let (wire, set) = (sweep.experiment.wire_time().as_secs_f64() * 1e6, up_loss(sweep));
    let fast = sweep.points.iter().filter(|point| point.sent_spacing_us < wire * (1.0 - MARGIN));
    let fast: Vec<&SpacingResult> = fast.collect();
    let losing = fast
        .iter()
        .filter(|point| point.loss() > set && !is_chance(point.lost, point.sent, set))
        .count();
    let words =
        format!("{losing} of {} streams faster than the line lose beyond chance", fast.len());
    BarVerdict { words, is_reached: losing == fast.len() && !fast.is_empty() }
}

/// Slower than the line, every stream loses what the line is set to, within chance.
fn floor_verdict(sweep: &SpacingSweep<'_>) -> BarVerdict {
    let (wire, set) = (sweep.experiment.wire_time().as_secs_f64() * 1e6, up_loss(sweep));
    let slow = sweep.points.iter().filter(|point| point.spacing_us > wire * (1.0 + MARGIN));
    let slow: Vec<&SpacingResult> = slow.collect();
    let strange = |point: &&&SpacingResult| !is_chance(point.lost, point.sent, set);
    let list: Vec<String> = slow
        .iter()
        .filter(strange)
        .map(|point| format!("{:.0} us: {}", point.spacing_us, point.lost))
        .collect();
    let mut words = format!(
        "slower than the line, {} of {} streams lose {:.3} % within chance",
        slow.len() - list.len(),
        slow.len(),
        set * 100.0
    );
    if !list.is_empty() {
        words = format!("{words}; lost at {}", list.join(", "));
    }
    BarVerdict { words, is_reached: list.is_empty() && !slow.is_empty() }
}

fn process_verdict(plan: &LossSeries, process: &LossResult) -> BarVerdict {
    let is_random = matches!(plan.loss, Loss::Independent(_));
    let Some(fit) = process.fit else {
        let words =
            format!("{}: {} losses are too few for a distribution", plan.label, process.lost);
        return BarVerdict { words, is_reached: false };
    };
    let is_exponential = fit.probability >= CHANCE && process.character == "random";
    let [asked, found] =
        [is_random, is_exponential].map(|is| if is { "exponential" } else { "not exponential" });
    let words = format!(
        "{}: the intervals are {found}, and should be {asked} (distance {:.4}, 5 % critical {:.4}, \
        {})",
        plan.label, fit.distance, fit.critical, process.character
    );
    BarVerdict { words, is_reached: is_exponential == is_random }
}

fn up_loss(sweep: &SpacingSweep<'_>) -> f64 {
    sweep.experiment.line.links.first().map_or(0.0, |link| link.up.loss.mean().as_f64())
}

/// Whether so many losses of so many datagrams are no rarer than one in ten thousand each way where
/// each is lost with `probability`: Chernoff's bound, which holds for any number.
fn is_chance(lost: u64, sent: u64, probability: f64) -> bool {
    let (count, part) = (sent as f64, lost as f64 / sent.max(1) as f64);
    let term =
        |found: f64, asked: f64| if found == 0.0 { 0.0 } else { found * (found / asked).ln() };
    let divergence = term(part, probability) + term(1.0 - part, 1.0 - probability);
    count * divergence <= -RARE.ln()
}

/// The tables.
pub fn tables(sweep: &SpacingSweep<'_>) -> Vec<CaptionedTable> {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let payload = sweep.experiment.spacing.payload;
    let mut tables = vec![CaptionedTable {
        caption: format!(
            "{} datagrams of {payload} at each spacing; the line takes {:.1} us for one, {} of \
            headers included",
            sweep.experiment.spacing.datagrams,
            sweep.experiment.wire_time().as_secs_f64() * 1e6,
            HEADERS
        ),
        head: words(&[
            "spacing us",
            "sent Mbit/s",
            "received Mbit/s",
            "lost %",
            "reordered %",
            "extent",
            "dropped by hosts",
        ]),
        rows: sweep.points.iter().map(row).collect(),
    }];
    if !sweep.processes.is_empty() {
        let plans = &sweep.experiment.spacing.processes;
        tables.push(CaptionedTable {
            caption: "intervals between losses, in datagrams".to_owned(),
            head: words(&[
                "loss",
                "set %",
                "lost %",
                "of",
                "mean",
                "distance",
                "5 % critical",
                "taken for",
            ]),
            rows: sweep
                .processes
                .iter()
                .map(|(at, process)| process_row(&plans[*at], process))
                .collect(),
        });
    }
    tables
}

fn row(point: &SpacingResult) -> Vec<String> {
    vec![
        format!("{:.0}", point.spacing_us),
        mbps(point.sent_bps),
        mbps(point.received_bps),
        format!("{:.2}", point.loss() * 100.0),
        format!("{:.2}", point.reordering() * 100.0),
        point.reordering_extent.to_string(),
        point.dropped.to_string(),
    ]
}

fn process_row(plan: &LossSeries, process: &LossResult) -> Vec<String> {
    let fit = |of: fn(Fit) -> String| process.fit.map_or_else(String::new, of);
    vec![
        plan.label.clone(),
        format!("{:.2}", plan.loss.mean().as_f64() * 100.0),
        format!("{:.2}", process.lost as f64 / process.sent.max(1) as f64 * 100.0),
        process.sent.to_string(),
        fit(|fit| format!("{:.1}", fit.mean)),
        fit(|fit| format!("{:.4}", fit.distance)),
        fit(|fit| format!("{:.4}", fit.critical)),
        process.character.clone(),
    ]
}

/// Streams this close to the line's rate are not judged: the sender's own jitter determines their
/// result.
const MARGIN: f64 = 0.1;

/// Of the knee: the probe's clock and the emulator's rate together are better than half a percent.
const KNEE_TOLERANCE: f64 = 0.02;

/// Rarer than this is not chance: with a dozen streams, one in a thousand sweeps fails by it.
const RARE: f64 = 1e-4;

/// The least probability that the probe's table of distances has.
const CHANCE: f64 = 0.01;

#[cfg(test)]
mod tests {
    use super::super::{Spacing, SpacingSweep};
    use super::*;
    use crate::experiment::text_of;
    use serde_json::json;

    /// What a line of this rate would do, and the sender's pauses beside it.
    fn point(spacing_us: f64, wire_us: f64, set: f64) -> SpacingResult {
        let sent = 10_000;
        let through = (spacing_us / wire_us).min(1.0) * (1.0 - set);
        let lost = ((1.0 - through) * sent as f64).round() as u64;
        let rate = 1400.0 * 8.0 / spacing_us * 1e6;
        SpacingResult {
            spacing_us,
            sent_spacing_us: spacing_us * 1.01,
            sent_bps: rate,
            received_bps: rate * through,
            sent,
            lost,
            dropped: 0,
            reordered: 20,
            reordering_extent: 2,
        }
    }

    fn sweep(experiment: &Spacing, slower: f64) -> SpacingSweep<'_> {
        let wire = experiment.wire_time().as_secs_f64() * 1e6 * slower;
        let mut sweep = SpacingSweep::new(experiment, Vec::new());
        let spacings = experiment.spacing.spacings.iter();
        let set = experiment.line.links[0].up.loss.mean().as_f64();
        sweep.points =
            spacings.map(|spacing| point(spacing.as_secs_f64() * 1e6, wire, set)).collect();
        sweep
    }

    fn reached(sweep: &SpacingSweep<'_>) -> Vec<bool> {
        verdicts(sweep).iter().map(|verdict| verdict.is_reached).collect()
    }

    #[test]
    fn the_published_shape_passes_and_a_slower_line_does_not() {
        let experiment = Spacing::parse(&text_of("evlbi").unwrap(), "evlbi").unwrap();
        assert_eq!(reached(&sweep(&experiment, 1.0)), [true; 3]);
        // A line that is 5 % slower than it was set to; one of half the rate loses below its knee
        // too.
        assert_eq!(reached(&sweep(&experiment, 1.05)), [false, true, true]);
        assert_eq!(reached(&sweep(&experiment, 2.0)), [false, true, false]);
        let mut lossless = sweep(&experiment, 1.0);
        lossless.points.iter_mut().for_each(|point| point.lost = 0);
        assert_eq!(reached(&lossless), [true, false, false]);
        let mut slow = sweep(&experiment, 1.0);
        slow.points.drain(..8);
        assert_eq!(reached(&slow)[..2], [false, false], "nothing was faster than the line");
    }

    #[test]
    fn chance_is_wide_for_few_and_narrow_for_many() {
        assert!(is_chance(0, 1_000, 0.001) && is_chance(6, 1_000, 0.001));
        assert!(!is_chance(20, 1_000, 0.001) && !is_chance(0, 100_000, 0.001));
        assert!(is_chance(0, 100, 0.0) && !is_chance(1, 100, 0.0) && !is_chance(99, 100, 1.0));
    }

    #[test]
    fn intervals_are_judged_by_what_the_line_was_set_to() {
        let experiment = Spacing::parse(&text_of("evlbi").unwrap(), "evlbi").unwrap();
        let plans = &experiment.spacing.processes;
        let found = |character: &str, probability: f64| {
            json!({
                "process": { "sent": 50_000, "lost": 500, "character": character,
                    "intervals": { "mean": 100.0, "distance": 0.02, "critical": 0.05,
                        "probability": probability } },
                "interval_counts": [[1, 3], [7, 2]],
            })
        };
        let random = LossResult::of(&found("random", 0.15)).unwrap();
        let bursts = LossResult::of(&found("bursts", 0.01)).unwrap();
        assert_eq!(random.intervals, [(1, 3), (7, 2)]);
        let is_random = |plan: &&LossSeries| matches!(plan.loss, Loss::Independent(_));
        let chance = plans.iter().find(is_random).unwrap();
        let bad = plans.iter().find(|plan| !is_random(plan)).unwrap();
        assert!(
            process_verdict(chance, &random).is_reached && process_verdict(bad, &bursts).is_reached
        );
        assert!(
            !process_verdict(chance, &bursts).is_reached
                && !process_verdict(bad, &random).is_reached
        );
        let none = json!({ "process": { "sent": 9, "lost": 0, "character": "none",
            "intervals": null }, "interval_counts": [] });
        let verdict = process_verdict(chance, &LossResult::of(&none).unwrap());
        assert!(!verdict.is_reached && verdict.words.contains("too few"));
    }

    #[test]
    fn the_output_of_the_probe_is_read_and_anything_else_is_not() {
        let point = json!({
            "spacing_us": 60.0, "sent_spacing_us": 60.3, "sent_bps": 185_690_136,
                "received_bps": 98_020_971,
            "reordering": { "reordered": 3, "ppm": 300, "extent_max": 2 },
            "account": { "offered": 10_000, "lost_on_path": 4_676, "received": 5_320,
                "unexplained": 0 },
        });
        let found = SpacingResult::all(&json!({ "points": [point] })).unwrap();
        assert_eq!((found[0].lost, found[0].dropped, found[0].reordered), (4_676, 4, 3));
        for wrong in [json!({}), json!({ "points": [{}] }), json!({ "points": 3 })] {
            assert_eq!(SpacingResult::all(&wrong), None);
            assert_eq!(LossResult::of(&wrong), None);
        }
    }
}
