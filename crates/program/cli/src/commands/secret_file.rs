//! Files of accounts, users and tokens: changed as a whole, by one command at a time.

use super::book::replace;
use rustix::fs::{FlockOperation, flock};
use skyhaul_exit::{Exit, Failure};
use skyhaul_net::{Clock, random};
use skyhaul_units::Utc;
use std::fmt::Display;
use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;

/// A file, and what it is called.
#[derive(Debug, Clone, Copy)]
pub struct SecretFile<'a> {
    /// Where it is.
    pub path: &'a Path,
    /// What it is, such as `the accounts file`.
    pub what: &'static str,
    /// The flag that names another one.
    pub flag: &'static str,
}

impl SecretFile<'_> {
    fn place(&self) -> String {
        self.path.display().to_string()
    }

    /// Its text; a file that is not there is empty.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read(&self) -> Result<String, Failure> {
        match std::fs::read_to_string(self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(String::new()),
            read => read.map_err(|source| {
                let help = format!("give this user read permission, or another {}", self.flag);
                let what = format!("{} cannot be read", self.what);
                Failure::io(&what, &self.place(), &help, source)
            }),
        }
    }

    /// Changes it. A new one is for its user alone. What `check` finds is wrong with the file, what
    /// `change` finds is wrong with what is asked for.
    ///
    /// # Errors
    /// What they say, or it cannot be read or written.
    pub fn change<E: Display>(
        &self,
        check: impl FnOnce(&str) -> Result<(), Failure>,
        change: impl FnOnce(&str) -> Result<String, E>,
    ) -> Result<(), Failure> {
        let unwritable = |source| {
            let help = "give this user write permission there, and free space";
            let what = format!("{} cannot be written", self.what);
            Failure::io(&what, &self.place(), help, source)
        };
        // Of a bare name the folder has a name too then.
        let whole = std::path::absolute(self.path).map_err(unwritable)?;
        let folder = File::open(whole.parent().unwrap_or(Path::new("/"))).map_err(unwritable)?;
        flock(&folder, FlockOperation::LockExclusive).map_err(|error| unwritable(error.into()))?;
        let text = self.read()?;
        check(&text)?;
        let text = change(&text)
            .map_err(|error| Failure::from_sentence(Exit::Usage, &error.to_string()))?;
        replace(&whole, &text).map_err(unwritable)
    }

    /// The failure of a file that is wrong.
    pub fn unusable(&self, error: &dyn Display, help: &str) -> Failure {
        let what = format!("{} cannot be used: {error}", self.what);
        Failure::new(Exit::Usage, &what, &format!("correct it; {help}")).at(&self.place())
    }
}

/// Random bytes of this host.
///
/// # Errors
/// It has none.
pub fn fresh() -> Result<[u8; 32], Failure> {
    random().map_err(|source| {
        let help = "check that /dev/urandom exists";
        Failure::io("no random numbers available", "this host", help, source)
    })
}

/// The time, in whole seconds.
pub fn now() -> Utc {
    let time = Clock::start().utc();
    Utc::from_micros(time.as_micros().div_euclid(1_000_000) * 1_000_000)
}
