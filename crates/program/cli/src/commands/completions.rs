//! `skyhaul completions`: the completion of command lines, from the declarations of the commands.

use skyhaul_exit::Failure;
use std::io::Write;

/// The arguments of `skyhaul completions`.
#[derive(clap::Args)]
#[command(after_help = "\
The Debian package installs these files. Without it, write them where the shell looks for them.

Example:
  skyhaul completions bash > ~/.local/share/bash-completion/completions/skyhaul
  skyhaul completions zsh > ~/.zfunc/_skyhaul
  skyhaul completions fish > ~/.config/fish/completions/skyhaul.fish")]
pub struct Completions {
    /// The shell.
    shell: CompletedShell,
}

/// A shell that can complete the command lines of other programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum CompletedShell {
    Bash,
    Zsh,
    Fish,
}

/// Prints the script for a shell.
///
/// # Errors
/// The result cannot be written.
pub fn run(
    command: &Completions,
    mut program: clap::Command,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let shell = match command.shell {
        CompletedShell::Bash => clap_complete::Shell::Bash,
        CompletedShell::Zsh => clap_complete::Shell::Zsh,
        CompletedShell::Fish => clap_complete::Shell::Fish,
    };
    // The generator panics where it cannot write, which memory never does.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut program, "skyhaul", &mut script);
    Ok(out.write_all(&script)?)
}
