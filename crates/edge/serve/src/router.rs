//! Which interface answers a request.

use crate::accounts::ServeRoot;
use crate::answer::ServeAnswer;
use crate::holdings::{Asker, ServedCatalogue};
use crate::odata::{self, cadip, prip};
use crate::request::{ServeMethod, ServeRequest};
use crate::{products, s3, stac};
use serde_json::json;

/// The interface that a request is for; none for the root itself and for what is not there.
pub fn root_of(request: &ServeRequest) -> Option<ServeRoot> {
    let is_signed = request.parameter("X-Amz-Algorithm").is_some()
        || s3::is_signed("", request.header("authorization"));
    match is_signed {
        true => Some(ServeRoot::S3),
        false => ServeRoot::named(request.path.first()?),
    }
}

/// The interface that the head of a request is for, which may be one that cannot be read.
pub fn root_of_head(target: &str, authorization: Option<&str>) -> Option<ServeRoot> {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    match s3::is_signed(query, authorization) {
        true => Some(ServeRoot::S3),
        false => ServeRoot::named(path.split('/').find(|segment| !segment.is_empty())?),
    }
}

/// Whether a request is about one product, which an index finds.
pub fn is_of_one(request: &ServeRequest, base: &str) -> bool {
    match (root_of(request), &request.segments()[..]) {
        (Some(ServeRoot::S3), _) => s3::is_of_one(request, base),
        (_, ["products", _, _]) => true,
        (_, [.., last]) => *last == "$value",
        (_, []) => false,
    }
}

/// An answer in the form of its interface. The identifier of the request is for those that have
/// one.
pub fn finished(root: Option<ServeRoot>, answer: ServeAnswer, id: &str) -> ServeAnswer {
    match root {
        Some(ServeRoot::Prip | ServeRoot::Cadip) => odata::finished(answer),
        Some(ServeRoot::S3) => s3::finished(answer, id),
        Some(ServeRoot::Products | ServeRoot::Stac) | None => answer,
    }
}

/// Answers an admitted request. `roots` are the interfaces that the node has.
pub fn answer(
    request: &ServeRequest,
    roots: &[ServeRoot],
    asker: Asker<'_>,
    holdings: &mut dyn ServedCatalogue,
) -> ServeAnswer {
    let served = root_of(request).filter(|root| roots.contains(root));
    if request.method == ServeMethod::Other && served != Some(ServeRoot::S3) {
        let refused = ServeAnswer::problem(405, "use GET, HEAD, or POST for searches");
        return refused.header("allow", "GET, HEAD, POST");
    }
    let path = request.segments();
    let answered = match (served, path.as_slice()) {
        (Some(ServeRoot::S3), _) => s3::answer(request, asker, holdings),
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
