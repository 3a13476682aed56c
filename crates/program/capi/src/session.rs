//! Sessions: sent blocks with their outcome, and received blocks.
#![allow(unsafe_code, reason = "functions with C names, for callers in C")]

use crate::block::{Block, BlockName, Outcome};
use crate::boundary::{bytes, give, object, optional_text, put, take, within};
use crate::error::{ErrorCode, Fault, code};
use skyhaul::{
    BlockId, ClassId, ClassTree, Duration, FlowId, IncomingBlock, Mode, Seq, SessionConfig,
};
use std::os::fd::AsRawFd;
use std::sync::Arc;

/// A session with another node.
#[derive(Debug)]
pub struct Session {
    link: skyhaul::Session,
    classes: Arc<ClassTree>,
    /// Ends with the session, where it was made for it alone.
    _local: Option<skyhaul::LocalNode>,
}

/// A block that was handed over.
#[derive(Debug)]
pub struct Sent(skyhaul::Sent);

/// A received block. It counts against the receive window until it is freed.
#[derive(Debug)]
pub struct Received(IncomingBlock);

/// The content of a received block.
#[repr(C)]
#[derive(Debug)]
pub struct ReceivedBlockInfo {
    /// Its name.
    pub name: BlockName,
    /// Its bytes; valid until it is freed.
    pub data: *const u8,
    /// Their number.
    pub len: usize,
    /// When it left, in nanoseconds since 1970 by the far end's clock.
    pub sent_ns: i64,
    /// The delay that losses caused, in nanoseconds: from its last symbol that was not
    /// retransmitted to its delivery.
    pub held_ns: u64,
    /// Whether a retransmission or FEC repair was needed.
    pub repaired: bool,
}

impl Session {
    pub(crate) const fn new(link: skyhaul::Session, classes: Arc<ClassTree>) -> Self {
        Self { link, classes, _local: None }
    }

    /// One through the block service, which says which classes there are.
    pub(crate) fn local(link: skyhaul::Session, local: Option<skyhaul::LocalNode>) -> Self {
        let classes = link.classes().unwrap_or_else(|| SessionConfig::default().classes);
        Self { link, classes: Arc::new(classes), _local: local }
    }

    pub(crate) const fn link(&self) -> &skyhaul::Session {
        &self.link
    }

    fn class(&self, name: Option<&str>) -> Result<ClassId, Fault> {
        let Some(name) = name else { return Ok(self.classes.default_leaf()) };
        self.classes.find(name).ok_or_else(|| {
            let leaves: Vec<&str> = self.classes.leaves().map(|(_, name)| name).collect();
            Fault::misused(format!(
                "no class `{name}` takes blocks; name one of {}",
                leaves.join(", ")
            ))
        })
    }

    /// # Safety
    /// The bytes and the text of the block are what they say.
    unsafe fn block(&self, block: &Block) -> Result<skyhaul::Block, Fault> {
        // SAFETY: as the caller says.
        let (bytes, class) = unsafe {
            (bytes(block.data, block.len)?, optional_text(block.class_name, "class_name")?)
        };
        if block.expendable && block.deadline_ms == 0 {
            return Err(Fault::misused("an expendable block needs a deadline; set `deadline_ms`"));
        }
        let whole = skyhaul::Block::reliable(FlowId(block.flow), bytes.into());
        let depends_on =
            BlockId { flow: FlowId(block.depends_on.flow), seq: Seq(block.depends_on.seq) };
        Ok(skyhaul::Block {
            class: self.class(class)?,
            priority: block.priority,
            deadline: (block.deadline_ms > 0).then(|| Duration::from_millis(block.deadline_ms)),
            depends_on: block.depends.then_some(depends_on),
            useful_alone: block.useful_alone,
            mode: if block.expendable { Mode::Expendable } else { Mode::Reliable },
            redundant: block.redundant,
            ..whole
        })
    }
}

/// Hands a block over, once there is room for it. `out` may be NULL where its fate does not matter.
///
/// # Safety
/// `session` is a session; `block` points to a block whose bytes and text are what they say; `out`
/// is NULL, or points to a place for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn skyhaul_session_send(
    session: *const Session,
    block: *const Block,
    wait_ms: i64,
    out: *mut *mut Sent,
) -> ErrorCode {
    // SAFETY: as the caller says.
    let sent = unsafe {
        object(session, "session").and_then(|session| {
            let block = session.block(object(block, "block")?)?;
            Ok(within(session.link.send(block), wait_ms)??)
        })
    };
    code(sent.and_then(|sent| {
        if out.is_null() {
            return Ok(());
        }
        // SAFETY: as the caller says.
        unsafe { give(out, Sent(sent)) }
    }))
}

/// Gives out the next block that arrives.
///
/// # Safety
/// `session` is a session; `out` points to a place for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn skyhaul_session_recv(
    session: *const Session,
    wait_ms: i64,
    out: *mut *mut Received,
) -> ErrorCode {
    // SAFETY: as the caller says.
    let received = unsafe { object(session, "session") }.and_then(|session| {
        within(session.link.recv(), wait_ms)?.map(Received).ok_or_else(|| {
            Fault::closed(format!(
                "the session is closed: {}",
                session.link.closed().unwrap_or_default()
            ))
        })
    });
    // SAFETY: as the caller says.
    code(received.and_then(|received| unsafe { give(out, received) }))
}

/// Writes a descriptor for poll(2) to `out`: it is readable when a block has arrived, the outcome
/// of a block is known, or the session has ended. skyhaul_session_recv makes it unreadable; where
/// there are more blocks it is readable again at once. It belongs to the session.
///
/// # Safety
/// `session` is a session; `out` points to a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn skyhaul_session_descriptor(
    session: *const Session,
    out: *mut i32,
) -> ErrorCode {
    // SAFETY: as the caller says.
    let descriptor = unsafe { object(session, "session") }.and_then(|session| {
        let descriptor = session.link.descriptor().map_err(|error| Fault {
            code: ErrorCode::Host,
            sentence: format!("no descriptor for the session ({error}); close other files"),
        })?;
        Ok(descriptor.as_raw_fd())
    });
    // SAFETY: as the caller says.
    code(descriptor.and_then(|descriptor| unsafe { put(out, descriptor) }))
}

/// Closes a session once the blocks that were handed over have met their fate. To know of it, wait
/// for their outcomes.
///
/// # Safety
/// `session` is NULL, or a session that nobody else is using.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn skyhaul_session_close(session: *mut Session) {
    // SAFETY: as the caller says.
    drop(unsafe { take(session) });
}

/// Tells a block's name, which others can depend on: it is known once the session has taken the
/// block.
///
/// # Safety
/// `sent` is a block that was handed over; `out` points to a place for a name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn skyhaul_sent_name(
    sent: *const Sent,
    wait_ms: i64,
    out: *mut BlockName,
) -> ErrorCode {
    // SAFETY: as the caller says.
    let name = unsafe { object(sent, "sent") }.and_then(|sent| {
        let name = within(sent.0.name(), wait_ms)?;
        name.ok_or_else(|| Fault::closed("the session did not take the block; see its outcome"))
    });
    // SAFETY: as the caller says.
    code(
        name.and_then(|name| unsafe { put(out, BlockName { flow: name.flow.0, seq: name.seq.0 }) }),
    )
}

/// Tells what became of a block. SKYHAUL_CODE_CLOSED: the session ended before that was known.
///
/// # Safety
/// `sent` is a block that was handed over; `out` points to a place for an outcome.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn skyhaul_sent_outcome(
    sent: *const Sent,
    wait_ms: i64,
    out: *mut Outcome,
) -> ErrorCode {
    // SAFETY: as the caller says.
    let outcome =
        unsafe { object(sent, "sent") }.and_then(|sent| match within(sent.0.outcome(), wait_ms)? {
            Some(skyhaul::Outcome::Delivered | skyhaul::Outcome::Sent) => Ok(Outcome::Delivered),
            Some(skyhaul::Outcome::Expired) => Ok(Outcome::Expired),
            Some(skyhaul::Outcome::Cancelled) => Ok(Outcome::Cancelled),
            None => Err(Fault::closed("the session ended before the block's fate was known")),
        });
    // SAFETY: as the caller says.
    code(outcome.and_then(|outcome| unsafe { put(out, outcome) }))
}

/// Lets go of a block that was handed over: it is sent nevertheless.
///
/// # Safety
/// `sent` is NULL, or a block that was handed over and that nobody else is using.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn skyhaul_sent_free(sent: *mut Sent) {
    // SAFETY: as the caller says.
    drop(unsafe { take(sent) });
}

/// Tells what a block that arrived holds.
///
/// # Safety
/// `received` is a block that arrived; `out` points to a place for what is known of it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn skyhaul_received_view(
    received: *const Received,
    out: *mut ReceivedBlockInfo,
) -> ErrorCode {
    // SAFETY: as the caller says.
    let arrival =
        unsafe { object(received, "received") }.map(|Received(incoming)| ReceivedBlockInfo {
            name: BlockName { flow: incoming.id.flow.0, seq: incoming.id.seq.0 },
            data: incoming.bytes.as_ptr(),
            len: incoming.bytes.len(),
            sent_ns: incoming.timing.sent.as_nanos(),
            held_ns: incoming.timing.delivered.since(incoming.timing.last_original).as_nanos(),
            repaired: incoming.timing.repaired,
        });
    // SAFETY: as the caller says.
    code(arrival.and_then(|arrival| unsafe { put(out, arrival) }))
}

/// Frees a block that arrived, and the room that it took of the receive window.
///
/// # Safety
/// `received` is NULL, or a block that arrived and that nobody else is using.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn skyhaul_received_free(received: *mut Received) {
    // SAFETY: as the caller says.
    drop(unsafe { take(received) });
}
