//! Blocks as they are handed over, and what is known of them.
#![allow(unsafe_code, reason = "functions with C names; none of them follows a pointer")]

use skyhaul::PRIORITY_NORMAL;
use std::ffi::c_char;

/// A block's name within its session.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockName {
    /// Its flow.
    pub flow: u32,
    /// Its place there.
    pub seq: u64,
}

/// A block that is to be sent. skyhaul_block_reliable and skyhaul_block_expendable fill it in; then
/// change what is to be otherwise.
#[repr(C)]
#[derive(Debug)]
pub struct Block {
    /// The series it belongs to. Its place there is the next one.
    pub flow: u32,
    /// Its bytes: 1 to 16777215.
    pub data: *const u8,
    /// How many.
    pub len: usize,
    /// How long from now it is worth anything at the far end, in milliseconds; 0: for ever. An
    /// expendable block needs one.
    pub deadline_ms: u64,
    /// It is given up at its deadline, and given out as soon as it is whole, whatever came before
    /// it. Otherwise it arrives in the order of its flow, however long that takes.
    pub expendable: bool,
    /// 0 goes first; 1 is usual.
    pub priority: u8,
    /// A copy goes on each path.
    pub redundant: bool,
    /// It is worth nothing without the block `depends_on`.
    pub depends: bool,
    /// It is worth something even where that one is given up.
    pub useful_alone: bool,
    /// A block handed over before it, where `depends` says so: skyhaul_sent_name gives its name.
    pub depends_on: BlockName,
    /// The class that pays for it; NULL: the first.
    pub class_name: *const c_char,
}

/// What became of a block.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The far end has it whole.
    Delivered = 0,
    /// Its deadline passed first, or that of a block which it depends on.
    Expired = 1,
    /// It was not taken, or a block which it depends on was not.
    Cancelled = 2,
}

/// A block that must arrive, in its flow's order, however long that takes.
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
