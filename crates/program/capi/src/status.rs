//! The state of a session and its paths.
#![allow(unsafe_code, reason = "functions with C names, for callers in C")]

use crate::boundary::{object, put, write_array, write_text};
use crate::error::{ErrorCode, Fault, code};
use crate::session::Session;
use skyhaul::{Duration, HintError, PathId, Probability, Rate, Wait};
use std::ffi::c_char;

/// The state of a path.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathState {
    /// It is being set up.
    Probing = 0,
    /// It carries data.
    Active = 1,
    /// It is used when the others fail.
    Standby = 2,
    /// It has not answered for longer than a round trip allows.
    Stalled = 3,
    /// A hint announces an outage.
    Absent = 4,
    /// It has not answered for long, and no other path can carry its data.
    Silent = 5,
    /// It drops large datagrams (black hole): short ones are answered, symbols do not arrive.
    BlackHole = 6,
}

/// The figures of a path.
#[repr(C)]
#[derive(Debug)]
pub struct PathReport {
    /// Its number within the session.
    pub id: u8,
    /// Its state.
    pub state: PathState,
    /// Smoothed round-trip time in nanoseconds.
    pub rtt_ns: u64,
    /// The rate that the congestion controller allows now, in bits per second.
    pub rate_bps: u64,
    /// The share of datagrams lost, in parts per billion.
    pub loss_ppb: u32,
    /// Symbols sent, including retransmissions.
    pub symbols_sent: u64,
    /// Symbols that count as lost.
    pub symbols_lost: u64,
    /// Repair symbols sent.
    pub repair_sent: u64,
}

/// Counts of a session since it began.
#[repr(C)]
#[derive(Debug)]
pub struct Counters {
    /// Blocks taken from the program.
    pub blocks_taken: u64,
    /// Blocks that the far end reported complete.
    pub blocks_reported: u64,
    /// Bytes of those.
    pub bytes_reported: u64,
    /// Blocks given up here because their deadline passed.
    pub blocks_given_up: u64,
    /// Blocks given to the program without retransmission or repair.
    pub blocks_delivered: u64,
    /// Blocks given to the program after retransmission or FEC repair.
    pub blocks_repaired: u64,
    /// Blocks begun here that expired, or that the far end gave up.
    pub blocks_expired: u64,
    /// Bytes of blocks given to the program.
    pub bytes_delivered: u64,
    /// Symbols sent for the first time.
    pub symbols_sent: u64,
    /// Symbols retransmitted.
    pub symbols_repeated: u64,
    /// Symbols recovered by FEC repair.
    pub symbols_recovered: u64,
}

/// Writes the figures of a session's paths, as many as there is room for, and the number of paths
/// to `count`.
///
/// # Safety
/// `session` is a session; `room` reports may be written at `out`; `count` points to a place for a
/// number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn skyhaul_session_paths(
    session: *const Session,
    out: *mut PathReport,
    room: usize,
    count: *mut usize,
) -> ErrorCode {
    // SAFETY: as the caller says.
    code(unsafe { object(session, "session") }.and_then(|session| {
        let paths = session.link().paths();
        let reports: Vec<PathReport> =
            paths.iter().map(|(id, status)| report(*id, status)).collect();
        // SAFETY: as the caller says.
        unsafe {
            put(count, reports.len())?;
            write_array(reports, out, room)
        }
    }))
}

/// Says which rate a path of the session has from now on, counted in IP packets. With a time of
/// zero or more in `lasts_ms` the path gets no more until then; a negative one sets no such limit.
///
/// The paths of a session of this process have the numbers of `skyhaul_session_paths`. Those of one
/// through the block service are numbered as the status of the node shows them, from 0; the hint is
/// for all that the node sends there, and `hints` of `[[blocks.allow]]` says who may give it.
///
/// # Safety
/// `session` is a session.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn skyhaul_session_hint_rate(
    session: *const Session,
    path: u8,
    rate_bps: u64,
    lasts_ms: i64,
) -> ErrorCode {
    let lasts = u64::try_from(lasts_ms).ok().map(Duration::from_millis);
    // SAFETY: as the caller says.
    code(unsafe { object(session, "session") }.and_then(|session| {
        let rate = Rate::from_bps(rate_bps);
        hinted(session.link().hint_rate(PathId(path), rate, lasts))
    }))
}

/// Says which share of its datagrams a path of the session loses at least, in parts of a billion,
/// for so long: FEC repair is sized for it.
///
/// # Safety
/// `session` is a session.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn skyhaul_session_hint_loss(
    session: *const Session,
    path: u8,
    loss_ppb: u32,
    lasts_ms: u64,
) -> ErrorCode {
    // SAFETY: as the caller says.
    code(unsafe { object(session, "session") }.and_then(|session| {
        if loss_ppb > 1_000_000_000 {
            let what = format!("a loss of {loss_ppb} parts of a billion is more than all");
            return Err(Fault::misused(format!("{what}; write up to 1000000000")));
        }
        let (loss, lasts) = (Probability::from_ppb(loss_ppb), Duration::from_millis(lasts_ms));
        hinted(session.link().hint_loss(PathId(path), loss, lasts))
    }))
}

/// Withdraws what this program said of a path of the session.
///
/// # Safety
/// `session` is a session.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn skyhaul_session_withdraw_hints(
    session: *const Session,
    path: u8,
) -> ErrorCode {
    // SAFETY: as the caller says.
    code(
        unsafe { object(session, "session") }
            .and_then(|session| hinted(session.link().withdraw_hints(PathId(path)))),
    )
}

/// Waits for the answer to a hint: at once in a session of this process, soon from a node.
fn hinted(answer: impl Future<Output = Result<(), HintError>>) -> Result<(), Fault> {
    match answer.wait() {
        Ok(()) => Ok(()),
        Err(error @ HintError::Closed) => Err(Fault::closed(error.to_string())),
        Err(error) => Err(Fault::misused(error.to_string())),
    }
}

/// Writes the counts of a session since it began.
///
/// # Safety
/// `session` is a session; `out` points to a place for counters.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn skyhaul_session_counters(
    session: *const Session,
    out: *mut Counters,
) -> ErrorCode {
    // SAFETY: as the caller says.
    let counters = unsafe { object(session, "session") }.map(|session| {
        let stats = session.link().stats();
        Counters {
            blocks_taken: stats.sent.blocks_taken,
            blocks_reported: stats.sent.blocks_reported,
            bytes_reported: stats.sent.bytes_reported,
            blocks_given_up: stats.sent.blocks_given_up,
            blocks_delivered: stats.received.blocks_delivered,
            blocks_repaired: stats.received.blocks_repaired,
            blocks_expired: stats.received.blocks_expired,
            bytes_delivered: stats.received.bytes_delivered,
            symbols_sent: stats.sent.symbols_sent,
            symbols_repeated: stats.sent.symbols_repeated,
            symbols_recovered: stats.received.symbols_recovered,
        }
    });
    // SAFETY: as the caller says.
    code(counters.and_then(|counters| unsafe { put(out, counters) }))
}

/// Writes the name of the far end, as it says.
///
/// # Safety
/// `session` is a session; `size` bytes may be written at `out`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn skyhaul_session_peer_name(
    session: *const Session,
    out: *mut c_char,
    size: usize,
) -> ErrorCode {
    // SAFETY: as the caller says.
    code(unsafe { object(session, "session") }.and_then(|session| {
        let name = session.link().peer_name().replace('\0', " ");
        // SAFETY: as the caller says.
        unsafe { write_text(&name, out, size) }
    }))
}

/// Writes the fingerprint of the far end's key, as it proved; 72 bytes are enough.
///
/// # Safety
/// `session` is a session; `size` bytes may be written at `out`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn skyhaul_session_peer(
    session: *const Session,
    out: *mut c_char,
    size: usize,
) -> ErrorCode {
    // SAFETY: as the caller says.
    code(unsafe { object(session, "session") }.and_then(|session| {
        let peer = session
            .link()
            .peer()
            .ok_or_else(|| Fault::closed("the session ended before it stood"))?;
        // SAFETY: as the caller says.
        unsafe { write_text(&peer.to_string(), out, size) }
    }))
}

fn report(id: PathId, status: &skyhaul::PathStatus) -> PathReport {
    PathReport {
        id: id.0,
        state: match status.state {
            skyhaul::PathState::Probing => PathState::Probing,
            skyhaul::PathState::Active => PathState::Active,
            skyhaul::PathState::Standby => PathState::Standby,
            skyhaul::PathState::Stalled => PathState::Stalled,
            skyhaul::PathState::Silent => PathState::Silent,
            skyhaul::PathState::BlackHole => PathState::BlackHole,
            skyhaul::PathState::Absent => PathState::Absent,
        },
        rtt_ns: status.estimate.rtt.as_nanos(),
        rate_bps: status.estimate.rate.as_bps(),
        loss_ppb: status.loss.as_ppb(),
        symbols_sent: status.stats.symbols_sent,
        symbols_lost: status.stats.symbols_lost,
        repair_sent: status.stats.repair_sent,
    }
}
