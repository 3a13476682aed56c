//! What is kept of a contact that is offered: its JSON, and its files.

use crate::custody::StoredContact;
use serde::{Deserialize, Serialize};
use skyhaul_serve::{ContactSession, SessionFile, SessionFrames, SessionLabel, SessionProgress};
use skyhaul_store::StationName;
use skyhaul_units::{FlowId, Seq, Utc};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

/// A contact that is offered.
#[derive(Debug, Clone)]
pub struct KeptSession {
    /// The contact in the store.
    pub contact: StoredContact,
    /// What is said of it.
    pub session: ContactSession,
    /// The description of its mission.
    pub mission: String,
    /// The block behind its last file.
    pub next: Seq,
}

/// The JSON; times are microseconds since 1970.
#[derive(Serialize, Deserialize)]
struct Written {
    /// Of this form.
    version: u32,
    space: String,
    flow: u32,
    number: u64,
    name: String,
    of: SessionLabel,
    published: i64,
    start: i64,
    stop: i64,
    progress: SessionProgress,
    frames: SessionFrames,
    files: Vec<WrittenFile>,
    evicted: Option<i64>,
    mission: String,
    next: u64,
}

#[derive(Serialize, Deserialize)]
struct WrittenFile {
    block: u32,
    name: String,
    size: u64,
    sha256: [u8; 32],
    published: i64,
}

/// The version of a JSON, of any release.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

const END: &str = ".json";
const VERSION: u32 = 2;

impl KeptSession {
    /// Makes it durable.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn save(&self, folder: &Path) -> io::Result<()> {
        let session = &self.session;
        let file = |file: &SessionFile| WrittenFile {
            block: file.block,
            name: file.name.clone(),
            size: file.size,
            sha256: file.sha256,
            published: file.published.as_micros(),
        };
        let written = Written {
            version: VERSION,
            space: self.contact.space.as_str().to_owned(),
            flow: self.contact.flow.0,
            number: session.number,
            name: session.name.clone(),
            of: session.of.clone(),
            published: session.published.as_micros(),
            start: session.start.as_micros(),
            stop: session.stop.as_micros(),
            progress: session.progress,
            frames: session.frames,
            files: session.files.iter().map(file).collect(),
            evicted: session.evicted.map(Utc::as_micros),
            mission: self.mission.clone(),
            next: self.next.0,
        };
        let text = serde_json::to_vec(&written).map_err(io::Error::other)?;
        let path = folder.join(format!("{}{END}", session.name));
        let part = folder.join(format!(".{}{END}", session.name));
        let mut out = File::create(&part)?;
        out.write_all(&text)?;
        out.sync_data()?;
        fs::rename(&part, &path)?;
        File::open(folder)?.sync_all()
    }

    fn of(written: Written) -> Option<Self> {
        let utc = Utc::from_micros;
        let file = |file: WrittenFile| SessionFile {
            block: file.block,
            name: file.name,
            size: file.size,
            sha256: file.sha256,
            published: utc(file.published),
        };
        let contact = StoredContact {
            space: StationName::new(&written.space).ok()?,
            flow: FlowId(written.flow),
        };
        let session = ContactSession {
            number: written.number,
            name: written.name,
            of: written.of,
            published: utc(written.published),
            start: utc(written.start),
            stop: utc(written.stop),
            progress: written.progress,
            frames: written.frames,
            files: written.files.into_iter().map(file).collect(),
            evicted: written.evicted.map(utc),
        };
        Some(Self { contact, session, mission: written.mission, next: Seq(written.next) })
    }
}

/// What earlier runs offered. What a run left that was killed is removed; a JSON that cannot be
/// read is left where it is, and its contact is offered anew if the store still has it.
///
/// # Errors
/// The folder cannot be read, or a JSON is of a later release.
pub fn load(folder: &Path) -> io::Result<Vec<KeptSession>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with('.') {
            // A part of a file or of a JSON.
            let _ = fs::remove_file(&path);
        } else if name.ends_with(END) {
            let text = fs::read(&path)?;
            let versioned = serde_json::from_slice::<Versioned>(&text);
            if let Ok(Versioned { version }) = versioned
                && version > VERSION
            {
                let path = path.display();
                return Err(io::Error::other(format!(
                    "{path} is of version {version}, and this release reads {VERSION}; run the \
                     release that wrote it, or a later one"
                )));
            }
            let written = serde_json::from_slice::<Written>(&text).ok();
            match written.and_then(KeptSession::of) {
                Some(kept) => found.push(kept),
                None => tracing::warn!("{} cannot be read, and is not offered", path.display()),
            }
        }
    }
    Ok(found)
}

/// Removes what is kept of a contact.
pub fn remove(folder: &Path, session: &ContactSession) {
    // The JSON first: a file that it does not name is none.
    let _ = fs::remove_file(folder.join(format!("{}{END}", session.name)));
    for file in &session.files {
        let _ = fs::remove_file(folder.join(&file.name));
    }
}
