//! Shapes as the pixels of a PNG, three bytes each.

use font8x8::{UnicodeFonts, BASIC_FONTS};

use super::{Drawing, Shape, INK, WIDTH};
use crate::failure::{environment, Failure, Result};

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

/// The bytes of the file.
pub(super) fn draw(drawing: &Drawing) -> Result<Vec<u8>> {
    let mut pixels =
        Pixels { height: drawing.height, bytes: vec![0xff; (3 * WIDTH * drawing.height) as usize] };
    for shape in &drawing.shapes {
        match shape {
            Shape::Rectangle { x, y, width, height, color } => pixels.fill(*x, *y, *width, *height, *color),
            Shape::Text { x, y, text } => pixels.text(*x, *y, text),
        }
    }
    let failed =
        |error: png::EncodingError| -> Failure { environment(format!("cannot write a PNG: {error}")) };
    let mut out = Vec::new();
    let mut encoder = png::Encoder::new(&mut out, WIDTH, drawing.height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header().map_err(failed)?;
    writer.write_image_data(&pixels.bytes).map_err(failed)?;
    writer.finish().map_err(failed)?;
    Ok(out)
}
