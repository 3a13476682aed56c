//! Reads the list of commands in a help text.

/// The commands that `help` lists, under one heading or grouped by task; `help` itself is left out.
///
/// A command begins two columns in; its description, where it is wrapped, further in. The names of
/// arguments stand as far in as commands, but begin with `<` or `[`.
pub fn listed_commands(help: &str) -> Vec<&str> {
    let (_, rest) = help.split_once("\nUsage:").expect("a help text shows the usage");
    let (lists, _) = rest.split_once("\nOptions:").expect("a help text shows the options");
    lists
        .lines()
        .filter_map(|line| line.strip_prefix("  "))
        .filter(|line| line.starts_with(|first: char| first.is_ascii_lowercase()))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect()
}
