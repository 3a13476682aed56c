//! The page of a node, its metrics and its JSON interface: requests to answers. No IO.
//!
//! [`web_answer`] reads a request that was admitted and asks a [`WebSource`], which is one look at
//! a node: it never changes while it is asked. The answer is bytes, or the stream of looks, which
//! the caller sends on. [`exposition`] writes metrics in the two text forms that Prometheus reads.
//! The files of the page are in the program; nothing that they show comes from another host.
//! [`access`] decides who may look and give orders.
//!
//! ```
//! use skyhaul_web::{ExpositionForm, MetricFamily, exposition};
//! let families = [MetricFamily::gauge("spool_bytes", "Bytes in the spool.").value(7.0)];
//! let text = exposition(&families, ExpositionForm::Classic);
//! assert!(text.ends_with("# TYPE skyhaul_spool_bytes gauge\nskyhaul_spool_bytes 7\n"));
//! ```

pub mod access;
mod assets;
mod events;
mod exposition;
mod history;
mod listing;
mod question;
mod router;
mod source;

pub use assets::{PAGE_FILES, PageFile};
pub use events::{EventsAsked, EventsFrom};
pub use exposition::{ExpositionForm, MetricFamily, MetricKind, exposition};
pub use history::history_query;
pub use listing::ROWS_MAX;
pub use question::{WebQuestion, WhyAsked};
pub use router::{
    ORDER_ROUTES, ROUTES, WebReply, check_method, needed_role, secured as secured_answer,
    stream_head, web_answer,
};
pub use source::{RowVisit, WebLack, WebList, WebSource};

#[cfg(test)]
mod tests;
