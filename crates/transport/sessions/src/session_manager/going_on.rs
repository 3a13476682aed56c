//! A session whose far end goes on in another process: all its paths end with the first that hears
//! of it, so that the slowest does not delay the next call.

use super::endpoint_set::EndpointSet;
use super::role::Roles;
use super::table::HeldSession;
use crate::Endpoint;
use skyhaul_transport::{DownReason, PathEvent};
use skyhaul_units::Instant;

/// Ends the paths that have not heard of it.
pub(super) fn end_others<C: Endpoint>(
    held: &mut HeldSession,
    endpoints: &mut EndpointSet<C>,
    roles: &mut Roles,
    now: Instant,
) {
    for (path, key) in core::mem::take(&mut held.paths) {
        // Its end is no news to anybody then.
        roles.take(key);
        if let Some(connection) = endpoints.connection(key) {
            connection.close(now, "the far end goes on in another process");
        }
        held.session.handle(now, path, PathEvent::Down(DownReason::GoesOnElsewhere));
    }
}
