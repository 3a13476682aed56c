//! Orders: they go to the node in threads of their own, a few at a time.

use crate::shared::WebShared;
use skyhaul_serve::ServeAnswer;
use skyhaul_units::{Duration, Utc};
use skyhaul_web::access::{WebOrder, WebOwner};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use tokio::time::timeout;

/// What carries orders out: the node. It may wait for disks.
pub trait WebDesk: Send + Sync {
    /// Carries an order out, and answers it.
    fn give(&self, order: WebOrder, giver: &OrderGiver) -> ServeAnswer;

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

/// An order waits so long for those before it.
const TURN_WITHIN: Duration = Duration::from_secs(10);

/// Has an order carried out.
pub async fn give(
    shared: &Arc<WebShared>,
    order: WebOrder,
    giver: OrderGiver,
) -> Result<ServeAnswer, ServeAnswer> {
    let turn = timeout(TURN_WITHIN.to_std(), shared.orders.clone().acquire_owned()).await;
    let turn = turn.ok().and_then(Result::ok).ok_or_else(|| {
        let what = "other orders are being carried out; see whether yours is needed, and try again";
        ServeAnswer::problem(503, what).header("retry-after", "5")
    })?;
    let desk = shared.desk.clone();
    let given = tokio::task::spawn_blocking(move || {
        // As long as the order: it goes on when who gave it has gone.
        let _turn = turn;
        desk.give(order, &giver)
    });
    given.await.map_err(|_| ServeAnswer::problem(500, "the order cannot be carried out"))
}
