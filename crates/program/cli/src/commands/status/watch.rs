//! `skyhaul status --watch`: repeats the status every few seconds, until interrupted.

use super::Status;
use crate::commands::{signals, stamped};
use rustix::event::{Timespec, poll};
use skyhaul_exit::Failure;
use skyhaul_net::Clock;
use skyhaul_node::status::ask;
use skyhaul_units::Duration;
use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// Shows a node's status every `span`; on a terminal in the same place.
///
/// # Errors
/// No node answers at first, or the configuration is wrong. One that goes away later is waited for.
pub fn run(command: &Status, span: Duration, out: &mut dyn Write) -> Result<(), Failure> {
    let (stop, clock) = (signals::stop_flag()?, Clock::start());
    let socket = command.node.socket()?;
    let is_terminal = std::io::stdout().is_terminal() && !command.json;
    let mut is_first = true;
    while !stop.load(Ordering::Relaxed) {
        let began = clock.now();
        match ask(&socket) {
            Ok(status) => {
                if is_terminal {
                    write!(out, "{HOME}")?;
                }
                if !command.json {
                    let now = clock.utc().to_string();
                    let at = now.get(..19).unwrap_or(&now).replace('T', " ");
                    writeln!(out, "{at} UTC, every {span}, until interrupted\n")?;
                }
                command.show(&status, out)?;
                if !is_terminal && !command.json {
                    writeln!(out)?;
                }
                out.flush()?;
            }
            Err(error) if is_first => return Err(error.into()),
            Err(error) => stamped::say(&Failure::from(error).to_string()),
        }
        is_first = false;
        rest(&clock, began + span.max(SHORTEST), &stop);
    }
    Ok(())
}

/// Waits until then, or until it is to stop.
fn rest(clock: &Clock, until: skyhaul_units::Instant, stop: &AtomicBool) {
    while clock.now() < until && !stop.load(Ordering::Relaxed) {
        let left = until.since(clock.now()).min(STEP);
        let time = Timespec { tv_sec: 0, tv_nsec: i64::try_from(left.as_nanos()).unwrap_or(0) };
        // A signal ends it early; the caller checks for it next.
        let _ = poll(&mut [], Some(&time));
    }
}

/// To the terminal's first line, and everything below it away (ECMA-48 8.3.21, 8.3.39).
const HOME: &str = "\u{1b}[H\u{1b}[J";
/// A node is asked no more often.
const SHORTEST: Duration = Duration::from_millis(200);
/// Between two looks whether it is to stop.
const STEP: Duration = Duration::from_millis(100);
