//! The program's own scenarios on thinner lines, which take less of a processor.

use skyhaul_lab::scenario::{BUILTIN, Scenario};

/// The scenario of this file with other rates, and one seed.
pub fn thin(file: &str, rates: &[(&str, &str)]) -> Scenario {
    let (_, text) = BUILTIN.iter().find(|(known, _)| *known == file).expect("it is built in");
    let text = rates.iter().fold((*text).to_owned(), |text, (from, to)| text.replace(from, to));
    let mut scenario = Scenario::parse(&text, file).expect("other rates are valid too");
    scenario.seeds.truncate(1);
    scenario
}
