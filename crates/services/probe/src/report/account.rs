//! The account of datagrams as a table: the sum closes, and what it does not explain stands in a
//! line of its own.

use super::table;
use crate::account::StreamAccount;
use core::fmt::Write;
use skyhaul_page::escape;

/// A table of accounts, a column each; notes below.
pub(super) fn accounts(columns: &[(String, &StreamAccount)]) -> String {
    let mut heads = vec!["datagrams"];
    heads.extend(columns.iter().map(|(name, _)| name.as_str()));
    let row = |what: &str, of: &dyn Fn(&StreamAccount) -> i64| {
        let mut row = vec![what.to_owned()];
        row.extend(columns.iter().map(|(_, account)| of(account).to_string()));
        row
    };
    let rows = [
        row("dropped in the sending socket", &|account| signed(account.dropped_by_sender)),
        row("dropped in the sending host's queue", &|account| {
            signed(account.dropped_in_sending_queue)
        }),
        row("lost on the path", &|account| signed(account.lost_on_path)),
        row("dropped in the receiving network card's ring", &|account| {
            signed(account.receiving_host.card)
        }),
        row("dropped in the receiving processor's backlog", &|account| {
            signed(account.receiving_host.softnet)
        }),
        row("dropped in the receiving socket", &|account| signed(account.receiving_host.socket)),
        row("received", &|account| signed(account.received)),
        row("unexplained", &|account| account.unexplained),
        row("sum: sent", &|account| signed(account.offered)),
    ];
    let mut html = table("Where datagrams went", &heads, &rows, &[0]);
    for (name, account) in columns {
        for note in &account.notes {
            let _ = writeln!(html, "<p class=\"note\">{}: {}</p>", escape(name), escape(note));
        }
    }
    html
}

/// All of several accounts in one.
pub(super) fn total<'a>(accounts: impl Iterator<Item = &'a StreamAccount>) -> StreamAccount {
    let mut sum = StreamAccount::default();
    for account in accounts {
        sum.offered += account.offered;
        sum.dropped_by_sender += account.dropped_by_sender;
        sum.dropped_in_sending_queue += account.dropped_in_sending_queue;
        sum.lost_on_path += account.lost_on_path;
        sum.receiving_host.card += account.receiving_host.card;
        sum.receiving_host.softnet += account.receiving_host.softnet;
        sum.receiving_host.socket += account.receiving_host.socket;
        sum.received += account.received;
        sum.unexplained += account.unexplained;
    }
    sum
}

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
