//! What a node tells the service manager that started it (sd_notify(3)): that it is ready, reloads,
//! ends, and still lives. Without a manager nothing is sent.

use rustix::time::{ClockId, clock_gettime};
use skyhaul_node::node::ServiceState;
use skyhaul_units::Duration;
use std::ffi::OsStr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The way to the service manager.
#[derive(Debug)]
pub struct ServiceManager {
    socket: Option<(UnixDatagram, SocketAddr)>,
    pulse: Option<Duration>,
}

impl ServiceManager {
    /// The one that started this process, if one did.
    pub fn of_process() -> Self {
        let address = std::env::var_os("NOTIFY_SOCKET").and_then(|name| address(&name));
        let socket = address.and_then(|to| Some((UnixDatagram::unbound().ok()?, to)));
        let number = |name: &str| std::env::var_os(name)?.to_str()?.parse::<u64>().ok();
        let is_ours = number("WATCHDOG_PID").is_none_or(|pid| pid == u64::from(std::process::id()));
        let watchdog = number("WATCHDOG_USEC").filter(|_| is_ours).map(Duration::from_micros);
        // A third of the time: one that is lost does no harm.
        let pulse = watchdog.map(|watchdog| watchdog / 3);
        Self { socket, pulse }
    }

    /// Between two signs of life; none where the manager does not ask for them.
    pub const fn pulse(&self) -> Option<Duration> {
        self.pulse
    }

    /// Tells the state of the node.
    pub fn tell(&self, state: ServiceState) {
        match state {
            ServiceState::Ready | ServiceState::Reloaded => self.send("READY=1\n"),
            ServiceState::Reloading => {
                let now = clock_gettime(ClockId::Monotonic);
                let micros = i128::from(now.tv_sec) * 1_000_000 + i128::from(now.tv_nsec) / 1_000;
                self.send(&format!("RELOADING=1\nMONOTONIC_USEC={micros}\n"));
            }
            ServiceState::Stopping => self.send("STOPPING=1\n"),
            ServiceState::Alive => self.send("WATCHDOG=1\n"),
            ServiceState::GoesOnIn(pid) => self.send(&format!("MAINPID={pid}\n")),
        }
    }

    /// A manager that does not listen any more is none.
    fn send(&self, text: &str) {
        if let Some((socket, to)) = &self.socket {
            let _ = socket.send_to_addr(text.as_bytes(), to);
        }
    }
}

/// A path, or a name of the abstract space behind an `@`.
fn address(name: &OsStr) -> Option<SocketAddr> {
    match name.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name).ok(),
        [b'/', ..] => SocketAddr::from_pathname(name).ok(),
        _ => None,
    }
}
