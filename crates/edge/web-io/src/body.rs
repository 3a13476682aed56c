//! The body of an answer: bytes, or server-sent events.

use crate::stream::SentStream;
use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use skyhaul_http_io::ClientProgress;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// A body that goes out.
pub struct WebBody {
    content: WebContent,
    _answering: Answering,
}

/// What it is.
pub enum WebContent {
    /// Bytes, once.
    Whole(Option<Bytes>),
    /// Server-sent events, until the connection ends.
    Sent(SentStream),
}

impl WebBody {
    /// A body of an answer that is going out.
    pub const fn new(content: WebContent, answering: Answering) -> Self {
        Self { content, _answering: answering }
    }
}

/// An answer that is going out: its client has to take something of it now and then.
pub struct Answering(Arc<ClientProgress>);

impl Answering {
    /// An answer begins.
    pub fn begin(progress: Arc<ClientProgress>) -> Self {
        progress.began();
        Self(progress)
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.ended();
    }
}

impl Body for WebBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.content {
            WebContent::Whole(bytes) => {
                Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes))))
            }
            WebContent::Sent(sent) => {
                sent.poll_event(context).map(|event| event.map(|event| Ok(Frame::data(event))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            WebContent::Whole(bytes) => bytes.is_none(),
            WebContent::Sent(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            WebContent::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            WebContent::Sent(_) => SizeHint::default(),
        }
    }
}
