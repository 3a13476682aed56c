//! Alarms and events of a node, without input or output: an alarm is what an operator must act on
//! while it stands ([`AlarmRegister`]), an event is what happened once ([`NodeEvent`]), the audit
//! log has every order with who gave it ([`AuditLine`]), and a report is what a node tells others
//! of itself ([`NodeReport`]).
//!
//! ```
//! use skyhaul_events::{AlarmKind, AlarmRegister, Moment};
//! use skyhaul_units::{Duration, Instant, Utc};
//!
//! let at = |seconds| Moment {
//!     now: Instant::ZERO + Duration::from_secs(seconds),
//!     utc: Utc::from_micros(0) + Duration::from_secs(seconds),
//! };
//! let mut alarms = AlarmRegister::default();
//! alarms.raise(at(0), AlarmKind::SpoolNearlyFull, "the spool", "1 GB is left");
//! assert!(alarms.standing().is_empty(), "it has to last for a second");
//! alarms.tick(at(1));
//! assert_eq!(alarms.standing()[0].sentence, "the spool is nearly full: 1 GB is left");
//! ```

mod audit;
mod cause;
mod cloud;
mod event;
mod filter;
mod kind;
mod moment;
mod register;
mod report;
mod silence;

pub use audit::{
    AuditCheck, AuditEntry, AuditFault, AuditLine, AuditLineError, AuditMeans, AuditOutcome,
    AuditReport, AuditWho, audit_file, audit_file_first, audit_hash,
};
pub use cause::CauseBook;
pub use cloud::{CLOUD_EVENTS, cloud_event};
pub use event::{EventCause, EventError, EventKind, NodeEvent, Severity};
pub use filter::{EventFilter, EventFilterError};
pub use kind::AlarmKind;
pub use moment::Moment;
pub use register::{
    AckError, Acknowledgement, AlarmKey, AlarmNews, AlarmRegister, AlarmStatus, AlarmSubject,
};
pub use report::{
    NodeReport, NodeReportError, ReportedAlarm, ReportedAlarms, ReportedDeliveries, ReportedSpool,
    ReportedState, ReportedStore,
};
