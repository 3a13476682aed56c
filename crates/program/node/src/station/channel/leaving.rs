//! A channel of a node that goes on in another process: what it begins with, and what it leaves.

use super::ChannelRunner;
use crate::station::handed_reads::HandedState;
use crate::station::handing_over::KeptInput;
use crate::station::input::InputRead;
use crate::station::inputs::Inputs;
use crate::station::left_input::LeftInput;
use crate::station::receiver::{After, InputReceiver};
use crate::upgrade::{HandedInput, HandedInputs};
use skyhaul_config::Channel;
use skyhaul_units::{Duration, FlowId};
use std::io;

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

/// Leaves the live inputs to another process, also where they still catch up with the last one:
/// what a thread has written down since goes there too. The contact of a single one goes on there.
/// Several inputs have frames that wait for a better copy of another one: their contact ends, and
/// the next one begins with the byte that follows.
pub fn leave(runner: &mut ChannelRunner) {
    take_rest(runner);
    // Nothing that comes from here on is lost.
    let left: io::Result<Vec<LeftInput>> =
        runner.inputs.receivers_mut().map(InputReceiver::let_go).collect();
    match runner.inputs {
        Inputs::Single(_) => runner.flush(),
        Inputs::Joined(_) => runner.end_contact(After::Pause),
    }
    let flow = runner.flow();
    let name = runner.config.name.to_string();
    let keep = |left: Vec<LeftInput>| -> io::Result<Vec<KeptInput>> {
        let both = runner.inputs.receivers_mut().zip(left);
        both.map(|(receiver, left)| receiver.leave(left, &name, flow)).collect()
    };
    match left.and_then(keep) {
        Ok(kept) => kept.into_iter().for_each(|one| runner.shared.handing_over.leave(one)),
        Err(error) => {
            tracing::error!(channel = name, "its input cannot be handed over ({error})");
            runner.end_contact(After::Break);
        }
    }
}

/// Ends the contact with all that the live inputs brought, as the station ends. Where another
/// process still reads them, it goes on there.
pub fn end(runner: &mut ChannelRunner) {
    if runner.inputs.handed() == HandedState::Elsewhere {
        return runner.flush();
    }
    let mut receivers = runner.inputs.receivers_mut();
    if let Err(error) = receivers.try_for_each(InputReceiver::stop_reading_on) {
        failed(runner.config.name.as_str(), &error);
    }
    drop(receivers);
    take_rest(runner);
    runner.end_contact(After::Break);
}

/// Takes what was read elsewhere and not taken yet, as far as it has an end.
fn take_rest(runner: &mut ChannelRunner) {
    loop {
        let before = runner.inputs.handed();
        if before <= HandedState::Behind {
            return;
        }
        match runner.inputs.read(Duration::ZERO) {
            Ok(InputRead::Data(_) | InputRead::Idle) => runner.take_events(),
            Ok(InputRead::Break | InputRead::End) => runner.end_contact(After::Break),
            Err(error) => return failed(runner.config.name.as_str(), &error),
        }
        // The last upgrade gave the inputs before this one was ordered.
        if before == HandedState::Elsewhere && runner.inputs.handed() == before {
            return;
        }
    }
}

fn failed(channel: &str, error: &io::Error) {
    tracing::error!(channel, "input failed ({error})");
}
