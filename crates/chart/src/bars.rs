//! Horizontal bars.

use plotters::prelude::*;

use crate::axis::Values;
use crate::head::{Area, Key, Mark};
use crate::style::{letters, width, Side, AS_PUBLISHED, GRID, INK, LETTERS, MARGIN, OURS, THEIRS, WIDTH};
use crate::{Axis, Content, Drawing, Error};

const BAR: u32 = 28;
/// For the axis, its values and its name.
const FOOT: u32 = 50;
const GAP: u32 = 8;

/// Whose a bar is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// Ours.
    Ours,
    /// Of others.
    Theirs,
    /// Of others, done as they have published it and not as we think best.
    AsPublished,
}

impl Whose {
    fn key(self) -> Key {
        let (name, color) = match self {
            Whose::Ours => ("Perilune", OURS),
            Whose::Theirs => ("others", THEIRS),
            Whose::AsPublished => ("others, mapped as published", AS_PUBLISHED),
        };
        Key { name: name.to_owned(), color, mark: Mark::Square }
    }
}

/// One bar.
#[derive(Clone, Debug)]
pub struct Bar {
    /// Left of it.
    pub label: String,
    /// Its length, not negative.
    pub value: f64,
    /// Right of it.
    pub text: String,
    /// Whose it is, shown by its colour.
    pub whose: Whose,
}

/// What is drawn below the head.
#[derive(Clone, Debug)]
pub(crate) struct Bars {
    bars: Vec<Bar>,
    words: String,
    values: Values,
}

/// Horizontal bars over an axis, under a title and a line that says what is good; a legend where they are not all
/// of the same owner.
pub fn bars(title: &str, note: &str, axis: Axis<'_>, bars: &[Bar]) -> Drawing {
    let all = [Whose::Ours, Whose::Theirs, Whose::AsPublished];
    let owners = all.into_iter().filter(|whose| bars.iter().any(|bar| bar.whose == *whose));
    let keys: Vec<Key> = owners.map(Whose::key).collect();
    let values = Values::of(bars.iter().map(|bar| bar.value), axis.scale);
    Drawing {
        title: title.to_owned(),
        note: note.to_owned(),
        keys: if keys.len() > 1 { keys } else { Vec::new() },
        content: Content::Bars(Bars { bars: bars.to_vec(), words: axis.words(), values }),
    }
}

impl Bars {
    pub(crate) fn height(&self) -> u32 {
        BAR * self.bars.len() as u32 + FOOT
    }

    pub(crate) fn draw(&self, area: &Area<'_>) -> Result<(), Error> {
        let widest =
            |text: fn(&Bar) -> &str| self.bars.iter().map(|bar| width(text(bar), LETTERS)).max().unwrap_or(0);
        let left = (MARGIN + widest(|bar| &bar.label) + GAP).min(WIDTH / 2);
        let right = (MARGIN + widest(|bar| &bar.text) + GAP).min(WIDTH / 3);
        let count = self.bars.len() as f64;
        let mut chart = ChartBuilder::on(area)
            .margin_left(left)
            .margin_right(right)
            .x_label_area_size(FOOT)
            .build_cartesian_2d(self.values.clone(), 0.0..count.max(1.0))?;
        chart
            .configure_mesh()
            .disable_y_mesh()
            .disable_y_axis()
            .x_labels(5)
            .x_desc(self.words.as_str())
            .axis_style(INK)
            .bold_line_style(GRID)
            .light_line_style(TRANSPARENT)
            .label_style(letters(LETTERS, Side::Right))
            .draw()?;
        let low = self.values.low();
        let plot = chart.plotting_area();
        for (index, bar) in self.bars.iter().enumerate() {
            let top = count - index as f64;
            let corners = [(low, top - 0.12), (bar.value, top - 0.88)];
            plot.draw(&Rectangle::new(corners, bar.whose.key().color.filled()))?;
            for (x, text, side, shift) in [
                (low, &bar.label, Side::Left, -(GAP as i32)),
                (bar.value, &bar.text, Side::Right, GAP as i32),
            ] {
                let text = Text::new(text.clone(), (shift, 0), letters(LETTERS, side));
                plot.draw(&(EmptyElement::at((x, top - 0.5)) + text))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scale;

    fn drawing(scale: Scale, values: &[f64]) -> Drawing {
        let bar = |value: &f64| Bar {
            label: "^BCAT-subscripts".into(),
            value: *value,
            text: format!("{value} <s>"),
            whose: if *value > 1.0 { Whose::Ours } else { Whose::Theirs },
        };
        let all: Vec<Bar> = values.iter().map(bar).collect();
        bars("a & b", "longer is better", Axis { name: "seconds", scale }, &all)
    }

    /// Of the bars of a colour: left edge and width.
    fn rectangles(svg: &str, color: &str) -> Vec<(f64, f64)> {
        let number = |line: &str, name: &str| -> f64 {
            line.split(&format!(" {name}=\"")).nth(1).unwrap().split('"').next().unwrap().parse().unwrap()
        };
        let of = svg.lines().filter(|line| line.starts_with("<rect") && line.contains(color));
        of.map(|line| (number(line, "x"), number(line, "width"))).filter(|(_, width)| *width > 10.0).collect()
    }

    #[test]
    fn lengths_are_to_scale_and_text_is_escaped() {
        let svg = drawing(Scale::Linear, &[2.0, 1.0]).svg().unwrap();
        let (ours, theirs) = (rectangles(&svg, "#0072B2"), rectangles(&svg, "#8C8C8C"));
        assert!((ours[0].1 - 2.0 * theirs[0].1).abs() <= 2.0, "{ours:?} {theirs:?}");
        for part in ["a &amp; b", "2 &lt;s&gt;", "seconds", "longer is better", "Perilune", "others"] {
            assert!(svg.contains(part), "{part} in {svg}");
        }
        // Bars and what is beside them keep inside.
        assert!(ours[0].0 > 140.0 && ours[0].0 + ours[0].1 < f64::from(WIDTH) - 50.0, "{ours:?}");
    }

    #[test]
    fn factors_are_shown_as_steps_and_said_to_be() {
        let svg = drawing(Scale::Logarithmic, &[100.0, 10.0]).svg().unwrap();
        let ours = rectangles(&svg, "#0072B2");
        assert!((ours[0].1 - 2.0 * ours[1].1).abs() <= 2.0, "{ours:?}");
        assert!(svg.contains("seconds (logarithmic)") && !svg.contains("others"), "{svg}");
    }

    #[test]
    fn strange_values_are_drawn_too() {
        for values in [&[][..], &[0.0], &[f64::NAN, f64::INFINITY, -1.0]] {
            for scale in [Scale::Linear, Scale::Logarithmic] {
                assert!(drawing(scale, values).png().is_ok(), "{values:?}");
            }
        }
    }
}
