//! The list of commands that `skyhaul --help` shows, grouped by task.

use clap::Command;
use std::fmt::Write;

/// A task and the commands that serve it, in the order in which they are shown.
pub struct TaskGroup {
    /// What a user wants to do.
    pub task: &'static str,
    /// The names of the commands.
    pub commands: &'static [&'static str],
}

/// `command` with its subcommands grouped by task in its help.
pub fn grouped(command: Command) -> Command {
    let template = template(&command);
    command.help_template(template)
}

/// clap cannot group subcommands, so the template has their list as text.
fn template(command: &Command) -> String {
    let (header, literal) = (command.get_styles().get_header(), command.get_styles().get_literal());
    let width = GROUPS.iter().flat_map(|group| group.commands).map(|name| name.len()).max();
    let mut template = "{about-with-newline}\n{usage-heading} {usage}\n\n".to_owned();
    for group in GROUPS {
        let _ = writeln!(template, "{header}{}:{header:#}", group.task);
        for name in group.commands {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            let about = about.map_or(String::new(), ToString::to_string);
            let space = width.unwrap_or(0) - name.len();
            let _ = writeln!(template, "  {literal}{name}{literal:#}{:space$}  {about}", "");
        }
        template.push('\n');
    }
    let _ = write!(template, "{header}Options:{header:#}\n{{options}}\n\n{HINT}{{after-help}}");
    template
}

/// A test holds that each command is in exactly one group.
pub const GROUPS: [TaskGroup; 10] = [
    TaskGroup {
        task: "Move data",
        commands: &["cp", "sync", "files", "forward", "stream", "one-way"],
    },
    TaskGroup {
        task: "Capture and decode",
        commands: &["decode", "packets", "rdr", "replay", "generate"],
    },
    TaskGroup { task: "Know far nodes", commands: &["pair", "node"] },
    TaskGroup {
        task: "Run a node",
        commands: &["run", "keygen", "key", "config", "upgrade", "serve", "web"],
    },
    TaskGroup {
        task: "Look at a node",
        commands: &[
            "status", "nodes", "alarms", "events", "audit", "gaps", "passes", "path", "history",
            "report",
        ],
    },
    TaskGroup { task: "Keep products", commands: &["catalogue", "archive", "reprocess"] },
    TaskGroup {
        task: "Deliver products",
        commands: &["deliveries", "destination", "subscription", "pdr"],
    },
    TaskGroup { task: "Measure a line", commands: &["probe", "perf", "why", "tune"] },
    TaskGroup { task: "Install the program", commands: &["completions", "man"] },
    TaskGroup { task: "Simulate", commands: &["demo", "lab", "emulate"] },
];

const HINT: &str = "`skyhaul COMMAND --help` shows the flags of a command, with examples.";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Arguments;
    use clap::CommandFactory;

    #[test]
    fn each_command_is_in_exactly_one_group() {
        let command = Arguments::command();
        let mut known: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
        let mut grouped: Vec<&str> =
            GROUPS.iter().flat_map(|group| group.commands).copied().collect();
        known.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(grouped, known);
    }

    #[test]
    fn the_help_fits_80_columns_and_ends_with_the_exit_codes() {
        let help = grouped(Arguments::command()).render_help().to_string();
        for line in help.lines().take_while(|line| !line.starts_with("Exit codes:")) {
            assert!(line.chars().count() <= 80, "{line}");
        }
        let codes = help.find("Exit codes:\n").expect("the exit codes are shown");
        for group in GROUPS {
            assert!(help.find(group.task).is_some_and(|place| place < codes), "{}", group.task);
        }
        assert!(help.trim_end().ends_with("interrupted before a result"), "{help}");
    }
}
