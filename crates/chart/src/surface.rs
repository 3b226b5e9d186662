//! Surfaces: heights over a grid, looked at from above and the side; several below each other on one scale.

use plotters::prelude::*;

use crate::axis::Values;
use crate::head::Area;
use crate::style::{letters, Side, GRID, INK, LETTERS, MARGIN, PAPER};
use crate::{Axis, Content, Drawing, Error};

/// Pixels of one of them.
const HEIGHT: u32 = 360;
/// From where it is looked at, in radians.
const YAW: f64 = 0.25;
const PITCH: f64 = 0.5;

/// One surface.
#[derive(Clone, Debug)]
pub struct Sheet {
    /// What it shows.
    pub name: String,
    /// Heights: a row for each value of the first axis, in it one for each of the second.
    pub heights: Vec<Vec<f64>>,
}

/// One axis of the grid: its values ascend.
#[derive(Clone, Copy, Debug)]
pub struct Grid<'a> {
    /// What is there.
    pub axis: Axis<'a>,
    /// The values that heights are known at.
    pub values: &'a [f64],
}

/// What is drawn below the head.
#[derive(Clone, Debug)]
pub(crate) struct Surfaces {
    sheets: Vec<Sheet>,
    /// Of the grid.
    across: Vec<f64>,
    front: Vec<f64>,
    /// The axes: across, up, to the front.
    values: [Values; 3],
}

/// Surfaces over the same grid: `x` runs across, `y` to the front, `z` up.
pub fn surfaces(title: &str, note: &str, x: Grid<'_>, y: Grid<'_>, z: Axis<'_>, sheets: &[Sheet]) -> Drawing {
    let heights = sheets.iter().flat_map(|sheet| sheet.heights.iter().flatten().copied());
    let content = Surfaces {
        sheets: sheets.to_vec(),
        across: x.values.to_vec(),
        front: y.values.to_vec(),
        values: [
            Values::between(x.values.iter().copied(), x.axis.scale),
            Values::of(heights, z.scale),
            Values::between(y.values.iter().copied(), y.axis.scale),
        ],
    };
    let axes =
        format!("to the right: {}; to the front: {}; up: {}", x.axis.words(), y.axis.words(), z.words());
    let note = if note.is_empty() { axes } else { format!("{note}; {axes}") };
    Drawing { title: title.to_owned(), note, keys: Vec::new(), content: Content::Surfaces(content) }
}

impl Surfaces {
    pub(crate) fn height(&self) -> u32 {
        HEIGHT * self.sheets.len().max(1) as u32
    }

    pub(crate) fn draw(&self, area: &Area<'_>) -> Result<(), Error> {
        let panels = area.split_evenly((self.sheets.len().max(1), 1));
        for (sheet, panel) in self.sheets.iter().zip(&panels) {
            panel.draw_text(&sheet.name, &letters(LETTERS, Side::Below), (MARGIN as i32, 0))?;
            self.draw_sheet(panel, sheet)?;
        }
        Ok(())
    }

    fn draw_sheet(&self, panel: &Area<'_>, sheet: &Sheet) -> Result<(), Error> {
        let [across, up, front] = &self.values;
        let mut chart = ChartBuilder::on(panel).margin(MARGIN).margin_bottom(3 * MARGIN).build_cartesian_3d(
            across.clone(),
            up.clone(),
            front.clone(),
        )?;
        chart.with_projection(|mut view| {
            (view.yaw, view.pitch, view.scale) = (YAW, PITCH, 0.9);
            view.into_matrix()
        });
        chart
            .configure_axes()
            .x_labels(5)
            .z_labels(5)
            .axis_panel_style(PAPER)
            .bold_grid_style(GRID)
            .light_grid_style(TRANSPARENT)
            .label_style(letters(LETTERS, Side::Right))
            .draw()?;
        let value =
            |i: usize, j: usize| sheet.heights.get(i)?.get(j).copied().filter(|value| value.is_finite());
        // From far to near, so that what is near covers what is far.
        for j in 1..self.front.len() {
            for i in 1..self.across.len() {
                let corner = |i: usize, j: usize| Some((self.across[i], value(i, j)?, self.front[j]));
                let corners: Option<Vec<_>> = [(i - 1, j - 1), (i, j - 1), (i, j), (i - 1, j)]
                    .iter()
                    .map(|(i, j)| corner(*i, *j))
                    .collect();
                let Some(mut corners) = corners else { continue };
                let part = corners.iter().map(|corner| up.part(corner.1)).sum::<f64>() / 4.0;
                let color = ViridisRGB.get_color(part as f32);
                chart.draw_series([Polygon::new(corners.clone(), color.filled())])?;
                corners.push(corners[0]);
                chart.draw_series([PathElement::new(corners, INK.mix(0.4))])?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Scale, WIDTH};

    #[test]
    fn a_surface_has_a_face_for_each_field_of_its_grid() {
        let axis = |name, scale| Axis { name, scale };
        let sheet = |top: f64| Sheet {
            name: "side".into(),
            heights: (0..4).map(|x| (0..3).map(|y| 1.0 + top * f64::from(x * y)).collect()).collect(),
        };
        let x = Grid { axis: axis("x", Scale::Logarithmic), values: &[1.0, 10.0, 100.0, 1_000.0] };
        let y = Grid { axis: axis("y", Scale::Linear), values: &[0.0, 50.0, 100.0] };
        let z = axis("z", Scale::Logarithmic);
        let svg = surfaces("t", "n", x, y, z, &[sheet(10.0), sheet(1_000.0)]).svg().unwrap();
        let faces: Vec<&str> =
            svg.lines().filter(|line| line.starts_with("<polygon") && !line.contains("#FFFFFF")).collect();
        assert_eq!(faces.len(), 2 * 3 * 2);
        for face in faces {
            let points = face.split(" points=\"").nth(1).unwrap().split('"').next().unwrap();
            for pair in points.split_whitespace() {
                let (x, y) = pair.split_once(',').unwrap();
                let (x, y): (f64, f64) = (x.parse().unwrap(), y.parse().unwrap());
                assert!(
                    (0.0..f64::from(WIDTH)).contains(&x) && (0.0..2.5 * f64::from(HEIGHT)).contains(&y),
                    "{face}"
                );
            }
        }
        // A grid that is not full, and none at all.
        let ragged = Sheet { name: String::new(), heights: vec![vec![1.0]] };
        assert!(surfaces("", "", x, y, z, &[ragged]).png().is_ok());
        let none = |grid: Grid<'static>| Grid { values: &[], ..grid };
        assert!(surfaces("", "", none(x), none(y), z, &[]).png().is_ok());
    }
}
