//! What a node watches for: planned passes.

use skyhaul_config::{PlanEntry, PlanSource};
use skyhaul_net::Clock;
use skyhaul_node::PassPlanFile;
use std::io::{self, Write};

/// Where planned passes come from.
pub fn write_plan(plan: &PlanEntry, out: &mut dyn Write) -> io::Result<()> {
    let path = plan.path().display();
    let PlanSource::Elements(..) = plan.source() else {
        return writeln!(out, "  watches the passes that {path} plans");
    };
    let mut file = PassPlanFile::new(plan);
    let now = Clock::start().utc();
    file.look(now);
    let planned = file.plan().unwrap_or_default();
    let ahead = planned.passes().iter().filter(|pass| pass.start > now);
    writeln!(
        out,
        "  watches the passes that are computed from {path}: {} in two days",
        ahead.count()
    )
}
