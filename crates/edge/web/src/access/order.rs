//! The bodies of POST: logins and orders.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use skyhaul_serve::{ServeAnswer, ServeRequest};

/// A login.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoginRequest {
    /// The user.
    pub name: String,
    /// The password.
    pub password: String,
}

/// An order to the node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WebOrder {
    /// Note who works on an alarm.
    Acknowledge {
        /// Its `id` in the list of alarms.
        alarm: String,
        /// What the person says about it.
        note: String,
    },
    /// About a delivery.
    Delivery {
        /// Its number.
        id: u64,
        /// What to do.
        action: WebDeliveryOrder,
    },
    /// Begin to change the key of the node.
    RotateKey,
    /// Refuse a key, and end its sessions.
    RevokeKey {
        /// Its fingerprint.
        key: String,
        /// Why.
        reason: String,
    },
}

/// What can be done with a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebDeliveryOrder {
    /// Begin no further attempt.
    Hold,
    /// Go on.
    Release,
    /// Give it up.
    Cancel,
    /// Send it again from the beginning.
    Again,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AcknowledgeBody {
    #[serde(default)]
    note: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RevokeBody {
    #[serde(default)]
    reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NoBody {}

impl core::fmt::Debug for LoginRequest {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("LoginRequest(…)")
    }
}

impl LoginRequest {
    /// From the body of a POST.
    ///
    /// # Errors
    /// The answer: 400.
    pub fn read(request: &ServeRequest) -> Result<Self, ServeAnswer> {
        body(request, "{\"name\": …, \"password\": …}")
    }
}

impl WebOrder {
    /// Whether orders are given at the path of a request.
    pub fn is_at(request: &ServeRequest) -> bool {
        matches!(
            request.segments()[..],
            ["api", "v1", "alarms", _, "ack"]
                | ["api", "v1", "deliveries", _, _]
                | ["api", "v1", "keys", "rotate"]
                | ["api", "v1", "keys", _, "revoke"]
        )
    }

    /// The order of a POST to this path.
    ///
    /// # Errors
    /// The answer: 400 for a body that is wrong, 404 where there is no such order.
    pub fn read(request: &ServeRequest) -> Result<Self, ServeAnswer> {
        match request.segments()[..] {
            ["api", "v1", "alarms", alarm, "ack"] => {
                let AcknowledgeBody { note } = body(request, "{\"note\": …}")?;
                Ok(Self::Acknowledge { alarm: alarm.to_owned(), note })
            }
            ["api", "v1", "deliveries", id, action] => {
                let NoBody {} = body(request, "{}")?;
                let id = id.parse().ok();
                let action = WebDeliveryOrder::named(action);
                let order = id.zip(action).map(|(id, action)| Self::Delivery { id, action });
                order.ok_or_else(nothing)
            }
            ["api", "v1", "keys", "rotate"] => {
                let NoBody {} = body(request, "{}")?;
                Ok(Self::RotateKey)
            }
            ["api", "v1", "keys", key, "revoke"] => {
                let RevokeBody { reason } = body(request, "{\"reason\": …}")?;
                if reason.len() > REASON_MAX {
                    let what = format!("`reason` has up to {REASON_MAX} bytes");
                    return Err(ServeAnswer::problem(400, &what));
                }
                Ok(Self::RevokeKey { key: key.to_owned(), reason })
            }
            _ => Err(nothing()),
        }
    }
}

impl WebDeliveryOrder {
    /// The last segment of its path.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hold => "hold",
            Self::Release => "release",
            Self::Cancel => "cancel",
            Self::Again => "again",
        }
    }

    fn named(name: &str) -> Option<Self> {
        let all = [Self::Hold, Self::Release, Self::Cancel, Self::Again];
        all.into_iter().find(|order| order.name() == name)
    }
}

/// Why a key is revoked, for the logs.
const REASON_MAX: usize = 500;

fn nothing() -> ServeAnswer {
    ServeAnswer::problem(404, "there is no such order; /openapi.yaml names those that there are")
}

fn body<T: DeserializeOwned>(request: &ServeRequest, form: &str) -> Result<T, ServeAnswer> {
    serde_json::from_slice(&request.body).map_err(|_| {
        // Not the error of the reader: it would repeat a password.
        ServeAnswer::problem(400, &format!("the body must be JSON like {form}"))
    })
}
