//! The stream of looks: a server-sent event for each, as far as the client keeps up.

use crate::shared::{STREAMS_MAX, WebLook, WebShared};
use bytes::Bytes;
use skyhaul_web::access::WebCredential;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use tokio::sync::mpsc;

/// Events for one client.
pub struct LookStream {
    events: mpsc::Receiver<Bytes>,
    _place: StreamPlace,
}

/// A place among the streams that may be open at a time.
struct StreamPlace(Arc<WebShared>);

/// Events that wait for a client. What comes while there are so many is left out: each event is
/// the whole look.
const WAITING_MAX: usize = 2;

impl LookStream {
    /// A stream; none where there are too many. It ends when `credential` is good no more.
    pub fn open(shared: &Arc<WebShared>, credential: WebCredential) -> Option<Self> {
        let place = StreamPlace::take(shared)?;
        let (sender, events) = mpsc::channel(WAITING_MAX);
        tokio::spawn(send_on(shared.clone(), credential, sender));
        Some(Self { events, _place: place })
    }

    /// The next event.
    pub fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        self.events.poll_recv(context)
    }
}

impl StreamPlace {
    fn take(shared: &Arc<WebShared>) -> Option<Self> {
        let more = |open: u32| (open < STREAMS_MAX).then_some(open + 1);
        let taken = shared.streams.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        taken.is_ok().then(|| Self(shared.clone()))
    }
}

impl Drop for StreamPlace {
    fn drop(&mut self) {
        self.0.streams.fetch_sub(1, Ordering::Relaxed);
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
