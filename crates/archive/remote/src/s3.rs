//! Object stores with the interface of Amazon S3.
//!
//! An object is visible only when it is whole: a small file is one request, a longer one an upload
//! in parts, which goes on over connections and restarts where a note has the store's name for it.
//! The store verifies a checksum of each of them; which one it does, a trial finds out.

mod check;
mod sign;
mod store;
mod upload;

use crate::access::RemoteAccess;
use crate::failure::{differs, failed, read_back_differs};
use crate::http::{CallBody, Cut, HttpAnswer, Keep, refused, tag_text};
use crate::name;
use crate::sink::{
    Abilities, GoOn, MOST_LISTED, OutgoingFile, PlaceProgress, Placing, ReadBack, RemoteEntry,
    RemoteFound, RemoteSink, ResumeNote, ResumeStep, SMALL, StoreCheck,
};
use crate::source::{PIECE, PublishedSource, hex};
use bytes::Bytes;
use check::PartSum;
use hyper::Method;
use skyhaul_dispatch::{DeliveryFailure, FailureKind, Proof};
use skyhaul_units::ByteCount;
use std::time::Duration;
use store::{Store, StoreCall};
use upload::{Upload, Uploaded, joining};

/// A bucket, or what begins with a prefix in it.
pub struct S3Sink {
    store: Store,
    known: Option<Abilities>,
    least_part: ByteCount,
    /// Who tries what the store can.
    tried_by: String,
}

/// How the sending of a file ended.
enum Sent {
    /// With this answer to the last request.
    Answered(HttpAnswer),
    /// The store has put its parts together: it is there, with this proof.
    Joined(Proof),
    /// The caller stopped it.
    Stopped,
}

/// What came of the wait for an object whose parts a store has.
enum Joined {
    There(Proof),
    /// It did not come in the time that it may take.
    Missing,
    Stopped,
}

impl S3Sink {
    /// Of a bucket and a prefix.
    ///
    /// # Errors
    /// What is needed to enter it cannot be read.
    pub fn new(
        bucket: &str,
        prefix: &str,
        access: &RemoteAccess,
        known: Option<Abilities>,
    ) -> Result<Self, DeliveryFailure> {
        let place = crate::RemotePlace::S3 { bucket: bucket.to_owned(), prefix: prefix.to_owned() };
        let store = Store::new(place.to_string(), bucket, prefix, access)?;
        let least_part = access.s3.least_part;
        Ok(Self { store, known, least_part, tried_by: access.tried_by.clone() })
    }

    fn known(&mut self) -> Result<Abilities, DeliveryFailure> {
        match &self.known {
            Some(known) => Ok(known.clone()),
            None => self.abilities(),
        }
    }

    fn key(&self, file_name: &str) -> Result<String, DeliveryFailure> {
        name::check(&self.store.place, file_name)?;
        Ok(self.store.key(file_name))
    }

    /// Sends a file in one request.
    fn put(
        &mut self,
        file: &OutgoingFile,
        key: &str,
        check: StoreCheck,
        progress: &mut dyn FnMut(PlaceProgress<'_>) -> GoOn,
    ) -> Result<Sent, DeliveryFailure> {
        let (mut source, mut sum) = (PublishedSource::open(file)?, PartSum::new(check));
        while !source.is_at_end() {
            sum.update(&source.next(PIECE)?);
        }
        source.finish()?;
        let length = file.size.as_u64();
        let mut call = StoreCall::of(Method::PUT, key)
            .header("if-none-match", "*")
            .header("x-amz-meta-sha256", hex(&file.sha256))
            .body(CallBody::File { path: &file.path, from: 0, length });
        if let Some((name, value)) = sum.finish().header() {
            call = call.header(name, value);
        }
        let mut watch = |taken| progress(PlaceProgress::Sent(ByteCount::new(taken)));
        let answer = self.store.ask_watched(&call, &mut watch)?;
        Ok(answer.map_or(Sent::Stopped, Sent::Answered))
    }

    /// Sends a file in parts.
    fn upload(
        &mut self,
        file: &OutgoingFile,
        key: &str,
        resume: &ResumeNote,
        progress: &mut dyn FnMut(PlaceProgress<'_>) -> GoOn,
    ) -> Result<Sent, DeliveryFailure> {
        let check = self.known()?.check;
        let mut upload = Upload { store: &mut self.store, key, file };
        let mut resumed = upload.resumed(resume)?;
        let has_parts = resumed.as_ref().is_some_and(|note| !note.parts.is_empty());
        if upload.is_sent(resume) && !has_parts {
            match self.joined(file, progress)? {
                Joined::There(proof) => return Ok(Sent::Joined(proof)),
                Joined::Stopped => return Ok(Sent::Stopped),
                Joined::Missing => resumed = None,
            }
        }
        let mut upload = Upload { store: &mut self.store, key, file };
        let note = match resumed {
            Some(note) => note,
            None => {
                let note = upload.begin(check, self.least_part)?;
                let step = ResumeStep::Whole(ResumeNote::Upload(note.clone()));
                if progress(PlaceProgress::Reached(&step)) == GoOn::Stop {
                    return Ok(Sent::Stopped);
                }
                note
            }
        };
        match upload.run(note, progress)? {
            Uploaded::Answered(answer) => Ok(Sent::Answered(answer)),
            Uploaded::Gone(answer) => self.joined_after(file, &answer, progress),
            Uploaded::Stopped => Ok(Sent::Stopped),
        }
    }

    /// What comes of an upload whose completion a store answered so: it has no such upload.
    fn joined_after(
        &mut self,
        file: &OutgoingFile,
        answer: &HttpAnswer,
        progress: &mut dyn FnMut(PlaceProgress<'_>) -> GoOn,
    ) -> Result<Sent, DeliveryFailure> {
        match self.joined(file, progress)? {
            Joined::There(proof) => Ok(Sent::Joined(proof)),
            Joined::Stopped => Ok(Sent::Stopped),
            Joined::Missing => {
                // The next attempt does not wait for it once more.
                progress(PlaceProgress::Reached(&ResumeStep::Whole(ResumeNote::Nothing)));
                let doing = format!("putting the parts of {} together", file.name);
                let failure = refused(&self.store.place, &doing, answer);
                let what = format!("{}; it is sent once more", failure.sentence);
                Err(DeliveryFailure::new(FailureKind::Line, what))
            }
        }
    }

    /// Waits for an object all of whose parts a store has, for as long as it may put them together.
    /// While it does so, some stores show neither the upload nor the object.
    fn joined(
        &mut self,
        file: &OutgoingFile,
        progress: &mut dyn FnMut(PlaceProgress<'_>) -> GoOn,
    ) -> Result<Joined, DeliveryFailure> {
        let mut waited = Duration::ZERO;
        loop {
            match self.look(file)? {
                RemoteFound::Same(proof) => return Ok(Joined::There(proof)),
                RemoteFound::Differs => return Err(differs(&self.store.place, &file.name)),
                RemoteFound::Absent if waited >= joining(file) => return Ok(Joined::Missing),
                RemoteFound::Absent => {}
            }
            if progress(PlaceProgress::Sent(file.size)) == GoOn::Stop {
                return Ok(Joined::Stopped);
            }
            self.store.pause(LOOK_EVERY)?;
            waited += LOOK_EVERY;
        }
    }

    /// What a store that took the file proves.
    fn proof(&mut self, file: &OutgoingFile, key: &str) -> Result<Proof, DeliveryFailure> {
        if file.read_back == ReadBack::Always {
            return match self.is_same_read_back(file, key)? {
                true => Ok(Proof::ReadBack),
                false => Err(read_back_differs(&self.store.place, &file.name)),
            };
        }
        match self.known()?.check {
            StoreCheck::Nothing => match self.look(file)? {
                RemoteFound::Same(proof) => Ok(proof),
                RemoteFound::Absent | RemoteFound::Differs => {
                    Err(read_back_differs(&self.store.place, &file.name))
                }
            },
            _ => Ok(Proof::Digest),
        }
    }

    fn is_same_read_back(
        &mut self,
        file: &OutgoingFile,
        key: &str,
    ) -> Result<bool, DeliveryFailure> {
        let call = StoreCall::of(Method::GET, key).keep(Keep::Digest);
        let answer = self.store.done(&format!("reading {} back", file.name), &call)?;
        Ok(answer.digest == Some((file.sha256, file.size.as_u64())))
    }

    /// The answer to a last request: none where the store took the file by it, a proof where the
    /// file is there all the same, or a failure. A completion may answer 200, and say in its body
    /// that it failed; one whose answer was lost is refused when it is asked for again.
    fn is_placed(
        &mut self,
        file: &OutgoingFile,
        answer: &HttpAnswer,
    ) -> Result<Option<Proof>, DeliveryFailure> {
        let is_error = tag_text(&answer.text(), "Error").is_some();
        if answer.status.is_success() && !is_error {
            return Ok(None);
        }
        let failure = refused(&self.store.place, &format!("placing {}", file.name), answer);
        match (self.look(file)?, answer.status.as_u16()) {
            (RemoteFound::Same(proof), _) => Ok(Some(proof)),
            (RemoteFound::Differs, _) => Err(differs(&self.store.place, &file.name)),
            // The one that it was refused for is gone, or the store reports its own trouble late.
            (RemoteFound::Absent, 412 | 200..=299) => {
                Err(DeliveryFailure::new(FailureKind::Line, failure.sentence))
            }
            (RemoteFound::Absent, _) => Err(failure),
        }
    }
}

impl RemoteSink for S3Sink {
    fn abilities(&mut self) -> Result<Abilities, DeliveryFailure> {
        let found = check::trial(&mut self.store, &self.tried_by)?;
        Ok(self.known.insert(found).clone())
    }

    fn look(&mut self, file: &OutgoingFile) -> Result<RemoteFound, DeliveryFailure> {
        let key = self.key(&file.name)?;
        let doing = format!("looking at {}", file.name);
        let answer = self.store.ask(&StoreCall::of(Method::HEAD, &key))?;
        match answer.status.as_u16() {
            404 => return Ok(RemoteFound::Absent),
            200..=299 => {}
            403 => {
                let failure = refused(&self.store.place, &doing, &answer);
                let hint = "a store says so of a missing object, too, where the account may not \
                            list the bucket";
                let sentence = format!("{}; {hint}", failure.sentence);
                return Err(DeliveryFailure::new(FailureKind::Access, sentence));
            }
            _ => return Err(refused(&self.store.place, &doing, &answer)),
        }
        let size = answer.header("content-length").and_then(|size| size.parse().ok());
        if size != Some(file.size.as_u64()) {
            return Ok(RemoteFound::Differs);
        }
        // The store verified the content when it was written with this digest.
        if let Some(digest) = answer.header("x-amz-meta-sha256") {
            return Ok(match digest == hex(&file.sha256) {
                true => RemoteFound::Same(Proof::Digest),
                false => RemoteFound::Differs,
            });
        }
        // An object of one piece has its MD5 as tag, unless the store encrypts it.
        let tag = answer.header("etag").map(|tag| tag.trim_matches('"').to_ascii_lowercase());
        if file.md5.is_some_and(|md5| tag.as_deref() == Some(hex(&md5).as_str())) {
            return Ok(RemoteFound::Same(Proof::Digest));
        }
        if file.read_back == ReadBack::Small && file.size > SMALL {
            return Ok(RemoteFound::Same(Proof::Size));
        }
        Ok(match self.is_same_read_back(file, &key)? {
            true => RemoteFound::Same(Proof::ReadBack),
            false => RemoteFound::Differs,
        })
    }

    fn place(
        &mut self,
        file: &OutgoingFile,
        resume: &ResumeNote,
        progress: &mut dyn FnMut(PlaceProgress<'_>) -> GoOn,
    ) -> Result<Placing, DeliveryFailure> {
        let key = self.key(&file.name)?;
        match self.look(file)? {
            RemoteFound::Same(proof) => return Ok(Placing::Placed(proof)),
            RemoteFound::Differs => return Err(differs(&self.store.place, &file.name)),
            RemoteFound::Absent => {}
        }
        let check = self.known()?.check;
        let sent = match file.size <= self.least_part {
            true => self.put(file, &key, check, progress)?,
            false => self.upload(file, &key, resume, progress)?,
        };
        let answer = match sent {
            Sent::Answered(answer) => answer,
            Sent::Joined(proof) => return Ok(Placing::Placed(proof)),
            Sent::Stopped => return Ok(Placing::Stopped),
        };
        match self.is_placed(file, &answer)? {
            Some(proof) => {
                // The object of another writer is the same; this upload is not needed.
                self.discard(file, resume)?;
                Ok(Placing::Placed(proof))
            }
            None => self.proof(file, &key).map(Placing::Placed),
        }
    }

    fn discard(&mut self, file: &OutgoingFile, resume: &ResumeNote) -> Result<(), DeliveryFailure> {
        let key = self.key(&file.name)?;
        match resume {
            ResumeNote::Upload(note) => {
                Upload { store: &mut self.store, key: &key, file }.abort(&note.upload)
            }
            ResumeNote::Nothing | ResumeNote::Part(_) => Ok(()),
        }
    }

    fn write(&mut self, name: &str, bytes: &[u8]) -> Result<(), DeliveryFailure> {
        let key = self.key(name)?;
        let check = self.known()?.check;
        let body = CallBody::Bytes(Bytes::copy_from_slice(bytes));
        let mut call = StoreCall::of(Method::PUT, &key).body(body);
        if let Some((header, value)) = check::PartCheck::of(check, bytes).header() {
            call = call.header(header, value);
        }
        self.store.done(&format!("writing {name}"), &call).map(drop)
    }

    fn list(&mut self, folder: &str) -> Result<Vec<RemoteEntry>, DeliveryFailure> {
        let prefix = match self.store.key(folder) {
            prefix if prefix.is_empty() => prefix,
            prefix => format!("{}/", prefix.trim_end_matches('/')),
        };
        let (mut found, mut after) = (Vec::new(), None::<String>);
        while found.len() < MOST_LISTED {
            let mut call = StoreCall::of_bucket(Method::GET)
                .query("list-type", "2")
                .query("delimiter", "/")
                .query("prefix", &prefix);
            if let Some(after) = &after {
                call = call.query("continuation-token", after);
            }
            let text = self.store.done(&format!("listing {folder:?}"), &call)?.text();
            for object in text.split("<Contents>").skip(1) {
                let key = tag_text(object, "Key").unwrap_or_default();
                let name = key.strip_prefix(&prefix).unwrap_or_default();
                let size = tag_text(object, "Size").and_then(|size| size.parse().ok());
                if !name.is_empty() && !name.starts_with('.') && found.len() < MOST_LISTED {
                    let size = ByteCount::new(size.unwrap_or(0));
                    found.push(RemoteEntry { name: name.to_owned(), size });
                }
            }
            after = tag_text(&text, "NextContinuationToken");
            if after.is_none() {
                break;
            }
        }
        found.sort();
        Ok(found)
    }

    fn read(&mut self, name: &str, most: ByteCount) -> Result<Option<Vec<u8>>, DeliveryFailure> {
        let key = self.key(name)?;
        let call = StoreCall::of(Method::GET, &key).keep(Keep::Bytes(most.as_usize()));
        let answer = self.store.ask(&call)?;
        match (answer.status.as_u16(), answer.is_cut) {
            (404, _) => Ok(None),
            (200..=299, Cut::Whole) => Ok(Some(answer.body)),
            (200..=299, Cut::Cut) => {
                let what =
                    format!("{name} has more than the {} bytes that are read", most.as_u64());
                Err(failed(FailureKind::Refused, &self.store.place, what))
            }
            _ => Err(refused(&self.store.place, &format!("reading {name}"), &answer)),
        }
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), DeliveryFailure> {
        let (from_key, to_key) = (self.key(from)?, self.key(to)?);
        let source = self.store.source(&from_key);
        let copy = StoreCall::of(Method::PUT, &to_key).header("x-amz-copy-source", source);
        let doing = format!("moving {from} to {to}");
        let copied = self.store.done(&doing, &copy)?;
        // As a completion, a copy may answer 200 and say in its body that it failed.
        if tag_text(&copied.text(), "Error").is_some() {
            return Err(refused(&self.store.place, &doing, &copied));
        }
        self.store.done(&doing, &StoreCall::of(Method::DELETE, &from_key)).map(drop)
    }
}

/// How often a store is asked for an object that it puts together.
const LOOK_EVERY: Duration = Duration::from_secs(1);
