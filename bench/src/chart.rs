//! A bar chart, as SVG and as PNG: one list of shapes, drawn twice.
//!
//! The PNG's letters are an 8 by 8 font compiled in, since a machine may have no fonts at all. The chart
//! of `perilune bench collatz` is like it, but in a program that shares nothing with this one.

use std::fmt::Write;

use font8x8::{UnicodeFonts, BASIC_FONTS};

use crate::subject::Result;

const WIDTH: u32 = 760;
const BAR: u32 = 30;
const TOP: u32 = 52;
/// Wide enough for most letters of a sans-serif font of 14 pixels; those of the PNG have 8.
const LETTER: u32 = 8;

const INK: [u8; 3] = [0x22, 0x22, 0x22];
const PAPER: [u8; 3] = [0xff, 0xff, 0xff];
const OURS: [u8; 3] = [0x2f, 0x6f, 0x9f];
const THEIRS: [u8; 3] = [0xb8, 0xb8, 0xb8];

/// One bar.
#[derive(Clone, Debug)]
pub(crate) struct Bar {
    pub(crate) label: String,
    /// Its length, not negative.
    pub(crate) value: f64,
    /// Behind it.
    pub(crate) text: String,
    pub(crate) ours: bool,
}

enum Shape {
    Rectangle {
        x: u32,
        y: u32,
        width: u32,
        height: u32,
        color: [u8; 3],
    },
    /// `y` is its upper edge.
    Text {
        x: u32,
        y: u32,
        text: String,
    },
}

/// What is to be drawn.
pub(crate) struct Drawing {
    height: u32,
    shapes: Vec<Shape>,
}

/// Horizontal bars under a title and a line that says what is good.
pub(crate) fn bars(title: &str, note: &str, bars: &[Bar]) -> Drawing {
    let widest = |text: fn(&Bar) -> &str| {
        bars.iter().map(|bar| LETTER * text(bar).chars().count() as u32).max().unwrap_or(0)
    };
    let left = 16 + widest(|bar| &bar.label) + 8;
    let room = WIDTH.saturating_sub(left + 16 + widest(|bar| &bar.text)).max(40);
    let longest = bars.iter().map(|bar| bar.value).fold(f64::MIN_POSITIVE, f64::max);
    let height = TOP + BAR * bars.len() as u32 + 12;
    let mut shapes = vec![
        Shape::Rectangle { x: 0, y: 0, width: WIDTH, height, color: PAPER },
        Shape::Text { x: 16, y: 8, text: title.to_owned() },
        Shape::Text { x: 16, y: 28, text: note.to_owned() },
    ];
    for (index, bar) in bars.iter().enumerate() {
        let y = TOP + BAR * index as u32;
        let width = ((bar.value / longest * f64::from(room)) as u32).max(1);
        let color = if bar.ours { OURS } else { THEIRS };
        shapes.push(Shape::Text { x: 16, y: y + 4, text: bar.label.clone() });
        shapes.push(Shape::Rectangle { x: left, y, width, height: BAR - 6, color });
        shapes.push(Shape::Text { x: left + width + 6, y: y + 4, text: bar.text.clone() });
    }
    Drawing { height, shapes }
}

/// Text as HTML and SVG take it.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

impl Drawing {
    /// The text of an SVG file.
    pub(crate) fn svg(&self) -> String {
        let height = self.height;
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
             viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" font-size=\"14\">\n"
        );
        for shape in &self.shapes {
            // Writing to a string does not fail.
            let _ = match shape {
                Shape::Rectangle { x, y, width, height, color: [red, green, blue] } => writeln!(
                    out,
                    "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" \
                     fill=\"#{red:02x}{green:02x}{blue:02x}\"/>"
                ),
                Shape::Text { x, y, text } => {
                    writeln!(
                        out,
                        "<text x=\"{x}\" y=\"{}\" fill=\"#222222\">{}</text>",
                        y + 13,
                        escaped(text)
                    )
                }
            };
        }
        out.push_str("</svg>\n");
        out
    }

    /// The bytes of a PNG file.
    ///
    /// # Errors
    /// The encoder's.
    pub(crate) fn png(&self) -> Result<Vec<u8>> {
        let mut pixels =
            Pixels { height: self.height, bytes: vec![0xff; (3 * WIDTH * self.height) as usize] };
        for shape in &self.shapes {
            match shape {
                Shape::Rectangle { x, y, width, height, color } => {
                    pixels.fill(*x, *y, *width, *height, *color)
                }
                Shape::Text { x, y, text } => pixels.text(*x, *y, text),
            }
        }
        let mut out = Vec::new();
        let mut encoder = png::Encoder::new(&mut out, WIDTH, self.height);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(&pixels.bytes)?;
        writer.finish()?;
        Ok(out)
    }
}

struct Pixels {
    height: u32,
    bytes: Vec<u8>,
}

impl Pixels {
    /// What lies outside is left out.
    fn fill(&mut self, x: u32, y: u32, width: u32, height: u32, color: [u8; 3]) {
        for row in y..(y + height).min(self.height) {
            for column in x..(x + width).min(WIDTH) {
                let at = 3 * (row * WIDTH + column) as usize;
                self.bytes[at..at + 3].copy_from_slice(&color);
            }
        }
    }

    /// Letters of 8 by 16: each point of the font is one pixel wide and two high.
    fn text(&mut self, x: u32, y: u32, text: &str) {
        for (index, letter) in text.chars().enumerate() {
            let rows = BASIC_FONTS.get(letter).or_else(|| BASIC_FONTS.get('?')).unwrap_or([0; 8]);
            for (row, bits) in rows.iter().enumerate() {
                for column in (0..8).filter(|column| bits >> column & 1 == 1) {
                    self.fill(x + 8 * index as u32 + column, y + 2 * row as u32, 1, 2, INK);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_to_scale_and_both_forms_are_there() {
        let bar =
            |label: &str, value| Bar { label: label.into(), value, text: "<s>".into(), ours: value > 1.0 };
        let drawing = bars("a & b", "longer is better", &[bar("us", 2.0), bar("them", 1.0)]);
        let svg = drawing.svg();
        assert!(svg.contains("a &amp; b") && svg.contains("&lt;s&gt;"), "{svg}");
        let widths: Vec<u32> = svg
            .lines()
            .filter(|line| line.contains("#2f6f9f") || line.contains("#b8b8b8"))
            .filter_map(|line| line.split("width=\"").nth(1)?.split('"').next()?.parse().ok())
            .collect();
        assert_eq!((widths.len(), widths[0] / 2), (2, widths[1]), "{svg}");
        assert_eq!(&drawing.png().unwrap()[1..4], b"PNG");
    }
}
