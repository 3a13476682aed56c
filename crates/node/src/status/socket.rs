//! The local socket: whoever connects gets one line of JSON.

use super::NodeStatus;
use crate::fault::Fault;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Answers on a node's status socket until dropped.
#[derive(Debug)]
pub struct StatusServer {
    path: PathBuf,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// How long one asker may take.
const PATIENCE: Duration = Duration::from_secs(2);
/// A node with 1,000 contacts says less.
const LONGEST: u64 = 64 << 20;

impl StatusServer {
    /// Answers at `path` with what `status` gives. A socket left over from a killed process is replaced.
    ///
    /// # Errors
    /// A node that runs answers there already, or the path cannot be used.
    #[allow(clippy::disallowed_methods, reason = "the socket is served beside the node's own threads")]
    pub fn start(path: &Path, status: impl Fn() -> NodeStatus + Send + 'static) -> Result<Self, Fault> {
        if UnixStream::connect(path).is_ok() {
            let help = "stop that node, or give this one another state folder";
            return Err(Fault::environment(
                "a node with this status socket is running already",
                path.display(),
                help,
            ));
        }
        let _ = std::fs::remove_file(path);
        let listener = UnixListener::bind(path).map_err(|error| {
            let help =
                "set status_socket in [node] to a path of at most 107 bytes in a folder this user may write";
            Fault::environment(format!("the status socket cannot be made ({error})"), path.display(), help)
        })?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept()
                && !stopped.load(Ordering::Relaxed)
            {
                answer(stream, &status());
            }
        });
        Ok(Self { path: path.to_owned(), stop, thread: Some(thread) })
    }
}

impl Drop for StatusServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let woken = UnixStream::connect(&self.path).is_ok();
        let _ = std::fs::remove_file(&self.path);
        if let Some(thread) = self.thread.take().filter(|_| woken) {
            let _ = thread.join();
        }
    }
}

fn answer(mut stream: UnixStream, status: &NodeStatus) {
    let _ = stream.set_write_timeout(Some(PATIENCE));
    let mut line = serde_json::to_vec(status).expect("the status has no map with keys other than text");
    line.push(b'\n');
    // Who hangs up before the end does not want it.
    let _ = stream.write_all(&line);
}

/// Asks the node whose status socket is at `path`.
///
/// # Errors
/// No node answers there, or not in this version's form.
pub fn ask(path: &Path) -> Result<NodeStatus, Fault> {
    let no_node = |error: &std::io::Error| {
        let what = match error.kind() {
            ErrorKind::NotFound | ErrorKind::ConnectionRefused => "no node is running".to_owned(),
            _ => format!("the node does not answer ({error})"),
        };
        Fault::environment(what, path.display(), "start it with `skyhaul station` or `skyhaul centre`")
    };
    let stream = UnixStream::connect(path).map_err(|error| no_node(&error))?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(|error| no_node(&error))?;
    let mut text = String::new();
    stream.take(LONGEST).read_to_string(&mut text).map_err(|error| no_node(&error))?;
    serde_json::from_str(&text).map_err(|error| {
        let help = "use the same version of the program to ask";
        Fault::peer(
            format!("the node's answer is not a status of this version ({error})"),
            path.display(),
            help,
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::StationStatus;

    fn station() -> NodeStatus {
        NodeStatus::Station(StationStatus { name: "polar".to_owned(), ..StationStatus::default() })
    }

    #[test]
    fn a_running_node_answers_and_a_stopped_one_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("status.sock");
        let server = StatusServer::start(&path, station).unwrap();
        for _ in 0..3 {
            assert_eq!(ask(&path), Ok(station()));
        }
        let second = StatusServer::start(&path, station).unwrap_err();
        assert!(second.to_string().contains("running already"), "{second}");
        drop(server);
        let gone = ask(&path).unwrap_err();
        assert!(gone.to_string().starts_with("no node is running, "), "{gone}");
    }

    #[test]
    fn a_socket_left_over_from_a_killed_node_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("status.sock");
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        let _server = StatusServer::start(&path, station).unwrap();
        assert_eq!(ask(&path), Ok(station()));
    }
}
