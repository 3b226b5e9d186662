//! What stands above a chart: its title, a line that says what is good, and the legend.

use plotters::coord::Shift;
use plotters::prelude::*;

use crate::style::{letters, lines_of, width, Side, LETTERS, MARGIN, TITLE, WIDTH};
use crate::Error;

/// An area of an SVG file.
pub(crate) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Between lines, as a part of the letters' size.
const LEADING: f64 = 1.3;
/// Of a legend's mark and between entries.
const MARK: u32 = 14;
const GAP: u32 = 20;

/// The mark of a line's points; bars have squares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    Square,
    Circle,
    Triangle,
    Cross,
}

/// One entry of the legend.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    pub(crate) name: String,
    pub(crate) color: RGBColor,
    pub(crate) mark: Mark,
}

/// The head of a drawing.
pub(crate) struct Head<'a> {
    title: Vec<String>,
    note: Vec<String>,
    keys: &'a [Key],
}

impl<'a> Head<'a> {
    pub(crate) fn new(title: &str, note: &str, keys: &'a [Key]) -> Head<'a> {
        let room = WIDTH - 2 * MARGIN;
        Head { title: lines_of(title, TITLE, room), note: lines_of(note, LETTERS, room), keys }
    }

    /// Where entries of the legend begin, and how high they are together.
    fn places(&self) -> Vec<(u32, u32)> {
        let (mut x, mut y) = (MARGIN, 0);
        let mut places = Vec::new();
        for key in self.keys {
            let wide = MARK + 6 + width(&key.name, LETTERS);
            if x > MARGIN && x + wide > WIDTH - MARGIN {
                (x, y) = (MARGIN, y + step(LETTERS));
            }
            places.push((x, y));
            x += wide + GAP;
        }
        places
    }

    /// Pixels.
    pub(crate) fn height(&self) -> u32 {
        let legend = self.places().last().map_or(0, |(_, y)| y + step(LETTERS));
        let lines = |count: usize, size| count as u32 * step(size);
        MARGIN / 2 + lines(self.title.len(), TITLE) + lines(self.note.len(), LETTERS) + legend + MARGIN / 2
    }

    pub(crate) fn draw(&self, area: &Area<'_>) -> Result<(), Error> {
        let left = MARGIN as i32;
        let mut y = MARGIN / 2;
        for (lines, size) in [(&self.title, TITLE), (&self.note, LETTERS)] {
            for line in lines {
                area.draw_text(line, &letters(size, Side::Below), (left, y as i32))?;
                y += step(size);
            }
        }
        for (key, (x, below)) in self.keys.iter().zip(self.places()) {
            let (x, middle) = (x as i32, (y + below + step(LETTERS) / 2) as i32);
            draw_mark(area, key, x + MARK as i32 / 2, middle)?;
            area.draw_text(&key.name, &letters(LETTERS, Side::Right), (x + MARK as i32 + 6, middle))?;
        }
        Ok(())
    }
}

fn step(size: f64) -> u32 {
    (size * LEADING) as u32
}

/// Draws the mark of an entry around a place.
pub(crate) fn draw_mark(area: &Area<'_>, key: &Key, x: i32, y: i32) -> Result<(), Error> {
    let style = key.color.filled();
    match key.mark {
        Mark::Square => area.draw(&Rectangle::new([(x - 5, y - 5), (x + 5, y + 5)], style))?,
        Mark::Circle => area.draw(&Circle::new((x, y), 5, style))?,
        Mark::Triangle => area.draw(&TriangleMarker::new((x, y), 7, style))?,
        Mark::Cross => area.draw(&Cross::new((x, y), 5, key.color.stroke_width(3)))?,
    }
    Ok(())
}
