//! The limits and directions that hold the source together. They may only be tightened.
//!
//! The tests stand in the innermost crate, because that builds in seconds, and `make check` runs
//! them.

mod checkout;
mod circles;
mod parsed;
mod shapes;
mod walks;
mod words;

use std::collections::BTreeMap;

use checkout::{crate_of, files, manifests, none, ours, production, read, root, sources};

#[test]
fn no_file_is_longer_than_one_can_read_top_to_bottom() {
    let long = sources().into_iter().filter_map(|(path, text)| {
        let lines = production(&text).lines().count();
        (lines > MAX_PRODUCTION_LINES).then(|| format!("{} has {lines} lines", path.display()))
    });
    none(long, "split the file by concept");
}

#[test]
fn nothing_is_unfinished_ignored_or_exempt_from_the_limits() {
    let found = sources().into_iter().flat_map(|(path, text)| {
        let of = move |banned: &&str| {
            text.contains(*banned).then(|| format!("{}: {banned}", path.display()))
        };
        UNFINISHED.iter().filter_map(of).collect::<Vec<_>>()
    });
    none(found, "finish it, or shorten the function");
}

#[test]
fn every_source_file_says_what_it_is_for() {
    let headless = sources()
        .into_iter()
        .filter(|(path, text)| !path.ends_with("tests.rs") && !text.starts_with("//!"));
    none(headless.map(|(path, _)| path.display().to_string()), "begin the file with a `//!` head");
}

#[test]
fn the_core_reads_no_clock_file_socket_thread_or_environment() {
    let mut found = Vec::new();
    for (path, text) in sources() {
        let core = SANS_IO.contains(&crate_of(&path))
            && path.iter().nth(3).is_some_and(|part| part == "src");
        if !core || path.ends_with("tests.rs") {
            continue;
        }
        for (index, line) in production(&text).lines().enumerate() {
            let code = line.split("//").next().unwrap_or("");
            let banned = BANNED_IN_CORE.iter().filter(|banned| code.contains(**banned));
            found
                .extend(banned.map(|banned| format!("{}:{}: {banned}", path.display(), index + 1)));
        }
    }
    none(found.into_iter(), "take time and bytes as arguments");
}

#[test]
fn crates_use_only_what_lies_inside_them() {
    let mut found = Vec::new();
    for (name, manifest) in manifests() {
        let Some((_, allowed)) = USES.iter().find(|(known, _)| *known == name) else {
            found.push(format!("{name} is not in the list of this test"));
            continue;
        };
        for used in ours(&manifest, "dependencies") {
            if !allowed.contains(&used.as_str()) {
                found.push(format!("{name} uses {used}"));
            }
        }
    }
    none(found.into_iter(), "turn the dependency round, or pass the value as an argument");
}

#[test]
fn frames_and_the_line_do_not_know_each_other_even_in_tests() {
    let manifests = manifests();
    let both = |name: &str| {
        let manifest = manifests.get(name);
        ["dependencies", "dev-dependencies"]
            .map(|table| manifest.map_or(Vec::new(), |m| ours(m, table)))
            .concat()
    };
    assert!(!both("ccsds").contains(&"transport".to_owned()));
    assert!(!both("transport").contains(&"ccsds".to_owned()));
}

/// A name has one meaning (docs/glossary.md). The names below mean something in each crate: what
/// they are of.
#[test]
fn few_public_types_of_two_crates_share_a_name() {
    let mut crates: BTreeMap<String, std::collections::BTreeSet<String>> = BTreeMap::new();
    for (path, text) in sources() {
        if path.iter().nth(3).is_none_or(|part| part != "src") || path.ends_with("tests.rs") {
            continue;
        }
        for line in production(&text).lines() {
            let mut words = line.trim_start().split(|c: char| !c.is_alphanumeric() && c != '_');
            let kind = (words.next() == Some("pub")).then(|| words.next()).flatten();
            if kind.is_some_and(|kind| ["struct", "enum", "trait", "type"].contains(&kind)) {
                let name = words.next().unwrap_or_default().to_owned();
                crates.entry(name).or_default().insert(crate_of(&path).to_owned());
            }
        }
    }
    let shared = crates
        .into_iter()
        .filter(|(name, crates)| crates.len() > 1 && !USUAL.contains(&name.as_str()))
        // A macro's, which names it later.
        .filter(|(name, _)| !name.is_empty());
    let shared: Vec<String> = shared
        .map(|(name, crates)| {
            format!("{name}: {}", crates.into_iter().collect::<Vec<_>>().join(", "))
        })
        .collect();
    let most = MAX_SHARED_NAMES;
    assert!(
        shared.len() <= most,
        "{} names are of types of two crates, {most} may be: rename one of each\n  {}",
        shared.len(),
        shared.join("\n  ")
    );
    assert!(
        shared.len() + 5 > most,
        "only {} names are shared: lower MAX_SHARED_NAMES to that",
        shared.len()
    );
}

#[test]
fn one_crate_names_the_quic_library() {
    let naming = manifests().into_iter().filter(|(name, manifest)| {
        name != "quic"
            && manifest.get("dependencies").is_some_and(|table| table.get("noq-proto").is_some())
    });
    none(naming.map(|(name, _)| name), "use skyhaul-quic");
}

#[test]
fn unsafe_code_stands_where_nothing_else_will_do() {
    let elsewhere = sources().into_iter().filter(|(path, text)| {
        production(text).contains("unsafe_code") && !UNSAFE.contains(&crate_of(path))
    });
    none(
        elsewhere.map(|(path, _)| path.display().to_string()),
        "do it without, or let a crate of the list do it",
    );
}

#[test]
fn every_manifest_takes_the_shared_lints_and_version() {
    let loose = manifests().into_iter().filter(|(_, manifest)| {
        let shared = |table: &str, key: &str| {
            manifest.get(table).and_then(|t| t.get(key)).is_some_and(|value| {
                value.as_bool() == Some(true)
                    || value.get("workspace").and_then(toml::Value::as_bool) == Some(true)
            })
        };
        !(shared("lints", "workspace")
            && shared("package", "version")
            && shared("package", "license"))
    });
    none(loose.map(|(name, _)| name), "follow crates/base/units/Cargo.toml");
}

#[test]
fn the_architecture_names_every_crate() {
    let page = read("ARCHITECTURE.md");
    let missing = manifests().into_keys().filter(|name| !page.contains(&format!("`{name}`")));
    none(missing, "add the crate to the map in ARCHITECTURE.md");
}

#[test]
fn the_pages_that_a_user_and_a_contributor_look_for_exist() {
    assert!(read("CHANGELOG.md").contains("## Unreleased"));
    assert!(read("README.md").contains("make demo") && read("README.md").contains("make test"));
    for page in [
        "CONTRIBUTING.md",
        "RELEASING.md",
        "LICENSE-APACHE",
        "LICENSE-MIT",
        "docs/reference/requirements.md",
    ] {
        assert!(!read(page).is_empty(), "{page}");
    }
}

#[test]
fn links_between_pages_lead_somewhere() {
    let mut dead = Vec::new();
    for (path, text) in files("md") {
        let folder = path.parent().expect("a file has a folder").to_owned();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next()) {
            let local =
                !link.is_empty() && !link.contains("://") && !link.contains(char::is_whitespace);
            if local && !root().join(&folder).join(link).exists() {
                dead.push(format!("{}: {link}", path.display()));
            }
        }
    }
    none(dead.into_iter(), "mend the link");
}

#[test]
fn no_file_names_a_path_or_host_of_one_machine() {
    let local = [
        concat!("/wo", "rk/"),
        concat!("/fa", "rm/"),
        concat!("/ro", "ot/"),
        concat!("bash_", "jobs"),
        concat!(".lib", "rary"),
        concat!("index.crates", ".io"),
        concat!("py", "pi.org"),
    ];
    let mut found = Vec::new();
    for extension in ["rs", "toml", "md", "py", "sh", "yml", "json", ""] {
        for (path, text) in files(extension) {
            let of = |name: &&&str| text.contains(**name);
            found.extend(local.iter().filter(of).map(|name| format!("{}: {name}", path.display())));
        }
    }
    none(found.into_iter(), "use a path relative to the checkout");
}

const MAX_PRODUCTION_LINES: usize = 600;

/// May only shrink. Most are of the libraries for C and Python, whose types mirror the Rust ones.
const MAX_SHARED_NAMES: usize = 12;

/// Names whose meaning is their crate's.
const USUAL: &[&str] = &[
    "Config",
    "ConfigError",
    "Counters",
    "Error",
    "Event",
    "Header",
    "Message",
    "Options",
    "Reader",
    "Report",
    "State",
    "Stats",
    "Status",
    "WireError",
];

const SANS_IO: &[&str] = &[
    "units",
    "coding",
    "ccsds",
    "mission-form",
    "level0",
    "congestion",
    "transport",
    "identity",
    "sessions",
    "quic",
    "tcp",
    "oneway",
    "link",
    "vita49",
    "page",
    "probe",
    "forward",
    "files",
    "hints",
    "passes",
    "rtp",
    "pairing",
    "streams",
    "channels",
    "blocks",
    "records",
    "dispatch",
    "catalogue",
    "history",
    "serve",
    "web",
    "events",
];

const BANNED_IN_CORE: &[&str] = &[
    "std::fs",
    "std::thread",
    "std::env",
    "std::process",
    "tokio",
    "Instant::now",
    "SystemTime::now",
    "UdpSocket",
    "TcpStream",
    "TcpListener",
    "async fn",
    "println!",
    "HashMap",
    "HashSet",
];

const UNFINISHED: &[&str] = &[
    "todo!(",
    "unimplemented!(",
    "TODO",
    "FIXME",
    "XXX",
    "#[ignore",
    "allow(clippy::too_many_lines",
    "allow(clippy::too_many_arguments",
];

/// Crates with `unsafe`: vector instructions, system calls, a library loaded at run time, and
/// callers in other languages, which hand over pointers. Each file that has some says at its head
/// what it takes on trust.
const UNSAFE: &[&str] = &["coding", "net", "emulator", "hdf5", "capi", "python"];

/// What each crate may use in its production code.
const USES: &[(&str, &[&str])] = &[
    ("units", &[]),
    ("coding", &["units"]),
    ("mission-form", &[]),
    ("ccsds", &["units", "coding", "mission-form"]),
    ("level0", &["units", "coding", "ccsds", "records"]),
    ("hdf5", &["units", "level0"]),
    ("records", &["units", "coding", "ccsds"]),
    ("congestion", &["units"]),
    ("transport", &["units", "coding", "congestion"]),
    ("identity", &["units"]),
    ("sessions", &["units", "transport", "identity"]),
    ("quic", &["units", "coding", "congestion", "transport", "identity", "sessions"]),
    ("tcp", &["units", "congestion", "transport", "identity", "sessions"]),
    ("oneway", &["units", "congestion", "transport", "identity"]),
    ("host", &["units"]),
    ("link", &["units"]),
    ("vita49", &["units"]),
    ("skyhaul", &["units", "congestion", "transport", "quic", "net", "channels-io", "blocks-io"]),
    ("blocks", &["units", "transport"]),
    ("blocks-io", &["units", "transport", "quic", "net", "channels", "channels-io", "blocks"]),
    ("channels", &["units", "transport"]),
    (
        "channels-io",
        &[
            "units",
            "transport",
            "identity",
            "sessions",
            "quic",
            "net",
            "channels",
            "forward",
            "forward-io",
            "hints",
        ],
    ),
    ("forward", &["units", "transport", "channels"]),
    ("forward-io", &["units", "transport", "identity", "sessions", "net", "channels", "forward"]),
    ("files", &["units"]),
    ("capi", &[]),
    ("python", &["units", "ccsds", "level0", "node"]),
    ("files-io", &["units", "transport", "net", "files"]),
    ("streams", &["units"]),
    ("hints", &["units"]),
    ("passes", &["units"]),
    ("rtp", &["units"]),
    ("pairing", &["units", "identity"]),
    ("streams-io", &["units", "net", "streams", "rtp"]),
    ("emulator", &["units", "exit", "link", "net"]),
    ("exit", &[]),
    ("events", &["units"]),
    ("compare", &["units", "exit", "link", "net", "page", "emulator"]),
    ("page", &[]),
    ("probe", &["units", "page"]),
    ("probe-io", &["units", "net", "probe"]),
    (
        "net",
        &[
            "units",
            "coding",
            "congestion",
            "transport",
            "identity",
            "sessions",
            "quic",
            "tcp",
            "oneway",
        ],
    ),
    ("store", &["units"]),
    ("dispatch", &["units", "coding"]),
    ("catalogue", &["units"]),
    ("history", &["units"]),
    ("catalogue-io", &["units", "catalogue", "dispatch"]),
    ("remote", &["units", "dispatch"]),
    ("serve", &["units", "catalogue"]),
    ("http-io", &["units", "net", "serve"]),
    ("serve-io", &["units", "catalogue", "catalogue-io", "net", "serve", "http-io"]),
    ("web", &["units", "history", "serve"]),
    ("web-io", &["units", "net", "history", "serve", "http-io", "web"]),
    (
        "lab",
        &[
            "units",
            "coding",
            "congestion",
            "transport",
            "identity",
            "sessions",
            "quic",
            "link",
            "hints",
            "oneway",
            "page",
        ],
    ),
    (
        "config",
        &[
            "units",
            "events",
            "exit",
            "ccsds",
            "dispatch",
            "catalogue",
            "remote",
            "level0",
            "congestion",
            "transport",
            "quic",
            "net",
            "forward",
            "forward-io",
            "files",
            "hints",
            "streams",
            "streams-io",
            "serve",
        ],
    ),
    (
        "node",
        &[
            "units",
            "identity",
            "events",
            "exit",
            "config",
            "coding",
            "ccsds",
            "catalogue",
            "catalogue-io",
            "dispatch",
            "remote",
            "level0",
            "records",
            "hdf5",
            "congestion",
            "transport",
            "sessions",
            "channels",
            "channels-io",
            "blocks",
            "blocks-io",
            "forward",
            "forward-io",
            "files",
            "files-io",
            "hints",
            "passes",
            "probe",
            "streams",
            "streams-io",
            "quic",
            "net",
            "store",
            "history",
            "vita49",
            "serve",
            "serve-io",
            "web",
            "web-io",
        ],
    ),
    ("columns", &["units", "ccsds"]),
    (
        "cli",
        &[
            "units",
            "events",
            "exit",
            "coding",
            "ccsds",
            "catalogue",
            "catalogue-io",
            "history",
            "page",
            "dispatch",
            "remote",
            "level0",
            "columns",
            "hdf5",
            "congestion",
            "transport",
            "identity",
            "sessions",
            "emulator",
            "compare",
            "quic",
            "oneway",
            "host",
            "link",
            "net",
            "store",
            "lab",
            "config",
            "node",
            "probe",
            "probe-io",
            "channels-io",
            "forward",
            "forward-io",
            "files",
            "files-io",
            "hints",
            "passes",
            "streams",
            "streams-io",
            "pairing",
            "serve",
            "web",
        ],
    ),
];
