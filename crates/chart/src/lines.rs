//! Lines through points, several in one chart.

use plotters::prelude::*;

use crate::axis::Values;
use crate::head::{draw_mark, Area, Key, Mark};
use crate::style::{letters, Side, GRID, INK, LETTERS, MARGIN, OTHER_LINES, OWN_LINES};
use crate::{Axis, Content, Drawing, Error};

const HEIGHT: u32 = 380;
/// For values and names of the axes.
const FOOT: u32 = 50;
const LEFT: u32 = 76;

/// A line.
#[derive(Clone, Debug)]
pub struct Series {
    /// What it shows.
    pub name: String,
    /// Whether it is ours: blue and green.
    pub ours: bool,
    /// From left to right; those that are not finite are left out.
    pub points: Vec<(f64, f64)>,
}

/// What is drawn below the head.
#[derive(Clone, Debug)]
pub(crate) struct Lines {
    series: Vec<Series>,
    words: [String; 2],
    across: Values,
    up: Values,
}

/// Lines over a common axis, under a title and a line that says what is good, with a legend.
pub fn lines(title: &str, note: &str, x: Axis<'_>, y: Axis<'_>, series: &[Series]) -> Drawing {
    let points = || series.iter().flat_map(|one| &one.points);
    let (mut own, mut others) = (OWN_LINES.iter().cycle(), OTHER_LINES.iter().cycle());
    let marks = [Mark::Circle, Mark::Triangle, Mark::Square, Mark::Cross];
    let key = |(one, mark): (&Series, &Mark)| {
        let color = *if one.ours { own.next() } else { others.next() }.unwrap_or(&INK);
        Key { name: one.name.clone(), color, mark: *mark }
    };
    let keys = series.iter().zip(marks.iter().cycle()).map(key).collect();
    let content = Lines {
        series: series.to_vec(),
        words: [x.words(), y.words()],
        across: Values::between(points().map(|point| point.0), x.scale),
        up: Values::of(points().map(|point| point.1), y.scale),
    };
    Drawing { title: title.to_owned(), note: note.to_owned(), keys, content: Content::Lines(content) }
}

impl Lines {
    pub(crate) fn height(&self) -> u32 {
        HEIGHT
    }

    pub(crate) fn draw(&self, area: &Area<'_>, keys: &[Key]) -> Result<(), Error> {
        let mut chart = ChartBuilder::on(area)
            .margin_left(MARGIN / 2)
            .margin_right(2 * MARGIN)
            .margin_top(MARGIN / 2)
            .x_label_area_size(FOOT)
            .y_label_area_size(LEFT)
            .build_cartesian_2d(self.across.clone(), self.up.clone())?;
        chart
            .configure_mesh()
            .x_labels(6)
            .y_labels(5)
            .x_desc(self.words[0].as_str())
            .y_desc(self.words[1].as_str())
            .axis_style(INK)
            .bold_line_style(GRID)
            .light_line_style(TRANSPARENT)
            .label_style(letters(LETTERS, Side::Right))
            .draw()?;
        for (one, key) in self.series.iter().zip(keys) {
            let drawn = || one.points.iter().copied().filter(|(x, y)| x.is_finite() && y.is_finite());
            chart.draw_series(LineSeries::new(drawn(), key.color.stroke_width(3)))?;
            // Beyond the field, too, so that marks at its edges are whole.
            let (left, top) = area.get_base_pixel();
            for point in drawn() {
                let (x, y) = chart.backend_coord(&point);
                draw_mark(area, key, x - left, y - top)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Scale, WIDTH};

    /// The places that lines go through, one list for each.
    fn places(svg: &str) -> Vec<Vec<(f64, f64)>> {
        let thick =
            svg.lines().filter(|line| line.starts_with("<polyline") && line.contains("stroke-width=\"3\""));
        let points = thick.map(|line| line.split(" points=\"").nth(1).unwrap().split('"').next().unwrap());
        let pair = |pair: &str| {
            let (x, y) = pair.split_once(',').unwrap();
            (x.parse().unwrap(), y.parse().unwrap())
        };
        points.map(|points| points.split_whitespace().map(pair).collect()).collect()
    }

    #[test]
    fn higher_values_are_higher_and_nothing_lies_outside() {
        let axis = |name| Axis { name, scale: Scale::Logarithmic };
        let one = |ours, top| Series {
            name: "one".into(),
            ours,
            points: vec![(1.0, 10.0), (100.0, top), (64_000.0, f64::NAN)],
        };
        let drawing = lines("t", "n", axis("x"), axis("y"), &[one(true, 1_000.0), one(false, 100.0)]);
        let svg = drawing.svg().unwrap();
        let lines_drawn = places(&svg);
        assert_eq!(lines_drawn.iter().map(Vec::len).collect::<Vec<_>>(), [2, 2], "{svg}");
        assert!(lines_drawn[0][1].1 < lines_drawn[1][1].1, "{lines_drawn:?}");
        let inside = |(x, y): &(f64, f64)| (0.0..f64::from(WIDTH)).contains(x) && (0.0..500.0).contains(y);
        assert!(lines_drawn.iter().flatten().all(inside), "{lines_drawn:?}");
        assert!(drawing.png().is_ok());
        assert!(lines("", "", axis("x"), axis("y"), &[]).png().is_ok());
    }
}
