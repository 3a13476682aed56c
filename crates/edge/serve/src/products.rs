//! `/products`: the files of products, and lists of them for programs that follow links.

use crate::answer::{AnswerBody, ServeAnswer};
use crate::file_answer::{file_answer, hex};
use crate::holdings::{Asker, HeldItem, ServedCatalogue, known};
use crate::request::{ServeMethod, ServeRequest, encoded};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::json;
use skyhaul_catalogue::{Filter, ItemListing, ItemOrder, ItemState};

/// Items of one list.
const PAGE: usize = 1_000;

/// Answers a request behind `/products`.
///
/// # Errors
/// The answer to one that is refused.
pub fn answer(
    request: &ServeRequest,
    path: &[&str],
    asker: Asker<'_>,
    holdings: &mut dyn ServedCatalogue,
) -> Result<ServeAnswer, ServeAnswer> {
    if !matches!(request.method, ServeMethod::Get | ServeMethod::Head) {
        let refused = ServeAnswer::problem(405, "files are read with GET and HEAD");
        return Err(refused.header("allow", "GET, HEAD"));
    }
    match path {
        [] => all(request, asker, holdings),
        [id] => Ok(files(request, &known(id, asker, holdings)?, asker)),
        [id, name] => {
            let held = known(id, asker, holdings)?;
            let file = held.item.files.iter().find(|file| file.name == *name);
            let nothing = || ServeAnswer::problem(404, "the product has no such file");
            let file = file.ok_or_else(nothing)?;
            match held.item.state {
                ItemState::Present => Ok(file_answer(request, file, held.item.published)),
                ItemState::Removing | ItemState::Removed => Err(gone()),
            }
        }
        _ => Err(ServeAnswer::problem(404, "there is no such file")),
    }
}

/// The answer about a file that is no longer there.
pub fn gone() -> ServeAnswer {
    ServeAnswer::problem(410, "the file was removed; ask for the newest version of the product")
}

/// An entry of a list.
struct Entry {
    address: String,
    name: String,
    about: serde_json::Value,
}

fn all(
    request: &ServeRequest,
    asker: Asker<'_>,
    holdings: &mut dyn ServedCatalogue,
) -> Result<ServeAnswer, ServeAnswer> {
    let order = ItemOrder::default();
    let after = match request.parameter("after") {
        None => None,
        Some(token) => Some(place_of(&order, token)?),
    };
    let filter = asker.visible(Filter::Always(true));
    let listing = ItemListing { filter, order: order.clone(), after, skip: 0, limit: PAGE };
    let page = holdings.list(&listing)?;
    let entry = |held: &HeldItem| {
        let id = held.item.versioned_id();
        Entry {
            address: format!("/products/{}/", encoded(&id)),
            about: json!({
                "name": id,
                "published": held.item.published,
                "size": held.item.size(),
            }),
            name: format!("{id}/"),
        }
    };
    let entries: Vec<Entry> = page.items.iter().map(entry).collect();
    let next = page.next.map(|place| format!("/products/?after={}", token(&order, &place)));
    Ok(list(request, "products", &entries, next.as_deref()))
}

fn files(request: &ServeRequest, held: &HeldItem, asker: Asker<'_>) -> ServeAnswer {
    let id = held.item.versioned_id();
    let entry = |file: &skyhaul_catalogue::ItemFile| Entry {
        address: format!("/products/{}/{}", encoded(&id), encoded(&file.name)),
        name: file.name.clone(),
        about: json!({
            "name": file.name,
            "size": file.size,
            "sha256": hex(&file.sha256),
            "href": asker.address_of(&held.item, &file.name),
        }),
    };
    let is_there = held.item.state == ItemState::Present;
    let entries: Vec<Entry> = held.item.files.iter().filter(|_| is_there).map(entry).collect();
    list(request, &id, &entries, None)
}

/// A list as JSON for who asks for it, and else as a page with links, which `rclone` and `wget`
/// follow.
fn list(request: &ServeRequest, title: &str, entries: &[Entry], next: Option<&str>) -> ServeAnswer {
    let wants_json = |accept: &str| accept.contains("json") && !accept.contains("text/html");
    if request.header("accept").is_some_and(wants_json) {
        let about: Vec<&serde_json::Value> = entries.iter().map(|entry| &entry.about).collect();
        return ServeAnswer::json(200, &json!({"entries": about, "next": next}));
    }
    let mut page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>{0}</title><h1>{0}</h1>\n",
        escaped(title)
    );
    for entry in entries {
        let (address, name) = (escaped(&entry.address), escaped(&entry.name));
        page.push_str(&format!("<a href=\"{address}\">{name}</a><br>\n"));
    }
    if let Some(next) = next {
        page.push_str(&format!("<p><a rel=\"next\" href=\"{}\">older</a></p>\n", escaped(next)));
    }
    ServeAnswer { status: 200, headers: Vec::new(), body: AnswerBody::Bytes(page.into()) }
        .header("content-type", "text/html; charset=utf-8")
        .header("content-security-policy", "default-src 'none'; frame-ancestors 'none'")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// A place in a list, as an address has it.
pub fn token(order: &ItemOrder, place: &skyhaul_catalogue::ListPlace) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(order.token(place))
}

/// The place that an address has.
///
/// # Errors
/// The answer where it is none.
pub fn place_of(
    order: &ItemOrder,
    token: &str,
) -> Result<skyhaul_catalogue::ListPlace, ServeAnswer> {
    let text = BASE64_URL_SAFE_NO_PAD.decode(token).ok();
    let text = text.and_then(|bytes| String::from_utf8(bytes).ok());
    let refuse = || {
        let what = "the place in the list is none of this search; take the `next` link of a page";
        ServeAnswer::problem(400, what)
    };
    text.and_then(|text| order.place_of(&text)).ok_or_else(refuse)
}
