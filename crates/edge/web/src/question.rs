//! What is asked of the node itself, not of a look at it: the answer may wait for a disk, or for
//! some seconds of observation.

use skyhaul_serve::{ServeAnswer, ServeRequest};

/// A question to the node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WebQuestion {
    /// The newest orders with their outcomes.
    Orders,
    /// Whether the audit log is whole.
    AuditCheck,
    /// The keys of the node, and of others.
    Keys,
    /// How the configuration in force differs from the file.
    Config,
    /// What limits a transfer now.
    Why(WhyAsked),
}

/// What is asked of a transfer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WhyAsked {
    /// The session with the destination that lacks most, or with the peer that brings most.
    Busiest,
    /// The session with this node.
    Session(String),
    /// The contact of this `id`.
    Contact(String),
    /// The delivery of this number.
    Delivery(u64),
    /// The stream of this `id` in the list of queues.
    Stream(String),
}

impl WebQuestion {
    /// Whether the address of a request is that of a question.
    pub fn is_at(request: &ServeRequest) -> bool {
        matches!(
            request.segments()[..],
            ["api", "v1", "audit" | "keys" | "config" | "why"] | ["api", "v1", "audit", "check"]
        )
    }

    /// The question of a GET.
    ///
    /// # Errors
    /// The refusal of a parameter, or of the address.
    pub fn read(request: &ServeRequest) -> Result<Self, ServeAnswer> {
        match request.segments()[..] {
            ["api", "v1", "audit"] => Ok(Self::Orders),
            ["api", "v1", "audit", "check"] => Ok(Self::AuditCheck),
            ["api", "v1", "keys"] => Ok(Self::Keys),
            ["api", "v1", "config"] => Ok(Self::Config),
            ["api", "v1", "why"] => WhyAsked::read(request).map(Self::Why),
            _ => Err(ServeAnswer::problem(404, "nothing is asked here")),
        }
    }
}

impl WhyAsked {
    fn read(request: &ServeRequest) -> Result<Self, ServeAnswer> {
        let refused = |what: &str| Err(ServeAnswer::problem(400, what));
        let mut asked = Self::Busiest;
        for (name, value) in &request.query {
            if asked != Self::Busiest {
                return refused("ask about one thing: `with`, `contact`, `delivery` or `stream`");
            }
            if value.is_empty() || value.len() > NAME_MAX {
                return refused(&format!("`{name}` has 1 to {NAME_MAX} bytes"));
            }
            asked = match &name[..] {
                "with" => Self::Session(value.clone()),
                "contact" => Self::Contact(value.clone()),
                "stream" => Self::Stream(value.clone()),
                "delivery" => match value.parse() {
                    Ok(id) => Self::Delivery(id),
                    Err(_) => return refused("`delivery` is the number of a delivery"),
                },
                other => {
                    let other = skyhaul_units::printable(other, 64);
                    return refused(&format!(
                        "`{other}` is no parameter of this address; it has `with`, `contact`, \
                         `delivery` and `stream`"
                    ));
                }
            };
        }
        Ok(asked)
    }
}

/// Names of nodes, contacts and streams are shorter.
const NAME_MAX: usize = 512;

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_serve::ServeMethod;

    fn read(target: &str) -> Result<WebQuestion, ServeAnswer> {
        let request = ServeRequest::new(ServeMethod::Get, target).unwrap();
        assert_eq!(WebQuestion::is_at(&request), target != "/api/v1/contacts");
        WebQuestion::read(&request)
    }

    #[test]
    fn a_verdict_is_asked_of_one_thing_and_wrong_words_are_named() {
        let why = |query: &str| read(&format!("/api/v1/why{query}")).unwrap();
        for (query, asked) in [
            ("", WhyAsked::Busiest),
            ("?with=polar", WhyAsked::Session("polar".to_owned())),
            ("?contact=polar-7", WhyAsked::Contact("polar-7".to_owned())),
            ("?delivery=7", WhyAsked::Delivery(7)),
            ("?stream=stream.0", WhyAsked::Stream("stream.0".to_owned())),
        ] {
            assert_eq!(why(query), WebQuestion::Why(asked));
        }
        for (query, said) in [
            ("?with=", "`with` has 1 to 512 bytes"),
            ("?delivery=x", "the number of a delivery"),
            ("?path=x", "`path` is no parameter"),
            ("?with=a&contact=b", "ask about one thing"),
        ] {
            let refused = read(&format!("/api/v1/why{query}")).unwrap_err();
            assert!(refused.status == 400 && refused.text().contains(said), "{}", refused.text());
        }
        assert_eq!(read("/api/v1/contacts").unwrap_err().status, 404);
        assert_eq!(read("/api/v1/audit/check").unwrap(), WebQuestion::AuditCheck);
    }
}
