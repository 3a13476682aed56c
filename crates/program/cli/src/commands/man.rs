//! `skyhaul man`: the manual pages of the commands, from their declarations, and of the
//! configuration files, from the declarations of their keys.

mod commands;
mod files;
mod text;

use skyhaul_exit::{Exit, Failure};
use skyhaul_units::Utc;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The arguments of `skyhaul man`.
#[derive(clap::Args)]
#[command(after_help = "\
The pages have no date, or the day of SOURCE_DATE_EPOCH (seconds since 1970), so that the same \
program always writes the same pages.

Example:
  skyhaul man /usr/local/share/man
  man -M /usr/local/share/man skyhaul-cp")]
pub struct WriteManual {
    /// The folder of the manual. Pages go to `man1` and `man5` below it, which are created if they
    /// do not exist. Pages of the same name are replaced.
    dir: PathBuf,
}

/// A page before it is written.
struct ManualPage {
    /// Without the section: `skyhaul-cp`.
    name: String,
    section: u8,
    text: String,
}

/// Writes all pages and prints the file of each.
///
/// # Errors
/// `SOURCE_DATE_EPOCH` is no time, or a file cannot be written.
pub fn run(
    command: &WriteManual,
    program: clap::Command,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let date = date()?;
    let version = program.get_version().unwrap_or_default().to_owned();
    let mut pages = commands::pages(program, &date)?;
    pages.extend(files::pages(&version, &date));
    for page in pages {
        let folder = command.dir.join(format!("man{}", page.section));
        fs::create_dir_all(&folder).map_err(|error| refused(&folder, error))?;
        let file = folder.join(format!("{}.{}", page.name, page.section));
        fs::write(&file, &page.text).map_err(|error| refused(&file, error))?;
        writeln!(out, "{}", file.display())?;
    }
    Ok(())
}

fn refused(place: &Path, error: std::io::Error) -> Failure {
    let help = "name a folder where this user may write";
    Failure::io("the manual cannot be written", &place.display().to_string(), help, error)
}

/// The day of `SOURCE_DATE_EPOCH`, or nothing.
fn date() -> Result<String, Failure> {
    let Some(given) = std::env::var_os("SOURCE_DATE_EPOCH") else { return Ok(String::new()) };
    let seconds = given.to_str().and_then(|text| text.parse::<u32>().ok());
    let Some(seconds) = seconds else {
        let what = "SOURCE_DATE_EPOCH is not a number of seconds since 1970";
        let help = "set it as `git log -1 --format=%ct` prints it, or unset it";
        return Err(Failure::new(Exit::Usage, what, help));
    };
    let (year, month, day) = Utc::from_micros(i64::from(seconds) * 1_000_000).date();
    Ok(format!("{year:04}-{month:02}-{day:02}"))
}
