//! Nodes, sessions and blocks for programs in C, and in whatever calls C: `include/skyhaul.h` with
//! `libskyhaul_c`.
//!
//! The header says who owns what; it is made of these sources. `examples/blocks.c` is a program of
//! a page; `examples/local.c` goes through the block service of a node. What the calls mean is
//! said at the crate `skyhaul`, of which this is a thin layer: [`node`], [`local`] and [`session`]
//! hold the calls, [`block`] and [`status`] what goes in and comes out, `boundary` everything that
//! is taken on trust from a caller in C.
//!
//! ```c
//! skyhaul_options options = {.name = "station", .key = pem};
//! skyhaul_node *node;
//! if (skyhaul_node_start(&options, &node) != SKYHAUL_CODE_DONE)
//!     fprintf(stderr, "%s\n", skyhaul_error());
//! ```
//!
//! Left out: the asynchronous interface of the library, for which C has no common form. A thread
//! may wait for each thing.

pub mod block;
mod boundary;
pub mod error;
pub mod key;
pub mod local;
pub mod node;
pub mod session;
pub mod status;
