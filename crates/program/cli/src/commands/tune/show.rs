//! The findings of `skyhaul tune`, as text and as JSON.

use super::line::KnownLine;
use crate::commands::rate::rate_text;
use serde_json::{Value, json};
use skyhaul_host::throughput::{Limit, Throughput};
use skyhaul_host::{SettingFinding, State};
use std::io::{self, Write};

/// What there is to show.
pub struct Result<'a> {
    pub line: &'a KnownLine,
    pub findings: &'a [SettingFinding],
    /// What a connection reaches with the settings as they are.
    pub today: Throughput,
    /// The same after the changes.
    pub after: Throughput,
}

impl Result<'_> {
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let line = self.line.line;
        let to = self.line.to.map_or_else(String::new, |to| format!(" to {to}"));
        let (rate, trip) = (
            if self.line.is_of_interface { " (of the interface)" } else { "" },
            if self.line.is_measured { " (measured)" } else { "" },
        );
        writeln!(
            out,
            "line{to}: {}{rate}, round trip {:.3} ms{trip}: {} in flight when it is full",
            line.rate,
            1e3 * line.round_trip.as_secs_f64(),
            line.in_flight()
        )?;
        writeln!(out, "\n  {:<36} {:<26} needs", "setting", "is")?;
        for finding in self.findings {
            let is = finding.is.as_deref().unwrap_or("unreadable");
            let mark = match finding.state {
                State::Good => ' ',
                State::Short => '!',
                State::Unknown => '?',
            };
            writeln!(out, "{mark} {:<36} {is:<26} {}", finding.setting, finding.needs)?;
            if finding.state == State::Short {
                writeln!(out, "      {}", finding.why)?;
                if let Some(remedy) = &finding.remedy {
                    writeln!(out, "      {remedy}")?;
                }
            }
        }
        writeln!(out, "\none TCP connection reaches {}", in_words(&self.today))?;
        if self.after != self.today {
            writeln!(out, "after the changes           {}", in_words(&self.after))?;
        }
        Ok(())
    }

    pub fn json(&self) -> Value {
        let line = self.line.line;
        let findings: Vec<Value> = self
            .findings
            .iter()
            .map(|finding| {
                json!({
                    "setting": finding.setting,
                    "is": finding.is,
                    "needs": finding.needs,
                    "state": finding.state,
                    "why": finding.why,
                    "change": finding.change,
                    "remedy": finding.remedy,
                })
            })
            .collect();
        json!({
            "to": self.line.to.map(|to| to.to_string()),
            "interface": self.line.interface.as_ref().map(|interface| &interface.name),
            "rate_bps": line.rate.as_bps(),
            "round_trip_s": line.round_trip.as_secs_f64(),
            "round_trip_measured": self.line.is_measured,
            "loss": line.loss.as_f64(),
            "in_flight_bytes": line.in_flight().as_u64(),
            "findings": findings,
            "today": throughput(&self.today),
            "after": throughput(&self.after),
        })
    }
}

fn throughput(reached: &Throughput) -> Value {
    json!({
        "bps": reached.rate.as_bps(),
        "limit": reached.limit,
        "window_bytes": reached.window.as_u64(),
    })
}

fn in_words(reached: &Throughput) -> String {
    let rate = rate_text(reached.rate.as_bps());
    let window = reached.window;
    match reached.limit {
        Limit::Line => format!("{rate}: the line"),
        Limit::ReceiveBuffer => format!("{rate}: the receive buffer holds a window of {window}"),
        Limit::SendBuffer => format!("{rate}: the send buffer holds {window} in flight"),
        Limit::NoWindowScaling => {
            format!("{rate}: without window scaling a window has at most 64 KiB")
        }
        Limit::GreatestWindow => {
            format!("{rate}: the largest window of TCP; use several connections")
        }
        Limit::CongestionControl => format!("{rate}: the congestion controller, at this loss"),
    }
}
