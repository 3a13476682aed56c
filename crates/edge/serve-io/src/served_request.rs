//! One request and its answer, from its admission until the last byte has gone out.

use crate::shared::ServeShared;
use skyhaul_http_io::ClientProgress;
use skyhaul_serve::ServeAdmission;
use skyhaul_units::{Duration, Instant, printable};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// An exchange. When it is dropped, it ends.
pub struct ServedRequest {
    shared: Arc<ServeShared>,
    progress: Arc<ClientProgress>,
    admission: Option<ServeAdmission>,
    peer: IpAddr,
    asked: String,
    id: String,
    status: u16,
    sent: u64,
    began: Instant,
}

/// A path in the log.
const PATH_SHOWN: usize = 160;

impl ServedRequest {
    /// A request has come; `asked` is its method and path.
    pub fn new(
        shared: Arc<ServeShared>,
        progress: Arc<ClientProgress>,
        peer: IpAddr,
        asked: &str,
    ) -> Self {
        let began = shared.clock.now();
        progress.began();
        let asked = printable(asked, PATH_SHOWN);
        let id = format!("{:016X}", shared.requests.fetch_add(1, Ordering::Relaxed));
        Self { shared, progress, admission: None, peer, asked, id, status: 0, sent: 0, began }
    }

    /// Its identifier, which the log has too.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The request was admitted.
    pub fn admitted(&mut self, admission: ServeAdmission) {
        self.admission = Some(admission);
    }

    /// The answer has this status.
    pub fn answered(&mut self, status: u16) {
        self.status = status;
        if let Some(admission) = &self.admission {
            self.shared.gate().answered(admission, status);
        }
        self.progress.moved(Duration::ZERO);
    }

    /// Bytes of the body are to go out. Returns how long to wait before.
    pub fn charge(&mut self, bytes: u64) -> Duration {
        self.sent += bytes;
        let Some(admission) = &self.admission else { return Duration::ZERO };
        let wait = self.shared.gate().charge(admission, bytes, self.shared.clock.now());
        if wait > Duration::ZERO {
            self.progress.moved(wait);
        }
        wait
    }

    /// What its connection shares with the others.
    pub const fn shared(&self) -> &Arc<ServeShared> {
        &self.shared
    }
}

impl Drop for ServedRequest {
    fn drop(&mut self) {
        self.progress.ended();
        let mut name = "-";
        if let Some(admission) = &self.admission {
            self.shared.gate().end(admission);
            name = admission.account.as_ref().map_or("-", |account| &account.name);
        }
        let took = self.shared.clock.now().since(self.began).as_secs_f64();
        let Self { peer, asked, id, status, sent, .. } = self;
        self.shared.access(&format!(
            "{name} {peer} {asked}: {status}, {sent} bytes in {took:.3} s ({id})"
        ));
    }
}
