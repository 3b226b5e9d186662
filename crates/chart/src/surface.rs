//! Surfaces: heights over a grid, looked at from above and the side; several beside each other on one scale.

use crate::axis::{short, Range};
use crate::{letters, Axis, Color, Drawing, Point, Scale, Shape, INK, PALE, WIDTH};

const TOP: f64 = 64.0;
const PANEL: f64 = 380.0;
/// The ways from one corner of the floor to its neighbours, and up.
const ACROSS: Point = (0.52, 0.16);
const AWAY: Point = (0.28, -0.17);
const UP: f64 = 170.0;

/// One surface.
#[derive(Clone, Debug)]
pub struct Sheet {
    /// What it shows.
    pub name: String,
    /// Heights: a row for each value of the first axis, in it one for each of the second.
    pub heights: Vec<Vec<f64>>,
}

/// Surfaces over the same grid: `x` runs to the right and to the viewer, `y` away from him, `z` up.
///
/// Values of `xs` and `ys` ascend; the grid's steps are equally wide whatever they are.
pub fn surfaces(
    title: &str,
    note: &str,
    (x, xs): (Axis<'_>, &[f64]),
    (y, ys): (Axis<'_>, &[f64]),
    z: Axis<'_>,
    sheets: &[Sheet],
) -> Drawing {
    let count = sheets.len().max(1) as u32;
    let panel = (f64::from(WIDTH) / f64::from(count)).min(2.0 * PANEL);
    // Left of it are heights, right of it values of `y`.
    let size = panel - 100.0;
    let height = TOP + 20.0 + UP + (ACROSS.1 - AWAY.1) * size + 46.0;
    let mut drawing = Drawing::new(height as u32, title, note);
    let all = || sheets.iter().flat_map(|sheet| sheet.heights.iter().flatten().copied());
    let range = Range::of(all(), z.scale).widened();
    for (number, sheet) in sheets.iter().enumerate() {
        let left = panel * number as f64 + 56.0;
        let base = TOP + 20.0 + UP + -AWAY.1 * size;
        let place = |u: f64, v: f64, w: f64| {
            (
                left + (u * ACROSS.0 + v * AWAY.0) * size / (ACROSS.0 + AWAY.0),
                base + (u * ACROSS.1 + v * AWAY.1) * size - w * UP,
            )
        };
        drawing.text((panel * number as f64) as u32 + 16, TOP as u32 - 12, &sheet.name);
        // The floor and the wall behind it.
        for tick in range.ticks() {
            let w = range.part(tick);
            drawing.line(place(0.0, 1.0, w), place(1.0, 1.0, w), 1, PALE);
            drawing.line(place(0.0, 0.0, w), place(0.0, 1.0, w), 1, PALE);
            let (x, y) = place(0.0, 0.0, w);
            drawing.text_before(x as u32 - 4, y as u32 - 8, &short(tick));
        }
        drawing.line(place(0.0, 0.0, 0.0), place(0.0, 0.0, 1.0), 1, INK);
        drawing.line(place(0.0, 0.0, 0.0), place(1.0, 0.0, 0.0), 1, INK);
        drawing.line(place(1.0, 0.0, 0.0), place(1.0, 1.0, 0.0), 1, INK);
        let at = |index: usize, count: usize| index as f64 / count.saturating_sub(1).max(1) as f64;
        for index in marked(xs.len()) {
            let (x, y) = place(at(index, xs.len()), 0.0, 0.0);
            let text = short(xs[index]);
            drawing.text((x as u32).saturating_sub(letters(&text)), y as u32 + 6, &text);
        }
        for index in marked(ys.len()) {
            let (x, y) = place(1.0, at(index, ys.len()), 0.0);
            drawing.text(x as u32 + 5, y as u32, &short(ys[index]));
        }
        let (_, low) = place(1.0, 0.0, 0.0);
        drawing.text(left as u32, low as u32 + 26, x.name);
        drawing.text_before((panel * (number + 1) as f64) as u32 - 4, low as u32 + 8, y.name);
        let value = |i: usize, j: usize| sheet.heights.get(i).and_then(|row| row.get(j)).copied();
        // From far to near, so that what is near covers what is far.
        for j in (1..ys.len()).rev() {
            for i in 1..xs.len() {
                let corner = |i: usize, j: usize| {
                    let w = range.part(value(i, j)?);
                    Some((place(at(i, xs.len()), at(j, ys.len()), w), w))
                };
                let corners = [(i - 1, j - 1), (i, j - 1), (i, j), (i - 1, j)].map(|(i, j)| corner(i, j));
                let [Some(a), Some(b), Some(c), Some(d)] = corners else { continue };
                let color = shade((a.1 + b.1 + c.1 + d.1) / 4.0);
                let edge = color.map(|part| (f64::from(part) * 0.75) as u8);
                drawing.shapes.push(Shape::Face { corners: [a.0, b.0, c.0, d.0], color, edge });
            }
        }
    }
    let unit = if z.scale == Scale::Logarithmic { ", logarithmic" } else { "" };
    drawing.text_before(WIDTH - 8, 28, &format!("up: {}{unit}", z.name));
    drawing
}

/// Some of so many, the first and the last among them.
fn marked(count: usize) -> Vec<usize> {
    let last = count.saturating_sub(1);
    let step = last.div_ceil(4).max(1);
    let mut marked: Vec<usize> = (0..count).step_by(step).filter(|index| last - index > step / 2).collect();
    if count > 0 {
        marked.push(last);
    }
    marked
}

/// From blue over yellow to red.
fn shade(part: f64) -> Color {
    const STOPS: [[f64; 3]; 4] =
        [[47.0, 111.0, 159.0], [120.0, 190.0, 160.0], [245.0, 215.0, 110.0], [200.0, 60.0, 45.0]];
    let place = part.clamp(0.0, 1.0) * (STOPS.len() - 1) as f64;
    let below = (place as usize).min(STOPS.len() - 2);
    let mut color = [0; 3];
    for (at, color) in color.iter_mut().enumerate() {
        *color =
            (STOPS[below][at] + (STOPS[below + 1][at] - STOPS[below][at]) * (place - below as f64)) as u8;
    }
    color
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_surface_has_a_face_for_each_field_of_its_grid() {
        let axis = |name| Axis { name, scale: Scale::Logarithmic };
        let sheet = |top: f64| Sheet {
            name: "side".into(),
            heights: (0..4).map(|x| (0..3).map(|y| 1.0 + top * f64::from(x * y)).collect()).collect(),
        };
        let (xs, ys) = ([1.0, 10.0, 100.0, 1_000.0], [0.0, 50.0, 100.0]);
        let sheets = [sheet(10.0), sheet(1_000.0)];
        let drawing = surfaces("t", "n", (axis("x"), &xs), (axis("y"), &ys), axis("z"), &sheets);
        let faces: Vec<_> = drawing
            .shapes
            .iter()
            .filter_map(|shape| match shape {
                Shape::Face { corners, .. } => Some(*corners),
                _ => None,
            })
            .collect();
        assert_eq!(faces.len(), 2 * 3 * 2);
        let inside = |(x, y): &Point| {
            (0.0..f64::from(WIDTH)).contains(x) && *y >= TOP && *y < f64::from(drawing.height)
        };
        assert!(faces.iter().flatten().all(inside), "{faces:?}");
        assert!(drawing.svg().contains("<polygon") && drawing.png().is_ok());
        // A grid that is not full, and none at all.
        let ragged = Sheet { name: String::new(), heights: vec![vec![1.0]] };
        assert!(surfaces("", "", (axis("x"), &xs), (axis("y"), &ys), axis("z"), &[ragged]).png().is_ok());
        assert!(surfaces("", "", (axis("x"), &[]), (axis("y"), &[]), axis("z"), &[]).png().is_ok());
    }

    #[test]
    fn marks_begin_and_end_where_the_axis_does() {
        assert_eq!(marked(15), [0, 4, 8, 14]);
        assert_eq!((marked(0), marked(1), marked(2)), (vec![], vec![0], vec![0, 1]));
    }
}
