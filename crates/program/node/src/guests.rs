//! What stations and centres do alike for what shares their sessions with contacts.

use crate::alarms::Alarms;
use crate::fault::Fault;
use crate::services::SessionMemory;
use skyhaul_channels::FIRST_GUEST;
use skyhaul_channels_io::{
    BLOCKS_SHARE, FILES_SHARE, FORWARDS_SHARE, STREAMS_SHARE, TakenChannels, Tenants,
};
use skyhaul_events::AlarmKind;
use skyhaul_forward_io::{ForwardNotice, Forwarding, StartError};
use skyhaul_net::Waker;
use skyhaul_store::FLOW_END;
use skyhaul_units::ByteCount;
use std::sync::Arc;

// The spool gives contacts no flow that is another one's.
const _: () = assert!(FLOW_END.0 == FIRST_GUEST.0);

/// What arrives of a session that guests have a part in: windows of applications bound it behind
/// that. Eight round trips of 660 ms at 93 Mbit/s.
const RECEIVE: ByteCount = ByteCount::mib(64);

/// Whether programs' blocks share the sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramBlocks {
    /// The node has a block service.
    Served,
    /// It has none.
    Unserved,
}

/// The memory of a session with guests, where `own` is enough without.
pub fn window(own: SessionMemory) -> SessionMemory {
    SessionMemory {
        receive: own.receive.max(RECEIVE),
        send: own.send + FORWARDS_SHARE + FILES_SHARE + STREAMS_SHARE + BLOCKS_SHARE,
    }
}

/// Listens for applications. What happens to forwards goes to the log and to `alarms`.
///
/// # Errors
/// A port or socket file cannot be listened at.
pub fn start(
    forwarding: Forwarding,
    taken: TakenChannels,
    waker: Waker,
    alarms: Arc<Alarms>,
) -> Result<Tenants, Fault> {
    let notify = Box::new(move |notice: &ForwardNotice| report(&alarms, notice));
    let guests = Tenants::new(forwarding, taken, waker, notify).map_err(|error| match error {
        StartError::System(_) => Fault::environment(
            error.to_string(),
            "[[forward]]",
            "close other programs, or raise this user's limit of open files (ulimit -n)",
        ),
        StartError::Listen { local, source } => Fault::environment(
            format!("cannot listen on {local} ({source})"),
            "[[forward]]",
            "stop the program that uses it, or write another port or socket file",
        ),
    })?;
    for (local, listen, node) in guests.forwards().locals() {
        tracing::info!(%local, node, leads = ?listen.arrival, "forward listening for applications");
    }
    Ok(guests)
}

fn report(alarms: &Alarms, notice: &ForwardNotice) {
    match notice {
        ForwardNotice::Refused { target, sentence, .. } => {
            tracing::warn!("cannot connect to {target}: {sentence}");
        }
        ForwardNotice::FarListens { node, at, target } => {
            alarms.clear(AlarmKind::ForwardUnheard, unheard(node, at));
            tracing::info!("{node} listens on {at}, forwarding to {target} here");
        }
        ForwardNotice::FarRefuses { node, at, sentence, .. } => {
            alarms.raise(AlarmKind::ForwardUnheard, unheard(node, at), sentence);
        }
        ForwardNotice::Listens { at, target } => {
            tracing::info!("listening on {at}, forwarding to {target} at the other node");
        }
        ForwardNotice::ListensNot { at, sentence, .. } => {
            tracing::warn!("cannot listen on {at}: {sentence}");
        }
        // The node logs connections and disconnections itself.
        _ => {}
    }
}

fn unheard(node: &str, at: &skyhaul_forward::Local) -> String {
    format!("{node} at {at}")
}
