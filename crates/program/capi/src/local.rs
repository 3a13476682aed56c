//! The node of this host, by its block service.
#![allow(unsafe_code, reason = "functions with C names, for callers in C")]

use crate::boundary::{give, object, take, text, within};
use crate::error::{ErrorCode, Fault, code};
use crate::session::Session;
use std::ffi::c_char;
use std::path::Path;

/// This host's node, by its block service.
#[derive(Debug)]
pub struct BlockServiceNode(skyhaul::LocalNode);

/// Opens the block service at a socket file, for a program of this name.
///
/// # Safety
/// `socket` and `name` are texts; `out` points to a place for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn skyhaul_local_open(
    socket: *const c_char,
    name: *const c_char,
    out: *mut *mut BlockServiceNode,
) -> ErrorCode {
    // SAFETY: as the caller says.
    let opened = unsafe { opened(socket, name) };
    // SAFETY: as the caller says.
    code(opened.and_then(|node| unsafe { give(out, BlockServiceNode(node)) }))
}

/// Gives out a session with the program that listens as `program` at the node's peer of this name,
/// once it is open. While the line to the peer is down, it waits.
///
/// # Safety
/// `node` is a local node; `peer` and `program` are texts; `out` points to a place for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn skyhaul_local_connect(
    node: *const BlockServiceNode,
    peer: *const c_char,
    program: *const c_char,
    wait_ms: i64,
    out: *mut *mut Session,
) -> ErrorCode {
    // SAFETY: as the caller says.
    let session = unsafe {
        object(node, "node").and_then(|node| {
            let (peer, program) = (text(peer, "peer")?, text(program, "program")?);
            Ok(Session::local(within(node.0.connect(peer, program), wait_ms)??, None))
        })
    };
    // SAFETY: as the caller says.
    code(session.and_then(|session| unsafe { give(out, session) }))
}

/// A session to open through the block service of this host's node.
#[repr(C)]
#[derive(Debug)]
pub struct LocalTarget {
    /// The socket file of the block service.
    pub socket: *const c_char,
    /// What this program calls itself.
    pub name: *const c_char,
    /// The name of the node's peer.
    pub peer: *const c_char,
    /// The name under which the program there listens.
    pub program: *const c_char,
}

/// The same in one call, for a program that has one session: the session holds the local node.
///
/// # Safety
/// `call` points to a call whose texts are what they say; `out` to a place for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn skyhaul_connect_local(
    call: *const LocalTarget,
    wait_ms: i64,
    out: *mut *mut Session,
) -> ErrorCode {
    // SAFETY: as the caller says.
    let session = unsafe {
        object(call, "call").and_then(|call| {
            let node = opened(call.socket, call.name)?;
            let (peer, program) = (text(call.peer, "peer")?, text(call.program, "program")?);
            let link = within(node.connect(peer, program), wait_ms)??;
            Ok(Session::local(link, Some(node)))
        })
    };
    // SAFETY: as the caller says.
    code(session.and_then(|session| unsafe { give(out, session) }))
}

/// Takes sessions of far programs under this program's name from now on.
///
/// # Safety
/// `node` is a local node.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn skyhaul_local_listen(node: *const BlockServiceNode) -> ErrorCode {
    // SAFETY: as the caller says.
    code(unsafe { object(node, "node") }.and_then(|node| Ok(node.0.listen()?)))
}

/// Gives out the next session of a far program that called.
///
/// # Safety
/// `node` is a local node; `out` points to a place for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn skyhaul_local_accept(
    node: *const BlockServiceNode,
    wait_ms: i64,
    out: *mut *mut Session,
) -> ErrorCode {
    // SAFETY: as the caller says.
    let session = unsafe { object(node, "node") }.and_then(|node| {
        let link = within(node.0.accept(), wait_ms)?;
        let link = link.ok_or_else(|| Fault::closed("the block service has stopped"))?;
        Ok(Session::local(link, None))
    });
    // SAFETY: as the caller says.
    code(session.and_then(|session| unsafe { give(out, session) }))
}

/// Ends a local node at once, and its sessions with it.
///
/// # Safety
/// `node` is NULL, or a local node that nobody else is using.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn skyhaul_local_close(node: *mut BlockServiceNode) {
    // SAFETY: as the caller says.
    drop(unsafe { take(node) });
}

/// # Safety
/// Both are texts.
unsafe fn opened(socket: *const c_char, name: *const c_char) -> Result<skyhaul::LocalNode, Fault> {
    // SAFETY: as the caller says.
    let (socket, name) = unsafe { (text(socket, "socket")?, text(name, "name")?) };
    Ok(skyhaul::LocalNode::at(Path::new(socket), name)?)
}
