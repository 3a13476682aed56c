//! The verdict, for people and for programs.

use serde::Serialize;
use skyhaul_exit::Failure;
use skyhaul_probe::why::{Evidence, Verdict};
use std::io::Write;

/// The subject of the verdict.
#[derive(Debug, Clone, Serialize)]
pub struct Of {
    /// The far end of the line, where it was probed.
    pub far: Option<String>,
    /// The transfer, where there was one.
    pub transfer: Option<String>,
}

/// As one JSON object (docs/reference/schema/why.json).
///
/// # Errors
/// The output is gone.
pub fn json(
    of: &Of,
    verdict: &Verdict,
    found: &Evidence,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    #[derive(Serialize)]
    struct Whole<'a> {
        kind: &'static str,
        version: &'static str,
        #[serde(flatten)]
        of: &'a Of,
        #[serde(flatten)]
        verdict: &'a Verdict,
        found: &'a Evidence,
    }
    let whole = Whole { kind: "why", version: env!("CARGO_PKG_VERSION"), of, verdict, found };
    let line = serde_json::to_string(&whole).expect("a verdict is plain data");
    Ok(writeln!(out, "{line}")?)
}

/// In words.
///
/// # Errors
/// The output is gone.
pub fn text(of: &Of, verdict: &Verdict, out: &mut dyn Write) -> Result<(), Failure> {
    let judged: Vec<String> = [
        of.far.as_ref().map(|far| format!("the line to {far}")),
        of.transfer.as_ref().map(|transfer| format!("the transfer {transfer}")),
    ]
    .into_iter()
    .flatten()
    .collect();
    writeln!(out, "judged     {}", judged.join(", "))?;
    writeln!(out, "verdict    {}", verdict.sentence)?;
    writeln!(
        out,
        "cause      {}, confidence {:.0} %",
        verdict.cause.name(),
        verdict.confidence * 100.0
    )?;
    for (place, figure) in verdict.evidence.iter().enumerate() {
        writeln!(out, "{:<10} {figure}", if place == 0 { "evidence" } else { "" })?;
    }
    writeln!(out, "to do      {}", verdict.what_to_do)?;
    for (place, other) in verdict.others.iter().enumerate() {
        let name = if place == 0 { "also" } else { "" };
        writeln!(out, "{name:<10} {}: {}", other.cause.name(), other.sentence)?;
    }
    Ok(())
}
