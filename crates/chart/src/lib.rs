//! Charts of measurements, as SVG and as PNG: bars, lines, surfaces; and pictures of networks.
//!
//! plotters draws the SVG; resvg makes the PNG of it, so that both show the same.
//!
//! ```
//! use perilune_chart::{bars, Axis, Bar, Scale, Whose};
//!
//! let bar = |label: &str, value| Bar { label: label.into(), value, text: format!("{value} s"), whose: Whose::Ours };
//! let axis = Axis { name: "seconds", scale: Scale::Linear };
//! let drawing = bars("3n+1", "shorter is better", axis, &[bar("1 process", 0.19), bar("32 processes", 0.13)]);
//! assert!(drawing.svg()?.starts_with("<svg"));
//! # Ok::<(), perilune_chart::Error>(())
//! ```
//!
//! Invariants
//! - What is drawn depends on the arguments alone: the letters of the PNG are compiled in.
//! - Every axis has words, and what is coloured a legend. No input panics.
//! - The SVG follows the dark mode of whoever looks at it.
//!
//! Deliberately absent: files, colours to choose, anything that moves.

#![forbid(unsafe_code)]

mod axis;
mod bars;
mod head;
mod layout;
mod lines;
mod names;
mod network;
mod picture;
mod style;
mod surface;

use std::fmt::{self, Display};

use plotters::prelude::*;

pub use axis::{Axis, Scale};
pub use bars::{bars, Bar, Whose};
pub use lines::{lines, Series};
pub use network::{Link, Network, Spot};
pub use style::WIDTH;
pub use surface::{surfaces, Grid, Sheet};

use head::{Head, Key};

/// Why a drawing could not be made, in words.
#[derive(Debug)]
pub struct Error(String);

impl Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

impl Error {
    fn new(what: impl Display) -> Error {
        Error(what.to_string())
    }
}

impl From<DrawingAreaErrorKind<std::io::Error>> for Error {
    fn from(error: DrawingAreaErrorKind<std::io::Error>) -> Error {
        Error::new(error)
    }
}

#[derive(Clone, Debug)]
enum Content {
    Bars(bars::Bars),
    Lines(lines::Lines),
    Surfaces(surface::Surfaces),
}

/// What is to be drawn.
#[derive(Clone, Debug)]
pub struct Drawing {
    title: String,
    note: String,
    keys: Vec<Key>,
    content: Content,
}

impl Drawing {
    /// The text of an SVG file.
    ///
    /// # Errors
    /// The drawing library's: none is known.
    pub fn svg(&self) -> Result<String, Error> {
        Ok(self.described(&self.drawn(&self.title)?, style::DARK))
    }

    /// The text of an SVG file without the title: for a page on which a heading has it.
    ///
    /// # Errors
    /// The drawing library's: none is known.
    pub fn svg_below_heading(&self) -> Result<String, Error> {
        Ok(self.described(&self.drawn("")?, style::DARK))
    }

    /// The bytes of a PNG file, twice as wide.
    ///
    /// # Errors
    /// The drawing library's: none is known.
    pub fn png(&self) -> Result<Vec<u8>, Error> {
        picture::draw(&self.drawn(&self.title)?)
    }

    fn drawn(&self, title: &str) -> Result<String, Error> {
        let head = Head::new(title, &self.note, &self.keys);
        let below = match &self.content {
            Content::Bars(bars) => bars.height(),
            Content::Lines(lines) => lines.height(),
            Content::Surfaces(surfaces) => surfaces.height(),
        };
        let mut text = String::new();
        {
            let area = SVGBackend::with_string(&mut text, (WIDTH, head.height() + below)).into_drawing_area();
            area.fill(&style::PAPER)?;
            let (above, body) = area.split_vertically(head.height());
            head.draw(&above)?;
            match &self.content {
                Content::Bars(bars) => bars.draw(&body)?,
                Content::Lines(lines) => lines.draw(&body, &self.keys)?,
                Content::Surfaces(surfaces) => surfaces.draw(&body)?,
            }
            area.present()?;
        }
        Ok(text)
    }

    /// With words for those who cannot see it, and what the dark changes.
    fn described(&self, svg: &str, dark: &str) -> String {
        let (tag, rest) = svg.split_once('>').unwrap_or((svg, ""));
        format!("{tag} role=\"img\">\n<title>{}</title>\n{dark}{}", escaped(&self.title), rest.trim_start())
    }
}

/// Text as HTML and SVG take it.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_shown_once() {
        let drawing = bars("3n+1 & more", "", Axis { name: "s", scale: Scale::Linear }, &[]);
        let count = |svg: String| svg.matches("3n+1 &amp; more").count();
        // Shown, and told to who cannot see it.
        assert_eq!(count(drawing.svg().unwrap()), 2);
        assert_eq!(count(drawing.svg_below_heading().unwrap()), 1);
        assert!(drawing.svg().unwrap().contains("prefers-color-scheme: dark"));
    }
}
