//! Why a far node's request is refused: for programs and for people.

use rustix::io::Errno;
use skyhaul_forward::ConnectRefusal;

/// Why this node does not connect or listen for a far node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RequestRefusal {
    pub reason: ConnectRefusal,
    pub sentence: String,
}

impl RequestRefusal {
    pub fn new(reason: ConnectRefusal, sentence: &str) -> Self {
        Self { reason, sentence: sentence.to_owned() }
    }

    /// No rule names the target.
    pub fn not_allowed() -> Self {
        Self::new(
            ConnectRefusal::NotAllowed,
            "the connecting node's rules do not allow it; allow the target with --allow there",
        )
    }

    /// The system did not connect.
    pub fn of_connect(errno: Errno) -> Self {
        let reason = match errno {
            Errno::CONNREFUSED | Errno::NOENT => ConnectRefusal::ConnectionRefused,
            Errno::HOSTUNREACH | Errno::HOSTDOWN => ConnectRefusal::HostUnreachable,
            Errno::NETUNREACH | Errno::NETDOWN => ConnectRefusal::NetworkUnreachable,
            Errno::TIMEDOUT => ConnectRefusal::TimedOut,
            Errno::AGAIN | Errno::MFILE | Errno::NFILE => ConnectRefusal::Busy,
            _ => ConnectRefusal::Failed,
        };
        Self::new(reason, &std::io::Error::from(errno).to_string())
    }
}
