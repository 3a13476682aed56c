//! The stations that a centre admits, how what it sends to them is shared, and what else the line's
//! thread is told.

use crate::file_doors::FileDoors;
use crate::forecasts::GivenHint;
use crate::orders::Orders;
use crate::reports::ReportDesk;
use skyhaul_forward_io::FarRules;
use skyhaul_quic::Fingerprint;
use skyhaul_store::StationName;
use skyhaul_transport::ClassTree;
use skyhaul_units::Duration;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

/// A station that the centre admits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdmittedStation {
    /// Its name.
    pub name: StationName,
    /// Its index in the configuration that the centre began with; none where it was not there.
    pub place: Option<usize>,
    /// What it may have this centre do for applications.
    pub rules: Arc<FarRules>,
    /// Without a session for so long it is silent; none where that is no alarm.
    pub patience: Option<Duration>,
    /// The key of the configuration by which it is admitted: its session may have one that follows
    /// it.
    pub listed: Fingerprint,
}

/// What the line's thread adopts of a configuration that was read again.
#[derive(Debug)]
pub struct CentreAdmission {
    /// The stations that are admitted, by key.
    pub peers: BTreeMap<Fingerprint, AdmittedStation>,
    /// The keys that may connect to each address that is listened on, in the configuration's order.
    pub trusted: Vec<BTreeSet<Fingerprint>>,
    /// The class tree of what the centre sends; none where it did not change.
    pub classes: Option<ClassTree>,
}

/// What the line's thread is told by the others.
#[derive(Debug, Default)]
pub struct LineDesk {
    /// What it is to adopt.
    pub admission: PendingAdmission,
    /// Hints for the paths of peers.
    pub hints: Orders<PeerHint>,
    /// Channels for products over the sessions with other nodes.
    pub doors: Arc<FileDoors>,
    /// Reports of nodes.
    pub reports: Arc<ReportDesk>,
}

/// A hint for the paths of a peer that has connected here.
#[derive(Debug)]
pub struct PeerHint {
    /// The name of the peer, or `NAME/NUMBER` for one of its paths.
    pub path: String,
    /// The hint.
    pub hint: GivenHint,
}

/// The newest admission that the line's thread has not adopted yet.
#[derive(Debug, Default)]
pub struct PendingAdmission {
    pending: Mutex<Option<CentreAdmission>>,
}

impl PendingAdmission {
    /// Replaces the pending admission. A class tree that was not adopted yet stays pending.
    pub fn put(&self, mut admission: CentreAdmission) {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        let before = pending.take().and_then(|before| before.classes);
        admission.classes = admission.classes.or(before);
        *pending = Some(admission);
    }

    /// Takes the pending admission.
    pub fn take(&self) -> Option<CentreAdmission> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
