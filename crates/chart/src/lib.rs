//! Charts of measurements, as SVG and as PNG: one list of shapes, drawn twice.
//!
//! Invariants
//! - What is drawn depends on the arguments alone: the PNG's letters are an 8 by 8 font compiled in, since a
//!   machine may have no fonts at all.
//! - What would lie outside of the drawing is left out; no input panics.
//!
//! Deliberately absent: files, colours to choose, anything that moves.

#![forbid(unsafe_code)]

mod axis;
mod bars;
mod lines;
mod raster;
mod surface;
mod svg;

pub use axis::{Axis, Scale};
pub use bars::{bars, Bar};
pub use lines::{lines, Series};
pub use surface::{surfaces, Sheet};
pub use svg::escaped;

/// Why a PNG could not be made: the encoder's words.
pub type Error = png::EncodingError;

/// Pixels from left to right of every drawing.
pub const WIDTH: u32 = 800;
/// Wide enough for most letters of a sans-serif font of 16 pixels; those of the PNG have 8.
const LETTER: u32 = 9;

type Color = [u8; 3];

const INK: Color = [0x22, 0x22, 0x22];
const PALE: Color = [0xdd, 0xdd, 0xdd];
const PAPER: Color = [0xff, 0xff, 0xff];
const OURS: Color = [0x2f, 0x6f, 0x9f];
const THEIRS: Color = [0xb8, 0xb8, 0xb8];

type Point = (f64, f64);

#[derive(Clone, Debug)]
enum Shape {
    Rectangle {
        x: u32,
        y: u32,
        width: u32,
        height: u32,
        color: Color,
    },
    /// Of 16 pixels; `y` is its upper edge.
    Text {
        x: u32,
        y: u32,
        text: String,
    },
    /// So many pixels thick.
    Line {
        from: Point,
        to: Point,
        thick: u32,
        color: Color,
    },
    /// Four corners, filled, with an edge.
    Face {
        corners: [Point; 4],
        color: Color,
        edge: Color,
    },
}

/// What is to be drawn.
#[derive(Clone, Debug)]
pub struct Drawing {
    height: u32,
    shapes: Vec<Shape>,
}

impl Drawing {
    /// An empty drawing with a title and a line below it.
    fn new(height: u32, title: &str, note: &str) -> Drawing {
        let mut drawing = Drawing { height, shapes: Vec::new() };
        drawing.shapes.push(Shape::Rectangle { x: 0, y: 0, width: WIDTH, height, color: PAPER });
        drawing.text(16, 8, title);
        drawing.text(16, 28, note);
        drawing
    }

    fn text(&mut self, x: u32, y: u32, text: &str) {
        if !text.is_empty() {
            self.shapes.push(Shape::Text { x, y, text: text.to_owned() });
        }
    }

    /// Text that ends at `x`.
    fn text_before(&mut self, x: u32, y: u32, text: &str) {
        self.text(x.saturating_sub(letters(text)), y, text);
    }

    fn line(&mut self, from: Point, to: Point, thick: u32, color: Color) {
        self.shapes.push(Shape::Line { from, to, thick, color });
    }

    /// The text of an SVG file.
    pub fn svg(&self) -> String {
        svg::draw(self)
    }

    /// The bytes of a PNG file.
    ///
    /// # Errors
    /// The encoder's.
    pub fn png(&self) -> Result<Vec<u8>, Error> {
        raster::draw(self)
    }
}

/// Pixels that a text is wide.
fn letters(text: &str) -> u32 {
    LETTER * text.chars().count() as u32
}
