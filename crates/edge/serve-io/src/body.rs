//! The body of an answer: bytes, or pieces of a file that another thread reads.

use crate::served_request::ServedRequest;
use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use skyhaul_serve::{ByteSpan, FileSlice};
use skyhaul_units::Duration;
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};
use tokio::task::JoinHandle;
use tokio::time::Sleep;

/// A body that goes out.
pub struct ServeBody {
    parts: VecDeque<FileSlice>,
    /// None where all parts are bytes.
    file: Option<Arc<File>>,
    step: Step,
    left: u64,
    exchange: ServedRequest,
}

/// What is done about the next piece.
enum Step {
    /// Nothing yet.
    Next,
    /// The rate of the account does not let it go out yet.
    Pacing(Pin<Box<Sleep>>, ByteSpan),
    /// It is being read.
    Reading(JoinHandle<io::Result<Bytes>>),
}

impl ServeBody {
    /// A body of these bytes.
    pub fn of_bytes(bytes: Bytes, mut exchange: ServedRequest) -> Self {
        let left = bytes.len() as u64;
        // It is in memory: what it takes is paid for, and nothing waits.
        exchange.charge(left);
        let parts = (left > 0).then_some(FileSlice::Bytes(bytes)).into_iter().collect();
        Self { parts, file: None, step: Step::Next, left, exchange }
    }

    /// A body of parts of a file.
    pub fn of_file(file: File, parts: Vec<FileSlice>, exchange: ServedRequest) -> Self {
        exchange.shared().bodies.fetch_add(1, Ordering::Relaxed);
        let length = |part: &FileSlice| match part {
            FileSlice::Bytes(bytes) => bytes.len() as u64,
            FileSlice::Span(span) => span.len,
        };
        let left = parts.iter().map(length).sum();
        let file = Some(Arc::new(file));
        Self { parts: parts.into(), file, step: Step::Next, left, exchange }
    }

    /// The next piece that is to be read; bytes that are there go out at once.
    fn next_piece(&mut self) -> Option<FileSlice> {
        let piece = self.exchange.shared().piece();
        match self.parts.pop_front()? {
            FileSlice::Span(span) if span.len > piece => {
                let rest = ByteSpan { from: span.from + piece, len: span.len - piece };
                self.parts.push_front(FileSlice::Span(rest));
                Some(FileSlice::Span(ByteSpan { from: span.from, len: piece }))
            }
            FileSlice::Span(span) if span.len == 0 => self.next_piece(),
            part => Some(part),
        }
    }

    fn read(&self, span: ByteSpan) -> Step {
        let Some(file) = self.file.clone() else { return Step::Next };
        Step::Reading(tokio::task::spawn_blocking(move || {
            let mut bytes = vec![0; usize::try_from(span.len).unwrap_or(0)];
            file.read_exact_at(&mut bytes, span.from)?;
            Ok(Bytes::from(bytes))
        }))
    }
}

impl Drop for ServeBody {
    fn drop(&mut self) {
        if self.file.is_some() {
            self.exchange.shared().bodies.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Body for ServeBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let body = &mut *self;
        loop {
            match &mut body.step {
                Step::Next => match body.next_piece() {
                    None => return Poll::Ready(None),
                    Some(FileSlice::Bytes(bytes)) => {
                        if body.file.is_some() {
                            body.exchange.charge(bytes.len() as u64);
                        }
                        body.left = body.left.saturating_sub(bytes.len() as u64);
                        return Poll::Ready(Some(Ok(Frame::data(bytes))));
                    }
                    Some(FileSlice::Span(span)) => {
                        let wait = body.exchange.charge(span.len);
                        body.step = match wait {
                            Duration::ZERO => body.read(span),
                            wait => {
                                let sleep = Box::pin(tokio::time::sleep(wait.to_std()));
                                Step::Pacing(sleep, span)
                            }
                        };
                    }
                },
                Step::Pacing(sleep, span) => {
                    ready!(sleep.as_mut().poll(context));
                    let span = *span;
                    body.step = body.read(span);
                }
                Step::Reading(read) => {
                    let read = ready!(Pin::new(read).poll(context));
                    body.step = Step::Next;
                    let bytes = read.unwrap_or_else(|error| Err(io::Error::other(error)));
                    if let Err(error) = &bytes {
                        let what = format!("a product file cannot be read ({error})");
                        body.exchange.shared().warn(&what);
                    }
                    let count = bytes.as_ref().map_or(0, |bytes| bytes.len() as u64);
                    body.left = body.left.saturating_sub(count);
                    return Poll::Ready(Some(bytes.map(Frame::data)));
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
