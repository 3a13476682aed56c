//! What connections of the asynchronous libraries run on: a runtime of their own, and TCP.

use crate::failure::{failed, stalled};
use skyhaul_dispatch::{DeliveryFailure, FailureKind};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::time::timeout;

/// The runtime of one sink. Its tasks run while a call of the sink waits.
pub struct SinkRuntime {
    place: String,
    running: Option<Runtime>,
}

impl SinkRuntime {
    /// One for a place.
    ///
    /// # Errors
    /// This machine lacks resources.
    pub fn new(place: &str) -> Result<Self, DeliveryFailure> {
        let mut own = Self { place: place.to_owned(), running: None };
        own.start()?;
        Ok(own)
    }

    fn start(&mut self) -> Result<&Runtime, DeliveryFailure> {
        if self.running.is_none() {
            let mut builder = tokio::runtime::Builder::new_current_thread();
            let started = builder.enable_all().build().map_err(|error| {
                let what = format!("this machine lacks resources: {error}");
                failed(FailureKind::Line, &self.place, what)
            })?;
            self.running = Some(started);
        }
        Ok(self.running.as_ref().expect("it was started"))
    }

    /// Waits for what is to be done.
    ///
    /// # Errors
    /// Those of what is done.
    pub fn run<T>(
        &mut self,
        what: impl Future<Output = Result<T, DeliveryFailure>>,
    ) -> Result<T, DeliveryFailure> {
        self.start()?.block_on(what)
    }

    /// Ends all tasks and closes their connections. A name that is still being resolved is waited
    /// for by nobody.
    pub fn end(&mut self) {
        if let Some(running) = self.running.take() {
            running.shutdown_background();
        }
    }
}

impl Drop for SinkRuntime {
    fn drop(&mut self) {
        self.end();
    }
}

/// A TCP connection.
///
/// # Errors
/// There is none, with the system's words.
pub async fn connect(
    place: &str,
    host: &str,
    port: u16,
    stall: Duration,
) -> Result<TcpStream, DeliveryFailure> {
    let stream = timeout(stall, TcpStream::connect((host, port)))
        .await
        .map_err(|_| stalled(place, "a connection was opened", stall))?
        .map_err(|error| {
            failed(FailureKind::Line, place, format!("no connection to port {port}: {error}"))
        })?;
    // Small requests and answers alternate; without it each waits for an acknowledgement.
    stream.set_nodelay(true).ok();
    Ok(stream)
}
