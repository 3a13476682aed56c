//! A server that is told by POST.

use super::{Notice, NoticeOutcome, NoticeStop};
use crate::fault::Fault;
use skyhaul_config::WebhookEntry;
use skyhaul_dispatch::FailureKind;
use skyhaul_events::{CLOUD_EVENTS, NodeEvent, cloud_event};
use skyhaul_net::Clock;
use skyhaul_remote::{GoOn, HttpPost, PostDocument, RemoteAccess};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

/// One `[[webhook]]`.
pub struct WebhookNotice {
    name: String,
    post: HttpPost,
    clock: Clock,
}

/// A server that says nothing for so long is left, and asked again later.
const STALL: Duration = Duration::from_secs(10);
/// An event that a server refuses as such so often is left out: the others go on.
const REFUSED_MAX: u32 = 5;
const SECRET_MIN: usize = 16;
const SECRET_MAX: u64 = 4_096;

impl WebhookNotice {
    /// Reads the secret and the certificates.
    ///
    /// # Errors
    /// One of them cannot be used.
    pub fn new(entry: &WebhookEntry, clock: Clock) -> Result<Self, Fault> {
        let secret = entry.secret_file.as_deref().map(read_secret).transpose()?;
        let access =
            RemoteAccess { ca_file: entry.ca.clone(), stall: STALL, ..RemoteAccess::default() };
        let post = HttpPost::new(&entry.url, &access, secret.as_deref()).map_err(|failure| {
            Fault::configuration(failure.sentence, "[[webhook]]", "correct `ca`")
        })?;
        Ok(Self { name: format!("webhook {}", entry.url), post, clock })
    }
}

impl Notice for WebhookNotice {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn tell(&mut self, events: &[NodeEvent], attempt: u32, stop: &NoticeStop) -> NoticeOutcome {
        let Some(event) = events.first() else { return NoticeOutcome::Done(0) };
        let document = PostDocument {
            media: CLOUD_EVENTS,
            body: cloud_event(event).to_string().into_bytes(),
            sent_s: self.clock.utc().as_micros() / 1_000_000,
        };
        let go_on = || if stop.is_requested() { GoOn::Stop } else { GoOn::Continue };
        match self.post.send(&document, &go_on) {
            Ok(GoOn::Continue) => NoticeOutcome::Done(1),
            // The node ends: it is sent after the next start.
            Ok(GoOn::Stop) => NoticeOutcome::NotYet,
            Err(failure) if failure.kind == FailureKind::Refused && attempt >= REFUSED_MAX => {
                let number = event.number;
                NoticeOutcome::LeftOut(format!("{}; event {number} is left out", failure.sentence))
            }
            Err(failure) => NoticeOutcome::Again(failure.sentence),
        }
    }
}

/// The secret of a file that nobody else can read; white space at its end does not count.
fn read_secret(path: &Path) -> Result<Vec<u8>, Fault> {
    let wrong = |what: String, help: &str| Err(Fault::configuration(what, path.display(), help));
    let found = std::fs::metadata(path).and_then(|meta| Ok((meta, std::fs::read(path)?)));
    let (meta, mut secret) = match found {
        Ok(found) => found,
        Err(error) => {
            let what = format!("the secret of a webhook cannot be read ({error})");
            return wrong(what, "correct `secret_file` in [[webhook]]");
        }
    };
    if meta.mode() & 0o077 != 0 {
        let what = "other users can read the secret of a webhook".to_owned();
        return wrong(what, "run `chmod 600` on it");
    }
    secret.truncate(secret.trim_ascii_end().len());
    if secret.len() < SECRET_MIN || meta.len() > SECRET_MAX {
        let what = format!("the secret of a webhook has {SECRET_MIN} to {SECRET_MAX} bytes");
        return wrong(what, "write one, such as the output of `openssl rand -hex 32`");
    }
    Ok(secret)
}
