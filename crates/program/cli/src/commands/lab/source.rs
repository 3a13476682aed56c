//! The source of scenarios: the program, or the user's files.

use skyhaul_exit::{Exit, Failure};
use skyhaul_lab::scenario::{BUILTIN, MAX_FILE, Scenario, ScenarioError};
use std::fs::File;
use std::io::Read;

/// All that the program holds.
pub fn builtin() -> Result<Vec<Scenario>, Failure> {
    BUILTIN.iter().map(|(file, text)| Scenario::parse(text, file).map_err(refused)).collect()
}

/// One by its name, or from the user's file.
pub fn find(name: &str) -> Result<Scenario, Failure> {
    let of_name = |(file, _): &&(&str, &str)| file.strip_suffix(".toml") == Some(name);
    if let Some((file, text)) = BUILTIN.iter().find(of_name) {
        return Scenario::parse(text, file).map_err(refused);
    }
    let is_path = name.contains(['/', '.']) || std::path::Path::new(name).exists();
    if !is_path {
        let help =
            "choose a scenario of `skyhaul lab list`, or give the path of a file of your own";
        return Err(Failure::new(Exit::Usage, &format!("there is no scenario `{name}`"), help));
    }
    Scenario::parse(&read(name)?, name).map_err(refused)
}

/// No more is read than a scenario may have, whatever the file is.
fn read(name: &str) -> Result<String, Failure> {
    let unreadable = |source| {
        let help = "give the path of a scenario's file, or a name of `skyhaul lab list`";
        Failure::io("the scenario cannot be read", name, help, source)
    };
    let mut bytes = Vec::new();
    let most = u64::try_from(MAX_FILE).unwrap_or(u64::MAX).saturating_add(1);
    File::open(name)
        .and_then(|file| file.take(most).read_to_end(&mut bytes))
        .map_err(unreadable)?;
    String::from_utf8(bytes).map_err(|_| {
        let help = "give the path of a scenario's file: TOML, in UTF-8";
        Failure::new(Exit::Usage, "the scenario is not text", help).at(name)
    })
}

fn refused(error: ScenarioError) -> Failure {
    Failure::new(Exit::Usage, error.what(), error.help()).at(error.place())
}
