//! The commands and configuration files that the documentation shows, run as they stand.
//!
//! A fence ```` ```toml file=NAME ```` is written to NAME; each `$ ` line of a ```` ```console ````
//! fence is run where those files are and must succeed, and each line below it must stand at the
//! beginning of a line of the output, in order. A page's fences run in one folder, from top to
//! bottom; the checkout's `testdata` is in it.

use crate::support::help::listed_commands;
use crate::support::process::{skyhaul, text};
use std::path::Path;

#[test]
fn the_commands_of_every_page_work() {
    let mut commands = 0;
    for page in pages() {
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(docs().join("../testdata"), folder.path().join("testdata"))
            .unwrap();
        for (info, body) in fences(&page.1) {
            match info.split_once(' ') {
                Some(("toml", file)) if file.starts_with("file=") => {
                    std::fs::write(folder.path().join(file.trim_start_matches("file=")), body)
                        .unwrap();
                }
                None if info == "console" => commands += run(&page.0, &body, folder.path()),
                _ => {}
            }
        }
    }
    assert!(commands > 0, "no page shows a command");
}

#[test]
fn the_command_page_lists_every_command_and_the_exit_codes_of_the_program() {
    let page = std::fs::read_to_string(docs().join("reference/commands.md")).unwrap();
    let help = output("skyhaul --help", Path::new("."));
    let commands = listed_commands(&help);
    assert!(commands.len() > 20, "{help}");
    for name in commands {
        assert!(page.contains(&format!("| `skyhaul {name}")), "{name}");
    }
    let (_, codes) = help.split_once("Exit codes:\n").unwrap();
    for line in codes.lines() {
        let (code, meaning) = line.trim().split_once(' ').unwrap();
        assert!(page.contains(&format!("| {code} | {} |", meaning.trim())), "{line}");
    }
}

/// Runs the fence's commands and returns how many there were.
fn run(page: &str, fence: &str, folder: &Path) -> usize {
    let mut commands = 0;
    for part in fence.split("$ ").skip(1) {
        let (command, expected) = part.split_once('\n').unwrap_or((part, ""));
        let printed = output(command, folder);
        let mut lines = printed.lines();
        for line in expected.lines().filter(|line| !line.is_empty()) {
            assert!(
                lines.any(|shown| shown.starts_with(line)),
                "{page}: `{command}` does not print `{line}`:\n{printed}"
            );
        }
        commands += 1;
    }
    commands
}

/// What `command` prints; it must succeed. The commands of the pages need no shell: words are
/// divided by spaces.
fn output(command: &str, folder: &Path) -> String {
    let words: Vec<&str> = command.split_whitespace().collect();
    let Some(("skyhaul", arguments)) = words.split_first().map(|(first, rest)| (*first, rest))
    else {
        panic!("`{command}`: pages run this program only");
    };
    // The pages' own user: what they write is in the folder of the page.
    let config = folder.join("config");
    let output = skyhaul(arguments, folder).env("XDG_CONFIG_HOME", config).output();
    let output = output.expect("the program starts");
    assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

/// The fences of a page: what stands behind the opening marks, and the body.
fn fences(page: &str) -> Vec<(String, String)> {
    let mut fences = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if let Some(info) = line.strip_prefix("```") {
            let body = lines.by_ref().take_while(|line| !line.starts_with("```"));
            fences.push((info.to_owned(), body.map(|line| format!("{line}\n")).collect()));
        }
    }
    fences
}

fn pages() -> Vec<(String, String)> {
    let folders = ["", "how-to", "reference", "explanation"].map(|folder| docs().join(folder));
    let entries = folders
        .iter()
        .flat_map(|folder| std::fs::read_dir(folder).expect("the pages are readable"));
    let paths = entries.map(|entry| entry.expect("the pages are readable").path());
    let pages = paths.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    pages
        .map(|path| {
            (path.display().to_string(), std::fs::read_to_string(path).expect("a page is UTF-8"))
        })
        .collect()
}

fn docs() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs"))
}
