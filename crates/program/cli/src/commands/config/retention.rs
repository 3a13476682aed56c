//! How long products and contacts stay, in words.

use super::words::spoken;
use skyhaul_catalogue::{CopyRule, RetentionLeaves};
use skyhaul_config::RetentionEntry;
use std::io::{self, Write};

/// Says what one table does.
pub fn write(entry: &RetentionEntry, out: &mut dyn Write) -> io::Result<()> {
    let rule = entry.rule();
    let what = if rule.is_for_contacts() { "contacts" } else { "products" };
    let which = entry.filter.as_ref().map_or(String::new(), |filter| format!(" with {filter}"));
    let keep = rule.keep.map(|keep| format!("{} after {}", spoken(keep), rule.from.name()));
    let most = rule.max_size.map(|most| format!("beyond {most} together"));
    let when: Vec<String> = keep.into_iter().chain(most).collect();
    let copies = match rule.copies {
        CopyRule::None => "",
        CopyRule::One => ", never the last copy",
    };
    let record = match rule.leaves {
        RetentionLeaves::Record => "",
        RetentionLeaves::Nothing => ", without a record",
    };
    writeln!(out, "  removes    {what}{which} {}{copies}{record}", when.join(", and "))
}
