//! OData v4 (OASIS, JSON format 4.01): what the interfaces of products and of contacts share.

pub mod cadip;
mod cells;
pub mod filter;
mod identifier;
pub mod prip;
mod query;

use crate::answer::{AnswerBody, ServeAnswer};
use serde_json::{Value, json};

/// An answer in the form of OData: its refusals have one of their own, and a `Warning` header,
/// which clients show.
pub fn finished(answer: ServeAnswer) -> ServeAnswer {
    let answer = answer.header("odata-version", "4.0");
    let AnswerBody::Bytes(bytes) = &answer.body else { return answer };
    if answer.status < 400 {
        return answer;
    }
    let problem: Value = serde_json::from_slice(bytes).unwrap_or_default();
    let what = problem["description"].as_str().unwrap_or("the request cannot be answered");
    let value = json!({"error": {"code": answer.status.to_string(), "message": what}});
    let plain: String = what.chars().filter(|c| c.is_ascii_graphic() || *c == ' ').collect();
    let warning = format!("299 skyhaul \"{}\"", plain.replace(['"', '\\'], "'"));
    let mut headers = answer.headers.clone();
    headers.retain(|(name, _)| *name != "content-type");
    headers.push(("content-type", JSON.to_owned()));
    headers.push(("warning", warning));
    let body = AnswerBody::Bytes(value.to_string().into());
    ServeAnswer { status: answer.status, headers, body }
}

const JSON: &str = "application/json;odata.metadata=minimal";

fn json_answer(value: &Value) -> ServeAnswer {
    ServeAnswer::json_as(200, JSON, value)
}
