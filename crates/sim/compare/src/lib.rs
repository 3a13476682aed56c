//! Compares transfer tools, one after the other on one emulated line, with published results: the
//! command `skyhaul lab compare`.
//!
//! ```
//! use clap::{Args, Command, FromArgMatches};
//! use skyhaul_compare::{Compare, run};
//! use std::sync::atomic::AtomicBool;
//! // Without the name of an experiment, the command lists the experiments that the program holds.
//! let arguments = Compare::augment_args(Command::new("compare")).get_matches_from(["compare"]);
//! let (compare, stop) = (Compare::from_arg_matches(&arguments)?, AtomicBool::new(false));
//! let mut list = Vec::new();
//! run(&compare, &stop, &mut list)?;
//! assert!(String::from_utf8(list)?.contains("dsn-93"));
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```
//!
//! An experiment is a file (docs/how-to/compare.md) of one of four kinds, by its tables:
//! the goodput of tools in cells (`experiment`, `results`), the reception of datagrams at many
//! spacings (`spacing`), the loss up to which tools keep blocks in time (`requirement`), and
//! two missions that share a line (`sharing`). Each is a `study::Study`: it estimates its time,
//! measures once, and gives its results as text, JSON, Markdown and HTML.
//!
//! A tool is a program in a network namespace of [`skyhaul_emulator`], or a TCP connection of the
//! kernel. Our own transport is measured in the same way: the running program calls itself. Runs
//! that other programs disturb are repeated (`quiet`).
//!
//! The measurements need root. This crate leaves out experiments in virtual time, which are the
//! lab's.

mod ability;
mod bench;
mod command;
mod experiment;
mod gone;
mod goodput;
mod kinds;
mod notes;
mod paced;
mod page;
mod program;
mod quiet;
mod requirement;
mod results;
mod sharing;
mod sheet;
mod spacing;
mod stream;
mod study;
mod table;
mod tool;
mod tool_run;
mod wait;

pub use command::{Compare, run};
