//! Orders go to the node in threads of their own, a few at a time.

use crate::desk::{EventsFound, OrderGiver, WebDesk};
use crate::shared::WebShared;
use skyhaul_history::HistoryQuery;
use skyhaul_serve::ServeAnswer;
use skyhaul_units::Duration;
use skyhaul_web::access::WebOrder;
use skyhaul_web::{EventsAsked, WebQuestion};
use std::sync::Arc;
use tokio::sync::Semaphore;
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

/// Asks a question.
pub async fn ask(
    shared: &Arc<WebShared>,
    question: WebQuestion,
) -> Result<ServeAnswer, ServeAnswer> {
    let (turn, busy) = match question {
        WebQuestion::Why(_) => (&shared.turns.verdicts, "others ask why; try again"),
        _ => (&shared.turns.readings, "others ask for much; try again"),
    };
    in_turn_of(shared, turn.clone(), busy, move |desk| desk.ask(&question)).await
}

/// Asks for the history.
pub async fn history(
    shared: &Arc<WebShared>,
    query: Option<HistoryQuery>,
) -> Result<ServeAnswer, ServeAnswer> {
    let turn = shared.turns.readings.clone();
    let what = "too much of the history is being read; try again";
    in_turn_of(shared, turn, what, move |desk| desk.history(query)).await
}

/// Asks for events.
pub async fn events(
    shared: &Arc<WebShared>,
    asked: EventsAsked,
) -> Result<EventsFound, ServeAnswer> {
    let turn = shared.turns.readings.clone();
    let what = "too many events are being read; try again";
    in_turn_of(shared, turn, what, move |desk| desk.events(&asked)).await?
}

async fn in_turn(
    shared: &Arc<WebShared>,
    work: impl FnOnce(&dyn WebDesk) -> ServeAnswer + Send + 'static,
) -> Result<ServeAnswer, ServeAnswer> {
    let what = "other orders are being carried out; see whether yours is needed, and try again";
    in_turn_of(shared, shared.turns.orders.clone(), what, work).await
}

async fn in_turn_of<T: Send + 'static>(
    shared: &Arc<WebShared>,
    turns: Arc<Semaphore>,
    busy: &str,
    work: impl FnOnce(&dyn WebDesk) -> T + Send + 'static,
) -> Result<T, ServeAnswer> {
    let turn = timeout(TURN_WITHIN.to_std(), turns.acquire_owned()).await;
    let turn = turn
        .ok()
        .and_then(Result::ok)
        .ok_or_else(|| ServeAnswer::problem(503, busy).header("retry-after", "5"))?;
    let desk = shared.desk.clone();
    let given = tokio::task::spawn_blocking(move || {
        // As long as the order: it goes on when who gave it has gone.
        let _turn = turn;
        work(&*desk)
    });
    given.await.map_err(|_| ServeAnswer::problem(500, "the order cannot be carried out"))
}
