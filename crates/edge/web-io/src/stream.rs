//! Streams of server-sent events: a look for each, as far as the client keeps up; or the events of
//! the node.

use crate::events;
use crate::shared::{StreamPlace, WebLook, WebShared};
use bytes::Bytes;
use skyhaul_web::EventsAsked;
use skyhaul_web::access::WebCredential;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::mpsc;

/// Server-sent events for one client.
pub struct SentStream {
    events: mpsc::Receiver<Bytes>,
    _place: StreamPlace,
}

/// Events that wait for a client. What comes while there are so many is left out: each event is
/// the whole look.
const WAITING_MAX: usize = 2;

impl SentStream {
    /// A stream of looks; none where there are too many. It ends when `credential` is good no more.
    pub fn looks(shared: &Arc<WebShared>, credential: WebCredential) -> Option<Self> {
        let place = StreamPlace::take(shared)?;
        let (sender, events) = mpsc::channel(WAITING_MAX);
        tokio::spawn(send_on(shared.clone(), credential, sender));
        Some(Self { events, _place: place })
    }

    /// A stream of events of the node; as above.
    pub fn events(
        shared: &Arc<WebShared>,
        credential: WebCredential,
        asked: EventsAsked,
    ) -> Option<Self> {
        let place = StreamPlace::take(shared)?;
        let (sender, events) = mpsc::channel(WAITING_MAX);
        tokio::spawn(events::send_on(shared.clone(), credential, asked, sender));
        Some(Self { events, _place: place })
    }

    /// The next event.
    pub fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        self.events.poll_recv(context)
    }
}

/// Sends each look to a client until it, or the server, is gone.
async fn send_on(shared: Arc<WebShared>, credential: WebCredential, sender: mpsc::Sender<Bytes>) {
    let mut looks = shared.looks.clone();
    looks.mark_changed();
    loop {
        tokio::select! {
            changed = looks.changed() => if changed.is_err() { return },
            () = sender.closed() => return,
        }
        if !shared.still_looks(&credential) {
            return;
        }
        let look = looks.borrow_and_update().clone();
        let _ = sender.try_send(event(&look));
    }
}

/// A look as an event.
fn event(look: &WebLook) -> Bytes {
    format!("event: look\nid: {}\ndata: {}\n\n", look.number(), look.summary()).into()
}
