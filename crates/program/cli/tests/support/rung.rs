//! How much is tested.

/// Whether everything is tested: `make test-all` sets `SKYHAUL_RUNG=all`.
#[allow(clippy::disallowed_methods, reason = "a test reads how much is tested")]
pub fn is_all() -> bool {
    std::env::var("SKYHAUL_RUNG").is_ok_and(|rung| rung == "all")
}
