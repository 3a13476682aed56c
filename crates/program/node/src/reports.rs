//! Reports of nodes: what this one tells others of itself over the sessions that it has anyway, and
//! what it keeps of their reports.

mod desk;
mod kept;
mod own;
mod telling;

pub(crate) use desk::ReportDesk;
pub(crate) use kept::PeerSide;
pub(crate) use own::own_report;
pub(crate) use telling::SessionReports;
