//! The thread of a server: it accepts connections until the server is dropped.

use std::future::Future;
use std::io;
use std::net::{IpAddr, TcpListener};
use std::thread::JoinHandle;
use tokio::net::TcpStream;
use tokio::runtime::Builder;
use tokio::sync::watch;

/// A server's thread that runs until it is dropped.
#[derive(Debug)]
pub struct HttpThread {
    stop: watch::Sender<()>,
    thread: Option<JoinHandle<()>>,
}

/// How a server's threads are called, and how many they are.
#[derive(Debug, Clone, Copy)]
pub struct HttpThreadSetup {
    /// The thread of all connections.
    pub name: &'static str,
    /// The threads that wait for disks.
    pub readers: &'static str,
    /// The most of them.
    pub readers_max: usize,
}

impl HttpThread {
    /// Starts it. `serve` is asked about each connection, with the address of its client: it gives
    /// what serves the connection, or nothing where the connection is refused.
    ///
    /// # Errors
    /// The system refuses a thread, or the listener.
    pub fn start<S, F>(setup: HttpThreadSetup, listener: TcpListener, serve: S) -> io::Result<Self>
    where
        S: Fn(TcpStream, IpAddr) -> Option<F> + Send + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        listener.set_nonblocking(true)?;
        let (stop, mut stopped) = watch::channel(());
        let runtime = Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(setup.readers_max)
            .thread_name(setup.readers)
            .build()?;
        let listener = {
            let _inside = runtime.enter();
            tokio::net::TcpListener::from_std(listener)?
        };
        let run = move || {
            runtime.block_on(async {
                tokio::select! {
                    () = accept(&listener, serve) => {}
                    // Also when the sender is gone.
                    _ = stopped.changed() => {}
                }
            });
            // Reads that were begun end within a piece; a search is given up.
            runtime.shutdown_timeout(std::time::Duration::from_secs(1));
        };
        let thread = std::thread::Builder::new().name(setup.name.to_owned()).spawn(run)?;
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for HttpThread {
    fn drop(&mut self) {
        let _ = self.stop.send(());
        if let Some(thread) = self.thread.take() {
            // A panic was logged.
            let _ = thread.join();
        }
    }
}

async fn accept<S, F>(listener: &tokio::net::TcpListener, serve: S)
where
    S: Fn(TcpStream, IpAddr) -> Option<F>,
    F: Future<Output = ()> + Send + 'static,
{
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                if let Some(served) = serve(stream, peer.ip()) {
                    tokio::spawn(served);
                }
            }
            // Out of files or memory: those that are open go on meanwhile.
            Err(_) => tokio::time::sleep(std::time::Duration::from_millis(100)).await,
        }
    }
}
