//! The node of this host.
#![allow(unsafe_code, reason = "functions with C names, for callers in C")]

use crate::boundary::{array, give, object, optional_text, take, text, within, write_text};
use crate::error::{ErrorCode, Fault, code};
use crate::key::identity;
use crate::session::Session;
use core::net::SocketAddr;
use core::str::FromStr;
use skyhaul::{ByteCount, ClassConfig, ClassTree, ClassesConfig, Fingerprint, SessionConfig};
use std::ffi::c_char;
use std::sync::Arc;

/// A node with its sockets.
#[derive(Debug)]
pub struct Node {
    node: skyhaul::Node,
    classes: Arc<ClassTree>,
}

/// A class that shares the line with others.
#[repr(C)]
#[derive(Debug)]
pub struct Class {
    /// Its name, for blocks and other classes.
    pub name: *const c_char,
    /// Its parent class; NULL: none.
    pub parent: *const c_char,
    /// Its guaranteed rate, such as "2 Mbit/s"; NULL: none.
    pub guarantee: *const c_char,
    /// Its highest rate; NULL: its parent's.
    pub ceiling: *const c_char,
    /// Its priority: 0 (most important) to 7; negative: its parent's.
    pub priority: i8,
}

/// The options of a node. 0 or NULL means the default.
#[repr(C)]
#[derive(Debug)]
pub struct Options {
    /// Its name, for the far ends' logs.
    pub name: *const c_char,
    /// Its private key, as text.
    pub key: *const c_char,
    /// The addresses of its sockets, such as "127.0.0.1:0"; each path uses one. None: any address
    /// and port of IPv4.
    pub bind: *const *const c_char,
    /// Their number.
    pub bind_count: usize,
    /// Fingerprints of the nodes that may connect; none: it accepts no connections.
    pub trusted: *const *const c_char,
    /// Their number.
    pub trusted_count: usize,
    /// The rate of the line, such as "93 Mbit/s"; NULL: it is measured.
    pub line: *const c_char,
    /// The largest IP packet of the line in bytes, the same at both ends; 0: 1500.
    pub packet: u16,
    /// The most bytes of blocks in flight, and the most received and not yet freed; 0: 64 MiB.
    pub window: u64,
    /// How sessions share the line, parents first; none: one class without limits.
    pub classes: *const Class,
    /// Their number.
    pub class_count: usize,
}

/// A path to another node.
#[repr(C)]
#[derive(Debug)]
pub struct Path {
    /// The far end's address, such as "192.0.2.1:4710".
    pub remote: *const c_char,
    /// The index of its socket, in the order of `bind`.
    pub socket: usize,
    /// It carries only data that would be late on the free paths.
    pub metered: bool,
    /// It is used only while no other path works.
    pub standby: bool,
}

/// Another node to connect to.
#[repr(C)]
#[derive(Debug)]
pub struct ConnectTarget {
    /// The fingerprint of its key.
    pub peer: *const c_char,
    /// The paths to it, at least one.
    pub paths: *const Path,
    /// Their number.
    pub path_count: usize,
}

/// Starts a node.
///
/// # Safety
/// `options` points to options whose texts and arrays are what they say; `out` to a place for a
/// pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn skyhaul_node_start(
    options: *const Options,
    out: *mut *mut Node,
) -> ErrorCode {
    // SAFETY: as the caller says.
    let started = unsafe { object(options, "options").and_then(|options| start(options)) };
    // SAFETY: as the caller says.
    code(started.and_then(|node| unsafe { give(out, node) }))
}

/// Writes the address of a socket, with the port that it has: `place` counts from 0, in the order
/// of `bind`.
///
/// # Safety
/// `node` is a node; `size` bytes may be written at `out`. 64 are enough.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn skyhaul_node_address(
    node: *const Node,
    place: usize,
    out: *mut c_char,
    size: usize,
) -> ErrorCode {
    // SAFETY: as the caller says.
    let node = unsafe { object(node, "node") };
    let address = node.and_then(|node| {
        let sockets = node.node.addresses();
        let none = || {
            Fault::misused(format!("there is no socket {place}: the node has {}", sockets.len()))
        };
        sockets.get(place).ok_or_else(none)
    });
    // SAFETY: as the caller says.
    code(address.and_then(|address| unsafe { write_text(&address.to_string(), out, size) }))
}

/// Calls another node, and gives out the session with it once that stands.
///
/// # Safety
/// `node` is a node; `call` points to a call whose texts and arrays are what they say; `out` to a
/// place for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn skyhaul_node_connect(
    node: *const Node,
    call: *const ConnectTarget,
    wait_ms: i64,
    out: *mut *mut Session,
) -> ErrorCode {
    // SAFETY: as the caller says.
    let session = unsafe {
        object(node, "node").and_then(|node| {
            let call = object(call, "call")?;
            let peer = parsed::<Fingerprint>(text(call.peer, "peer")?)?;
            let paths = array(call.paths, call.path_count, "paths")?.iter().map(|each| path(each));
            let paths = paths.collect::<Result<Vec<_>, Fault>>()?;
            let link = within(node.node.connect(paths, peer), wait_ms)??;
            Ok(Session::new(link, Arc::clone(&node.classes)))
        })
    };
    // SAFETY: as the caller says.
    code(session.and_then(|session| unsafe { give(out, session) }))
}

/// Gives out the next session of a node that called.
///
/// # Safety
/// `node` is a node; `out` points to a place for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn skyhaul_node_accept(
    node: *const Node,
    wait_ms: i64,
    out: *mut *mut Session,
) -> ErrorCode {
    // SAFETY: as the caller says.
    let session = unsafe { object(node, "node") }.and_then(|node| {
        let link = within(node.node.accept(), wait_ms)?;
        let link = link.ok_or_else(|| Fault::closed("the node has stopped"))?;
        Ok(Session::new(link, Arc::clone(&node.classes)))
    });
    // SAFETY: as the caller says.
    code(session.and_then(|session| unsafe { give(out, session) }))
}

/// Ends a node at once, and its sessions with it: blocks of which no outcome is known may not have
/// arrived.
///
/// # Safety
/// `node` is NULL, or a node that nobody else is using.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn skyhaul_node_stop(node: *mut Node) {
    // SAFETY: as the caller says.
    drop(unsafe { take(node) });
}

/// # Safety
/// The texts and arrays of the options are what they say.
unsafe fn start(options: &Options) -> Result<Node, Fault> {
    // SAFETY: as the caller says.
    unsafe {
        let key = identity(text(options.key, "key")?)?;
        let mut builder = skyhaul::Node::named(text(options.name, "name")?, key);
        for bind in array(options.bind, options.bind_count, "bind")? {
            builder = builder.bind(parsed::<SocketAddr>(text(*bind, "bind")?)?);
        }
        for trusted in array(options.trusted, options.trusted_count, "trusted")? {
            builder = builder.trust(parsed(text(*trusted, "trusted")?)?);
        }
        if let Some(line) = optional_text(options.line, "line")? {
            builder = builder.line(parsed(line)?);
        }
        if options.packet > 0 {
            builder = builder.packet(ByteCount::new(options.packet.into()));
        }
        let classes =
            array(options.classes, options.class_count, "classes")?.iter().map(|each| class(each));
        let classes = ClassesConfig {
            classes: classes.collect::<Result<_, _>>()?,
            ..ClassesConfig::default()
        };
        let classes =
            ClassTree::new(&classes).map_err(|error| Fault::misused(error.to_string()))?;
        let mut session = SessionConfig { classes: classes.clone(), ..SessionConfig::default() };
        if options.window > 0 {
            session.receive_window = ByteCount::new(options.window);
            session.send_buffer = session.receive_window;
        }
        Ok(Node { node: builder.sessions(session).start()?, classes: Arc::new(classes) })
    }
}

/// # Safety
/// The texts of the class are what they say.
unsafe fn class(class: &Class) -> Result<ClassConfig, Fault> {
    // SAFETY: as the caller says.
    unsafe {
        Ok(ClassConfig {
            name: text(class.name, "name of a class")?.to_owned(),
            parent: optional_text(class.parent, "parent")?.map(str::to_owned),
            guarantee: optional_text(class.guarantee, "guarantee")?.map(parsed).transpose()?,
            ceiling: optional_text(class.ceiling, "ceiling")?.map(parsed).transpose()?,
            priority: u8::try_from(class.priority).ok(),
            ..ClassConfig::default()
        })
    }
}

/// # Safety
/// The text of the path is what it says.
unsafe fn path(path: &Path) -> Result<skyhaul::Path, Fault> {
    // SAFETY: as the caller says.
    let remote = unsafe { text(path.remote, "remote") }?;
    let to = skyhaul::Path::to(parsed(remote)?).from_socket(path.socket);
    Ok(match (path.metered, path.standby) {
        (false, false) => to,
        (true, false) => to.metered(),
        (false, true) => to.standby(),
        (true, true) => to.metered().standby(),
    })
}

fn parsed<T: FromStr<Err: core::fmt::Display>>(text: &str) -> Result<T, Fault> {
    text.parse().map_err(|error| Fault::misused(format!("`{text}` cannot be read: {error}")))
}
