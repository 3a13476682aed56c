//! Asks for a password: twice at a terminal, which does not show it; else one line of standard
//! input.

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use skyhaul_exit::{Exit, Failure};
use std::io::{self, BufRead, IsTerminal, Read, Write};

/// More is no password.
const LINE_MAX: u64 = 1_024;

/// A new password.
///
/// # Errors
/// None was given, or the two differ.
pub fn new_password(user: &str) -> Result<String, Failure> {
    if !io::stdin().is_terminal() {
        return line();
    }
    let first = hidden(&format!("Password of {user}: "))?;
    let again = hidden("The same again: ")?;
    match first == again {
        true => Ok(first),
        false => Err(Failure::new(Exit::Usage, "the two passwords differ", "type it again")),
    }
}

fn line() -> Result<String, Failure> {
    let unread = |source| {
        let help = "type it, or give it as a line of standard input";
        Failure::io("the password cannot be read", "standard input", help, source)
    };
    let mut text = String::new();
    io::stdin().lock().take(LINE_MAX).read_line(&mut text).map_err(unread)?;
    let password = text.trim_end_matches(['\n', '\r']);
    match password.is_empty() {
        true => {
            let help = "type it, or give it as a line of standard input";
            Err(Failure::new(Exit::Usage, "no password was given", help))
        }
        false => Ok(password.to_owned()),
    }
}

fn hidden(prompt: &str) -> Result<String, Failure> {
    let mut terminal = io::stderr();
    let _ = write!(terminal, "{prompt}").and_then(|()| terminal.flush());
    let quiet = QuietTerminal::begin();
    let password = line();
    drop(quiet);
    let _ = writeln!(terminal);
    password
}

/// A terminal that does not show what is typed, until it is dropped.
struct QuietTerminal(Option<Termios>);

impl QuietTerminal {
    fn begin() -> Self {
        let stdin = io::stdin();
        let Ok(before) = tcgetattr(&stdin) else { return Self(None) };
        let mut quiet = before.clone();
        // An interrupt would leave the terminal mute: its character is read, and refused.
        quiet.local_modes.remove(LocalModes::ECHO | LocalModes::ISIG);
        let is_quiet = tcsetattr(&stdin, OptionalActions::Flush, &quiet).is_ok();
        Self(is_quiet.then_some(before))
    }
}

impl Drop for QuietTerminal {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            let _ = tcsetattr(io::stdin(), OptionalActions::Flush, before);
        }
    }
}
