//! Contacts, as captured here and as received here, newest first.

use super::words::word;
use crate::looks::NodeLook;
use crate::status::{
    ContactCaptured, ContactForecast, ContactReceived, ContactState, StationStatus,
};
use core::ops::ControlFlow;
use serde_json::{Value, json};
use skyhaul_web::RowVisit;

/// Each contact.
pub(super) fn all(look: &NodeLook, visit: &mut RowVisit<'_>) -> ControlFlow<()> {
    if let Some(centre) = &look.status.centre {
        for contact in centre.contacts.iter().rev() {
            visit(&contact.name(), &|| received(contact))?;
        }
    }
    if let Some(station) = &look.status.station {
        for contact in station.contacts.iter().rev() {
            let id = format!("{}-{}", station.name, contact.flow);
            visit(&id, &|| captured(station, contact))?;
        }
    }
    ControlFlow::Continue(())
}

/// Those that are under way, and the newest of the others, without what only their own page shows.
pub(super) fn newest(look: &NodeLook) -> Vec<Value> {
    let mut rows = Vec::new();
    let mut ended = 0;
    let _ = all(look, &mut |_, row| {
        let mut row = row();
        let is_under_way = matches!(row["state"].as_str(), Some("open" | "closed"));
        ended += usize::from(!is_under_way);
        if is_under_way || ended <= ENDED_SHOWN {
            if let Some(members) = row.as_object_mut() {
                for name in ["margin", "products", "inputs", "forecasts"] {
                    members.remove(name);
                }
            }
            rows.push(row);
        }
        if rows.len() < SHOWN_MAX { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    rows
}

/// Contacts of the first screen.
const SHOWN_MAX: usize = 40;
/// Of them, contacts that have come to their end.
const ENDED_SHOWN: usize = 8;

/// The forecasts of a contact, with the names of the destinations.
fn forecasts(station: &StationStatus, flow: u32) -> Vec<(&str, &ContactForecast)> {
    let of = station.destinations.iter().filter_map(|destination| {
        let found = destination.forecasts.iter().find(|forecast| forecast.flow == flow);
        found.map(|forecast| (destination.name.as_str(), forecast))
    });
    of.collect()
}

fn captured(station: &StationStatus, contact: &ContactCaptured) -> Value {
    let forecasts = forecasts(station, contact.flow);
    let unsent = forecasts.iter().map(|(_, forecast)| forecast.unsent_bytes).max();
    // None is longer than all others: nothing is known to carry it.
    let done = forecasts.iter().map(|(_, forecast)| forecast.done_s.unwrap_or(f64::INFINITY));
    let done = done.fold(0.0, f64::max);
    let spare = forecasts.iter().filter_map(|(_, forecast)| forecast.spare_s);
    let spare = spare.fold(f64::INFINITY, f64::min);
    let unsent = unsent.unwrap_or(0);
    // A contact that is under way to its destinations has not come to its end.
    let state = match contact.state {
        ContactState::Closed if unsent == 0 => "sent".to_owned(),
        state => word(&state),
    };
    let of_each = forecasts.iter().map(|(to, forecast)| {
        json!({"to": to, "unsent_bytes": forecast.unsent_bytes, "done_s": forecast.done_s,
               "spare_s": forecast.spare_s})
    });
    let of_each: Vec<Value> = of_each.collect();
    json!({
        "id": format!("{}-{}", station.name, contact.flow),
        "side": "captured",
        "station": station.name,
        "flow": contact.flow,
        "channel": contact.channel,
        "mission": contact.mission,
        "scid": contact.scid,
        "state": state,
        "opened": contact.opened,
        "closed": contact.closed,
        "to": contact.to,
        "frames": contact.frames,
        "set_aside": contact.set_aside,
        "corrected_symbols": contact.corrected_symbols,
        "bytes_captured": contact.bytes_captured,
        "bytes_saved": contact.bytes_saved,
        "unsent_bytes": unsent,
        "done_s": done.is_finite().then_some(done),
        "spare_s": spare.is_finite().then_some(spare),
        "forecasts": of_each,
    })
}

fn received(contact: &ContactReceived) -> Value {
    // A status is plain data with text keys.
    let mut row = serde_json::to_value(contact).unwrap_or(Value::Null);
    row["id"] = json!(contact.name());
    row["side"] = json!("received");
    row
}
