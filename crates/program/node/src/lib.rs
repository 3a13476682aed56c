//! A node: the threads that capture, send, receive, store and process data, and its status.

mod address_family;
mod adopted;
mod alarms;
pub mod audit;
mod blocks;
pub mod centre;
pub mod custody;
pub mod fault;
mod file_doors;
mod forecasts;
mod guests;
mod history;
mod host_users;
mod incoming;
mod journal;
pub mod latency;
pub mod log;
mod looks;
pub mod node;
mod notices;
mod orders;
mod passes;
pub mod rdr;
mod serve;
mod services;
mod sessions;
mod shutdown;
pub mod station;
pub mod status;
mod watched_file;
mod web;

pub use blocks::unknown_users;
pub use history::latency_budget;
pub use services::{is_exposed, private_key};
pub use web::WEB_TOKEN_USES;
