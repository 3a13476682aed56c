//! How much is tested: `make test-all` sets `SKYHAUL_RUNG=all`, and then whole matrices run.
//! Otherwise a part of each runs, with the same bounds.

/// Whether everything runs.
#[allow(clippy::disallowed_methods, reason = "how much is tested is the caller's choice")]
pub fn is_all() -> bool {
    std::env::var("SKYHAUL_RUNG").is_ok_and(|rung| rung == "all")
}
