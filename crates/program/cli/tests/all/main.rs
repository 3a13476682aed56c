//! The tests of the program, in one binary. They start processes and wait for them: `scripts/test`
//! runs twelve at a time. Tests that measure in real time have a binary of their own, `measured`.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test that fails or skips says so")]

#[path = "../../../../space/level0/tests/all/support/python.rs"]
mod python;
#[path = "../../../../space/level0/tests/all/support/shared.rs"]
mod shared;
#[path = "../support/mod.rs"]
mod support;

mod access;
mod alarms;
mod archive;
mod bad_input;
mod blocks;
mod book;
mod commands;
mod compare_busy;
mod copies;
mod cp;
mod customers;
mod decode;
mod demo;
mod destinations;
mod disk_full;
mod docs;
mod downlinks;
mod early_finish;
mod emulate;
mod fallback;
mod folders;
mod forward;
mod front_ends;
mod gaps;
mod generate;
mod grafana;
mod handover;
mod hints;
mod history;
mod keys;
mod kill;
mod lab;
mod live;
mod log;
mod node_notices;
mod node_outlets;
mod node_subscriptions;
mod nodes;
mod one_way;
mod outlets;
mod package;
mod packets;
mod page;
mod page_many;
mod page_rules;
mod page_why;
mod pair;
mod passes;
mod pauses;
mod pdr;
mod perf;
mod probe;
mod rdr;
mod readers;
mod readme;
mod relay;
mod replay;
mod report;
mod reported;
mod reprocess;
mod rtp;
mod select;
mod serve;
mod serve_contacts;
mod service;
mod sftp;
mod site;
mod standby;
mod stations;
mod strangers;
mod stream;
mod tune;
mod union;
mod upgrade;
mod upkeep;
mod volumes;
mod webdav;
mod windows;
