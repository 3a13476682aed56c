//! A channel of a node that goes on in another process: what it begins with, and what it leaves.

use super::ChannelRunner;
use crate::station::handing_over::HandedState;
use crate::station::input::InputRead;
use crate::station::inputs::Inputs;
use crate::station::receiver::After;
use crate::upgrade::{HandedInput, HandedInputs};
use skyhaul_config::Channel;
use skyhaul_units::{Duration, FlowId};

/// Those of the inputs of a channel that were read elsewhere before.
pub fn handed(config: &Channel, all: &HandedInputs) -> Vec<Option<HandedInput>> {
    let one = |input: &dyn ToString| all.take(config.name.as_str(), &input.to_string());
    config.feeds().iter().map(|feed| one(&feed.input)).collect()
}

/// The contact that a single input goes on with.
pub fn flow(handed: &[Option<HandedInput>]) -> Option<FlowId> {
    let [Some(single)] = handed else { return None };
    single.passed.flow.map(FlowId)
}

/// The address that a single input listens on.
pub fn address(handed: &[Option<HandedInput>]) -> Option<String> {
    let [Some(single)] = handed else { return None };
    single.passed.address.map(|address| address.to_string())
}

/// Leaves the live inputs to another process. The contact of a single one goes on there. Several
/// inputs have frames that wait for a better copy of another one: their contact ends, and the next
/// one begins with the byte that follows.
pub fn leave(runner: &mut ChannelRunner) {
    take_rest(runner);
    // Nothing that comes from here on is lost.
    let left = runner.inputs.let_go();
    match runner.inputs {
        Inputs::Single(_) => runner.flush(),
        Inputs::Joined(_) => runner.end_contact(After::Pause),
    }
    let flow = runner.flow();
    let name = runner.config.name.to_string();
    match left.and_then(|left| runner.inputs.leave(left, &name, flow)) {
        Ok(kept) => kept.into_iter().for_each(|one| runner.shared.handing_over.leave(one)),
        Err(error) => {
            tracing::error!(channel = name, "its input cannot be handed over ({error})");
            runner.end_contact(After::Break);
        }
    }
}

/// Takes what was read elsewhere and not taken yet.
pub fn take_rest(runner: &mut ChannelRunner) {
    while runner.inputs.handed() == HandedState::Given {
        match runner.inputs.read(Duration::ZERO) {
            Ok(InputRead::Data(_) | InputRead::Idle) => runner.take_events(),
            Ok(InputRead::Break | InputRead::End) => runner.end_contact(After::Break),
            Err(error) => {
                tracing::error!(channel = %runner.config.name, "input failed ({error})");
                return;
            }
        }
    }
}
