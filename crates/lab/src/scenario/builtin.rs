//! The scenarios that the program holds.

/// File name and text of each, in the order of `skyhaul lab list`.
pub const BUILTIN: &[(&str, &str)] = &[
    ("line.toml", include_str!("../../../../scenarios/line.toml")),
    ("adaptive.toml", include_str!("../../../../scenarios/adaptive.toml")),
    ("remembered.toml", include_str!("../../../../scenarios/remembered.toml")),
    ("sharing.toml", include_str!("../../../../scenarios/sharing.toml")),
    ("against-cubic.toml", include_str!("../../../../scenarios/against-cubic.toml")),
    ("changes.toml", include_str!("../../../../scenarios/changes.toml")),
    ("shallow.toml", include_str!("../../../../scenarios/shallow.toml")),
    ("jitter.toml", include_str!("../../../../scenarios/jitter.toml")),
    ("comparison.toml", include_str!("../../../../scenarios/comparison.toml")),
    ("comparison-660ms.toml", include_str!("../../../../scenarios/comparison-660ms.toml")),
    ("over-quic.toml", include_str!("../../../../scenarios/over-quic.toml")),
    ("repair.toml", include_str!("../../../../scenarios/repair.toml")),
    ("repair-over-quic.toml", include_str!("../../../../scenarios/repair-over-quic.toml")),
    ("repair-bulk.toml", include_str!("../../../../scenarios/repair-bulk.toml")),
    ("repair-bulk-over-quic.toml", include_str!("../../../../scenarios/repair-bulk-over-quic.toml")),
    ("jwst.toml", include_str!("../../../../scenarios/jwst.toml")),
    ("gateway.toml", include_str!("../../../../scenarios/gateway.toml")),
    ("streams-over-quic.toml", include_str!("../../../../scenarios/streams-over-quic.toml")),
    ("dtp-bandwidth.toml", include_str!("../../../../scenarios/dtp-bandwidth.toml")),
    ("dtp-loss.toml", include_str!("../../../../scenarios/dtp-loss.toml")),
    ("paths.toml", include_str!("../../../../scenarios/paths.toml")),
    ("paths-over-quic.toml", include_str!("../../../../scenarios/paths-over-quic.toml")),
    ("paths-adaptive.toml", include_str!("../../../../scenarios/paths-adaptive.toml")),
    ("path-dies.toml", include_str!("../../../../scenarios/path-dies.toml")),
];
