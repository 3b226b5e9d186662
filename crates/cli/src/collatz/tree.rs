//! `--tree`: how the sequences meet, drawn as an SVG.
//!
//! Every number is joined to the number that follows it in its sequence, and all end at 1, where the
//! drawing is rooted. From a number its halves and its 3n+1 lie at different angles, so that sequences
//! lie on one another from where they meet. The more sequences pass, the thicker a stroke is.

use std::collections::HashMap;
use std::fmt::Write;

/// Angles by which an even and an odd number turn, in radians, and the length of a step.
const TURN_EVEN: f64 = 0.144;
const TURN_ODD: f64 = -0.279;
const LENGTH: f64 = 10.0;

#[derive(Clone, Copy)]
struct Place {
    x: f64,
    y: f64,
    angle: f64,
}

/// The drawing of the sequences that begin with 1 to `sequences`.
pub(crate) fn draw(sequences: u64) -> String {
    let mut places = HashMap::from([(1u64, Place { x: 0.0, y: 0.0, angle: -std::f64::consts::FRAC_PI_2 })]);
    let mut branches: Vec<Vec<Place>> = Vec::new();
    for first in 2..=sequences {
        let mut path = Vec::new();
        let mut number = first;
        while !places.contains_key(&number) {
            path.push(number);
            number = successor(number);
        }
        if path.is_empty() {
            continue;
        }
        let mut at = places[&number];
        let mut branch = vec![at];
        for &number in path.iter().rev() {
            let angle = at.angle + if number.is_multiple_of(2) { TURN_EVEN } else { TURN_ODD };
            at = Place { x: at.x + LENGTH * angle.cos(), y: at.y + LENGTH * angle.sin(), angle };
            places.insert(number, at);
            branch.push(at);
        }
        branches.push(branch);
    }
    svg(sequences, &branches)
}

fn successor(number: u64) -> u64 {
    if number.is_multiple_of(2) {
        number / 2
    } else {
        3 * number + 1
    }
}

fn svg(sequences: u64, branches: &[Vec<Place>]) -> String {
    let points = || branches.iter().flatten();
    let bounds = |of: fn(&Place) -> f64| {
        points().map(of).fold((0.0f64, 0.0f64), |(low, high), at| (low.min(at), high.max(at)))
    };
    let ((left, right), (top, bottom)) = (bounds(|at| at.x), bounds(|at| at.y));
    let margin = 2.0 * LENGTH;
    let (width, height) = (right - left + 2.0 * margin, bottom - top + 2.0 * margin);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\">\n\
         <title>How {sequences} sequences of 3n+1 meet</title>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fbfaf6\"/>\n\
         <g fill=\"none\" stroke-linecap=\"round\" stroke-linejoin=\"round\">\n"
    );
    for branch in branches {
        // Long branches are those that others join: they lie below and are drawn thicker.
        let thickness = (branch.len() as f64).ln().max(0.6);
        let hue = 200.0 - 160.0 * (branch.len() as f64 / 60.0).min(1.0);
        let _ = write!(out, "<path stroke=\"hsl({hue:.0},60%,45%)\" stroke-width=\"{thickness:.1}\" stroke-opacity=\"0.5\" d=\"M");
        for at in branch {
            let _ = write!(out, "{:.1} {:.1} ", at.x - left + margin, at.y - top + margin);
        }
        out.push_str("\"/>\n");
    }
    out.push_str("</g>\n</svg>\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_on_the_way_is_drawn_once() {
        let drawing = draw(10);
        let strokes = drawing.matches("<path").count();
        // 2, 3, 6, 7, 9 begin a branch; 4, 5, 8 and 10 lie on those of others.
        assert_eq!(strokes, 5);
        let points: usize = drawing
            .lines()
            .filter_map(|line| line.split_once("d=\"M"))
            .map(|(_, points)| points.split_whitespace().filter(|word| word.contains('.')).count() / 2)
            .sum();
        assert_eq!(points, 21 + strokes, "21 numbers, and where each branch begins");
    }
}
