//! Orders to a running emulation from other processes, over a UNIX socket: one JSON line each, and
//! one in answer.

use crate::EmulatorError;
use crate::emulation::Handle;
use crate::order::{EmulatorOrder, OrderAnswer};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where a lab's orders are given: a socket in the file system.
#[derive(Debug, Clone)]
pub struct ControlSocket {
    path: PathBuf,
}

impl ControlSocket {
    /// Of the lab whose socket is at `path`.
    pub const fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// The socket's file path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Takes orders for `handle` on a thread of its own until the process ends.
    ///
    /// # Errors
    /// The socket cannot be made.
    #[allow(clippy::disallowed_methods, reason = "orders come while the links carry packets")]
    pub fn serve(&self, handle: Handle) -> Result<(), EmulatorError> {
        let listener = UnixListener::bind(&self.path).map_err(|error| {
            EmulatorError::system(&format!("listen at {}", self.path.display()), error)
        })?;
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // A client that disconnects early or sends no order gets no answer.
                let _ = converse(&stream, &handle);
            }
        });
        Ok(())
    }

    /// Gives an order and returns the answer: a JSON object.
    ///
    /// # Errors
    /// No emulation answers, or the order is refused.
    pub fn ask(&self, order: &EmulatorOrder) -> Result<serde_json::Value, EmulatorError> {
        let line = self.exchange(order).map_err(EmulatorError::NoAnswer)?;
        let answer: serde_json::Value = serde_json::from_str(&line)
            .map_err(|error| EmulatorError::NoAnswer(io::Error::other(error)))?;
        match answer.get("refused").and_then(serde_json::Value::as_str) {
            Some(reason) => Err(EmulatorError::Order(reason.to_owned())),
            None => Ok(answer),
        }
    }

    fn exchange(&self, order: &EmulatorOrder) -> io::Result<String> {
        let mut stream = UnixStream::connect(&self.path)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut line = serde_json::to_string(order)?;
        line.push('\n');
        stream.write_all(line.as_bytes())?;
        let mut answer = String::new();
        BufReader::new(stream.take(LONGEST_ANSWER)).read_line(&mut answer)?;
        Ok(answer)
    }
}

fn converse(mut stream: &UnixStream, handle: &Handle) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    BufReader::new(stream.take(LONGEST_ORDER)).read_line(&mut line)?;
    let answer = match serde_json::from_str::<EmulatorOrder>(&line) {
        Ok(order) => {
            handle.ask(order).unwrap_or_else(|error| OrderAnswer::Refused(error.to_string()))
        }
        Err(error) => {
            OrderAnswer::Refused(format!("the order is not one ({error}); use `skyhaul lab`"))
        }
    };
    let mut answer = serde_json::to_string(&answer)?;
    answer.push('\n');
    stream.write_all(answer.as_bytes())
}

/// How long the other side may take: an order is carried out at once.
const PATIENCE: Duration = Duration::from_secs(5);

/// A link with a thousand planned changes, and room.
const LONGEST_ORDER: u64 = 1 << 20;

/// The status of the most links that there may be, with their plans.
const LONGEST_ANSWER: u64 = 64 << 20;
