//! Places the files of a product at its destination.

use super::digest::checksum;
use super::worker::{DeliveryUnderWay, OutletWorker};
use skyhaul_catalogue::ItemFile;
use skyhaul_catalogue_io::{CatalogueError, CatalogueReader, DeliveryRow, ItemRow};
use skyhaul_config::OutletFolder;
use skyhaul_dispatch::{Checksum, DeliveredFile, DeliveryFailure, FailureKind, Proof};
use skyhaul_remote::{
    GoOn, OutgoingFile, PlaceProgress, Placing, ReadBack, RemoteFound, ResumeNote,
};
use skyhaul_units::ByteCount;
use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

/// The files of a product at its destination.
pub struct HandedFiles {
    /// As the record names them.
    pub files: Vec<DeliveredFile>,
    /// Why they are believed to be there.
    pub proof: Proof,
}

impl OutletWorker {
    /// Places the files of a product; none where it was stopped.
    pub(super) fn hand_over(
        &mut self,
        reader: &CatalogueReader,
        of: &DeliveryUnderWay,
    ) -> Result<Option<HandedFiles>, DeliveryFailure> {
        let directory = of.subscription.directory(&self.outlet.destination);
        let mut handed = HandedFiles { files: Vec::new(), proof: Proof::Digest };
        for file in of.wanted() {
            let outgoing = self.outgoing_file(file, of.subscription.folder());
            // Only opened here: the sink compares what it reads with the digest with which the file
            // was published.
            File::open(&outgoing.path).map_err(|error| unread(&outgoing.path, &error))?;
            let sum = of.sum(&outgoing.path, file)?;
            let is_repeated = of.row.delivery.is_repeated();
            let to_node = self.outlet.destination.node().is_some();
            if is_repeated && !to_node {
                self.move_away(&outgoing)?;
            }
            let placed = self.place_file(reader, of.row.id, &file.name, &outgoing);
            let placed = match placed {
                // A node compares contents, and keeps what is the same.
                Err(DeliveryFailure { kind: FailureKind::Differs, .. })
                    if is_repeated && to_node =>
                {
                    self.put_aside(&outgoing)?;
                    self.place_file(reader, of.row.id, &file.name, &outgoing)?
                }
                placed => placed?,
            };
            let Some(proof) = placed else { return Ok(None) };
            handed.proof = weaker(handed.proof, proof);
            handed.files.push(delivered(file, &directory, sum));
        }
        Ok(Some(handed))
    }

    /// Writes the record of a delivery again, under its name.
    pub(super) fn record_again(&mut self, of: &DeliveryUnderWay) -> Result<(), DeliveryFailure> {
        let directory = of.subscription.directory(&self.outlet.destination);
        let mut files = Vec::new();
        for file in of.wanted() {
            let sum = of.sum(&self.outlet.ledger().products().join(&file.name), file)?;
            files.push(delivered(file, &directory, sum));
        }
        self.write_record(of, files)
    }

    /// The consumer wants a file again: what is there under its name is what was sent before.
    fn move_away(&mut self, file: &OutgoingFile) -> Result<(), DeliveryFailure> {
        match self.sink()?.look(file)? {
            RemoteFound::Absent => Ok(()),
            RemoteFound::Same(_) | RemoteFound::Differs => self.put_aside(file),
        }
    }

    fn put_aside(&mut self, file: &OutgoingFile) -> Result<(), DeliveryFailure> {
        let (folder, name) = file.name.rsplit_once('/').unwrap_or(("", &file.name));
        let to = match folder {
            "" => format!(".{name}.refused"),
            folder => format!("{folder}/.{name}.refused"),
        };
        self.sink()?.rename(&file.name, &to)
    }

    /// Removes what a delivery that is given up left at the place: parts, uploads. Where that
    /// fails, the notes stay, and the next order tries again.
    pub(super) fn discard(
        &mut self,
        reader: &CatalogueReader,
        row: &DeliveryRow,
    ) -> Result<(), CatalogueError> {
        let Some(ItemRow { item, .. }) = reader.item(row.item)? else { return Ok(()) };
        let Some(subscription) = self.outlet.subscription(row).cloned() else { return Ok(()) };
        let mut is_all = true;
        for file in &item.files {
            let Some(note) = reader.note(row.id, &file.name)? else { continue };
            let Ok(note) = serde_json::from_str::<ResumeNote>(&note) else { continue };
            let outgoing = self.outgoing_file(file, subscription.folder());
            let discarded = self.sink().and_then(|sink| sink.discard(&outgoing, &note));
            if let Err(failure) = discarded {
                tracing::warn!("{} keeps a part of {}: {failure}", self.outlet.name(), file.name);
                is_all = false;
            }
        }
        if is_all { self.outlet.ledger().catalogue().drop_notes(row.id) } else { Ok(()) }
    }

    fn outgoing_file(&self, file: &ItemFile, folder: &OutletFolder) -> OutgoingFile {
        OutgoingFile {
            path: self.outlet.ledger().products().join(&file.name),
            name: folder.name(&file.name),
            size: ByteCount::new(file.size),
            sha256: file.sha256,
            md5: file.md5,
            read_back: ReadBack::Small,
        }
    }

    /// Places one file, from where an earlier attempt stopped. Returns none where it was stopped.
    fn place_file(
        &mut self,
        reader: &CatalogueReader,
        id: u64,
        name: &str,
        file: &OutgoingFile,
    ) -> Result<Option<Proof>, DeliveryFailure> {
        let kept = |error: CatalogueError| {
            DeliveryFailure::new(FailureKind::Line, format!("the catalogue: {error}"))
        };
        let note = reader.note(id, name).map_err(kept)?;
        // A note that cannot be read is of another release: the file is sent from its beginning.
        let mut note: ResumeNote =
            note.and_then(|note| serde_json::from_str(&note).ok()).unwrap_or_default();
        let outlet = Arc::clone(&self.outlet);
        let mut lost = None;
        let begun = note.clone();
        let mut progress = |progress: PlaceProgress<'_>| {
            let ledger = outlet.ledger();
            if let PlaceProgress::Reached(step) = progress {
                note.apply(step);
                let text = serde_json::to_string(&note).unwrap_or_default();
                lost = ledger.catalogue().keep_note(id, name, &text).err();
            }
            let stops =
                lost.is_some() || outlet.is_stopped() || ledger.is_changed(outlet.name(), id);
            if stops { GoOn::Stop } else { GoOn::Continue }
        };
        let placed = self.sink()?.place(file, &begun, &mut progress)?;
        if let Some(error) = lost {
            return Err(kept(error));
        }
        Ok(match placed {
            Placing::Placed(proof) => Some(proof),
            Placing::Stopped => None,
        })
    }
}

impl DeliveryUnderWay {
    /// The files that are sent.
    fn wanted(&self) -> Vec<&ItemFile> {
        wanted(&self.item.files, self.row.delivery.only.as_ref())
    }

    /// The checksum of the file at `path` for its record, where that has one.
    fn sum(&self, path: &Path, file: &ItemFile) -> Result<Option<Checksum>, DeliveryFailure> {
        let sum = self.subscription.checksum().map(|kind| checksum(path, file, kind));
        sum.transpose().map_err(|error| unread(path, &error))
    }
}

/// Those files that a notice names; all where it names none of them, so that no record is empty.
fn wanted<'a>(files: &'a [ItemFile], only: Option<&BTreeSet<String>>) -> Vec<&'a ItemFile> {
    let is_named = |file: &&ItemFile| only.is_some_and(|only| only.contains(&file.name));
    let named: Vec<&ItemFile> = files.iter().filter(is_named).collect();
    if named.is_empty() { files.iter().collect() } else { named }
}

/// A published file cannot be read.
fn unread(path: &Path, error: &std::io::Error) -> DeliveryFailure {
    let help = "repair the folder, no data is lost";
    DeliveryFailure::new(FailureKind::Line, format!("{}: {error}; {help}", path.display()))
}

fn delivered(file: &ItemFile, directory: &str, checksum: Option<Checksum>) -> DeliveredFile {
    DeliveredFile {
        directory: directory.to_owned(),
        name: file.name.clone(),
        size: ByteCount::new(file.size),
        checksum,
        is_metadata: file.is_metadata,
    }
}

/// The proof of two files together: that of the one of which less is known.
const fn weaker(one: Proof, two: Proof) -> Proof {
    const fn rank(proof: Proof) -> u8 {
        match proof {
            Proof::Size => 0,
            Proof::Written => 1,
            Proof::ReadBack => 2,
            Proof::Digest | Proof::Receipt | Proof::Notice => 3,
        }
    }
    if rank(one) < rank(two) { one } else { two }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: a notice that wanted a file of another name again got a record without files.
    #[test]
    fn of_a_notice_that_names_none_of_its_files_all_are_sent_again() {
        let file = |name: &str| ItemFile {
            name: name.to_owned(),
            size: 1,
            sha256: [0; 32],
            md5: None,
            cksum: None,
            is_metadata: false,
        };
        let files = ["a", "b", "c"].map(file);
        for (only, sent) in [
            (None, &["a", "b", "c"][..]),
            (Some(&["c", "x"][..]), &["c"]),
            (Some(&["x"]), &["a", "b", "c"]),
        ] {
            let only = only.map(|names| names.iter().map(ToString::to_string).collect());
            let found: Vec<&str> =
                wanted(&files, only.as_ref()).iter().map(|file| &file.name[..]).collect();
            assert_eq!(found, sent, "{only:?}");
        }
    }
}
