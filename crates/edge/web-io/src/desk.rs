//! What carries orders out, as the page's server sees it.

use skyhaul_serve::ServeAnswer;
use skyhaul_units::Utc;
use skyhaul_web::access::{WebOrder, WebOwner};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// What carries orders out: the node. It may wait for disks.
pub trait WebDesk: Send + Sync {
    /// Carries an order out, and answers it.
    fn give(&self, order: WebOrder, giver: &OrderGiver) -> ServeAnswer;

    /// The newest orders with their outcomes, as an answer.
    fn orders(&self) -> ServeAnswer;

    /// Notes who came, or who is kept out.
    fn note(&self, news: AccessNews);

    /// Keeps when tokens were last used, by their names.
    fn keep_uses(&self, uses: &BTreeMap<String, Utc>);
}

/// Who gives an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderGiver {
    /// Who.
    pub owner: WebOwner,
    /// Where from.
    pub address: IpAddr,
}

/// What happened at the door.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccessNews {
    /// Somebody has logged in.
    LoggedIn {
        /// Who.
        user: String,
        /// Where from.
        address: IpAddr,
    },
    /// Too many logins have failed: the next ones from there, or of this user, have to wait.
    Shut {
        /// The name that was given.
        user: String,
        /// Where from.
        address: IpAddr,
    },
}
