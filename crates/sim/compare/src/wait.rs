//! A pause, where there is no event to wait for.

use skyhaul_units::Duration;

/// Waits for `span`.
#[allow(
    clippy::disallowed_methods,
    reason = "another process is watched: there is nothing to be woken by"
)]
pub fn pause(span: Duration) {
    std::thread::sleep(span.to_std());
}
