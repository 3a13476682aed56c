//! Deliveries to real servers of other people: each runs in a folder of its own, on loopback, and
//! is ended by its process id. What is not installed is skipped, and said so.

#![allow(clippy::print_stderr, reason = "what is skipped is said")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by failing")]
#![allow(clippy::disallowed_methods, reason = "tests wait for servers to start")]

mod folder;
mod ftps;
mod life;
mod proftpd;
mod s3;
mod scripted;
mod servers;
mod sftp;
mod silent;
mod webdav;
