//! The files of an audit log, read from the first line to the last, by the command while no node
//! runs, or beside the node that writes them.

use super::AUDIT_FILE;
use skyhaul_events::{AuditCheck, AuditLine, AuditReport, NodeEvent, audit_file, audit_file_first};
use skyhaul_exit::Failure;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};

/// A part of the log.
#[derive(Debug, Clone, Copy)]
pub enum AuditPart<'a> {
    /// A file that is complete begins, with this first line.
    File(u64),
    /// A line.
    Line(&'a [u8]),
}

/// Why the log cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("the audit log cannot be read, {} ({source})", place.display())]
pub struct AuditUnread {
    /// The file or folder.
    pub place: PathBuf,
    /// What the system says.
    pub source: io::Error,
}

impl From<AuditUnread> for Failure {
    fn from(AuditUnread { place, source }: AuditUnread) -> Self {
        let help = "run the command as the user that runs the node";
        Self::io("the audit log cannot be read", &place.display().to_string(), help, source)
    }
}

fn unread(place: &Path) -> impl Fn(io::Error) -> AuditUnread + '_ {
    |source| AuditUnread { place: place.to_owned(), source }
}

/// Compares each line of the log in a state folder with the hash in the line behind it, with those
/// in the event log, and with the `heads` that are known from elsewhere.
///
/// # Errors
/// A file cannot be read.
pub fn check(
    state: &Path,
    heads: impl IntoIterator<Item = (u64, String)>,
) -> Result<AuditReport, AuditUnread> {
    let mut known = heads_of_events(state)?;
    known.extend(heads);
    let mut check = AuditCheck::with_heads(known);
    each_part(state, |part| {
        match part {
            AuditPart::File(first) => check.file(first),
            AuditPart::Line(line) => check.line(line),
        }
        Ok(())
    })?;
    Ok(check.finish())
}

/// Passes each file and each whole line on, the oldest first. A node that never took an order has
/// none. An end that is not whole is being written.
///
/// # Errors
/// A file cannot be read, or that of `take`.
pub fn each_part<E: From<AuditUnread>>(
    state: &Path,
    mut take: impl FnMut(AuditPart<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let mut seen = 0;
    loop {
        let mut firsts = complete_files(state)?;
        firsts.retain(|first| *first > seen);
        let Some(first) = firsts.into_iter().min() else { break };
        seen = first;
        take(AuditPart::File(first))?;
        lines_of(&state.join(audit_file(first)), |line| take(AuditPart::Line(line)))?;
    }
    let growing = state.join(AUDIT_FILE);
    match File::open(&growing) {
        Err(error) if error.kind() == ErrorKind::NotFound && state.is_dir() => Ok(()),
        opened => {
            opened.map_err(unread(&growing))?;
            lines_of(&growing, |line| take(AuditPart::Line(line)))
        }
    }
}

/// The first lines of the files that are complete.
fn complete_files(state: &Path) -> Result<Vec<u64>, AuditUnread> {
    let entries = match std::fs::read_dir(state) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(unread(state))?,
    };
    let mut firsts = Vec::new();
    for entry in entries {
        let name = entry.map_err(unread(state))?.file_name();
        firsts.extend(name.to_str().and_then(audit_file_first));
    }
    Ok(firsts)
}

fn lines_of<E: From<AuditUnread>>(
    path: &Path,
    mut take: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let file = File::open(path).map_err(unread(path))?;
    let mut reader = BufReader::new(file);
    let mut line = Vec::new();
    loop {
        line.clear();
        // One that is longer is read in pieces, each of which is no line of the log.
        let mut bounded = (&mut reader).take(AuditLine::LINE_MAX as u64 + 2);
        if bounded.read_until(b'\n', &mut line).map_err(unread(path))? == 0 {
            return Ok(());
        }
        match line.strip_suffix(b"\n") {
            Some(whole) => take(whole)?,
            None if line.len() > AuditLine::LINE_MAX => take(&line)?,
            None => return Ok(()),
        }
    }
}

/// The hashes of lines that the event log has.
fn heads_of_events(state: &Path) -> Result<BTreeMap<u64, String>, AuditUnread> {
    let folder = state.join("events");
    let mut heads = BTreeMap::new();
    let entries = match std::fs::read_dir(&folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(heads),
        entries => entries.map_err(unread(&folder))?,
    };
    for entry in entries {
        let path = entry.map_err(unread(&folder))?.path();
        if path.extension().is_none_or(|extension| extension != "jsonl") {
            continue;
        }
        let text = match std::fs::read(&path) {
            // The node removed it meanwhile, because its events are old.
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            text => text.map_err(unread(&path))?,
        };
        for line in text.split(|byte| *byte == b'\n').filter(|line| has_head(line)) {
            let event = NodeEvent::from_line(line).ok();
            let head = event.and_then(|event| event.data.get("audit").cloned());
            let known = head.and_then(|head| {
                Some((head["number"].as_u64()?, head["hash"].as_str()?.to_owned()))
            });
            heads.extend(known);
        }
    }
    Ok(heads)
}

/// Most events are of something else, and are not parsed.
fn has_head(line: &[u8]) -> bool {
    line.windows(8).any(|part| part == b"\"audit\":")
}
