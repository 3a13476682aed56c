//! The configured forwards, mirrors and streams, and the rights of other nodes, in words.

use super::words::spoken;
use skyhaul_config::{
    AfterHandover, Destination, FilesEntry, FolderEntry, ForwardEntry, ForwardRules, MirrorEntry,
    PeerEntry, StationConfig, StreamEntry, StreamsEntry,
};
use skyhaul_forward::{Entrance, Forward, What};
use std::io::{self, Write};

/// The forwards of applications.
pub fn write_forwards(forwards: &[ForwardEntry], out: &mut dyn Write) -> io::Result<()> {
    for entry in forwards {
        let lead = match entry.what() {
            What::Local(Forward { local, node, target }) => {
                format!("{local} to {target} from {node}")
            }
            What::Remote(Forward { local, node, target }) => {
                format!("{local} at {node} to {target} from here")
            }
            What::Socks(Entrance { local, .. }) => {
                format!("{local}, as applications request by SOCKS")
            }
            What::Transparent(Entrance { local, .. }) => {
                format!("{local}, to the original target of diverted connections")
            }
        };
        let class = entry.class.as_ref().map_or(String::new(), |class| format!(", class {class}"));
        let deadline = entry
            .deadline
            .map_or(String::new(), |deadline| format!(", due within {}", spoken(deadline)));
        writeln!(out, "  forward    {lead}{class}{deadline}")?;
    }
    Ok(())
}

/// Where this node connects and listens for another node.
pub fn write_rules(
    name: &str,
    allow: &ForwardRules,
    listen: &ForwardRules,
    out: &mut dyn Write,
) -> io::Result<()> {
    for (rules, what) in [(allow, "connect to"), (listen, "listen at")] {
        if !rules.0.is_empty() {
            let rules: Vec<String> = rules.0.iter().map(ToString::to_string).collect();
            writeln!(out, "  allows     {name} to have this node {what} {}", rules.join(", "))?;
        }
    }
    Ok(())
}

/// The names of some destinations, in words.
pub fn named(station: &StationConfig, places: &[usize]) -> String {
    let names: Vec<&str> = places
        .iter()
        .filter_map(|place| station.destinations.get(*place))
        .map(Destination::name)
        .collect();
    match &names[..] {
        [] => "nobody".to_owned(),
        [only] => (*only).to_owned(),
        [others @ .., last] => format!("{} and {last}", others.join(", ")),
    }
}

/// The drop folders.
pub fn write_folders(
    station: &StationConfig,
    folders: &[FolderEntry],
    out: &mut dyn Write,
) -> io::Result<()> {
    for entry in folders {
        let centre = named(station, &entry.destinations(&station.destinations));
        let becomes = match (&entry.channel, &entry.into) {
            (Some(channel), _) => format!("contacts of channel {channel}"),
            (None, Some(into)) if !into.0.is_here() => format!("files in {} at {centre}", into.0),
            (None, _) => format!("files in the folder there at {centre}"),
        };
        let done = match &entry.done {
            AfterHandover::Keep => "then kept".to_owned(),
            AfterHandover::Delete => "then deleted".to_owned(),
            AfterHandover::Move(dir) => format!("then moved to {}", dir.display()),
        };
        let (path, quiet) = (entry.path.display(), spoken(entry.quiet));
        writeln!(
            out,
            "  hands over {path}: each file once as {becomes} when it stood still for {quiet}, \
            {done}"
        )?;
    }
    Ok(())
}

/// The mirrors.
pub fn write_mirrors(
    station: &StationConfig,
    mirrors: &[MirrorEntry],
    out: &mut dyn Write,
) -> io::Result<()> {
    for entry in mirrors {
        let centre = named(station, &entry.destinations(&station.destinations));
        let (source, into) = (entry.source.display(), &entry.into.0);
        let into = if into.is_here() { "the folder there".to_owned() } else { into.to_string() };
        let class = entry.class.as_ref().map_or(String::new(), |class| format!(", class {class}"));
        let how = if entry.watch { "after every change" } else { "once" };
        let delete = if entry.delete { ", deletes files that are not here" } else { "" };
        writeln!(out, "  mirrors    {source} to {into} at {centre}, {how}{delete}{class}")?;
    }
    Ok(())
}

/// The streams.
pub fn write_streams(
    station: &StationConfig,
    streams: &[StreamEntry],
    out: &mut dyn Write,
) -> io::Result<()> {
    for entry in streams {
        let centre = named(station, &[entry.place(&station.destinations)]);
        let class = entry.class.as_ref().map_or(String::new(), |class| format!(", class {class}"));
        let (source, lateness) = (&entry.from.0, spoken(entry.lateness));
        let again = if entry.again { ", restarted when it has ended" } else { "" };
        writeln!(
            out,
            "  streams    {source} to {centre}:{}, within {lateness}{again}{class}",
            entry.to
        )?;
    }
    Ok(())
}

/// A station that can send to this centre, and its other rights.
pub fn write_peer(peer: &PeerEntry, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "  takes      from {}, {}", peer.name, super::keys_of(peer))?;
    write_rules(peer.name.as_str(), &peer.allow, &peer.allow_listen, out)?;
    if let Some(FilesEntry { root, write, read }) = &peer.files {
        let may = [(*write, "put files in"), (*read, "fetch files from")];
        let may: Vec<&str> = may.iter().filter(|(may, _)| *may).map(|(_, what)| *what).collect();
        writeln!(out, "  allows     {} to {} {}", peer.name, may.join(" and "), root.display())?;
    }
    if let Some(StreamsEntry { root, allow }) = &peer.streams {
        let files = root.as_ref().map(|root| format!("files in {}", root.display()));
        let sinks = allow.0.iter().map(ToString::to_string);
        let all: Vec<String> = files.into_iter().chain(sinks).collect();
        writeln!(out, "  allows     {} to stream to {}", peer.name, all.join(", "))?;
    }
    Ok(())
}
