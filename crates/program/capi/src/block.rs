//! Blocks to send, and their outcome.
#![allow(unsafe_code, reason = "functions with C names; none of them follows a pointer")]

use skyhaul::PRIORITY_NORMAL;
use std::ffi::c_char;

/// A block's name within its session.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockName {
    /// Its flow.
    pub flow: u32,
    /// Its number within the flow.
    pub seq: u64,
}

/// A block to send. skyhaul_block_reliable and skyhaul_block_expendable fill it in; then change
/// single fields.
#[repr(C)]
#[derive(Debug)]
pub struct Block {
    /// The flow that it belongs to. It gets the next number there.
    pub flow: u32,
    /// Its bytes: 1 to 16777215.
    pub data: *const u8,
    /// Their number.
    pub len: usize,
    /// Its deadline in milliseconds from now; 0: none. An expendable block needs one.
    pub deadline_ms: u64,
    /// It is given up at its deadline, and delivered as soon as it is complete, in any order.
    /// Otherwise it is delivered in the order of its flow, however long that takes.
    pub expendable: bool,
    /// 0 is the most important; 1 is the default.
    pub priority: u8,
    /// It is sent on every path (duplicates).
    pub redundant: bool,
    /// It is useless without the block `depends_on`: if that is given up, so is this one.
    pub depends: bool,
    /// It is useful even if that block is given up.
    pub useful_alone: bool,
    /// A block handed over before it, if `depends` requires one. skyhaul_sent_name gives its name.
    pub depends_on: BlockName,
    /// Its class; NULL: the first.
    pub class_name: *const c_char,
}

/// The outcome of a block.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The far end has all of it.
    Delivered = 0,
    /// Its deadline passed before, or the deadline of a block that it depends on.
    Expired = 1,
    /// The session did not accept it, or a block that it depends on.
    Cancelled = 2,
}

/// A block that must arrive, in the order of its flow, however long that takes.
#[unsafe(no_mangle)]
pub extern "C" fn skyhaul_block_reliable(flow: u32, data: *const u8, len: usize) -> Block {
    Block {
        flow,
        data,
        len,
        deadline_ms: 0,
        expendable: false,
        priority: PRIORITY_NORMAL,
        redundant: false,
        depends: false,
        useful_alone: false,
        depends_on: BlockName { flow: 0, seq: 0 },
        class_name: std::ptr::null(),
    }
}

/// A block that is given up after `deadline_ms`.
#[unsafe(no_mangle)]
pub extern "C" fn skyhaul_block_expendable(
    flow: u32,
    deadline_ms: u64,
    data: *const u8,
    len: usize,
) -> Block {
    Block { deadline_ms, expendable: true, ..skyhaul_block_reliable(flow, data, len) }
}
