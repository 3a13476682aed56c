//! `skyhaul alarms`: what an operator must act on at a running node, and who does.

use super::node_socket::NodeArguments;
use skyhaul_events::{AlarmKey, AlarmKind, AlarmStatus};
use skyhaul_exit::Failure;
use skyhaul_node::status::{StatusRequest, ask_alarms, order};
use std::io::{self, Write};

/// Alarms of a node.
#[derive(clap::Subcommand)]
pub enum AlarmsCommand {
    /// Shows the alarms that stand.
    #[command(after_help = "\
        Alarms that another one explains stand behind it. docs/reference/alarms.md says what each \
        kind means, and what to do.

Example:
  skyhaul alarms list --config centre.toml
  skyhaul alarms list --config centre.toml --json")]
    List(AlarmList),
    /// Notes who works on an alarm.
    #[command(after_help = "\
        The alarm goes on standing until its condition is over. If it comes again after that, it \
        has to be acknowledged again.

Example:
  skyhaul alarms ack --config centre.toml peer-silent 'node polar' --by kim --note 'fibre cut'")]
    Ack(AlarmAck),
}

/// The arguments of `skyhaul alarms list`.
#[derive(clap::Args)]
pub struct AlarmList {
    #[command(flatten)]
    node: NodeArguments,
    /// Prints the alarms as one line of JSON.
    #[arg(long)]
    json: bool,
}

/// The arguments of `skyhaul alarms ack`.
#[derive(clap::Args)]
pub struct AlarmAck {
    #[command(flatten)]
    node: NodeArguments,
    /// The kind of the alarm, as `skyhaul alarms list` shows it.
    #[arg(value_name = "KIND")]
    kind: AlarmKind,
    /// What it is about, as `skyhaul alarms list` shows it.
    #[arg(value_name = "SUBJECT")]
    subject: String,
    /// Who works on it.
    #[arg(long, value_name = "NAME")]
    by: String,
    /// What others should know.
    #[arg(long, value_name = "TEXT", default_value = "")]
    note: String,
    /// Prints the alarm as one line of JSON.
    #[arg(long)]
    json: bool,
}

/// Shows alarms, or acknowledges one.
///
/// # Errors
/// No node answers, or the alarm does not stand.
pub fn run(command: &AlarmsCommand, out: &mut dyn Write) -> Result<(), Failure> {
    match command {
        AlarmsCommand::List(list) => {
            let alarms = ask_alarms(&list.node.socket()?)?;
            if list.json {
                return json(&alarms, out);
            }
            Ok(write_alarms(&alarms, out)?)
        }
        AlarmsCommand::Ack(ack) => {
            let socket = ack.node.socket()?;
            let alarm = AlarmKey { kind: ack.kind, subject: ack.subject.clone() };
            let request = StatusRequest::AcknowledgeAlarm {
                alarm: alarm.clone(),
                by: ack.by.clone(),
                note: ack.note.clone(),
            };
            let said = order(&socket, &request)?;
            if ack.json {
                let is_it = |it: &AlarmStatus| it.kind == alarm.kind && it.subject == alarm.subject;
                return json(&ask_alarms(&socket)?.into_iter().find(is_it), out);
            }
            Ok(writeln!(out, "{said}")?)
        }
    }
}

fn json(value: &impl serde::Serialize, out: &mut dyn Write) -> Result<(), Failure> {
    let line = serde_json::to_string(value).expect("alarms have text keys only");
    Ok(writeln!(out, "{line}")?)
}

/// Each alarm, and behind it those that it explains.
fn write_alarms(alarms: &[AlarmStatus], out: &mut dyn Write) -> io::Result<()> {
    if alarms.is_empty() {
        return writeln!(out, "no alarms");
    }
    for alarm in alarms.iter().filter(|alarm| alarm.caused_by.is_none()) {
        write_alarm(alarm, "", out)?;
        let key = AlarmKey { kind: alarm.kind, subject: alarm.subject.clone() };
        let caused = alarms.iter().filter(|other| other.caused_by.as_ref() == Some(&key));
        caused.into_iter().try_for_each(|other| write_alarm(other, "  ", out))?;
    }
    Ok(())
}

fn write_alarm(alarm: &AlarmStatus, indent: &str, out: &mut dyn Write) -> io::Result<()> {
    let AlarmStatus { kind, subject, sentence, severity, since, acknowledged, .. } = alarm;
    writeln!(out, "{indent}{severity} {kind} '{subject}' since {since}")?;
    writeln!(out, "{indent}  {sentence}")?;
    let Some(said) = acknowledged else { return Ok(()) };
    let note = if said.note.is_empty() { String::new() } else { format!(": {}", said.note) };
    writeln!(out, "{indent}  acknowledged by {} at {}{note}", said.by, said.at)
}
