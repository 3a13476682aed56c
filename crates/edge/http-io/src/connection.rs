//! One connection: TLS, requests one after the other, and the end of it.

use crate::progress::{ClientProgress, WatchedStream};
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::HttpService;
use hyper_util::rt::{TokioIo, TokioTimer};
use skyhaul_net::{Clock, option};
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
        // A system without it serves as well; thousands of slow clients cost it more.
        let _ = option::limit_unsent(&stream, MOST_UNSENT);
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

/// Bytes of an answer that the kernel takes beyond what the client has room for. Without a bound it
/// takes up to 4 MiB a connection: 2,000 slow clients fill the memory that the system has for TCP,
/// and all connections of the machine wait. A fast client takes 64 KiB in 0.1 ms at 5 Gbit/s, and
/// then the server is awake again.
const MOST_UNSENT: i32 = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SocketType, connect, socket, sockopt};
    use std::net::TcpListener;
    use std::pin::Pin;

    /// Regression: slow clients of a machine held up to 2 MB each in its kernel.
    #[test]
    fn a_client_that_does_not_read_holds_little_of_its_answer() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        // Little fits into the client's own buffer: what was written is held at the server.
        sockopt::set_socket_recv_buffer_size(&client, 4096).unwrap();
        connect(&client, &listener.local_addr().unwrap()).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        accepted.set_nonblocking(true).unwrap();
        let limits = ConnectionLimits {
            head: 8192,
            headers: 10,
            within: Duration::from_secs(60),
            idle: Duration::from_secs(60),
        };
        let taken = runtime.block_on(async {
            let stream = TcpStream::from_std(accepted).unwrap();
            let mut stream = HttpConnection::new(stream, Clock::start(), limits).stream;
            let (piece, mut taken) = ([0; 16 << 10], 0);
            // What it takes at once, and after pauses in which it may be writable again.
            let pause = std::time::Duration::from_millis(200);
            loop {
                let write = std::future::poll_fn(|context| {
                    Pin::new(&mut stream).poll_write(context, &piece)
                });
                let Ok(written) = timeout(pause, write).await else { break };
                taken += written.unwrap();
                assert!(taken < 200_000, "the kernel holds {taken} bytes for it");
            }
            taken
        });
        assert!(taken > 0);
    }
}
