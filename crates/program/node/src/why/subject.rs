//! Which session carries what somebody asks about.

use crate::status::{ContactState, NodeStatus, StationStatus, StreamStatus};
use skyhaul_dispatch::DeliveryState;
use skyhaul_web::WhyAsked;

/// Knows the node that a destination of products is; none where it is no node.
pub(crate) trait KnowsOutlets {
    fn node_of(&self, destination: &str) -> Option<String>;
}

/// The node at the other end of the session that is meant; none: the busiest.
///
/// # Errors
/// No session carries it now: the sentence says where it is instead.
pub(super) fn session_of(
    asked: &WhyAsked,
    status: &NodeStatus,
    outlets: &dyn KnowsOutlets,
) -> Result<Option<String>, String> {
    match asked {
        WhyAsked::Busiest => Ok(None),
        WhyAsked::Session(name) => Ok(Some(name.clone())),
        WhyAsked::Contact(id) => of_contact(id, status).map(Some),
        WhyAsked::Delivery(id) => of_delivery(*id, status, outlets).map(Some),
        WhyAsked::Stream(id) => of_stream(id, status).map(Some),
    }
}

fn of_contact(id: &str, status: &NodeStatus) -> Result<String, String> {
    let mut received = status.centre.iter().flat_map(|centre| &centre.contacts);
    if let Some(contact) = received.find(|contact| contact.name() == id) {
        let from = contact.way.via.last().map_or(&contact.station, |hop| &hop.node);
        return match contact.state {
            ContactState::Open => Ok(from.clone()),
            ContactState::Closed => {
                Err(format!("all of contact {id} is here; its products are being made"))
            }
            ContactState::Done | ContactState::Failed | ContactState::Refused => {
                Err(format!("nothing of contact {id} is under way: it has come to its end"))
            }
        };
    }
    status.station.as_ref().map_or_else(|| unknown(id), |station| of_captured(id, station))
}

fn unknown(id: &str) -> Result<String, String> {
    Err(format!("there is no contact {id} among the last 1,000"))
}

/// Of a contact that was captured here: the line to the destination that lacks most of it.
fn of_captured(id: &str, station: &StationStatus) -> Result<String, String> {
    let flow = id.strip_prefix(&*station.name).and_then(|rest| rest.strip_prefix('-'));
    let flow = flow.and_then(|flow| flow.parse::<u32>().ok());
    let known = station.contacts.iter().find(|contact| Some(contact.flow) == flow);
    let Some(contact) = known else { return unknown(id) };
    let lacking = station.destinations.iter().filter_map(|destination| {
        let found = destination.forecasts.iter().find(|one| one.flow == contact.flow)?;
        (found.unsent_bytes > 0).then_some((found.unsent_bytes, &destination.name))
    });
    let first = || (contact.state == ContactState::Open).then(|| contact.to.first()).flatten();
    let name = lacking.max_by_key(|(bytes, _)| *bytes).map(|(_, name)| name).or_else(first);
    name.cloned().ok_or_else(|| match contact.state {
        ContactState::Open => format!("contact {id} goes to no destination"),
        _ => format!("nothing of contact {id} is under way: its destinations have it"),
    })
}

fn of_delivery(id: u64, status: &NodeStatus, outlets: &dyn KnowsOutlets) -> Result<String, String> {
    let mut all = status.centre.iter().flat_map(|centre| &centre.products.deliveries);
    let delivery = all.find(|delivery| delivery.id == id);
    let delivery =
        delivery.ok_or_else(|| format!("there is no delivery {id} among the newest 1,000"))?;
    let to = &delivery.destination;
    let reason = delivery.reason.as_ref().map_or(String::new(), |reason| format!(": {reason}"));
    if !matches!(delivery.state, DeliveryState::Waiting | DeliveryState::Sending) {
        return Err(format!("nothing of delivery {id} is under way to {to}{reason}"));
    }
    let Some(node) = outlets.node_of(to) else {
        return Err(format!(
            "delivery {id} goes over no session, because {to} is not a node{reason}"
        ));
    };
    let mut called = status.station.iter().flat_map(|station| &station.destinations);
    match called.any(|destination| destination.name == node) {
        true => Ok(node),
        false => Err(format!(
            "delivery {id} goes over the session that {node} has set up{reason}; ask there: \
             `skyhaul why`"
        )),
    }
}

fn of_stream(id: &str, status: &NodeStatus) -> Result<String, String> {
    let streams = || status.station.iter().flat_map(|station| &station.streams);
    let found = id.strip_prefix("stream.").and_then(|nth| streams().nth(nth.parse().ok()?));
    let StreamStatus { to, .. } = found.ok_or_else(|| format!("there is no stream `{id}`"))?;
    let first = || status.station.as_ref()?.destinations.first().map(|one| one.name.clone());
    to.clone().or_else(first).ok_or_else(|| "the stream goes to no destination".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::{
        CentreStatus, ContactCaptured, ContactForecast, ContactReceived, ContactWay,
        DestinationStatus, HopStatus,
    };

    struct Outlets;

    impl KnowsOutlets for Outlets {
        fn node_of(&self, destination: &str) -> Option<String> {
            (destination == "archive").then(|| "far".to_owned())
        }
    }

    fn of(asked: &WhyAsked, status: &NodeStatus) -> Result<Option<String>, String> {
        session_of(asked, status, &Outlets)
    }

    fn station() -> NodeStatus {
        let destination = |name: &str, unsent_bytes| DestinationStatus {
            name: name.to_owned(),
            forecasts: vec![ContactForecast {
                flow: 7,
                unsent_bytes,
                ..ContactForecast::default()
            }],
            ..DestinationStatus::default()
        };
        let contact = |flow, state| ContactCaptured {
            flow,
            state,
            to: vec!["a".to_owned()],
            ..ContactCaptured::default()
        };
        let station = StationStatus {
            name: "polar-x".to_owned(),
            contacts: vec![
                contact(7, ContactState::Closed),
                contact(8, ContactState::Closed),
                contact(9, ContactState::Open),
            ],
            destinations: vec![destination("a", 10), destination("b", 20)],
            streams: vec![StreamStatus::default()],
            ..StationStatus::default()
        };
        NodeStatus { station: Some(station), ..NodeStatus::default() }
    }

    #[test]
    fn a_captured_contact_is_on_the_line_to_the_destination_that_lacks_most_of_it() {
        let contact = |id: &str| of(&WhyAsked::Contact(id.to_owned()), &station());
        assert_eq!(contact("polar-x-7"), Ok(Some("b".to_owned())));
        assert_eq!(contact("polar-x-9"), Ok(Some("a".to_owned())), "it has just begun");
        assert!(contact("polar-x-8").unwrap_err().contains("its destinations have it"));
        assert!(contact("polar-x-6").unwrap_err().contains("there is no contact"));
        assert!(contact("other-7").is_err() && contact("").is_err());
        let stream = |id: &str| of(&WhyAsked::Stream(id.to_owned()), &station());
        assert_eq!(stream("stream.0"), Ok(Some("a".to_owned())));
        assert!(stream("stream.1").is_err() && stream("0").is_err());
    }

    #[test]
    fn a_contact_that_comes_in_is_in_the_session_with_the_node_before_this_one() {
        let contact = |station: &str, via: &[&str], state| ContactReceived {
            station: station.to_owned(),
            flow: 1,
            state,
            way: ContactWay {
                via: via
                    .iter()
                    .map(|node| HopStatus { node: (*node).to_owned(), flow: 3 })
                    .collect(),
                ..ContactWay::default()
            },
            ..ContactReceived::default()
        };
        let contacts = vec![
            contact("s", &[], ContactState::Open),
            contact("t", &["relay"], ContactState::Open),
            contact("u", &[], ContactState::Done),
        ];
        let centre = CentreStatus { contacts, ..CentreStatus::default() };
        let status = NodeStatus { centre: Some(centre), ..NodeStatus::default() };
        let contact = |id: &str| of(&WhyAsked::Contact(id.to_owned()), &status);
        assert_eq!(contact("s-1"), Ok(Some("s".to_owned())));
        assert_eq!(contact("t-1"), Ok(Some("relay".to_owned())));
        assert!(contact("u-1").unwrap_err().contains("has come to its end"));
    }
}
