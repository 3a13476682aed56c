//! One connection: TLS, requests one after the other, and the end of it.

use crate::progress::{ClientProgress, WatchedStream};
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::HttpService;
use hyper_util::rt::{TokioIo, TokioTimer};
use skyhaul_net::Clock;
use skyhaul_units::Duration;
use std::error::Error;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

/// A connection that was accepted.
#[derive(Debug)]
pub struct HttpConnection {
    stream: WatchedStream<TcpStream>,
    progress: Arc<ClientProgress>,
    limits: ConnectionLimits,
}

/// What a client may take.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionLimits {
    /// Bytes of the address and the headers of a request together.
    pub head: usize,
    /// Headers of a request.
    pub headers: usize,
    /// The time for TLS, and for the head of a request (also the one that is not begun).
    pub within: Duration,
    /// A client that takes nothing of its answer for so long is closed.
    pub idle: Duration,
}

/// How a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionEnd {
    /// One of the two ends closed it, or it broke.
    Closed,
    /// The client took nothing of its answer.
    Stalled,
}

impl HttpConnection {
    /// A connection of which nothing was read.
    pub fn new(stream: TcpStream, clock: Clock, limits: ConnectionLimits) -> Self {
        let progress = ClientProgress::new(clock);
        // Without it the last piece of an answer, or an event, waits for an acknowledgement.
        let _ = stream.set_nodelay(true);
        Self { stream: WatchedStream::new(stream, progress.clone()), progress, limits }
    }

    /// Whether its client takes something.
    pub const fn progress(&self) -> &Arc<ClientProgress> {
        &self.progress
    }

    /// Answers by `service` until the connection ends.
    pub async fn serve<S, B>(self, tls: Option<TlsAcceptor>, service: S) -> ConnectionEnd
    where
        S: HttpService<Incoming, ResBody = B>,
        S::Error: Into<Box<dyn Error + Send + Sync>>,
        B: Body + 'static,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        let Self { stream, progress, limits } = self;
        let Some(acceptor) = tls else { return talk(stream, &progress, limits, service).await };
        match timeout(limits.within.to_std(), acceptor.accept(stream)).await {
            Ok(Ok(stream)) => talk(stream, &progress, limits, service).await,
            // Scanners and health checks end here: they are no news.
            Ok(Err(_)) | Err(_) => ConnectionEnd::Closed,
        }
    }
}

async fn talk<S, B>(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    progress: &ClientProgress,
    limits: ConnectionLimits,
    service: S,
) -> ConnectionEnd
where
    S: HttpService<Incoming, ResBody = B>,
    S::Error: Into<Box<dyn Error + Send + Sync>>,
    B: Body + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let talk = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.within.to_std())
        .max_buf_size(limits.head)
        .max_header_size(limits.head)
        .max_headers(limits.headers)
        .serve_connection(TokioIo::new(stream), service);
    tokio::select! {
        // A client that goes away in the middle comes back with a range.
        _ = talk => ConnectionEnd::Closed,
        () = progress.stalled(limits.idle) => ConnectionEnd::Stalled,
    }
}
