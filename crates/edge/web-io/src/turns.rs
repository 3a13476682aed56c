//! Orders go to the node in threads of their own, a few at a time.

use crate::desk::{OrderGiver, WebDesk};
use crate::shared::WebShared;
use skyhaul_serve::ServeAnswer;
use skyhaul_units::Duration;
use skyhaul_web::access::WebOrder;
use std::sync::Arc;
use tokio::time::timeout;

/// An order waits so long for those before it.
const TURN_WITHIN: Duration = Duration::from_secs(10);

/// Has an order carried out.
pub async fn give(
    shared: &Arc<WebShared>,
    order: WebOrder,
    giver: OrderGiver,
) -> Result<ServeAnswer, ServeAnswer> {
    in_turn(shared, move |desk| desk.give(order, &giver)).await
}

/// Asks for the newest orders.
pub async fn orders(shared: &Arc<WebShared>) -> Result<ServeAnswer, ServeAnswer> {
    in_turn(shared, |desk| desk.orders()).await
}

async fn in_turn(
    shared: &Arc<WebShared>,
    work: impl FnOnce(&dyn WebDesk) -> ServeAnswer + Send + 'static,
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
        work(&*desk)
    });
    given.await.map_err(|_| ServeAnswer::problem(500, "the order cannot be carried out"))
}
