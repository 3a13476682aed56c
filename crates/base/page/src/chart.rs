//! The frame of a drawing: scales, ticks, grid and marks as SVG.
//!
//! Written by hand: the page follows the reader's light or dark scheme by style sheet variables,
//! and each mark says its value when pointed at; neither can be had of a plotting crate's SVG,
//! whose colours are fixed.

use core::fmt::Write;

/// A drawing's width unless it is given another; the page scales it.
pub const WIDTH: f64 = 640.0;
/// The height that goes with [`WIDTH`].
pub const HEIGHT: f64 = 320.0;
const LEFT: f64 = 76.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 28.0;
const BOTTOM: f64 = 50.0;

/// Degrees by which long words below the frame rise.
const SLANT: f64 = 32.0;
/// Words beside or below the frame take no more.
const LONGEST_WORDS: f64 = 150.0;

/// Ticks wanted on an axis of numbers; there are half to twice as many.
const TICKS: f64 = 6.0;

/// No figure that is drawn is larger.
const LARGEST: f64 = 1e18;

/// How numbers become places along an axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    low: f64,
    high: f64,
    is_log: bool,
}

impl Scale {
    /// From round number to round number around all values; logarithmic where they are positive and
    /// span more than a factor of fifty.
    pub fn around(values: impl Iterator<Item = f64> + Clone) -> Self {
        let low = values.clone().fold(f64::INFINITY, f64::min);
        let high = values.fold(f64::NEG_INFINITY, f64::max);
        if !(low.is_finite() && high.is_finite()) {
            return Self { low: 0.0, high: 1.0, is_log: false };
        }
        if low > 0.0 && high / low > 50.0 {
            let decade = |value: f64, round: fn(f64) -> f64| 10f64.powf(round(value.log10()));
            let (high, low) =
                (decade(high.min(LARGEST), f64::ceil), low.max(high.min(LARGEST) / 1e12));
            return Self { low: decade(low, f64::floor), high, is_log: true };
        }
        Self::between(low, high)
    }

    /// From power of ten to power of ten around all values that are positive, whatever they span;
    /// an even scale where none is.
    pub fn decades(values: impl Iterator<Item = f64> + Clone) -> Self {
        let positive = values.filter(|value| *value > 0.0 && value.is_finite());
        let low = positive.clone().fold(f64::INFINITY, f64::min);
        let high = positive.fold(0.0, f64::max).min(LARGEST);
        if !low.is_finite() || high <= 0.0 {
            return Self { low: 0.0, high: 1.0, is_log: false };
        }
        let low = low.clamp(high / 1e12, high);
        let (low, mut high) = (10f64.powf(low.log10().floor()), 10f64.powf(high.log10().ceil()));
        if high <= low {
            high = low * 10.0;
        }
        Self { low, high, is_log: true }
    }

    /// The same, never logarithmic: for time.
    pub fn even(values: impl Iterator<Item = f64> + Clone) -> Self {
        let low = values.clone().fold(f64::INFINITY, f64::min);
        let high = values.fold(f64::NEG_INFINITY, f64::max);
        if low.is_finite() && high.is_finite() {
            Self::between(low, high)
        } else {
            Self::around(core::iter::empty())
        }
    }

    /// From zero to `high` and no further, not to the next round number.
    pub fn up_to(high: f64) -> Self {
        let is_usable = high.is_finite() && high > 0.0;
        Self { low: 0.0, high: if is_usable { high.min(LARGEST) } else { 1.0 }, is_log: false }
    }

    fn between(low: f64, high: f64) -> Self {
        // A figure that hardly varies is shown close up, others from zero.
        let low = if low >= 0.0 && low < high * 0.6 { 0.0 } else { low };
        let spread = if high > low { high - low } else { high.abs().max(1e-9) };
        let step = round_step(spread);
        let floor = (low / step).floor() * step;
        let ceil = (high / step).ceil() * step;
        Self { low: floor, high: if ceil > floor { ceil } else { floor + step }, is_log: false }
    }

    /// From zero to one for the smallest and the largest.
    pub fn place(&self, value: f64) -> f64 {
        let place = match self.is_log {
            true => {
                (value.max(self.low).log10() - self.low.log10())
                    / (self.high.log10() - self.low.log10())
            }
            false => (value - self.low) / (self.high - self.low),
        };
        place.clamp(0.0, 1.0)
    }

    /// Where ticks are, and what stands at them.
    pub fn ticks(&self) -> Vec<(f64, String)> {
        if self.is_log {
            let decades = (self.high / self.low).log10().round() as i32;
            let powers = (0..=decades).map(|power| self.low * 10f64.powi(power));
            return powers.map(|value| (value, plain(value))).collect();
        }
        let step = round_step(self.high - self.low);
        // A scale that ends at no round number has its last tick before its end.
        let count = ((self.high - self.low) / step + 1e-6).floor() as u32;
        let decimals = (-step.log10().floor()).clamp(0.0, 9.0) as usize;
        let label = |value: f64| (value, format!("{value:.decimals$}"));
        (0..=count).map(|tick| label(f64::from(tick).mul_add(step, self.low))).collect()
    }
}

/// A power of ten, short.
fn plain(value: f64) -> String {
    let decimals = (-value.log10().round()).clamp(0.0, 4.0) as usize;
    if (0.9e-4..1.1e5).contains(&value) {
        format!("{value:.decimals$}")
    } else {
        format!("{value:.0e}")
    }
}

/// 1, 2 or 5 times a power of ten, so that about [`TICKS`] of them make `spread`.
fn round_step(spread: f64) -> f64 {
    let raw = spread / TICKS;
    let power = 10f64.powf(raw.log10().floor());
    let times = raw / power;
    let round = if times < 1.5 {
        1.0
    } else if times < 3.5 {
        2.0
    } else if times < 7.5 {
        5.0
    } else {
        10.0
    };
    round * power
}

/// A place of a drawing, from its upper left corner to the right and downwards.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// To the right.
    pub x: f64,
    /// Downwards.
    pub y: f64,
}

impl From<(f64, f64)> for Point {
    fn from((x, y): (f64, f64)) -> Self {
        Self { x, y }
    }
}

/// How a rectangle is filled.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RectangleStyle<'a> {
    /// A class of the style sheet.
    pub class: &'a str,
    /// From 0 to 1.
    pub opacity: f64,
}

impl<'a> From<(&'a str, f64)> for RectangleStyle<'a> {
    fn from((class, opacity): (&'a str, f64)) -> Self {
        Self { class, opacity }
    }
}

/// An SVG that is being drawn.
#[derive(Debug)]
pub struct Chart {
    title: String,
    svg: String,
    width: f64,
    height: f64,
    left: f64,
    bottom: f64,
    /// Height of the legend below it all.
    legend: f64,
    /// Labels of the level axis stand aslant.
    is_aslant: bool,
}

impl Chart {
    /// With an accessible name.
    pub fn new(title: &str, height: f64) -> Self {
        let (title, svg) = (title.to_owned(), String::new());
        Self {
            title,
            svg,
            width: WIDTH,
            height,
            left: LEFT,
            bottom: BOTTOM,
            legend: 0.0,
            is_aslant: false,
        }
    }

    /// As wide as this.
    #[must_use]
    pub fn with_width(mut self, width: f64) -> Self {
        self.width = width;
        self
    }

    /// With room for words along the level axis: where they are too long to stand beside each
    /// other, they stand aslant.
    #[must_use]
    pub fn with_words_below(mut self, labels: &[String]) -> Self {
        let longest = widest(labels);
        let slot = (self.width - self.left - RIGHT) / labels.len().max(1) as f64;
        if longest + 6.0 > slot {
            let more = (longest * SLANT.to_radians().sin()).min(LONGEST_WORDS);
            (self.is_aslant, self.bottom, self.height) =
                (true, self.bottom + more, self.height + more);
        }
        self
    }

    /// With room for words along the upright axis.
    #[must_use]
    pub fn with_words_left(mut self, labels: &[String]) -> Self {
        self.left = (widest(labels) + 20.0).clamp(LEFT, LEFT + LONGEST_WORDS);
        self
    }

    /// A place within the frame: from 0 to 1 to the right and upwards.
    pub fn at(&self, x: f64, y: f64) -> (f64, f64) {
        let right = self.left + x * (self.width - self.left - RIGHT);
        let down = TOP + (1.0 - y) * (self.height - TOP - self.bottom);
        (right, down)
    }

    /// Ticks and grid of the upright axis, with its name above.
    pub fn upright(&mut self, scale: &Scale, name: &str) {
        for (value, label) in scale.ticks() {
            let (left, y) = self.at(0.0, scale.place(value));
            let (right, _) = self.at(1.0, 0.0);
            self.line((left, y), (right, y), "grid");
            self.text((left - 8.0, y + 5.0), "end", &label);
        }
        self.text((8.0, 15.0), "start", name);
    }

    /// Ticks of a level axis of numbers, with its name below.
    pub fn level(&mut self, scale: &Scale, name: &str) {
        for (value, label) in scale.ticks() {
            let (x, bottom) = self.at(scale.place(value), 0.0);
            self.line((x, bottom), (x, bottom + 4.0), "frame");
            // The last one may be too long for the margin.
            let half = widest(std::slice::from_ref(&label)) / 2.0;
            let middle = x.min(self.width - half - 4.0);
            self.text((middle, bottom + 21.0), "middle", &label);
        }
        self.below(name);
    }

    /// Labels of a level axis of words, with its name below.
    pub fn words(&mut self, labels: &[String], name: &str) {
        for (index, label) in labels.iter().enumerate() {
            let (x, bottom) = self.at(middle(index, labels.len()), 0.0);
            if self.is_aslant {
                let (y, words) = (bottom + 16.0, escape(label));
                let _ = write!(
                    self.svg,
                    "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"end\" \
                    transform=\"rotate(-{SLANT} {x:.1} {y:.1})\">\
                     {words}</text>"
                );
            } else {
                self.text((x, bottom + 21.0), "middle", label);
            }
        }
        self.below(name);
    }

    fn below(&mut self, name: &str) {
        let ((x, _), height) = (self.at(0.5, 0.0), self.height);
        self.text((x, height - 6.0), "middle", name);
    }

    /// The frame around it all.
    pub fn frame(&mut self) {
        let ((left, top), (right, bottom)) = (self.at(0.0, 1.0), self.at(1.0, 0.0));
        let (width, height) = (right - left, bottom - top);
        let _ = write!(
            self.svg,
            "<rect class=\"frame\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" \
            height=\"{height:.1}\"/>"
        );
    }

    /// A straight line between two places of the drawing.
    pub fn line(&mut self, from: impl Into<Point>, to: impl Into<Point>, class: &str) {
        let (Point { x: x1, y: y1 }, Point { x: x2, y: y2 }) = (from.into(), to.into());
        let _ = write!(
            self.svg,
            "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"
        );
    }

    /// Words at a place of the drawing.
    pub fn text(&mut self, at: impl Into<Point>, anchor: &str, words: &str) {
        let Point { x, y } = at.into();
        let words = escape(words);
        let _ = write!(
            self.svg,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{words}</text>"
        );
    }

    /// A course through places of the drawing, in the style of a line's number.
    pub fn course(&mut self, points: &[(f64, f64)], number: usize) {
        if points.is_empty() {
            return;
        }
        let _ = write!(self.svg, "<polyline class=\"course\" {} points=\"", stroke(number));
        for (x, y) in points {
            let _ = write!(self.svg, "{x:.1},{y:.1} ");
        }
        self.svg.push_str("\"/>");
    }

    /// A dot that says `words` when pointed at.
    pub fn dot(&mut self, at: impl Into<Point>, number: usize, words: &str) {
        let Point { x, y } = at.into();
        let (colour, words) = (number % COLOURS, escape(words));
        let _ = write!(
            self.svg,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.4\" \
            fill=\"var(--s{colour})\"><title>{words}</title></circle>"
        );
    }

    /// A hollow diamond that says `words` when pointed at: what others say, beside what was
    /// measured.
    pub fn mark(&mut self, at: impl Into<Point>, number: usize, words: &str) {
        let Point { x, y } = at.into();
        let (style, words) = (stroke(number % COLOURS), escape(words));
        let _ = write!(
            self.svg,
            "<path class=\"mark\" {style} d=\"M{x:.1} {:.1} l{MARK} {MARK} l-{MARK} {MARK} \
            l-{MARK} -{MARK} z\">\
             <title>{words}</title></path>",
            y - MARK
        );
    }

    /// What lines and marks stand for, in rows below it all. Replaces none: it is given once.
    pub fn legend(&mut self, entries: &[(LegendKey, String)]) {
        let (mut x, mut row) = (self.left, 0.0);
        for (key, name) in entries {
            let width = 46.0 + widest(std::slice::from_ref(name));
            if x + width > self.width && x > self.left {
                (x, row) = (self.left, row + LEGEND_ROW);
            }
            let y = self.height + row + LEGEND_ROW / 2.0;
            match key {
                LegendKey::Course(number) => self.course(&[(x, y), (x + 24.0, y)], *number),
                LegendKey::Mark(number) => self.mark((x + 12.0, y), *number, name),
                LegendKey::Rule(class) => self.line((x, y), (x + 24.0, y), class),
            }
            self.text((x + 30.0, y + 5.0), "start", name);
            x += width;
        }
        self.legend = row + LEGEND_ROW + 8.0;
    }

    /// A shaded field of a heat map with a value in it, which says `words` when pointed at.
    pub fn field(&mut self, corners: [(f64, f64); 2], shade: f64, value: &str, words: &str) {
        let [(left, top), (right, bottom)] = corners;
        let (width, height) = (right - left, bottom - top);
        let opacity = shade.clamp(0.0, 1.0).mul_add(0.75, 0.08);
        let (value, words) = (escape(value), escape(words));
        let (x, y) = (f64::midpoint(left, right), f64::midpoint(top, bottom) + 4.0);
        let _ = write!(
            self.svg,
            "<g><title>{words}</title><rect class=\"shade\" x=\"{left:.1}\" y=\"{top:.1}\" \
            width=\"{width:.1}\" \
             height=\"{height:.1}\" fill-opacity=\"{opacity:.2}\"/><text class=\"value\" \
             x=\"{x:.1}\" y=\"{y:.1}\" \
             text-anchor=\"middle\">{value}</text></g>"
        );
    }

    /// A filled rectangle in the style of `class` that says `words` when pointed at.
    pub fn block<'a>(
        &mut self,
        corners: [(f64, f64); 2],
        style: impl Into<RectangleStyle<'a>>,
        words: &str,
    ) {
        let RectangleStyle { class, opacity } = style.into();
        let [(left, top), (right, bottom)] = corners;
        let (width, height) = ((right - left).max(0.0), (bottom - top).max(0.0));
        let (opacity, words) = (opacity.clamp(0.0, 1.0), escape(words));
        let _ = write!(
            self.svg,
            "<rect class=\"{class}\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" \
            height=\"{height:.1}\" \
             fill-opacity=\"{opacity:.2}\"><title>{words}</title></rect>"
        );
    }

    /// The finished SVG.
    pub fn finish(self) -> String {
        let (width, height, title) = (self.width, self.height + self.legend, escape(&self.title));
        let head = format!(
            "<svg viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" aria-label=\"{title}\">"
        );
        format!("{head}{}</svg>", self.svg)
    }
}

/// What an entry of a legend shows beside its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LegendKey {
    /// The course of this number.
    Course(usize),
    /// The mark of this number.
    Mark(usize),
    /// A straight line of this class.
    Rule(&'static str),
}

/// The middle of one of `count` equal parts of an axis.
pub fn middle(index: usize, count: usize) -> f64 {
    (index as f64 + 0.5) / count.max(1) as f64
}

/// Colour and dashes of a line's number: no two of 32 are alike.
pub fn stroke(number: usize) -> String {
    let dashes = ["", "7 4", "2 3", "9 3 2 3"][number / COLOURS % 4];
    format!("style=\"stroke:var(--s{})\" stroke-dasharray=\"{dashes}\"", number % COLOURS)
}

/// About how wide the widest of some words is in the drawing's type.
fn widest(labels: &[String]) -> f64 {
    labels.iter().map(|label| label.chars().count() as f64 * 7.6).fold(0.0, f64::max)
}

/// Text as HTML has it.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// From the middle of a mark to its corners.
const MARK: f64 = 5.0;

/// Of a row of a legend.
const LEGEND_ROW: f64 = 22.0;

/// Colours in the style sheet.
const COLOURS: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    fn scale(values: &[f64]) -> Scale {
        Scale::around(values.iter().copied())
    }

    #[test]
    fn ticks_are_round_and_hold_all_values() {
        let labels = |values: &[f64]| {
            scale(values).ticks().into_iter().map(|(_, label)| label).collect::<Vec<_>>()
        };
        assert_eq!(labels(&[0.0, 60.0]), ["0", "10", "20", "30", "40", "50", "60"]);
        assert_eq!(
            labels(&[0.93, 1.0]),
            ["0.93", "0.94", "0.95", "0.96", "0.97", "0.98", "0.99", "1.00"]
        );
        assert_eq!(labels(&[0.02, 90.0]), ["0.01", "0.1", "1", "10", "100"]);
    }

    #[test]
    fn a_scale_with_an_end_of_its_own_has_its_ticks_before_it() {
        let labels: Vec<_> =
            Scale::up_to(1.047).ticks().into_iter().map(|(_, label)| label).collect();
        assert_eq!(labels, ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!((Scale::up_to(4.0).place(4.0), Scale::up_to(0.0).place(1.0)), (1.0, 1.0));
    }

    #[test]
    fn decades_hold_all_that_is_positive() {
        let labels = |values: &[f64]| {
            let ticks = Scale::decades(values.iter().copied()).ticks();
            ticks.into_iter().map(|(_, label)| label).collect::<Vec<_>>()
        };
        assert_eq!(labels(&[20.0, 50.0]), ["10", "100"]);
        assert_eq!(labels(&[1.0, 0.0, -4.0]), ["1", "10"]);
        assert_eq!(labels(&[0.004, 3.0]), ["0.001", "0.01", "0.1", "1", "10"].map(str::to_owned));
        assert_eq!(labels(&[]).len(), 6);
        for values in [&[1e-300, 1e300][..], &[f64::INFINITY], &[f64::NAN, 2.0]] {
            let scale = Scale::decades(values.iter().copied());
            assert!((1..20).contains(&scale.ticks().len()), "{values:?}");
            assert!((0.0..=1.0).contains(&scale.place(2.0)));
        }
    }

    #[test]
    fn any_values_have_a_place() {
        for values in
            [&[][..], &[0.0], &[5.0, 5.0], &[-3.0, 2.0], &[1e-300, 1e300], &[f64::NAN, 1.0]]
        {
            let scale = scale(values);
            assert!((1..20).contains(&scale.ticks().len()), "{values:?}");
            assert!(
                values
                    .iter()
                    .all(|value| value.is_nan() || (0.0..=1.0).contains(&scale.place(*value)))
            );
        }
    }
}
