//! The verdict: each cause has a rule, each rule a weight from 0 to 1 and the figures behind it;
//! the heaviest is the verdict.
//!
//! Rules of the ends come before those of the line, since an end that is at its limit makes any
//! line look bad, and faults of the line before what a controller makes of them. The weights only
//! order the causes, and say how clearly the figures point to each.

mod advice;
mod ends;
mod line;
mod others;
mod outage;
mod processors;
mod share;

use super::cause::Cause;
use super::evidence::Evidence;
use serde::Serialize;

/// What the evidence says.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// What holds the transfer back.
    pub cause: Cause,
    /// How sure that is, from 0 to 1.
    pub confidence: f64,
    /// The same in a sentence.
    pub sentence: String,
    /// The figures behind it.
    pub evidence: Vec<String>,
    /// What to do about it.
    pub what_to_do: &'static str,
    /// What else the evidence speaks for, the most likely first.
    pub others: Vec<Finding>,
}

/// What one rule finds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// The cause that it is about.
    pub cause: Cause,
    /// How plainly the figures speak for it, from 0 to 1.
    pub weight: f64,
    /// What it says, in a sentence.
    pub sentence: String,
    /// The figures behind it.
    pub evidence: Vec<String>,
}

impl Finding {
    fn new(cause: Cause, weight: f64, sentence: String, evidence: Vec<String>) -> Self {
        // A figure that is none, such as a share of no time, speaks for nothing.
        let weight = if weight.is_nan() { 0.0 } else { weight.clamp(0.0, 1.0) };
        Self { cause, weight, sentence, evidence }
    }
}

/// Weighs the evidence.
pub fn judge(evidence: &Evidence) -> Verdict {
    let mut findings = ends::findings(evidence);
    findings.extend(line::findings(evidence));
    findings.extend(others::findings(evidence));
    findings.extend(outage::findings(evidence));
    findings.retain(|finding| finding.weight >= WEIGHT_MIN);
    findings.sort_by(|one, other| {
        other.weight.total_cmp(&one.weight).then(one.cause.cmp(&other.cause))
    });
    let mut findings = findings.into_iter();
    let first = findings.next().unwrap_or_else(|| line::full(evidence));
    let others: Vec<Finding> = findings.take(OTHERS_MAX).collect();
    // A second cause that is nearly as plain makes the first less sure.
    let rival = others.first().map_or(0.0, |second| second.weight);
    let margin = (first.weight - rival).clamp(0.0, MARGIN) / MARGIN;
    let confidence = calibrated(first.weight * (RIVALLED + (1.0 - RIVALLED) * margin));
    Verdict {
        cause: first.cause,
        confidence: (confidence * 100.0).round() / 100.0,
        sentence: first.sentence,
        evidence: first.evidence,
        what_to_do: advice::of(first.cause, evidence),
        others,
    }
}

/// How often a verdict whose figures speak so plainly is right.
fn calibrated(plain: f64) -> f64 {
    let above = SCALE.iter().position(|(from, _)| *from > plain).unwrap_or(SCALE.len() - 1).max(1);
    let ((low, least), (high, most)) = (SCALE[above - 1], SCALE[above]);
    least + (most - least) * ((plain - low) / (high - low)).clamp(0.0, 1.0)
}

/// A rate in words.
fn rate(bps: u64) -> String {
    let bps = bps as f64;
    if bps >= 1e9 { format!("{:.2} Gbit/s", bps / 1e9) } else { format!("{:.2} Mbit/s", bps / 1e6) }
}

/// A part in words: per cents, with as many digits as say something.
fn percent(part: f64) -> String {
    let percent = part * 100.0;
    if percent >= 10.0 { format!("{percent:.0} %") } else { format!("{percent:.2} %") }
}

/// Plainness, and the part of the verdicts that were right where it was that, rounded down: of the
/// model's lines and hosts (`crates/sim/lab/tests/all/why`), on the seeds that thresholds were set
/// on.
const SCALE: [(f64, f64); 7] =
    [(0.0, 0.0), (0.25, 0.2), (0.5, 0.5), (0.65, 0.8), (0.75, 0.88), (0.9, 0.94), (1.0, 0.97)];

/// Weight. Findings this soft fit a healthy line as well, and are not shown.
const WEIGHT_MIN: f64 = 0.2;
/// Findings beside the verdict: more are not read.
const OTHERS_MAX: usize = 3;
/// Weight. A second cause this far behind does not lower the confidence; one that is nearer may be
/// the right one.
const MARGIN: f64 = 0.2;
/// Factor on the plainness where a second cause is as plain as the first; [`SCALE`] was counted
/// with it.
const RIVALLED: f64 = 0.7;

#[cfg(test)]
mod tests;
