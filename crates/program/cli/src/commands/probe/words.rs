//! Formats of measured figures for people.

use skyhaul_probe::StreamAccount;
pub use skyhaul_probe::report::{bytes, loss, percent, percent_of, rate, reordering, spread};
use std::io::{self, Write};

/// The fate of all datagrams, one a line; their sum is the number sent.
pub fn account(name: &str, account: &StreamAccount, out: &mut dyn Write) -> io::Result<()> {
    let host = account.receiving_host;
    writeln!(out, "datagrams {name}")?;
    for (count, what) in [
        (account.offered, "sent"),
        (account.dropped_by_sender, "dropped in the sending socket"),
        (account.dropped_in_sending_queue, "dropped in the sending host's queue"),
        (account.lost_on_path, "lost on the path"),
        (host.card, "dropped in the receiving network card's ring"),
        (host.softnet, "dropped in the receiving processor's backlog"),
        (host.socket, "dropped in the receiving socket"),
        (account.received, "received"),
    ] {
        writeln!(out, "  {count:>10}  {what}")?;
    }
    writeln!(out, "  {:>10}  unexplained", account.unexplained)
}
