//! `[history]`: how long the figures of the node are kept.

use crate::section::section;
use skyhaul_units::Duration;

section! {
    /// Keeps the figures that the page draws, and `skyhaul history` prints, in the folder `history`
    /// of the state folder: of each minute for 48 h, of each hour for `keep`. With 400 d it takes
    /// 62 MB from the start, and never more than 64 MB. A node with a `[web]` keeps its history
    /// without this table too.
    "[history]" HistoryEntry checked by HistoryEntry::check {
        /// How long hours are kept, from 2 d to 4000 d. A day takes 119 kB.
        keep: Duration => "400 d",
    }
}

const KEEP_MIN: Duration = Duration::from_secs(2 * 86_400);
/// Eleven years: half a gigabyte.
const KEEP_MAX: Duration = Duration::from_secs(4_000 * 86_400);

impl HistoryEntry {
    fn check(&self) -> Result<(), String> {
        if (KEEP_MIN..=KEEP_MAX).contains(&self.keep) {
            return Ok(());
        }
        Err("history is kept from 2 d to 4000 d; write one like keep = \"400 d\"".to_owned())
    }

    /// The rows of hours.
    pub fn hours(&self) -> u32 {
        u32::try_from(self.keep.as_millis() / 3_600_000).unwrap_or(u32::MAX)
    }
}

impl Default for HistoryEntry {
    fn default() -> Self {
        crate::section::left_out()
    }
}

#[cfg(test)]
mod tests {
    use crate::parse;
    use std::path::Path;

    const NODE: &str = "[node]\nname = \"n\"\nkey = \"k\"\nstate = \"s\"\n\
                        [[listen]]\nbind = \"127.0.0.1:4700\"\n";

    #[test]
    fn a_node_with_a_page_or_the_table_keeps_its_history() {
        let read = |text: &str| parse(&format!("{NODE}{text}"), Path::new("/etc/node.toml"));
        assert_eq!(read("").unwrap().history, None);
        for text in ["[web]\nbind = \"127.0.0.1:8480\"\n", "[history]\n"] {
            assert_eq!(read(text).unwrap().history.map(|entry| entry.hours()), Some(9_600));
        }
        let kept = read("[history]\nkeep = \"2 d\"\n").unwrap().history.unwrap();
        assert_eq!(kept.hours(), 48);
        let refused = read("[history]\nkeep = \"1 d\"\n").unwrap_err().to_string();
        assert!(refused.contains("from 2 d to 4000 d"), "{refused}");
    }
}
