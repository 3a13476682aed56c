//! How the sessions of a case are set up.

use super::case::Setup;
use skyhaul_transport::{ClassConfig, ClassTree, ClassesConfig, PolicyConfig, SessionConfig};
use skyhaul_units::{ByteCount, Rate};

/// Both sessions' settings.
pub fn config(setup: &Setup) -> SessionConfig {
    let class = |name: &str, guarantee: u64, ceiling: Option<u64>| ClassConfig {
        name: name.to_owned(),
        guarantee: Some(Rate::from_mbps(guarantee)),
        ceiling: ceiling.map(Rate::from_mbps),
        ..ClassConfig::default()
    };
    let classes = if setup.classes {
        vec![class("a", 1, None), class("b", 2, Some(3)), class("c", 0, None)]
    } else {
        Vec::new()
    };
    let classes = ClassTree::new(&ClassesConfig { classes, ..ClassesConfig::default() })
        .expect("a good tree");
    let policy = match setup.policy {
        0 => PolicyConfig::Strict {},
        1 => PolicyConfig::Earliest {},
        2 => PolicyConfig::Fifo {},
        _ => PolicyConfig::default(),
    };
    let defaults = SessionConfig::default();
    SessionConfig {
        receive_window: ByteCount::new(setup.window),
        send_buffer: ByteCount::new(setup.send_buffer),
        repair: defaults.repair.filter(|_| setup.repair),
        classes,
        policy,
        ..defaults
    }
}
