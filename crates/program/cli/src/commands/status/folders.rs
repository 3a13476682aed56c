//! The drop folders of a node.

use super::megabytes;
use skyhaul_node::status::{FolderState, FolderStatus};
use std::io::{self, Write};

/// The drop folders, where there are any.
pub fn write_folders(folders: &[FolderStatus], out: &mut dyn Write) -> io::Result<()> {
    for folder in folders {
        let FolderStatus { name, path, becomes, waiting, handed, set_aside, remembered, .. } =
            folder;
        let state = match folder.state {
            FolderState::Waiting => "waits for files to be whole",
            FolderState::Busy => "hands over",
            FolderState::Done => "has nothing to hand over",
            FolderState::Failed => "failed",
        };
        let current = folder.current.as_ref().map_or(String::new(), |name| format!(" {name}"));
        let to = folder.to.as_ref().map_or(String::new(), |to| format!(" to {to}"));
        let reason = folder.reason.as_ref().map_or(String::new(), |why| format!(" ({why})"));
        let gave_way = match folder.gave_way {
            0 => String::new(),
            count => format!(", {count} left before they were there"),
        };
        writeln!(
            out,
            "  folder   {name} ({path}, as {becomes}{to}) {state}{current}{reason}\n           \
            {handed} handed over, {}; {waiting} waiting, {set_aside} set aside, {remembered} \
            remembered{gave_way}",
            megabytes(folder.bytes)
        )?;
    }
    Ok(())
}
