//! Where an antenna stands, and how high a satellite is above its horizon.

/// An antenna: a place on the Earth, and how high a satellite has to be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AntennaSite {
    /// From the centre of the Earth, turning with it, in km.
    place: [f64; 3],
    /// Away from the ellipsoid, of length 1.
    up: [f64; 3],
    /// The sine of the least elevation.
    mask: f64,
}

/// The equator's radius in km (WGS 84).
const EQUATOR: f64 = 6378.137;
/// The flattening of the Earth (WGS 84).
const FLATTENING: f64 = 1.0 / 298.257_223_563;

impl AntennaSite {
    /// A site at `latitude` and `longitude` (degrees of WGS 84, north and east positive),
    /// `altitude` metres above the ellipsoid, that receives from `elevation` degrees on.
    pub fn new(latitude: f64, longitude: f64, altitude: f64, elevation: f64) -> Self {
        let (latitude, longitude) = (latitude.to_radians(), longitude.to_radians());
        let up =
            [latitude.cos() * longitude.cos(), latitude.cos() * longitude.sin(), latitude.sin()];
        let squashed = FLATTENING * (2.0 - FLATTENING);
        let normal = EQUATOR / (1.0 - squashed * latitude.sin().powi(2)).sqrt();
        let height = altitude / 1000.0;
        let place = [
            (normal + height) * up[0],
            (normal + height) * up[1],
            (normal * (1.0 - squashed) + height) * up[2],
        ];
        Self { place, up, mask: elevation.to_radians().sin() }
    }

    /// The sine of the elevation of a satellite whose place is in km from the centre of the Earth,
    /// turning with it. Refraction is left out: it is 0.16° at 5°.
    pub(crate) fn sine_of_elevation(&self, satellite: [f64; 3]) -> f64 {
        let toward = [0, 1, 2].map(|axis| satellite[axis] - self.place[axis]);
        let dot = |a: [f64; 3], b: [f64; 3]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        dot(toward, self.up) / dot(toward, toward).sqrt()
    }

    /// The sine of the least elevation.
    pub(crate) const fn mask(&self) -> f64 {
        self.mask
    }
}
