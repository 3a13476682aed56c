//! What is said while connections are forwarded: for people on standard error, for programs as lines of JSON.

use crate::failure::{Exit, Failure};
use serde::Serialize;
use skyhaul_net::forward::{Counters, Notice};
use std::cell::RefCell;
use std::io::Write;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Takes notices, and remembers one that ends the run.
#[derive(Clone)]
pub struct Notices {
    json: bool,
    stop: Arc<AtomicBool>,
    failure: Rc<RefCell<Option<Failure>>>,
}

/// A line for programs.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
enum Line<'a> {
    NodeUp { node: &'a str },
    NodeDown { node: &'a str, reason: &'a str },
    Called { node: &'a str },
    Left { reason: &'a str },
    TurnedAway { remote: String, reason: &'a str },
    Refused { target: String, reason: &'static str, sentence: &'a str },
    Summary { counters: &'a Counters },
}

impl Notices {
    /// Prints text, or `json`; sets `stop` where there is nothing to go on with.
    pub fn new(json: bool, stop: Arc<AtomicBool>) -> Self {
        Self { json, stop, failure: Rc::default() }
    }

    /// For a forwarder.
    pub fn listener(&self) -> Box<dyn FnMut(&Notice)> {
        let this = self.clone();
        Box::new(move |notice| this.take(notice))
    }

    /// Prints the account of the run.
    ///
    /// # Errors
    /// What ended it.
    pub fn finish(&self, counters: &Counters) -> Result<(), Failure> {
        if let Some(failure) = self.failure.borrow_mut().take() {
            return Err(failure);
        }
        let Counters { accepted, connected, refused, reset, .. } = counters;
        let (sent, received) = (counters.bytes_sent as f64 / 1e6, counters.bytes_received as f64 / 1e6);
        let text = format!(
            "{accepted} accepted, {connected} connected, {refused} refused, {reset} reset; {sent:.1} MB sent, {received:.1} MB received"
        );
        self.say(&text, &Line::Summary { counters });
        Ok(())
    }

    fn take(&self, notice: &Notice) {
        match notice {
            Notice::NodeDown { node, was_up: false, reason } => {
                let what = format!("the far node `{node}` does not answer or refuses ({reason})");
                let help = "see that it runs `skyhaul forward serve`, that --node is its address and --peer its key, and \
                            that it knows this node's key";
                self.failure.borrow_mut().get_or_insert(Failure::new(Exit::Peer, &what, help));
                self.stop.store(true, Ordering::Relaxed);
            }
            Notice::NodeUp { node } => self.say(&format!("{node} is connected"), &Line::NodeUp { node }),
            Notice::NodeDown { node, reason, .. } => {
                let text = format!("{node} is gone ({reason}); it is called again");
                self.say(&text, &Line::NodeDown { node, reason });
            }
            Notice::Called { node } => self.say(&format!("{node} has called"), &Line::Called { node }),
            Notice::Left { reason } => {
                self.say(&format!("a caller is gone ({reason})"), &Line::Left { reason });
            }
            Notice::TurnedAway { remote, reason } => {
                let line = Line::TurnedAway { remote: remote.to_string(), reason };
                self.say(&format!("refused {remote}: {reason}"), &line);
            }
            Notice::Refused { target, reason, sentence } => {
                let line = Line::Refused { target: target.to_string(), reason: reason.name(), sentence };
                self.say(&format!("{target} was not connected: {sentence}"), &line);
            }
        }
    }

    /// Standard output and error may be closed: the connections go on all the same.
    fn say(&self, text: &str, line: &Line<'_>) {
        if !self.json {
            let _ = writeln!(std::io::stderr(), "{text}");
        } else if let Ok(line) = serde_json::to_string(line) {
            let _ = writeln!(std::io::stdout(), "{line}");
        }
    }
}
