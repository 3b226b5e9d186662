//! A bar chart, as SVG and as PNG: one list of shapes, drawn twice.
//!
//! The PNG's text is an 8x8 font compiled in, since a machine may have no fonts at all.

mod raster;
mod svg;

use std::fs;
use std::path::Path;

use crate::failure::{doing, Result};

pub(crate) const WIDTH: u32 = 800;
const BAR_HEIGHT: u32 = 36;
const TOP: u32 = 64;
/// Where bars begin, unless a label needs more.
const LEFT: u32 = 64;
/// The longest bar, unless labels and the text behind it need more; the rest of the width is for that.
const BAR_WIDTH: u32 = 580;
/// Wide enough for most letters of a sans-serif font, too; those of the PNG have 8.
const LETTER: u32 = 9;

const INK: [u8; 3] = [0x22, 0x22, 0x22];
const PAPER: [u8; 3] = [0xff, 0xff, 0xff];
const FILL: [u8; 3] = [0x2f, 0x6f, 0x9f];

/// One bar.
pub(crate) struct Bar {
    /// Left of it.
    pub(crate) label: String,
    /// Its length, not negative.
    pub(crate) value: f64,
    /// Right of it.
    pub(crate) text: String,
}

enum Shape {
    Rectangle {
        x: u32,
        y: u32,
        width: u32,
        height: u32,
        color: [u8; 3],
    },
    /// Of 16 pixels; `y` is its upper edge.
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

/// Horizontal bars under a title.
pub(crate) fn bars(title: &str, bars: &[Bar]) -> Drawing {
    let longest = bars.iter().map(|bar| bar.value).fold(f64::MIN_POSITIVE, f64::max);
    let widest = |text: fn(&Bar) -> &str| {
        bars.iter().map(|bar| LETTER * text(bar).chars().count() as u32).max().unwrap_or(0)
    };
    let left = LEFT.max(16 + widest(|bar| &bar.label) + 8);
    let bar_width = BAR_WIDTH.min(WIDTH.saturating_sub(left + 8 + widest(|bar| &bar.text) + 8));
    let height = TOP + BAR_HEIGHT * bars.len() as u32 + 16;
    let mut shapes = vec![
        Shape::Rectangle { x: 0, y: 0, width: WIDTH, height, color: PAPER },
        Shape::Text { x: 16, y: 20, text: title.to_owned() },
    ];
    for (index, bar) in bars.iter().enumerate() {
        let y = TOP + BAR_HEIGHT * index as u32;
        let width = ((bar.value / longest * f64::from(bar_width)) as u32).max(1);
        shapes.push(Shape::Text { x: 16, y: y + 6, text: bar.label.clone() });
        shapes.push(Shape::Rectangle { x: left, y, width, height: BAR_HEIGHT - 8, color: FILL });
        shapes.push(Shape::Text { x: left + width + 8, y: y + 6, text: bar.text.clone() });
    }
    Drawing { height, shapes }
}

/// Writes `drawing` to `file` and beside it as PNG, and says so.
pub(crate) fn write(file: &Path, drawing: &Drawing) -> Result<()> {
    let picture = file.with_extension("png");
    let named = |file: &Path| format!("write {}", file.display());
    fs::write(file, drawing.svg()).map_err(doing(named(file)))?;
    fs::write(&picture, drawing.png()?).map_err(doing(named(&picture)))?;
    println!("chart: {}, {}", file.display(), picture.display());
    Ok(())
}

impl Drawing {
    /// The text of an SVG file.
    pub(crate) fn svg(&self) -> String {
        svg::draw(self)
    }

    /// The bytes of a PNG file.
    pub(crate) fn png(&self) -> Result<Vec<u8>> {
        raster::draw(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawing() -> Drawing {
        let bar = |label: &str, value| Bar { label: label.into(), value, text: format!("{value} <s>") };
        bars("a & b", &[bar("1", 2.0), bar("32", 1.0)])
    }

    #[test]
    fn lengths_are_to_scale_and_text_is_escaped() {
        let svg = drawing().svg();
        assert!(svg.contains("width=\"580\"") && svg.contains("width=\"290\""), "{svg}");
        assert!(svg.contains("a &amp; b") && svg.contains("2 &lt;s&gt;"), "{svg}");
    }

    #[test]
    fn bars_leave_room_for_long_labels_and_texts() {
        let bar = |label: &str| Bar { label: label.into(), value: 1.0, text: "65.7 x, 0.026 us".into() };
        let drawing = bars("lua", &[bar("^BCAT-subscripts"), bar("get")]);
        let mut ends = Vec::new();
        for shape in &drawing.shapes[2..] {
            match shape {
                Shape::Text { x, text, .. } => ends.push((*x, x + LETTER * text.chars().count() as u32)),
                Shape::Rectangle { x, width, .. } => ends.push((*x, x + width)),
            }
        }
        for row in ends.chunks(3) {
            assert!(row[0].1 <= row[1].0 && row[1].1 <= row[2].0 && row[2].1 <= WIDTH, "{row:?}");
        }
    }

    #[test]
    fn the_picture_has_bars_and_ink() {
        let bytes = drawing().png().expect("it is drawn in memory");
        let mut reader = png::Decoder::new(std::io::Cursor::new(bytes)).read_info().expect("a PNG");
        let mut pixels = vec![0; reader.output_buffer_size().expect("it is small")];
        let info = reader.next_frame(&mut pixels).expect("a picture");
        assert_eq!((info.width, info.height), (WIDTH, TOP + 2 * BAR_HEIGHT + 16));
        let count = |color: [u8; 3]| pixels.chunks(3).filter(|pixel| *pixel == color).count() as u32;
        assert_eq!(count(FILL), (580 + 290) * (BAR_HEIGHT - 8));
        assert!(count(INK) > 100);
    }
}
