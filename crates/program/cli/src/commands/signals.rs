//! Signals that stop a long-running command.

use super::log_format::{LineFormat, LineLimit, LogFormat};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use skyhaul_exit::{Exit, Failure};
use skyhaul_net::Clock;
use skyhaul_node::log;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::prelude::*;

/// A flag that an interrupt or a request to end sets.
///
/// # Errors
/// The system does not let signals be caught.
pub fn stop_flag() -> Result<Arc<AtomicBool>, Failure> {
    flag_of(&[SIGINT, SIGTERM])
}

/// A flag that the loss of the terminal (SIGHUP) sets too.
///
/// # Errors
/// The system does not let signals be caught.
pub fn terminal_flag() -> Result<Arc<AtomicBool>, Failure> {
    flag_of(&[SIGINT, SIGTERM, SIGHUP])
}

/// A flag that a hang-up (SIGHUP) sets, for what reads its configuration again.
///
/// # Errors
/// The system does not let signals be caught.
pub fn reload_flag() -> Result<Arc<AtomicBool>, Failure> {
    flag_of(&[SIGHUP])
}

fn flag_of(signals: &[i32]) -> Result<Arc<AtomicBool>, Failure> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in signals {
        signal_hook::flag::register(*signal, Arc::clone(&flag)).map_err(|source| {
            let what = "signal handlers cannot be installed";
            Failure::io(what, "this process", "start it again", source)
        })?;
    }
    Ok(flag)
}

/// Whether a process takes over from its parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TakeOver {
    /// It does.
    Yes,
    /// It does not.
    No,
}

/// How a node's process logs and ends.
#[derive(clap::Args)]
pub struct Process {
    /// The log level on standard error: error, warn, info, debug, trace, or by part as in
    /// `info,noq_proto=warn`.
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    log: String,
    /// The form of the log: text, json, or journal for the journal of systemd.
    #[arg(long, value_name = "FORM", value_enum, default_value_t = LogFormat::Text)]
    #[arg(hide_possible_values = true)]
    log_format: LogFormat,
    /// Ends when the program that started it ends, however that ends.
    #[arg(long, hide = true)]
    end_with_parent: bool,
}

impl Process {
    /// Begins to log, and to listen for the end.
    ///
    /// # Errors
    /// The log's level is none.
    pub fn begin(&self, take_over: TakeOver) -> Result<Arc<AtomicBool>, Failure> {
        let filter = EnvFilter::try_new(&self.log).map_err(|error| {
            let help = "write error, warn, info, debug or trace";
            Failure::new(Exit::Usage, &format!("`{}` is not a log level ({error})", self.log), help)
        })?;
        let colours = io::IsTerminal::is_terminal(&io::stderr());
        let limit = LineLimit::new(Clock::start());
        let lines = tracing_subscriber::fmt::layer()
            .event_format(LineFormat::new(self.log_format, limit.clone()))
            .with_writer(log::errors)
            .with_ansi(colours && self.log_format == LogFormat::Text);
        let subscriber = tracing_subscriber::registry().with(filter).with(limit).with(lines);
        // A process has one log; a second one would only be set in a test.
        let _ = subscriber.try_init();
        // A process that takes over from its parent outlives it.
        if self.end_with_parent && take_over == TakeOver::No {
            // Where the system does not support it, the parent's own clean-up must suffice.
            let _ = rustix::process::set_parent_process_death_signal(Some(
                rustix::process::Signal::TERM,
            ));
        }
        stop_flag()
    }
}
