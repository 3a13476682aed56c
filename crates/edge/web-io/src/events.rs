//! Events of the node for who waits for them: a long poll, and a stream.

use crate::desk::EventsFound;
use crate::shared::{StreamPlace, WebShared};
use crate::turns;
use bytes::Bytes;
use skyhaul_http_io::ClientProgress;
use skyhaul_serve::ServeAnswer;
use skyhaul_units::Duration;
use skyhaul_web::access::WebCredential;
use skyhaul_web::{EventsAsked, EventsFrom};
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::time::timeout;

/// Looks come once a second: news are looked for then, or after so long.
const LOOK: Duration = Duration::from_secs(2);
/// A stream without news says that it is there.
const KEPT_ALIVE: Duration = Duration::from_secs(15);

/// Answers who asks for events, when there are some or the time is over.
pub async fn poll(
    shared: &Arc<WebShared>,
    mut asked: EventsAsked,
    progress: &ClientProgress,
) -> Result<ServeAnswer, ServeAnswer> {
    let until = shared.clock.now() + asked.timeout;
    let place = match asked.timeout {
        Duration::ZERO => None,
        _ => Some(StreamPlace::take(shared).ok_or_else(too_many)?),
    };
    loop {
        let found = turns::events(shared, asked.clone()).await?;
        let is_over = place.is_none() || shared.clock.now() >= until;
        if is_over || !found.is_empty() {
            return Ok(found.answer());
        }
        if let (EventsFrom::Behind(_), Some(next)) = (asked.from, found.next) {
            asked.from = EventsFrom::Behind(next);
        }
        while shared.desk.last_event() <= found.last && shared.clock.now() < until {
            progress.moved(LOOK);
            look(shared).await;
        }
    }
}

/// Why a place is refused.
pub fn too_many() -> ServeAnswer {
    let what = "too many watch this node; close a page, or try again";
    ServeAnswer::problem(503, what).header("retry-after", "5")
}

/// Waits for the next look.
async fn look(shared: &WebShared) {
    let mut looks = shared.looks.clone();
    looks.mark_unchanged();
    let _ = timeout(LOOK.to_std(), looks.changed()).await;
}

/// Sends events to a client until it, or the server, is gone. A client that takes them slowly gets
/// them late: none is left out.
pub async fn send_on(
    shared: Arc<WebShared>,
    credential: WebCredential,
    mut asked: EventsAsked,
    sender: mpsc::Sender<Bytes>,
) {
    let mut alive = shared.clock.now();
    // The head goes out at once.
    let mut text = ": events follow\n\n".to_owned();
    loop {
        if !text.is_empty() {
            alive = shared.clock.now();
            if sender.send(text.into()).await.is_err() {
                return;
            }
        }
        if sender.is_closed() || !shared.still_looks(&credential) {
            return;
        }
        text = String::new();
        match turns::events(&shared, asked.clone()).await {
            Ok(found) => {
                text = sent(&found);
                if let Some(next) = found.next {
                    asked.from = EventsFrom::Behind(next);
                }
                if text.is_empty() && shared.desk.last_event() <= found.last {
                    look(&shared).await;
                }
            }
            // The readers are busy, or the disk is: the client loses nothing.
            Err(_) => look(&shared).await,
        }
        if text.is_empty() && shared.clock.now() >= alive + KEPT_ALIVE {
            text = ": nothing new\n\n".to_owned();
        }
    }
}

/// Events as a stream has them; holes before what follows them.
fn sent(found: &EventsFound) -> String {
    let mut text = String::new();
    let mut holes = found.holes.iter().peekable();
    for row in &found.rows {
        while let Some(hole) = holes.next_if(|hole| hole.to < row.number) {
            text += &hole.as_sent();
        }
        text += &format!("id: {}\ndata: {}\n\n", row.number, row.json);
    }
    holes.for_each(|hole| text += &hole.as_sent());
    text
}
