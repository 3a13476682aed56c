//! A process that reads its socket late, and whose socket has a small buffer. It is stopped and
//! continued again and again, like a process that shares a processor with others.

use rustix::net::sockopt::{set_socket_recv_buffer_size, socket_recv_buffer_size};
use rustix::process::{
    Pid, PidfdFlags, PidfdGetfdFlags, Signal, kill_process, pidfd_getfd, pidfd_open,
};
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// It is stopped and continued until this is dropped; then the process runs again.
pub struct Late {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// The buffer of a socket, of which the kernel takes half for itself: 33 ms at 6 Mbit/s.
const BUFFER: usize = 16 << 10;
/// How long it is stopped, and then runs.
const TURN: Duration = Duration::from_millis(100);

impl Late {
    /// Begins with the process with this number, whose sockets must be open.
    #[allow(
        clippy::disallowed_methods,
        reason = "the process is stopped while the test does other things"
    )]
    pub fn start(process: u32) -> Self {
        let pid = Pid::from_raw(process.cast_signed()).unwrap();
        assert!(shrink(pid) > 0, "process {process} has no socket");
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                for signal in [Signal::STOP, Signal::CONT] {
                    // It may have ended.
                    let _ = kill_process(pid, signal);
                    std::thread::park_timeout(TURN);
                }
            }
        });
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for Late {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Gives each socket of a process a small buffer, from outside. Returns the number of sockets.
fn shrink(pid: Pid) -> usize {
    let process = pidfd_open(pid, PidfdFlags::empty()).unwrap();
    let open = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().map(|entry| entry.unwrap());
    let is_socket = |entry: &fs::DirEntry| {
        fs::read_link(entry.path()).is_ok_and(|to| to.to_string_lossy().starts_with("socket:"))
    };
    let sockets = open.filter(is_socket).map(|entry| {
        let number = entry.file_name().to_str().unwrap().parse().unwrap();
        let socket = pidfd_getfd(&process, number, PidfdGetfdFlags::empty()).unwrap();
        set_socket_recv_buffer_size(&socket, BUFFER).unwrap();
        assert!(socket_recv_buffer_size(&socket).unwrap() <= 2 * BUFFER);
    });
    sockets.count()
}
