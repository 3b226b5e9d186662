//! Lines through points, several in one chart.

use crate::axis::{short, Range};
use crate::{letters, Axis, Color, Drawing, Shape, INK, OURS, PALE, WIDTH};

const HEIGHT: u32 = 440;
/// Edges of the field that lines lie in.
const LEFT: f64 = 84.0;
const RIGHT: f64 = (WIDTH - 24) as f64;
const TOP: f64 = 84.0;
const BOTTOM: f64 = (HEIGHT - 56) as f64;

/// Those of others, one after the other.
const OTHERS: [Color; 4] = [[0xc0, 0x4a, 0x2f], [0x7a, 0x7a, 0x7a], [0x9a, 0x7d, 0x1f], [0x5a, 0x3f, 0x8f]];
/// Ours, one after the other.
const OWN: [Color; 3] = [OURS, [0x1f, 0x9f, 0x8f], [0x4f, 0xb8, 0xf0]];

/// A line.
#[derive(Clone, Debug)]
pub struct Series {
    /// What it shows.
    pub name: String,
    /// Whether it is ours: blue and green.
    pub ours: bool,
    /// From left to right.
    pub points: Vec<(f64, f64)>,
}

/// Lines over a common axis, under a title and a line that says what is good.
pub fn lines(title: &str, note: &str, x: Axis<'_>, y: Axis<'_>, series: &[Series]) -> Drawing {
    let mut drawing = Drawing::new(HEIGHT, title, note);
    let points = || series.iter().flat_map(|one| &one.points);
    let across = Range::of(points().map(|point| point.0), x.scale);
    let up = Range::of(points().map(|point| point.1), y.scale).widened();
    let place = |(one, other): (f64, f64)| {
        (LEFT + across.part(one) * (RIGHT - LEFT), BOTTOM - up.part(other) * (BOTTOM - TOP))
    };
    for tick in up.ticks() {
        let (_, y) = place((f64::NAN, tick));
        drawing.line((LEFT, y), (RIGHT, y), 1, PALE);
        drawing.text_before(LEFT as u32 - 6, (y as u32).saturating_sub(8), &short(tick));
    }
    for tick in across.ticks() {
        let (x, _) = place((tick, f64::NAN));
        drawing.line((x, BOTTOM), (x, BOTTOM + 5.0), 1, INK);
        let text = short(tick);
        drawing.text((x as u32).saturating_sub(letters(&text) / 2), BOTTOM as u32 + 8, &text);
    }
    drawing.line((LEFT, BOTTOM), (RIGHT, BOTTOM), 1, INK);
    drawing.line((LEFT, TOP), (LEFT, BOTTOM), 1, INK);
    drawing.text_before(RIGHT as u32, BOTTOM as u32 + 28, x.name);
    drawing.text(16, 60, y.name);
    let (mut own, mut others) = (OWN.iter().cycle(), OTHERS.iter().cycle());
    let mut key = RIGHT as u32;
    for one in series.iter().rev() {
        key = key.saturating_sub(letters(&one.name) + 36);
    }
    for one in series {
        let color = *if one.ours { own.next() } else { others.next() }.unwrap_or(&INK);
        drawing.shapes.push(Shape::Rectangle { x: key, y: 66, width: 16, height: 6, color });
        drawing.text(key + 20, 60, &one.name);
        key += letters(&one.name) + 36;
        let drawn: Vec<_> =
            one.points.iter().filter(|(x, y)| x.is_finite() && y.is_finite()).map(|at| place(*at)).collect();
        for pair in drawn.windows(2) {
            drawing.line(pair[0], pair[1], 2, color);
        }
        for (x, y) in drawn {
            let (x, y) = (x as u32 - 3, y as u32 - 3);
            drawing.shapes.push(Shape::Rectangle { x, y, width: 6, height: 6, color });
        }
    }
    drawing
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scale;

    #[test]
    fn higher_values_are_higher_and_nothing_lies_outside() {
        let axis = |name| Axis { name, scale: Scale::Logarithmic };
        let one = |ours, top| Series {
            name: "one".into(),
            ours,
            points: vec![(1.0, 10.0), (100.0, top), (64_000.0, f64::NAN)],
        };
        let drawing = lines("t", "n", axis("x"), axis("y"), &[one(true, 1_000.0), one(false, 100.0)]);
        let tops: Vec<f64> = drawing
            .shapes
            .iter()
            .filter_map(|shape| match shape {
                Shape::Line { to, thick: 2, .. } => Some(to.1),
                _ => None,
            })
            .collect();
        assert_eq!(tops.len(), 2);
        assert!(tops[0] < tops[1] && tops[0] >= TOP && tops[1] <= BOTTOM, "{tops:?}");
        assert!(drawing.svg().contains("<line") && drawing.png().is_ok());
        assert!(lines("", "", axis("x"), axis("y"), &[]).png().is_ok());
    }
}
