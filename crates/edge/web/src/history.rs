//! What is asked of the history.

use skyhaul_history::HistoryQuery;
use skyhaul_serve::{ServeAnswer, ServeRequest};

/// The query of a request; none where the list of series is asked for.
///
/// # Errors
/// The refusal of a parameter.
pub fn history_query(request: &ServeRequest) -> Result<Option<HistoryQuery>, ServeAnswer> {
    let pairs = request.query.iter().map(|(name, value)| (&**name, &**value));
    HistoryQuery::read(pairs).map_err(|refused| ServeAnswer::problem(400, &refused.to_string()))
}
