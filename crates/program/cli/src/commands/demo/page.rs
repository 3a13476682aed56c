//! The pages of the demonstration's nodes, for a browser, and how long they stay.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use skyhaul_node::status::ask;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the nodes have pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DemoPage {
    /// They have, each at a port that the system chooses.
    Shown,
    /// They have none.
    Left,
}

/// What ends the nodes when all data has arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageHold {
    /// Nothing is waited for.
    Ends,
    /// Enter, or an interrupt.
    Enter,
}

/// What the flag `--no-page` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoPage {
    Given,
    NotGiven,
}

impl From<bool> for NoPage {
    fn from(is_given: bool) -> Self {
        if is_given { Self::Given } else { Self::NotGiven }
    }
}

impl DemoPage {
    /// As the flag says.
    pub const fn of(flag: NoPage) -> Self {
        match flag {
            NoPage::Given => Self::Left,
            NoPage::NotGiven => Self::Shown,
        }
    }

    /// Somebody who sits at a terminal says when to end.
    pub fn hold(self) -> PageHold {
        match self {
            Self::Shown if io::stdin().is_terminal() => PageHold::Enter,
            Self::Shown | Self::Left => PageHold::Ends,
        }
    }

    /// The table of a node's configuration.
    pub const fn table(self) -> &'static str {
        match self {
            Self::Shown => "\n[web]\nbind = \"127.0.0.1:0\"\n",
            Self::Left => "",
        }
    }
}

/// The address of the page of the node that answers at this socket; none where it has none.
pub fn address(socket: &Path) -> Option<String> {
    Some(ask(socket).ok()?.web?.address)
}

/// Waits for Enter, the end of standard input, or an interrupt.
///
/// # Errors
/// Standard output takes no more.
pub fn wait_for_enter(interrupted: &AtomicBool, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "All data has arrived. The pages stay open until you press Enter.")?;
    out.flush()?;
    let stdin = io::stdin();
    while !interrupted.load(Ordering::Relaxed) {
        let step = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
        let mut ready = [PollFd::new(&stdin, PollFlags::IN)];
        if poll(&mut ready, Some(&step)).is_ok_and(|count| count > 0) {
            let mut line = String::new();
            stdin.read_line(&mut line)?;
            return Ok(());
        }
    }
    Ok(())
}
