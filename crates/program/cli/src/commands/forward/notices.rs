//! Notices while connections are forwarded: for people on standard error, for programs as lines of
//! JSON on standard output.

use crate::commands::output::OutputFormat;
use crate::commands::stamped;
use serde::Serialize;
use skyhaul_exit::{Exit, Failure};
use skyhaul_forward::Local;
use skyhaul_forward_io::{Counters, DatagramCounters, FarTarget, ForwardNotice, Notify};
use skyhaul_node::log;
use skyhaul_units::{ByteCount, Duration, Rate};
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Prints notices, and keeps the failure that ends the run.
#[derive(Clone)]
pub struct Notices {
    format: OutputFormat,
    stop: Arc<AtomicBool>,
    failure: Arc<Mutex<Option<Failure>>>,
}

/// A line for programs.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
enum Line<'a> {
    NodeUp {
        node: &'a str,
    },
    NodeDown {
        node: &'a str,
        reason: &'a str,
    },
    Called {
        node: &'a str,
    },
    Left {
        reason: &'a str,
    },
    TurnedAway {
        remote: String,
        reason: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        calls: Option<u64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        network: Option<String>,
    },
    Refused {
        target: String,
        reason: &'static str,
        sentence: &'a str,
    },
    Listening {
        at: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        node: Option<&'a str>,
        leads: String,
    },
    FarListening {
        node: &'a str,
        at: String,
        target: String,
    },
    FarRefused {
        node: &'a str,
        at: String,
        reason: &'static str,
        sentence: &'a str,
    },
    ListenRefused {
        at: String,
        reason: &'static str,
        sentence: &'a str,
    },
    Stats {
        seconds: f64,
        sent_bps: u64,
        received_bps: u64,
        counters: &'a Counters,
    },
    Summary {
        counters: &'a Counters,
    },
}

impl Notices {
    /// Sets `stop` when forwarding cannot go on.
    pub fn new(format: OutputFormat, stop: Arc<AtomicBool>) -> Self {
        Self { format, stop, failure: Arc::default() }
    }

    /// For a forwarder.
    pub fn listener(&self) -> Notify {
        let this = self.clone();
        Box::new(move |notice| this.take(notice))
    }

    fn failure(&self) -> MutexGuard<'_, Option<Failure>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Prints the account of the run.
    ///
    /// # Errors
    /// What ended it.
    pub fn finish(&self, counters: &Counters) -> Result<(), Failure> {
        if let Some(failure) = self.failure().take() {
            return Err(failure);
        }
        let Counters { accepted, connected, refused, reset, .. } = counters;
        let (sent, received) =
            (counters.bytes_sent as f64 / 1e6, counters.bytes_received as f64 / 1e6);
        let mut text = format!(
            "{accepted} accepted, {connected} connected, {refused} refused, {reset} reset; \
            {sent:.1} MB sent, {received:.1} MB received"
        );
        text.push_str(&datagrams(counters));
        self.say(&text, &Line::Summary { counters });
        Ok(())
    }

    fn take(&self, notice: &ForwardNotice) {
        match notice {
            ForwardNotice::NodeDown { node, was_up: false, reason } => {
                let what = format!("the far node `{node}` does not answer or refuses ({reason})");
                let help = "check that it runs `skyhaul forward serve`, that --node is its address \
                           and --peer its key, and \
                            that it knows this node's key";
                self.failure().get_or_insert(Failure::new(Exit::Peer, &what, help));
                self.stop.store(true, Ordering::Relaxed);
            }
            ForwardNotice::NodeUp { node } => {
                self.say(&format!("{node} is connected"), &Line::NodeUp { node });
            }
            ForwardNotice::NodeDown { node, reason, .. } => {
                let text = format!("{node} disconnected ({reason}); reconnecting");
                self.say(&text, &Line::NodeDown { node, reason });
            }
            ForwardNotice::Called { node } => {
                self.say(&format!("{node} connected"), &Line::Called { node });
            }
            ForwardNotice::Left { reason } => {
                self.say(&format!("a caller disconnected ({reason})"), &Line::Left { reason });
            }
            ForwardNotice::TurnedAway(refused) => {
                let (remote, reason) = (refused.remote.to_string(), &*refused.reason);
                let merged = refused.merged.as_ref();
                let calls = merged.map(|merged| merged.calls);
                let network =
                    merged.and_then(|merged| merged.network).map(|network| network.to_string());
                self.say(
                    &refused.to_string(),
                    &Line::TurnedAway { remote, reason, calls, network },
                );
            }
            ForwardNotice::Refused { target, reason, sentence } => {
                let line =
                    Line::Refused { target: target.to_string(), reason: reason.name(), sentence };
                self.say(&format!("cannot connect to {target}: {sentence}"), &line);
            }
            ForwardNotice::Stats { interval, counters, before } => {
                self.stats(*interval, counters, before);
            }
            notice => self.of_listening(notice),
        }
    }

    fn of_listening(&self, notice: &ForwardNotice) {
        match notice {
            ForwardNotice::FarListens { node, at, target } => {
                let line =
                    Line::FarListening { node, at: at.to_string(), target: target.to_string() };
                self.say(&format!("{node} listens on {at}, forwarding to {target} here"), &line);
            }
            ForwardNotice::FarRefuses { node, at, was_heard: false, sentence, .. } => {
                let what = format!("the far node `{node}` does not listen on {at} ({sentence})");
                let help = "give another port, or allow it there with --allow-listen";
                self.failure().get_or_insert(Failure::new(Exit::Peer, &what, help));
                self.stop.store(true, Ordering::Relaxed);
            }
            ForwardNotice::FarRefuses { node, at, reason, sentence, .. } => {
                let line =
                    Line::FarRefused { node, at: at.to_string(), reason: reason.name(), sentence };
                self.say(&format!("{node} does not listen on {at} ({sentence}); retrying"), &line);
            }
            ForwardNotice::Listens { at, target } => {
                let line =
                    Line::Listening { at: at.to_string(), node: None, leads: target.to_string() };
                self.say(&format!("listening on {at}, forwarding to {target} of a caller"), &line);
            }
            ForwardNotice::ListensNot { at, reason, sentence } => {
                let line =
                    Line::ListenRefused { at: at.to_string(), reason: reason.name(), sentence };
                self.say(&format!("cannot listen on {at}: {sentence}"), &line);
            }
            _ => {}
        }
    }

    /// Prints where applications can connect.
    ///
    /// # Errors
    /// The line cannot be written.
    pub fn listening(
        &self,
        out: &mut dyn Write,
        local: &Local,
        arrival: &FarTarget,
        node: &str,
    ) -> std::io::Result<()> {
        let leads = match arrival {
            FarTarget::For(target) => format!("{node}:{target}"),
            FarTarget::Proxy => format!("SOCKS through {node}"),
            FarTarget::Diverted => format!("transparent to {node}"),
        };
        if self.format == OutputFormat::Text {
            return writeln!(out, "listening on {local}, for {leads}");
        }
        self.say("", &Line::Listening { at: local.to_string(), node: Some(node), leads });
        Ok(())
    }

    fn stats(&self, interval: Duration, counters: &Counters, before: &Counters) {
        let rate = |now: u64, before: u64| {
            Rate::over(ByteCount::new(now.saturating_sub(before)), interval)
        };
        let sent = rate(counters.bytes_sent, before.bytes_sent);
        let received = rate(counters.bytes_received, before.bytes_received);
        let Counters { connections, line, .. } = counters;
        let mut text = format!(
            "{connections} connections; {:.1} MB sent, {sent}; {:.1} MB received, {received}; {} \
            symbols sent again, {} repaired",
            counters.bytes_sent as f64 / 1e6,
            counters.bytes_received as f64 / 1e6,
            line.symbols_repeated,
            line.symbols_repaired,
        );
        text.push_str(&datagrams(counters));
        let (seconds, sent_bps, received_bps) =
            (interval.as_secs_f64(), sent.as_bps(), received.as_bps());
        self.say(&text, &Line::Stats { seconds, sent_bps, received_bps, counters });
    }

    /// Standard output and error may be closed; the connections go on.
    fn say(&self, text: &str, line: &Line<'_>) {
        if self.format == OutputFormat::Text {
            stamped::say(text);
        } else if let Ok(line) = serde_json::to_string(line) {
            log::print(&format!("{line}\n"));
        }
    }
}

/// Of datagrams, where there were any.
fn datagrams(counters: &Counters) -> String {
    let DatagramCounters { sent, received, late, dropped } = counters.datagrams;
    match sent + received + late + dropped {
        0 => String::new(),
        _ => {
            format!("; datagrams: {sent} sent, {received} received, {late} late, {dropped} dropped")
        }
    }
}
