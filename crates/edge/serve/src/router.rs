//! Which interface answers a request.

use crate::accounts::ServeRoot;
use crate::answer::ServeAnswer;
use crate::holdings::{Asker, ServedCatalogue};
use crate::odata::{cadip, prip};
use crate::request::{ServeMethod, ServeRequest};
use crate::{products, stac};
use serde_json::json;

/// The interface that a request is for; none for the root itself and for what is not there.
pub fn root_of(request: &ServeRequest) -> Option<ServeRoot> {
    ServeRoot::named(request.path.first()?)
}

/// Answers an admitted request. `roots` are the interfaces that the node has.
pub fn answer(
    request: &ServeRequest,
    roots: &[ServeRoot],
    asker: Asker<'_>,
    holdings: &mut dyn ServedCatalogue,
) -> ServeAnswer {
    if request.method == ServeMethod::Other {
        let refused = ServeAnswer::problem(405, "use GET, HEAD, or POST for searches");
        return refused.header("allow", "GET, HEAD, POST");
    }
    let path = request.segments();
    let served = root_of(request).filter(|root| roots.contains(root));
    let answered = match (served, path.as_slice()) {
        (None, []) => Ok(index(roots, asker)),
        (Some(ServeRoot::Products), [_, rest @ ..]) => {
            products::answer(request, rest, asker, holdings)
        }
        (Some(ServeRoot::Stac), [_, rest @ ..]) => stac::answer(request, rest, asker, holdings),
        (Some(ServeRoot::Prip), [_, rest @ ..]) => prip::answer(request, rest, asker, holdings),
        (Some(ServeRoot::Cadip), [_, rest @ ..]) => cadip::answer(request, rest, asker, holdings),
        _ => Err(ServeAnswer::problem(404, "there is nothing at this address")),
    };
    let answer = answered.unwrap_or_else(|refused| refused);
    let answer = answer.header("x-content-type-options", "nosniff");
    match answer.header_of("cache-control") {
        Some(_) => answer,
        None => answer.header("cache-control", "private, no-cache"),
    }
}

fn index(roots: &[ServeRoot], asker: Asker<'_>) -> ServeAnswer {
    let addresses: serde_json::Map<String, serde_json::Value> = roots
        .iter()
        .map(|root| (root.name().to_owned(), json!(format!("{}/{}", asker.base, root.name()))))
        .collect();
    ServeAnswer::json(200, &json!({"node": asker.node, "interfaces": addresses}))
}
