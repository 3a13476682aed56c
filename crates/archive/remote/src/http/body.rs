//! What goes out with a request.

use crate::failure::source;
use crate::pace::DeliveryPace;
use crate::source::PIECE;
use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use skyhaul_dispatch::DeliveryFailure;
use skyhaul_units::ByteCount;
use std::fs::File;
use std::future::Future;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use tokio::time::Sleep;

/// The body of a request. It can be sent again.
#[derive(Debug, Clone)]
pub enum CallBody<'a> {
    /// None.
    Empty,
    /// A few bytes.
    Bytes(Bytes),
    /// A piece of a file.
    File {
        /// The file.
        path: &'a Path,
        /// Where the piece begins.
        from: u64,
        /// Its length.
        length: u64,
    },
}

/// A body on its way.
pub struct Outgoing {
    bytes: Option<Bytes>,
    file: Option<File>,
    left: u64,
    taken: Arc<AtomicU64>,
    pace: Option<Arc<DeliveryPace>>,
    /// The next piece, and until when it waits.
    held: Option<(Bytes, Pin<Box<Sleep>>)>,
}

impl Outgoing {
    /// Begins to send; what went out is counted in `taken`.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn new(
        body: &CallBody<'_>,
        taken: &Arc<AtomicU64>,
        pace: Option<Arc<DeliveryPace>>,
    ) -> Result<Self, DeliveryFailure> {
        let (mut bytes, mut file, mut left) = (None, None, 0);
        match body {
            CallBody::Empty => {}
            CallBody::Bytes(all) => {
                left = all.len() as u64;
                bytes = Some(all.clone());
            }
            CallBody::File { path, from, length } => {
                let unreadable = |error| source(path, format!("cannot be read: {error}"));
                let mut opened = File::open(path).map_err(unreadable)?;
                opened.seek(SeekFrom::Start(*from)).map_err(unreadable)?;
                (file, left) = (Some(opened), *length);
            }
        }
        Ok(Self { bytes, file, left, taken: Arc::clone(taken), pace, held: None })
    }

    fn piece(&mut self) -> io::Result<Option<Bytes>> {
        if let Some(bytes) = self.bytes.take() {
            return Ok(Some(bytes));
        }
        let Some(file) = self.file.as_mut().filter(|_| self.left > 0) else { return Ok(None) };
        let length = usize::try_from(self.left).unwrap_or(usize::MAX).min(PIECE);
        let mut piece = vec![0; length];
        file.read_exact(&mut piece)?;
        Ok(Some(piece.into()))
    }
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if self.held.is_none() {
            let piece = match self.piece() {
                Ok(None) => return Poll::Ready(None),
                Ok(Some(piece)) => piece,
                Err(error) => return Poll::Ready(Some(Err(error))),
            };
            let wait = self.pace.as_ref().map(|pace| pace.take(ByteCount::of(piece.len())));
            self.held = Some((piece, Box::pin(tokio::time::sleep(wait.unwrap_or_default()))));
        }
        let Some((piece, wait)) = &mut self.held else { return Poll::Ready(None) };
        if self_is_paced(wait, context).is_pending() {
            return Poll::Pending;
        }
        let piece = core::mem::take(piece);
        self.held = None;
        self.left -= piece.len() as u64;
        self.taken.fetch_add(piece.len() as u64, Ordering::Relaxed);
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

/// Whether the time of a piece has come.
fn self_is_paced(wait: &mut Pin<Box<Sleep>>, context: &mut Context<'_>) -> Poll<()> {
    match wait.is_elapsed() {
        true => Poll::Ready(()),
        false => wait.as_mut().poll(context),
    }
}
