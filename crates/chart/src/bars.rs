//! Horizontal bars.

use crate::{letters, Drawing, Shape, OURS, THEIRS, WIDTH};

const BAR: u32 = 32;
const TOP: u32 = 56;
/// Left of labels, and between them and what is beside them.
const MARGIN: u32 = 16;
const GAP: u32 = 8;

/// One bar.
#[derive(Clone, Debug)]
pub struct Bar {
    /// Left of it.
    pub label: String,
    /// Its length, not negative.
    pub value: f64,
    /// Right of it.
    pub text: String,
    /// Whether it is ours: the others are grey.
    pub ours: bool,
}

/// Horizontal bars under a title and a line that says what is good.
pub fn bars(title: &str, note: &str, bars: &[Bar]) -> Drawing {
    let widest = |text: fn(&Bar) -> &str| bars.iter().map(|bar| letters(text(bar))).max().unwrap_or(0);
    let left = MARGIN + widest(|bar| &bar.label) + GAP;
    let room = WIDTH.saturating_sub(left + 2 * GAP + widest(|bar| &bar.text)).max(40);
    let longest = bars.iter().map(|bar| bar.value).fold(f64::MIN_POSITIVE, f64::max);
    let mut drawing = Drawing::new(TOP + BAR * bars.len() as u32 + MARGIN, title, note);
    for (index, bar) in bars.iter().enumerate() {
        let y = TOP + BAR * index as u32;
        let width = ((bar.value / longest * f64::from(room)) as u32).max(1);
        let color = if bar.ours { OURS } else { THEIRS };
        drawing.text(MARGIN, y + 5, &bar.label);
        drawing.shapes.push(Shape::Rectangle { x: left, y, width, height: BAR - 6, color });
        drawing.text(left + width + GAP, y + 5, &bar.text);
    }
    drawing
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::INK;

    fn drawing() -> Drawing {
        let bar = |label: &str, value| Bar {
            label: label.into(),
            value,
            text: format!("{value} <s>"),
            ours: value > 1.0,
        };
        bars("a & b", "longer is better", &[bar("1", 2.0), bar("32", 1.0)])
    }

    fn widths(drawing: &Drawing) -> Vec<u32> {
        let width = |shape: &Shape| match shape {
            Shape::Rectangle { width, .. } => Some(*width),
            _ => None,
        };
        drawing.shapes.iter().skip(1).filter_map(width).collect()
    }

    #[test]
    fn lengths_are_to_scale_and_text_is_escaped() {
        let widths = widths(&drawing());
        assert_eq!((widths.len(), widths[0] / 2), (2, widths[1]));
        let svg = drawing().svg();
        assert!(svg.contains("a &amp; b") && svg.contains("2 &lt;s&gt;"), "{svg}");
    }

    #[test]
    fn bars_leave_room_for_long_labels_and_texts() {
        let bar = |label: &str| Bar {
            label: label.into(),
            value: 1.0,
            text: "65.7 x, 0.026 us".into(),
            ours: true,
        };
        let drawing = bars("lua", "", &[bar("^BCAT-subscripts"), bar("get")]);
        let end = |shape: &Shape| match shape {
            Shape::Text { x, text, .. } => (*x, x + letters(text)),
            Shape::Rectangle { x, width, .. } => (*x, x + width),
            other => panic!("{other:?}"),
        };
        let ends: Vec<_> = drawing.shapes[2..].iter().map(end).collect();
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
        assert_eq!((info.width, info.height), (WIDTH, TOP + 2 * BAR + MARGIN));
        let count = |color: [u8; 3]| pixels.chunks(3).filter(|pixel| *pixel == color).count() as u32;
        let widths = widths(&drawing());
        assert_eq!((count(OURS), count(THEIRS)), (widths[0] * (BAR - 6), widths[1] * (BAR - 6)));
        assert!(count(INK) > 100);
    }
}
