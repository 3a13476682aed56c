//! The scenarios that the program holds.

/// File name and text of each, in the order of `skyhaul lab list`.
pub const BUILTIN: &[(&str, &str)] = &[("line.toml", include_str!("../../../../scenarios/line.toml"))];
