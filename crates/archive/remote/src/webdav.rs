//! HTTPS servers: WebDAV where they have it, otherwise PUT alone.
//!
//! With WebDAV a file is sent under another name and moved. Without it the server decides when a
//! file is visible, and the delivery record says that it is whole. A broken upload begins anew:
//! HTTP has no way to go on that servers share.

mod listing;

use crate::access::RemoteAccess;
use crate::failure::{differs, failed, read_back_differs};
use crate::http::{
    CallBody, Cut, HttpAnswer, HttpCall, HttpClient, HttpServer, Keep, Scheme, encoded, refused,
};
use crate::name;
use crate::place::{RemotePlace, RemoteServer};
use crate::sink::{
    Abilities, GoOn, OutgoingFile, PlaceProgress, Placing, PublishWay, ReadBack, RemoteEntry,
    RemoteFound, RemoteSink, ResumeNote, ResumeStep, SMALL, StoreCheck,
};
use crate::source::PublishedSource;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hyper::Method;
use skyhaul_dispatch::{DeliveryFailure, FailureKind, Proof};
use skyhaul_units::ByteCount;

/// A folder of an HTTPS server.
pub struct WebSink {
    client: HttpClient,
    place: String,
    folder: String,
    /// The `authorization` header.
    login: Option<crate::access::Secret>,
    /// Who tries what the server can.
    tried_by: String,
    known: Option<Abilities>,
}

/// What becomes of a file that has the new name already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Overwrite {
    Replace,
    Refuse,
}

impl WebSink {
    /// Of a folder.
    ///
    /// # Errors
    /// What is needed to enter it cannot be read.
    pub fn new(
        server: &RemoteServer,
        access: &RemoteAccess,
        known: Option<Abilities>,
    ) -> Result<Self, DeliveryFailure> {
        let place = RemotePlace::Https(server.clone()).to_string();
        let host = server.host_text();
        let authority = match server.port {
            443 => host,
            port => format!("{host}:{port}"),
        };
        let (host, port, scheme) = (server.host.clone(), server.port, Scheme::Https);
        let client = HttpClient::new(&place, HttpServer { host, port, authority, scheme }, access)?;
        let login = access.password(&place)?.map(|secret| match &server.user {
            Some(user) => {
                let both = STANDARD.encode(format!("{user}:{}", secret.0));
                crate::access::Secret(format!("Basic {both}"))
            }
            None => crate::access::Secret(format!("Bearer {}", secret.0)),
        });
        let (folder, tried_by) = (server.folder.clone(), access.tried_by.clone());
        Ok(Self { client, place, folder, login, tried_by, known })
    }

    fn target(&self, file_name: &str) -> String {
        encoded(&name::join(&self.folder, file_name), "/")
    }

    fn call<'a>(&self, method: Method, file_name: &str) -> HttpCall<'a> {
        let call = HttpCall::new(method, self.target(file_name));
        match &self.login {
            Some(login) => call.header("authorization", login.0.clone()),
            None => call,
        }
    }

    fn refused(&self, doing: &str, answer: &HttpAnswer) -> DeliveryFailure {
        refused(&self.place, doing, answer)
    }

    fn known(&mut self) -> Result<Abilities, DeliveryFailure> {
        match &self.known {
            Some(known) => Ok(known.clone()),
            None => self.abilities(),
        }
    }

    fn put(&mut self, file_name: &str, bytes: &[u8]) -> Result<HttpAnswer, DeliveryFailure> {
        let body = CallBody::Bytes(Bytes::copy_from_slice(bytes));
        let answer = self.client.call(&self.call(Method::PUT, file_name).body(body))?;
        match answer.status.is_success() {
            true => Ok(answer),
            false => Err(self.refused(&format!("writing {file_name}"), &answer)),
        }
    }

    fn move_to(
        &mut self,
        from: &str,
        to: &str,
        overwrite: Overwrite,
    ) -> Result<HttpAnswer, DeliveryFailure> {
        let authority = &self.client.server().authority;
        let destination = format!("https://{authority}{}", self.target(to));
        let overwrite = match overwrite {
            Overwrite::Replace => "T",
            Overwrite::Refuse => "F",
        };
        let call = self
            .call(method("MOVE"), from)
            .header("destination", destination)
            .header("overwrite", overwrite);
        self.client.call(&call)
    }

    /// Removes a file; none there is no failure.
    fn remove(&mut self, file_name: &str) -> Result<(), DeliveryFailure> {
        let answer = self.client.call(&self.call(Method::DELETE, file_name))?;
        match answer.status.is_success() || answer.status.as_u16() == 404 {
            true => Ok(()),
            false => Err(self.refused(&format!("removing {file_name}"), &answer)),
        }
    }

    /// Makes the folders of a name; what is there already is refused, and is good.
    fn make_folders(&mut self, file_name: &str) -> Result<(), DeliveryFailure> {
        for folder in name::folders(file_name) {
            // Some servers want the slash at the end.
            self.client.call(&self.call(method("MKCOL"), &format!("{folder}/")))?;
        }
        Ok(())
    }

    /// Sends the file under a name.
    fn send(
        &mut self,
        file: &OutgoingFile,
        file_name: &str,
        overwrite: Overwrite,
        progress: &mut dyn FnMut(PlaceProgress<'_>) -> GoOn,
    ) -> Result<Option<HttpAnswer>, DeliveryFailure> {
        let length = file.size.as_u64();
        let digest = STANDARD.encode(file.sha256);
        let mut call = self
            .call(Method::PUT, file_name)
            // RFC 9530 2
            .header("repr-digest", format!("sha-256=:{digest}:"))
            .body(CallBody::File { path: &file.path, from: 0, length });
        if file_name == file.name && overwrite == Overwrite::Refuse {
            call = call.header("if-none-match", "*");
        }
        let mut watch = |taken| progress(PlaceProgress::Sent(ByteCount::new(taken)));
        self.client.call_watched(&call, &mut watch)
    }

    /// What is under a name: that it is the same, with a proof, that it is not, or nothing.
    fn compare(
        &mut self,
        file: &OutgoingFile,
        file_name: &str,
    ) -> Result<RemoteFound, DeliveryFailure> {
        let call = self.call(Method::HEAD, file_name).header("want-repr-digest", "sha-256=10");
        let answer = self.client.call(&call)?;
        match answer.status.as_u16() {
            404 | 410 => return Ok(RemoteFound::Absent),
            200..=299 => {}
            _ => return Err(self.refused(&format!("looking at {file_name}"), &answer)),
        }
        let size = answer.header("content-length").and_then(|size| size.parse::<u64>().ok());
        if size.is_some_and(|size| size != file.size.as_u64()) {
            return Ok(RemoteFound::Differs);
        }
        let digest = answer.header("repr-digest").and_then(sha256_of);
        match digest {
            Some(digest) if file.read_back == ReadBack::Small => {
                return Ok(compared(digest, file, Proof::Digest));
            }
            _ if file.read_back == ReadBack::Small && file.size > SMALL && size.is_some() => {
                return Ok(RemoteFound::Same(Proof::Size));
            }
            _ => {}
        }
        let call = self.call(Method::GET, file_name).keep(Keep::Digest);
        let answer = self.client.call(&call)?;
        if !answer.status.is_success() {
            return Err(self.refused(&format!("reading {file_name} back"), &answer));
        }
        Ok(match answer.digest {
            Some((digest, _)) => compared(digest, file, Proof::ReadBack),
            None => RemoteFound::Differs,
        })
    }

    /// Gives a part its name.
    fn publish(
        &mut self,
        file: &OutgoingFile,
        part: &str,
        proof: Proof,
    ) -> Result<Proof, DeliveryFailure> {
        let answer = self.move_to(part, &file.name, Overwrite::Refuse)?;
        if answer.status.is_success() {
            return Ok(proof);
        }
        match self.look(file)? {
            RemoteFound::Same(proof) => self.remove(part).map(|()| proof),
            RemoteFound::Differs => Err(differs(&self.place, &file.name)),
            RemoteFound::Absent => {
                Err(self.refused(&format!("giving {} its name", file.name), &answer))
            }
        }
    }
}

/// Compares a digest with that of the file.
fn compared(digest: [u8; 32], file: &OutgoingFile, proof: Proof) -> RemoteFound {
    match digest == file.sha256 {
        true => RemoteFound::Same(proof),
        false => RemoteFound::Differs,
    }
}

impl RemoteSink for WebSink {
    fn abilities(&mut self) -> Result<Abilities, DeliveryFailure> {
        let whole = name::trial(&self.tried_by);
        let part = format!("{whole}.part");
        let (part, whole) = (&part[..], &whole[..]);
        let answer = self.put(part, b"trial")?;
        let server = answer.header("server").map(crate::failure::words).unwrap_or_default();
        let moved = self.move_to(part, whole, Overwrite::Replace)?.status.is_success();
        let refuses_existing = match moved {
            true => {
                self.put(part, b"other")?;
                self.move_to(part, whole, Overwrite::Refuse)?.status.as_u16() == 412
            }
            false => {
                let body = CallBody::Bytes(Bytes::from_static(b"other"));
                let call = self.call(Method::PUT, part).header("if-none-match", "*").body(body);
                self.client.call(&call)?.status.as_u16() == 412
            }
        };
        for name in [part, whole] {
            // A server without DELETE keeps a trial of five bytes.
            self.remove(name).ok();
        }
        let found = Abilities {
            server,
            publish: if moved { PublishWay::Rename } else { PublishWay::Direct },
            says_durable: false,
            resumes: false,
            refuses_existing,
            check: StoreCheck::Nothing,
            replaces: Some(moved),
            free: None,
        };
        Ok(self.known.insert(found).clone())
    }

    fn look(&mut self, file: &OutgoingFile) -> Result<RemoteFound, DeliveryFailure> {
        name::check(&self.place, &file.name)?;
        self.compare(file, &file.name)
    }

    fn place(
        &mut self,
        file: &OutgoingFile,
        resume: &ResumeNote,
        progress: &mut dyn FnMut(PlaceProgress<'_>) -> GoOn,
    ) -> Result<Placing, DeliveryFailure> {
        let known = self.known()?;
        let is_own = known.publish == PublishWay::Direct && resume.has_begun(file);
        let overwrite = match self.look(file)? {
            RemoteFound::Same(proof) => return Ok(Placing::Placed(proof)),
            RemoteFound::Differs if !is_own || !self.is_shorter(file)? => {
                return Err(differs(&self.place, &file.name));
            }
            RemoteFound::Differs => Overwrite::Replace,
            RemoteFound::Absent => Overwrite::Refuse,
        };
        PublishedSource::check(file)?;
        if known.publish == PublishWay::Direct
            && progress(PlaceProgress::Reached(&ResumeStep::part(file, 0))) == GoOn::Stop
        {
            return Ok(Placing::Stopped);
        }
        self.make_folders(&file.name)?;
        let written = match known.publish {
            PublishWay::Rename => name::part(&file.name),
            PublishWay::Direct | PublishWay::Whole => file.name.clone(),
        };
        let Some(answer) = self.send(file, &written, overwrite, progress)? else {
            return Ok(Placing::Stopped);
        };
        if answer.status.as_u16() == 412 && written == file.name {
            return match self.look(file)? {
                RemoteFound::Same(proof) => Ok(Placing::Placed(proof)),
                RemoteFound::Differs | RemoteFound::Absent => Err(differs(&self.place, &file.name)),
            };
        }
        if !answer.status.is_success() {
            return Err(self.refused(&format!("placing {}", file.name), &answer));
        }
        // Only the length and what the server says are looked at, unless reading back is asked for.
        let compared = match file.read_back {
            ReadBack::Always => self.compare(file, &written)?,
            ReadBack::Small => self.stored(file, &written)?,
        };
        let RemoteFound::Same(proof) = compared else {
            return Err(read_back_differs(&self.place, &file.name));
        };
        match known.publish {
            PublishWay::Rename => self.publish(file, &written, proof).map(Placing::Placed),
            PublishWay::Direct | PublishWay::Whole => Ok(Placing::Placed(proof)),
        }
    }

    fn discard(&mut self, file: &OutgoingFile, _: &ResumeNote) -> Result<(), DeliveryFailure> {
        name::check(&self.place, &file.name)?;
        self.remove(&name::part(&file.name))
    }

    fn write(&mut self, file_name: &str, bytes: &[u8]) -> Result<(), DeliveryFailure> {
        name::check(&self.place, file_name)?;
        let known = self.known()?;
        self.make_folders(file_name)?;
        if known.publish != PublishWay::Rename {
            return self.put(file_name, bytes).map(drop);
        }
        let part = name::part(file_name);
        self.put(&part, bytes)?;
        let answer = self.move_to(&part, file_name, Overwrite::Replace)?;
        match answer.status.is_success() {
            true => Ok(()),
            false => Err(self.refused(&format!("giving {file_name} its name"), &answer)),
        }
    }

    fn list(&mut self, folder: &str) -> Result<Vec<RemoteEntry>, DeliveryFailure> {
        let path = format!("{}/", name::join(&self.folder, folder).trim_end_matches('/'));
        let mut call = self
            .call(method("PROPFIND"), "")
            .header("depth", "1")
            .header("content-type", "application/xml")
            .keep(Keep::Bytes(MOST_LISTING))
            .body(CallBody::Bytes(Bytes::from_static(listing::ASKED.as_bytes())));
        call.target = encoded(&path, "/");
        let answer = self.client.call(&call)?;
        match (answer.status.as_u16(), answer.is_cut) {
            (404, _) if !folder.is_empty() => Ok(Vec::new()),
            (200..=299, Cut::Whole) => Ok(listing::files(&answer.text())),
            (200..=299, Cut::Cut) => {
                let what = format!("the listing of {folder:?} has more than 16 MiB; clear it out");
                Err(failed(FailureKind::Refused, &self.place, what))
            }
            (405 | 501, _) => {
                let what =
                    "the server lists no folders (PROPFIND), so notices cannot be read there";
                Err(failed(FailureKind::Refused, &self.place, what))
            }
            _ => Err(self.refused(&format!("listing {folder:?}"), &answer)),
        }
    }

    fn read(
        &mut self,
        file_name: &str,
        most: ByteCount,
    ) -> Result<Option<Vec<u8>>, DeliveryFailure> {
        name::check(&self.place, file_name)?;
        let call = self.call(Method::GET, file_name).keep(Keep::Bytes(most.as_usize()));
        let answer = self.client.call(&call)?;
        match (answer.status.as_u16(), answer.is_cut) {
            (404 | 410, _) => Ok(None),
            (200..=299, Cut::Whole) => Ok(Some(answer.body)),
            (200..=299, Cut::Cut) => {
                let most = most.as_u64();
                let what = format!("{file_name} has more than the {most} bytes that are read");
                Err(failed(FailureKind::Refused, &self.place, what))
            }
            _ => Err(self.refused(&format!("reading {file_name}"), &answer)),
        }
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), DeliveryFailure> {
        name::check(&self.place, from)?;
        name::check(&self.place, to)?;
        self.make_folders(to)?;
        let answer = self.move_to(from, to, Overwrite::Replace)?;
        match answer.status.is_success() {
            true => Ok(()),
            false => Err(self.refused(&format!("moving {from} to {to}"), &answer)),
        }
    }
}

impl WebSink {
    /// Whether what is there may be the beginning of the file.
    fn is_shorter(&mut self, file: &OutgoingFile) -> Result<bool, DeliveryFailure> {
        let answer = self.client.call(&self.call(Method::HEAD, &file.name))?;
        let size = answer.header("content-length").and_then(|size| size.parse::<u64>().ok());
        Ok(size.is_some_and(|size| size < file.size.as_u64()))
    }

    /// What the server says of a file that was just sent, without reading it back.
    fn stored(
        &mut self,
        file: &OutgoingFile,
        file_name: &str,
    ) -> Result<RemoteFound, DeliveryFailure> {
        let call = self.call(Method::HEAD, file_name).header("want-repr-digest", "sha-256=10");
        let answer = self.client.call(&call)?;
        if !answer.status.is_success() {
            return Err(self.refused(&format!("looking at {file_name}"), &answer));
        }
        if let Some(digest) = answer.header("repr-digest").and_then(sha256_of) {
            return Ok(compared(digest, file, Proof::Digest));
        }
        let size = answer.header("content-length").and_then(|size| size.parse::<u64>().ok());
        Ok(match size == Some(file.size.as_u64()) {
            true => RemoteFound::Same(Proof::Size),
            false => RemoteFound::Differs,
        })
    }
}

fn method(name: &'static str) -> Method {
    Method::from_bytes(name.as_bytes()).expect("methods of RFC 4918 are letters")
}

/// The SHA-256 of a `repr-digest` header.
fn sha256_of(header: &str) -> Option<[u8; 32]> {
    let found = header.split(',').find_map(|part| part.trim().strip_prefix("sha-256=:"))?;
    STANDARD.decode(found.strip_suffix(':')?).ok()?.try_into().ok()
}

/// 10,000 files.
const MOST_LISTING: usize = 16 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_of_a_representation_is_read_among_others() {
        // RFC 9530 appendix B.1
        let header = "md5=:x:, sha-256=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=:";
        assert_eq!(sha256_of(header).unwrap()[..2], [0x44, 0xaf]);
        assert_eq!(sha256_of("sha-256=:AA==:"), None);
    }
}
