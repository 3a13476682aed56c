//! Arguments of callers, converted.

use crate::errors::ConfigError;
use core::net::SocketAddr;
use core::str::FromStr;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDelta, PyDeltaAccess, PyString};
use skyhaul::{ClassConfig, ClassTree, ClassesConfig, Duration, Path, Probability, Rate};

/// Parses a text; a `ValueError` describes its fault.
pub fn parsed<T: FromStr<Err: core::fmt::Display>>(text: &str) -> PyResult<T> {
    text.parse().map_err(|error| PyValueError::new_err(format!("`{text}` cannot be read: {error}")))
}

/// A span of time: seconds as a number, or a `timedelta`.
pub fn duration(value: &Bound<'_, PyAny>) -> PyResult<Duration> {
    let seconds = match value.cast::<PyDelta>() {
        Ok(delta) => {
            f64::from(delta.get_days()) * 86_400.0
                + f64::from(delta.get_seconds())
                + f64::from(delta.get_microseconds()) / 1e6
        }
        Err(_) => value.extract()?,
    };
    let span = std::time::Duration::try_from_secs_f64(seconds)
        .ok()
        .filter(|span| span.as_secs() < LONGEST);
    let span = span.ok_or_else(|| {
        PyValueError::new_err(format!(
            "{seconds} s is no span of time to wait; give 0 to {LONGEST} seconds"
        ))
    })?;
    Ok(Duration::from_std(span))
}

/// A hundred years: a longer span is an error of the caller.
const LONGEST: u64 = 3_155_760_000;

/// A rate: bits a second as a number, or a text with its unit.
#[derive(FromPyObject)]
enum RateArgument {
    Text(String),
    Bits(u64),
}

impl RateArgument {
    fn rate(self) -> PyResult<Rate> {
        match self {
            Self::Text(text) => parsed(&text),
            Self::Bits(bits) => Ok(Rate::from_bps(bits)),
        }
    }
}

/// A rate.
pub fn rate(value: &Bound<'_, PyAny>) -> PyResult<Rate> {
    value.extract::<RateArgument>()?.rate()
}

/// A share of datagrams, 0 to 1.
pub fn share(value: f64) -> PyResult<Probability> {
    if !(0.0..=1.0).contains(&value) {
        return Err(PyValueError::new_err(format!("a share of {value} is none; give 0 to 1")));
    }
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in range")]
    let ppb = (value * 1e9).round() as u32;
    Ok(Probability::from_ppb(ppb))
}

/// `skyhaul.Path`
#[derive(FromPyObject)]
struct PathArgument {
    remote: String,
    socket: usize,
    metered: bool,
    standby: bool,
}

/// Paths to another node: an address, a `skyhaul.Path`, or several of them.
pub fn paths(value: &Bound<'_, PyAny>) -> PyResult<Vec<Path>> {
    if value.is_instance_of::<PyString>() || value.hasattr("remote")? {
        return Ok(vec![path(value)?]);
    }
    value.try_iter()?.map(|each| path(&each?)).collect()
}

fn path(value: &Bound<'_, PyAny>) -> PyResult<Path> {
    if let Ok(address) = value.extract::<String>() {
        return Ok(Path::to(parsed::<SocketAddr>(&address)?));
    }
    let PathArgument { remote, socket, metered, standby } = value.extract().map_err(|_| {
        PyTypeError::new_err("a path is an address such as `192.0.2.1:4710`, or a skyhaul.Path")
    })?;
    let path = Path::to(parsed::<SocketAddr>(&remote)?).from_socket(socket);
    let path = if metered { path.metered() } else { path };
    Ok(if standby { path.standby() } else { path })
}

/// `skyhaul.Class`
#[derive(FromPyObject)]
struct ClassArgument {
    name: String,
    parent: Option<String>,
    guarantee: Option<RateArgument>,
    ceiling: Option<RateArgument>,
    priority: Option<u8>,
}

/// The tree of a sequence of `skyhaul.Class`.
pub fn classes(value: &Bound<'_, PyAny>) -> PyResult<ClassTree> {
    let classes = value.try_iter()?.map(|each| {
        let ClassArgument { name, parent, guarantee, ceiling, priority } = each?.extract()?;
        let guarantee = guarantee.map(RateArgument::rate).transpose()?;
        let ceiling = ceiling.map(RateArgument::rate).transpose()?;
        Ok(ClassConfig { name, parent, guarantee, ceiling, priority, ..ClassConfig::default() })
    });
    let classes =
        ClassesConfig { classes: classes.collect::<PyResult<_>>()?, ..ClassesConfig::default() };
    ClassTree::new(&classes).map_err(|error| ConfigError::new_err(error.to_string()))
}
