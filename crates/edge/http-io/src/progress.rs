//! A connection that knows when its client took something.

use skyhaul_net::Clock;
use skyhaul_units::{Duration, Instant};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// When something last moved, and whether something should.
#[derive(Debug)]
pub struct ClientProgress {
    clock: Clock,
    at: AtomicU64,
    answers: AtomicU32,
}

impl ClientProgress {
    /// Something moves now.
    pub fn new(clock: Clock) -> Arc<Self> {
        let at = AtomicU64::new(clock.now().as_nanos());
        Arc::new(Self { clock, at, answers: AtomicU32::new(0) })
    }

    /// Something moves now, or will after a wait that the server wants.
    pub fn moved(&self, wait: Duration) {
        let at = (self.clock.now() + wait).as_nanos();
        self.at.fetch_max(at, Ordering::Relaxed);
    }

    /// An answer begins to go out.
    pub fn began(&self) {
        self.answers.fetch_add(1, Ordering::Relaxed);
        self.moved(Duration::ZERO);
    }

    /// An answer has gone out, or was given up.
    pub fn ended(&self) {
        self.answers.fetch_sub(1, Ordering::Relaxed);
    }

    /// Returns when an answer is going out and nothing has moved for `idle`.
    pub async fn stalled(&self, idle: Duration) {
        let look = idle.scaled(1, 4).to_std();
        loop {
            tokio::time::sleep(look).await;
            let at = Instant::from_nanos(self.at.load(Ordering::Relaxed));
            if self.answers.load(Ordering::Relaxed) > 0 && self.clock.now().since(at) >= idle {
                return;
            }
        }
    }
}

/// A connection of which each write is noted.
#[derive(Debug)]
pub struct WatchedStream<S> {
    stream: S,
    progress: Arc<ClientProgress>,
}

impl<S> WatchedStream<S> {
    /// A connection whose writes `progress` notes.
    pub const fn new(stream: S, progress: Arc<ClientProgress>) -> Self {
        Self { stream, progress }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WatchedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WatchedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        if matches!(written, Poll::Ready(Ok(1..))) {
            self.progress.moved(Duration::ZERO);
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        if matches!(written, Poll::Ready(Ok(1..))) {
            self.progress.moved(Duration::ZERO);
        }
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
