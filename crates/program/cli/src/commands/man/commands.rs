//! The pages of section 1: one for the program, one for each command.

use super::ManualPage;
use super::text::{self, PREAMBLE, body, generated, sentence};
use crate::help::GROUPS;
use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use skyhaul_exit::Exit;
use std::io;

/// The pages of `program` and of all commands below it.
///
/// # Errors
/// Never: pages are made in memory.
pub fn pages(program: Command, date: &str) -> Result<Vec<ManualPage>, io::Error> {
    let mut program = program.disable_help_subcommand(true);
    program.build();
    let version = program.get_version().unwrap_or_default();
    let manual = Manual { source: format!("skyhaul {version}"), date: date.to_owned() };
    let mut pages = Vec::new();
    let mut left = vec![(&program, None)];
    while let Some((command, above)) = left.pop() {
        pages.push(manual.page(command, above)?);
        let name = Some(full_name(command));
        left.extend(command.get_subcommands().map(|below| (below, name.clone())));
    }
    Ok(pages)
}

/// What all pages have at their head and foot.
struct Manual {
    source: String,
    date: String,
}

impl Manual {
    fn page(&self, command: &Command, above: Option<String>) -> Result<ManualPage, io::Error> {
        let name = full_name(command);
        let man = Man::new(command.clone()).title(name.to_uppercase()).date(&self.date);
        let man = man.source(&self.source).manual("Skyhaul");
        let mut page = PREAMBLE.to_owned();
        page += &generated(|out| man.render_title(out))?;
        page += &generated(|out| man.render_name_section(out))?;
        page += &generated(|out| man.render_synopsis_section(out))?;
        page += &generated(|out| man.render_description_section(out))?;
        if command.get_arguments().next().is_some() {
            page += &generated(|out| man.render_options_section(out))?;
        }
        page += &commands(command);
        let (notes, examples) = after_help(command);
        if let Some(notes) = notes {
            page += &paragraphs("NOTES", &notes);
        }
        if let Some(examples) = examples {
            page += &text::verbatim("EXAMPLES", &examples);
        }
        page += &exit_status();
        page += &see_also(command, above.as_deref());
        Ok(ManualPage { name, section: 1, text: page })
    }
}

/// `skyhaul-config-check`.
fn full_name(command: &Command) -> String {
    command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned()
}

/// The list of the commands below this one: those of the program by task.
fn commands(command: &Command) -> String {
    let below: Vec<&Command> = command.get_subcommands().collect();
    if below.is_empty() {
        return String::new();
    }
    let mut roff = Roff::new();
    roff.control("SH", ["COMMANDS"]);
    let write = |roff: &mut Roff, one: &Command| {
        roff.control("TP", []).text([bold(full_name(one)), roman("(1)")]);
        roff.text(sentence(&one.get_about().map_or(String::new(), ToString::to_string)));
    };
    if command.get_name() != "skyhaul" {
        below.into_iter().for_each(|one| write(&mut roff, one));
        return body(&roff);
    }
    for group in GROUPS {
        roff.control("SS", [group.task]);
        let found = group.commands.iter().filter_map(|name| command.find_subcommand(name));
        found.for_each(|one| write(&mut roff, one));
    }
    body(&roff)
}

/// What the help of a command ends with: sentences, and examples. The codes below the help of the
/// program have a section of their own.
fn after_help(command: &Command) -> (Option<String>, Option<String>) {
    let after = command.get_after_long_help().or(command.get_after_help());
    let after = after.map_or(String::new(), ToString::to_string);
    if after == Exit::TABLE {
        return (None, None);
    }
    let (notes, examples) = match after.split_once("Example:\n") {
        Some((notes, examples)) => (notes.to_owned(), Some(examples.to_owned())),
        None => (after, None),
    };
    ((!notes.trim().is_empty()).then_some(notes), examples)
}

fn paragraphs(heading: &str, text: &str) -> String {
    let mut roff = Roff::new();
    roff.control("SH", [heading]);
    for (place, paragraph) in text.trim().split("\n\n").enumerate() {
        if place > 0 {
            roff.control("PP", []);
        }
        for line in paragraph.lines() {
            roff.text(sentence(line));
        }
    }
    body(&roff)
}

/// The exit codes, as the help of the program has them.
fn exit_status() -> String {
    let mut roff = Roff::new();
    roff.control("SH", ["EXIT STATUS"]);
    for line in Exit::TABLE.lines().skip(1) {
        let (code, meaning) = line.trim().split_once(' ').unwrap_or((line, ""));
        roff.control("TP", []).text([bold(code)]).text(sentence(meaning));
    }
    body(&roff)
}

fn see_also(command: &Command, above: Option<&str>) -> String {
    let mut roff = Roff::new();
    roff.control("SH", ["SEE ALSO"]);
    let mut others: Vec<String> = above.map(|name| format!("{name}(1)")).into_iter().collect();
    others.extend(above.filter(|name| *name != "skyhaul").map(|_| "skyhaul(1)".to_owned()));
    if above.is_none() || READS_THE_FILE.contains(&command.get_name()) {
        others.push("skyhaul-node.toml(5)".to_owned());
    }
    if above.is_none() || command.get_name() == "node" {
        others.push("skyhaul-nodes.toml(5)".to_owned());
    }
    roff.text([roman(others.join(", "))]);
    body(&roff)
}

/// Commands whose argument is the file of a node.
const READS_THE_FILE: [&str; 6] = ["run", "config", "check", "explain", "keys", "systemd"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_and_examples_are_told_apart() {
        let command = Command::new("x").after_help("One.\n\nExample:\n  skyhaul x");
        let (notes, examples) = after_help(&command);
        assert_eq!(notes.as_deref(), Some("One.\n\n"));
        assert_eq!(examples.as_deref(), Some("  skyhaul x"));
        assert_eq!(after_help(&Command::new("x").after_help(Exit::TABLE)), (None, None));
        assert_eq!(paragraphs("NOTES", "a `b`\n\nc"), ".SH NOTES\na \\fBb\\fR\n.PP\nc\n");
    }

    #[test]
    fn each_command_below_has_a_page_with_its_full_name() {
        let check = Command::new("check").about("Checks.");
        let below = Command::new("config").about("Files.").subcommand(check);
        let program = Command::new("skyhaul").about("Moves data.").subcommand(below);
        let pages = pages(program, "2026-11-27").unwrap();
        let mut names: Vec<&str> = pages.iter().map(|page| &*page.name).collect();
        names.sort_unstable();
        assert_eq!(names, ["skyhaul", "skyhaul-config", "skyhaul-config-check"]);
        let check = pages.iter().find(|page| page.name == "skyhaul-config-check").unwrap();
        assert!(check.text.contains("skyhaul\\-config(1), skyhaul(1), skyhaul\\-node.toml(5)"));
    }
}
