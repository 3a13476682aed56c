//! The reload matrix: each key of the file, as it was, changed, added and removed. It applies at
//! once or is named as needing a restart, as the reference says.

use crate::{centre, station};
use skyhaul_config::{Applies, CentreConfig, NodeConfig, StationConfig};
use std::collections::{BTreeMap, BTreeSet};

/// A line `key = value # or OTHER` of the file, and the table that it is in.
struct Line {
    number: usize,
    heading: String,
    key: String,
    comment: Comment,
}

/// What the comment of a line says.
enum Comment {
    /// The key stays as it is.
    None,
    /// Another value, and what a file is without the key.
    Other(String, Without),
    /// There is no other value; the key may be left out.
    OnlyRemoved,
    /// Another value, which waits for a restart in this table.
    AtStart(String),
}

/// What a file is without a key.
#[derive(PartialEq)]
enum Without {
    Legal,
    Refused,
}

/// Two configurations of which one key, or one table, is the difference.
struct Difference {
    what: String,
    heading: String,
    key: Option<String>,
    is_at_start: bool,
    before: String,
    new: String,
}

const EVERY_KEY: &str = include_str!("every_key.toml");

fn parse(text: &str) -> Option<NodeConfig> {
    // A fingerprint has 64 digits; the file has the first two.
    let whole = text.replace("\"SHA256:", &format!("\"SHA256:{}", "0".repeat(62)));
    skyhaul_config::parse(&whole, "/etc/node.toml".as_ref()).ok()
}

fn lines() -> Vec<Line> {
    let (mut heading, mut found) = ("Before the first table".to_owned(), Vec::new());
    for (number, line) in EVERY_KEY.lines().enumerate() {
        if line.starts_with('[') {
            line.clone_into(&mut heading);
        }
        let Some((key, rest)) = line.split_once(" = ").filter(|_| !line.starts_with('#')) else {
            continue;
        };
        let written = rest.split_once(" # ").map_or("", |(_, comment)| comment);
        let comment = match written.split_once(' ') {
            None => Comment::None,
            Some(("or", other)) => Comment::Other(other.to_owned(), Without::Legal),
            Some(("needed", other)) => Comment::Other(other.to_owned(), Without::Refused),
            Some(("only", _)) => Comment::OnlyRemoved,
            Some((_, other)) => Comment::AtStart(other.trim_start_matches("start ").to_owned()),
        };
        found.push(Line { number, heading: heading.clone(), key: key.to_owned(), comment });
    }
    found
}

/// The file without line `number`, or with another one there.
fn with(number: usize, line: Option<&str>) -> String {
    let lines = EVERY_KEY.lines().enumerate();
    let changed = lines.filter_map(|(nth, old)| if nth == number { line } else { Some(old) });
    changed.fold(String::new(), |text, line| text + line + "\n")
}

/// Each key of the file changed, removed and added.
fn differences_of_keys() -> Vec<Difference> {
    let mut found = Vec::new();
    for Line { number, heading, key, comment } in lines() {
        let mut differ = |what: &str, before: &str, new: String| {
            found.push(Difference {
                what: format!("`{key}` of {heading} {what}"),
                heading: heading.clone(),
                key: Some(key.clone()),
                is_at_start: matches!(comment, Comment::AtStart(_)),
                before: before.to_owned(),
                new,
            });
        };
        if let Comment::Other(other, _) | Comment::AtStart(other) = &comment {
            differ("changed", EVERY_KEY, with(number, Some(&format!("{key} = {other}"))));
        }
        let without = with(number, None);
        if matches!(comment, Comment::Other(_, Without::Legal) | Comment::OnlyRemoved) {
            differ("removed", EVERY_KEY, without.clone());
            differ("added", &without, EVERY_KEY.to_owned());
        } else if matches!(comment, Comment::Other(_, Without::Refused)) {
            assert!(parse(&without).is_none(), "{heading} without `{key}` is refused");
        }
    }
    found
}

/// Each table of the file removed and added, where the rest is legal without it.
fn differences_of_tables() -> Vec<Difference> {
    let lines: Vec<&str> = EVERY_KEY.lines().collect();
    let starts = (0..lines.len()).filter(|nth| lines[*nth].starts_with('['));
    let mut found = Vec::new();
    for start in starts {
        // With the tables of this entry.
        let inner = lines[start].trim_matches(['[', ']']);
        let is_next = |line: &&str| {
            let heading = line.trim_start_matches('[');
            line.starts_with('[') && !heading.starts_with(&format!("{inner}."))
        };
        let len = lines[start + 1..].iter().position(is_next);
        let end = len.map_or(lines.len(), |len| start + 1 + len);
        let without = [&lines[..start], &lines[end..]].concat().join("\n");
        if parse(&without).is_none() {
            continue;
        }
        let heading = lines[start].to_owned();
        for (what, before, new) in
            [("removed", EVERY_KEY, &without[..]), ("added", &without, EVERY_KEY)]
        {
            found.push(Difference {
                what: format!("{heading} at line {} {what}", start + 1),
                heading: heading.clone(),
                key: None,
                is_at_start: false,
                before: before.to_owned(),
                new: new.to_owned(),
            });
        }
    }
    found
}

/// What a node does that runs with `before`, and whose file says `new` now.
struct Outcome {
    in_force: NodeConfig,
    waits: Vec<String>,
    /// The threads get something else.
    is_applied: bool,
}

fn outcome(before: &NodeConfig, file: &NodeConfig) -> Outcome {
    let parts = |config: &NodeConfig| -> (StationConfig, CentreConfig) {
        let station = config.station.as_deref().expect("it has a destination").clone();
        (station, config.centre.as_deref().expect("it has a [[listen]]").clone())
    };
    let (old, new) = (parts(before), parts(file));
    let sent = station::reload::plan(&old.0, &new.0);
    let received = centre::reload::plan_from(&old.1, &new.1);
    let handed = |station: &StationConfig, centre: &CentreConfig| {
        let sent = station::reload::handed_over(station);
        (sent, centre::reload::handed_over(&old.1, centre))
    };
    let mut blocks = before.blocks.clone();
    if let (Some(blocks), Some(new)) = (&mut blocks, &file.blocks) {
        blocks.allow.clone_from(&new.allow);
    }
    let mut waits = crate::blocks::waiting(before.blocks.as_ref(), file.blocks.as_ref());
    waits.extend(crate::serve::waiting(before.serve.as_ref(), file.serve.as_ref()));
    waits.extend(crate::web::waiting(before.web.as_ref(), file.web.as_ref()));
    waits.extend(crate::history::waiting(before.history.as_ref(), file.history.as_ref()));
    waits.extend(crate::notices::waiting(&before.notices, &file.notices));
    let parts = (&sent.in_force, &received.in_force);
    Outcome {
        is_applied: handed(&old.0, &old.1) != handed(parts.0, parts.1)
            || blocks != before.blocks
            || file.status != before.status
            || file.plans != before.plans,
        waits: [sent.waits, received.waits, waits].concat(),
        in_force: NodeConfig {
            blocks,
            serve: before.serve.clone(),
            web: before.web.clone(),
            history: before.history.clone(),
            status: file.status.clone(),
            notices: before.notices.clone(),
            plans: file.plans.clone(),
            node: sent.in_force.node.clone(),
            station: Some(Box::new(sent.in_force)),
            centre: Some(Box::new(received.in_force)),
        },
    }
}

/// How the log names a table that waits.
fn name_of(heading: &str) -> &str {
    match heading {
        "Before the first table" => "`missions`",
        "[[channel]]" | "[[channel.inputs]]" => "channel ",
        "[peer.files]" | "[peer.streams]" => "[peer.files] or [peer.streams] of peer ",
        table => table,
    }
}

fn applies() -> BTreeMap<&'static str, Applies> {
    let [(_, tables), _] = skyhaul_config::reference();
    tables.iter().map(|table| (table.heading, table.applies)).collect()
}

#[test]
fn the_file_of_the_matrix_has_every_key() {
    let mut has: BTreeSet<(String, String)> =
        lines().into_iter().map(|line| (line.heading, line.key)).collect();
    let tables = [
        ("[[peer]]", "files"),
        ("[[peer]]", "streams"),
        ("[[path]]", "outage"),
        ("[[path]]", "map"),
        ("[blocks]", "allow"),
        ("[[subscription]]", "file_types"),
        ("[[subscription]]", "answer"),
        ("[[subscription]]", "retry"),
    ];
    has.extend(tables.map(|(heading, key)| (heading.to_owned(), key.to_owned())));
    let [(_, tables), _] = skyhaul_config::reference();
    for table in tables {
        for key in table.keys {
            let one = (table.heading.to_owned(), key.name.to_owned());
            assert!(has.contains(&one), "`{}` of {} is missing", key.name, table.heading);
        }
    }
    assert!(parse(EVERY_KEY).is_some(), "the file is legal");
}

#[test]
fn a_file_that_is_the_same_changes_nothing_and_nothing_waits() {
    let config = parse(EVERY_KEY).expect("the file is legal");
    let outcome = outcome(&config, &config);
    assert_eq!(outcome.waits, Vec::<String>::new());
    assert!(outcome.in_force == config && !outcome.is_applied);
}

/// What is wrong with what a node does about a difference.
fn fault_of_key(difference: &Difference, applies: Applies) -> Option<String> {
    let Difference { what, heading, key, is_at_start, before, new } = difference;
    let key = key.as_deref().unwrap_or_default();
    let (Some(before), Some(new)) = (parse(before), parse(new)) else {
        return Some(format!("{what}: is not legal"));
    };
    if before == new {
        return Some(format!("{what}: nothing differs"));
    }
    let Outcome { in_force, waits, is_applied } = outcome(&before, &new);
    let fault = if applies.is_at_once(key) && !is_at_start {
        // Only nodes that are called need an address, and those that call here are not.
        let is_handed_over = is_applied || key == "addresses";
        let is_in_force = in_force == new && waits.is_empty();
        (!is_in_force || !is_handed_over).then_some("does not apply at once")
    } else {
        let is_named = waits.iter().any(|name| name.contains(name_of(heading)));
        (!is_named).then_some("is not named")
    };
    fault.map(|fault| format!("{what}: {fault}, {waits:?}"))
}

#[test]
fn each_key_that_differs_applies_at_once_or_waits_by_name_as_the_reference_says() {
    let applies = applies();
    let differences = differences_of_keys();
    assert!(differences.len() > 400, "{}", differences.len());
    let faults: Vec<String> =
        differences.iter().filter_map(|one| fault_of_key(one, applies[&one.heading[..]])).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn each_table_that_appears_or_goes_applies_at_once_or_waits_by_name() {
    let differences = differences_of_tables();
    assert!(differences.len() > 50, "{}", differences.len());
    let mut faults = Vec::new();
    for Difference { what, heading, before, new, .. } in differences {
        let read = |text: &str| parse(text).expect("it was tried");
        let (before, new) = (read(&before), read(&new));
        let Outcome { in_force, waits, is_applied } = outcome(&before, &new);
        let names: Vec<&str> = match &heading[..] {
            "[[peer]]" => vec!["[[peer]]", name_of("[peer.files]")],
            other => vec![name_of(other)],
        };
        let is_named = waits.iter().any(|wait| names.iter().any(|name| wait.contains(name)));
        let is_at_once = in_force == new && is_applied && waits.is_empty();
        if before == new || is_named == is_at_once {
            faults.push(format!("{what}: {waits:?}"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
