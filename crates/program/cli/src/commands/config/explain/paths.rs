//! What is known of paths from outside: feeds of modems, contact plans, announced outages.

use super::super::words::spoken;
use skyhaul_config::StationConfig;
use std::io::{self, Write};

/// Writes what is known of each path of which anything is.
pub fn write(station: &StationConfig, out: &mut dyn Write) -> io::Result<()> {
    for path in station.paths() {
        if path.feed.is_none() && path.plan.is_none() && path.outage.is_none() {
            continue;
        }
        writeln!(out, "\npath {}", path.title())?;
        if let Some(feed) = &path.feed {
            let rows = path.map.iter().map(|rows| rows.0.len()).sum::<usize>();
            let plural = if rows == 1 { "" } else { "s" };
            let stale = spoken(path.feed_stale);
            writeln!(
                out,
                "  rate and loss from the feed {feed}, by {rows} row{plural} of its map"
            )?;
            writeln!(out, "    an alarm when the feed is silent for {stale}")?;
        }
        if let Some(plan) = &path.plan {
            writeln!(out, "  times and rates from the contact plan {}", plan.display())?;
            writeln!(out, "    between the times of the plan it carries nothing")?;
        }
        let outages = path.outages().len();
        if outages > 0 {
            writeln!(out, "  announced outages: {outages}")?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::tests::explained;

    #[test]
    fn what_is_known_of_paths_from_outside_is_explained() {
        let said = explained(
            "[[destination]]\nto = \"node:oper\"\n[[channel]]\nname = \"x\"\ninput = \
             \"stdin\"\n[[path]]\nname = \"dish\"\nfeed = \"file:/run/modem\"\nplan = \
             \"/plan.csv\"\n[[path.map]]\nrate = \"5 Mbit/s\"\n[[path]]\nname = \"fibre\"\n",
        );
        let part = "path dish\n  rate and loss from the feed file:/run/modem, by 1 row of its \
                    map\n    an alarm when the feed is silent for 5 s\n  times and rates from the \
                    contact plan /plan.csv\n    between the times of the plan it carries \
                    nothing\n";
        assert!(said.contains(part) && !said.contains("path fibre"), "{said}");
    }
}
