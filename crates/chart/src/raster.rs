//! Shapes as the pixels of a PNG, three bytes each.

use font8x8::{UnicodeFonts, BASIC_FONTS};

use crate::{Color, Drawing, Error, Point, Shape, INK, WIDTH};

struct Pixels {
    height: u32,
    bytes: Vec<u8>,
}

impl Pixels {
    /// What lies outside is left out.
    fn fill(&mut self, x: u32, y: u32, width: u32, height: u32, color: Color) {
        for row in y..y.saturating_add(height).min(self.height) {
            for column in x..x.saturating_add(width).min(WIDTH) {
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

    /// A point for each step of the longer way.
    fn line(&mut self, from: Point, to: Point, thick: u32, color: Color) {
        let (x, y) = (to.0 - from.0, to.1 - from.1);
        let steps = x.abs().max(y.abs()).min(10_000.0) as u32 + 1;
        for step in 0..=steps {
            let part = f64::from(step) / f64::from(steps);
            self.fill((from.0 + x * part) as u32, (from.1 + y * part) as u32, thick, thick, color);
        }
    }

    /// Row by row: between the edges that a row crosses.
    fn face(&mut self, corners: &[Point; 4], color: Color, edge: Color) {
        let low = corners.iter().map(|corner| corner.1).fold(f64::INFINITY, f64::min).max(0.0) as u32;
        let high = corners.iter().map(|corner| corner.1).fold(0.0, f64::max) as u32;
        let sides = || (0..4).map(|index| (corners[index], corners[(index + 1) % 4]));
        for row in low..=high.min(self.height) {
            let middle = f64::from(row) + 0.5;
            let crossing = |(from, to): (Point, Point)| {
                let part = (middle - from.1) / (to.1 - from.1);
                (0.0..=1.0).contains(&part).then_some(from.0 + part * (to.0 - from.0))
            };
            let crossings = || sides().filter_map(crossing);
            let (left, right) = (crossings().fold(f64::INFINITY, f64::min), crossings().fold(0.0, f64::max));
            if right > left {
                self.fill(left as u32, row, (right - left) as u32 + 1, 1, color);
            }
        }
        for (from, to) in sides() {
            self.line(from, to, 1, edge);
        }
    }
}

/// The bytes of the file.
pub(crate) fn draw(drawing: &Drawing) -> Result<Vec<u8>, Error> {
    let mut pixels =
        Pixels { height: drawing.height, bytes: vec![0xff; (3 * WIDTH * drawing.height) as usize] };
    for shape in &drawing.shapes {
        match shape {
            Shape::Rectangle { x, y, width, height, color } => pixels.fill(*x, *y, *width, *height, *color),
            Shape::Text { x, y, text } => pixels.text(*x, *y, text),
            Shape::Line { from, to, thick, color } => pixels.line(*from, *to, *thick, *color),
            Shape::Face { corners, color, edge } => pixels.face(corners, *color, *edge),
        }
    }
    let mut out = Vec::new();
    let mut encoder = png::Encoder::new(&mut out, WIDTH, drawing.height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&pixels.bytes)?;
    writer.finish()?;
    Ok(out)
}
