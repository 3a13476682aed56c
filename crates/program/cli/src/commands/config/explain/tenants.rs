//! Where files of folders, mirrors and streams go.

use super::super::guests::named;
use super::super::words::spoken;
use skyhaul_config::{AfterHandover, FolderEntry, FolderUse, SettleName, StationConfig};
use skyhaul_files::RelPath;
use std::io::{self, Write};

/// Writes what becomes of the folders, mirrors and streams of a node.
pub fn write(station: &StationConfig, out: &mut dyn Write) -> io::Result<()> {
    let all = &station.destinations;
    for folder in &station.folders.dropped {
        writeln!(out, "\nfiles that appear in {}", folder.path.display())?;
        match (&folder.channel, folder.r#as) {
            (Some(channel), FolderUse::Contacts) => {
                writeln!(out, "  become contacts of channel {channel}")?;
                writeln!(out, "  {} once the contact is in the spool", after(folder))?;
            }
            _ => {
                let into = folder.into.as_ref().map(|into| place(&into.0));
                write_ways(station, &folder.destinations(all), &into.unwrap_or(HERE.into()), out)?;
                writeln!(out, "  {} {}", after(folder), when(station, folder))?;
            }
        }
    }
    for mirror in &station.folders.mirrored {
        writeln!(out, "\nmirror of {}", mirror.source.display())?;
        write_ways(station, &mirror.destinations(all), &place(&mirror.into.0), out)?;
    }
    for stream in &station.stream {
        let to = named(station, &[stream.place(all)]);
        writeln!(out, "\nstream from {}", stream.from.0)?;
        writeln!(out, "  to {}: {}, within {}", to, stream.to, spoken(stream.lateness))?;
    }
    Ok(())
}

/// The folder that a destination has for this node.
const HERE: &str = "the folder there";

fn place(into: &RelPath) -> String {
    if into.is_here() { HERE.to_owned() } else { into.to_string() }
}

fn write_ways(
    station: &StationConfig,
    places: &[usize],
    into: &str,
    out: &mut dyn Write,
) -> io::Result<()> {
    for destination in places.iter().filter_map(|place| station.destinations.get(*place)) {
        let shadow = if destination.entry.shadow { " (shadow)" } else { "" };
        writeln!(out, "  to {}{shadow}: in {into}", destination.name())?;
    }
    Ok(())
}

fn after(folder: &FolderEntry) -> String {
    match &folder.done {
        AfterHandover::Keep => "kept and remembered".to_owned(),
        AfterHandover::Delete => "deleted".to_owned(),
        AfterHandover::Move(dir) => format!("moved to {}", dir.display()),
    }
}

/// When a file of the folder is handed over.
fn when(station: &StationConfig, folder: &FolderEntry) -> String {
    let mut places = folder.destinations(&station.destinations);
    if places.len() > 1 {
        places.retain(|place| !station.destinations[*place].entry.shadow);
    }
    match places.len() {
        1 => format!("once {} has them on disk", named(station, &places)),
        _ => {
            let room = match folder.settle {
                SettleName::All => "",
                SettleName::Any => ", or one of them where the file system is full",
                SettleName::First => ", or the first of them where the file system is full",
            };
            format!("once all of {} have them on disk{room}", named(station, &places))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::explained;

    const THREE: &str = "[[destination]]\nto = \"node:oper\"\n[[destination]]\nto = \
                         \"node:backup\"\nshadow = true\n";

    #[test]
    fn files_mirrors_and_streams_are_explained_with_their_destinations() {
        let said = explained(&format!(
            "{THREE}[[folder]]\nname = \"out\"\npath = \"/drop\"\nas = \"files\"\ninto = \
             \"in\"\nto = [\"oper\", \"backup\"]\ndone = \"delete\"\n[[mirror]]\nsource = \
             \"/logs\"\ninto = \".\"\nto = \"node:backup\"\n[[stream]]\nfrom = \
             \"udp://127.0.0.1:5000\"\nto = \"null\"\ndestination = \"backup\"\n[[folder]]\nname = \
             \"first\"\npath = \"/other\"\nas = \"files\"\n"
        ));
        for part in [
            "files that appear in /drop\n  to oper: in in\n  to backup (shadow): in in\n  deleted \
             once oper has them on disk\n",
            "files that appear in /other\n  to oper: in the folder there\n  kept and remembered \
             once oper has them on disk\n",
            "mirror of /logs\n  to backup (shadow): in the folder there\n",
            "stream from udp://127.0.0.1:5000\n  to backup: null, within 500 ms\n",
            "goes nowhere\n  nothing\n",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
    }

    #[test]
    fn what_leaves_a_folder_for_room_is_explained() {
        for (settle, wanted) in [
            ("all", "deleted once all of oper and backup have them on disk\n"),
            ("any", "have them on disk, or one of them where the file system is full\n"),
            ("first", "have them on disk, or the first of them where the file system is full\n"),
        ] {
            let said = explained(&format!(
                "{}[[folder]]\nname = \"out\"\npath = \"/drop\"\nas = \"files\"\nto = [\"oper\", \
                 \"backup\"]\ndone = \"delete\"\nsettle = \"{settle}\"\n",
                THREE.replace("shadow = true\n", "")
            ));
            assert!(said.contains(wanted), "{settle}: {said}");
        }
    }
}
