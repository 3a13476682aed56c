//! When a satellite rises above an antenna, and when it sets.

use crate::site::AntennaSite;
use sgp4::{Constants, Elements, MinutesSinceEpoch};
use skyhaul_units::Utc;

/// A satellite above an antenna.
#[derive(Debug)]
pub(super) struct SatelliteSky {
    orbit: Constants,
    epoch: Utc,
    site: AntennaSite,
    /// Seconds between two looks.
    step: i64,
}

/// A pass that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SeenPass {
    pub rise: Utc,
    pub set: Utc,
    /// The greatest elevation in degrees.
    pub peak: u8,
}

/// A time, in seconds since 1970, and how far the sine of the elevation is above the mask then.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Look {
    at: f64,
    above: f64,
}

/// A satellite that stays longer is not received in passes. Seconds.
const LONGEST: i64 = 86_400;
/// A lock may take a minute: what is shorter is not planned by anybody. Seconds.
const SHORTEST: f64 = 60.0;
/// Looks in one revolution. A pass of a minute lies between two looks of a low orbit; the highest
/// point between looks is searched for that reason.
const LOOKS: f64 = 240.0;
/// 2000-01-01T12:00:00Z in seconds since 1970.
const J2000: f64 = 946_728_000.0;
const SECONDS_A_YEAR: f64 = 86_400.0 * 365.25;

impl SatelliteSky {
    /// # Errors
    /// The elements are of no orbit that can be computed.
    pub(super) fn new(set: &Elements, epoch: Utc, site: AntennaSite) -> Result<Self, String> {
        let orbit = Constants::from_elements_afspc_compatibility_mode(set)
            .map_err(|error| format!("its orbit cannot be computed ({error}); get new elements"))?;
        #[expect(clippy::cast_possible_truncation, reason = "it is between 10 and 600")]
        let step = (86_400.0 / set.mean_motion / LOOKS).clamp(10.0, 600.0) as i64;
        Ok(Self { orbit, epoch, site, step })
    }

    /// The passes that lie at least partly between `from` and `to`, in their order.
    ///
    /// # Errors
    /// The orbit ends in the atmosphere, or the satellite does not set.
    pub(super) fn passes(&self, from: Utc, to: Utc) -> Result<Vec<SeenPass>, String> {
        let second = |at: Utc| at.as_nanos().div_euclid(1_000_000_000);
        // The looks are at the same times whenever they begin, so that the passes are the same.
        let mut begin = second(from).div_euclid(self.step) * self.step;
        let (earliest, end) = (begin - LONGEST, second(to));
        while self.look(begin)?.above >= 0.0 {
            begin -= self.step;
            if begin < earliest {
                return Err(stays());
            }
        }
        let mut passes = Vec::new();
        let mut before: Option<Look> = None;
        let mut last = self.look(begin)?;
        let mut rise: Option<(Look, Look)> = None;
        let mut at = begin;
        while at < end || rise.is_some() {
            at += self.step;
            if at > end + LONGEST {
                return Err(stays());
            }
            let look = self.look(at)?;
            match &mut rise {
                None if look.above >= 0.0 => rise = Some((self.crossing(last, look)?, look)),
                None => {
                    // It may have risen and set between two looks.
                    if let Some(before) = before.filter(|one| one.above < last.above)
                        && look.above < last.above
                    {
                        let top = self.top(before.at, look.at)?;
                        if top.above > 0.0 {
                            let rise = self.crossing(before, top)?;
                            passes.extend(seen(rise, self.crossing(look, top)?, self.site, top));
                        }
                    }
                }
                Some((_, highest)) if look.above >= 0.0 => {
                    if look.above > highest.above {
                        *highest = look;
                    }
                }
                Some((risen, highest)) => {
                    let step = seconds(self.step);
                    let top = self.top(highest.at - step, highest.at + step)?;
                    passes.extend(seen(*risen, self.crossing(look, last)?, self.site, top));
                    rise = None;
                }
            }
            (before, last) = (Some(last), look);
        }
        Ok(passes)
    }

    fn look(&self, at: i64) -> Result<Look, String> {
        self.at(seconds(at))
    }

    /// Where the satellite is at a time.
    fn at(&self, at: f64) -> Result<Look, String> {
        #[expect(clippy::cast_precision_loss, reason = "microseconds are not lost")]
        let epoch = self.epoch.as_micros() as f64 / 1e6;
        let minutes = MinutesSinceEpoch((at - epoch) / 60.0);
        let place = self
            .orbit
            .propagate_afspc_compatibility_mode(minutes)
            .map_err(|error| format!("its orbit cannot be computed ({error}); get new elements"))?;
        // From the true equator and mean equinox of date to the turning Earth. UTC stands for UT1:
        // 0.9 s of the Earth's turning are 0.4 km.
        let turned = sgp4::iau_epoch_to_sidereal_time((at - J2000) / SECONDS_A_YEAR);
        let ([x, y, z], (sin, cos)) = (place.position, turned.sin_cos());
        let above = self.site.sine_of_elevation([cos * x + sin * y, cos * y - sin * x, z])
            - self.site.mask();
        Ok(Look { at, above })
    }

    /// When the satellite crosses the mask between a look below it and one above it, to 10 ms.
    fn crossing(&self, mut below: Look, mut above: Look) -> Result<Look, String> {
        while (above.at - below.at).abs() > 0.01 {
            let middle = self.at(f64::midpoint(above.at, below.at))?;
            if middle.above < 0.0 {
                below = middle;
            } else {
                above = middle;
            }
        }
        Ok(above)
    }

    /// The highest point between two times that have one, to a second.
    fn top(&self, mut from: f64, mut to: f64) -> Result<Look, String> {
        while to - from > 1.0 {
            let third = (to - from) / 3.0;
            let (early, late) = (self.at(from + third)?, self.at(to - third)?);
            if early.above < late.above {
                from = early.at;
            } else {
                to = late.at;
            }
        }
        self.at(f64::midpoint(from, to))
    }
}

fn seen(rise: Look, set: Look, site: AntennaSite, top: Look) -> Option<SeenPass> {
    let utc = |look: Look| {
        #[expect(clippy::cast_possible_truncation, reason = "a time of this century")]
        let whole = look.at.round() as i64;
        Utc::from_micros(whole * 1_000_000)
    };
    let degrees = (top.above + site.mask()).clamp(0.0, 1.0).asin().to_degrees();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 90")]
    let peak = degrees.round() as u8;
    (set.at - rise.at >= SHORTEST).then(|| SeenPass { rise: utc(rise), set: utc(set), peak })
}

fn stays() -> String {
    "it does not rise and set here within a day; write its contacts into a `file`".to_owned()
}

#[expect(clippy::cast_precision_loss, reason = "seconds since 1970 have 31 bits")]
const fn seconds(at: i64) -> f64 {
    at as f64
}
