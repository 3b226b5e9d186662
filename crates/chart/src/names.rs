//! Where the names of vertices stand: beside them, none over another.
//!
//! Names are placed one by one, the weightiest first: each at the place around its vertex that meets the fewest edges, of those where
//! it meets no name, no vertex and no border. A name that has no such place is left out. (Best places for all of them are a hard
//! problem; this order gives the room to those that tell most.)
//!
//! Example: of twenty names around a hub some lie a line further out.
//!
//! Invariant: boxes of placed names do not meet.

use crate::layout::Place;
use crate::style::{width, LETTERS};

/// From a vertex' edge to its name.
const GAP: f64 = 4.0;
/// Places around a vertex at one distance.
const SIDES: usize = 8;
/// Edges that a name would rather lie over than stand further off, where it may seem another vertex' name.
const FURTHER: usize = 3;

/// A part of the sheet: left, top, right, bottom.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rectangle {
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) right: f64,
    pub(crate) bottom: f64,
}

impl Rectangle {
    pub(crate) fn meets(&self, other: &Rectangle) -> bool {
        self.left < other.right
            && other.left < self.right
            && self.top < other.bottom
            && other.top < self.bottom
    }

    /// Whether a straight line passes through it: the part of the line within its sides is not empty.
    fn is_crossed(&self, from: Place, to: Place) -> bool {
        let (mut enters, mut leaves) = (0.0_f64, 1.0_f64);
        for (start, way, low, high) in
            [(from.0, to.0 - from.0, self.left, self.right), (from.1, to.1 - from.1, self.top, self.bottom)]
        {
            if way.abs() < 1e-9 {
                if start < low || start > high {
                    return false;
                }
                continue;
            }
            let (one, other) = ((low - start) / way, (high - start) / way);
            enters = enters.max(one.min(other));
            leaves = leaves.min(one.max(other));
        }
        enters < leaves
    }
}

/// The places of names, the weightiest first; None for what has no room. `radii` are those of the vertices.
pub(crate) fn place(
    names: &[&str],
    places: &[Place],
    radii: &[f64],
    edges: &[(Place, Place)],
    size: Place,
    order: &[usize],
) -> Vec<Option<Rectangle>> {
    let dots: Vec<Rectangle> = places
        .iter()
        .zip(radii)
        .map(|((x, y), radius)| Rectangle {
            left: x - radius,
            top: y - radius,
            right: x + radius,
            bottom: y + radius,
        })
        .collect();
    let mut placed: Vec<Option<Rectangle>> = vec![None; names.len()];
    for index in order {
        let (wide, high) = (f64::from(width(names[*index], LETTERS)), LETTERS);
        let around = around(places[*index], radii[*index], wide, high);
        let free = around.into_iter().enumerate().filter(|(_, one)| {
            one.left >= 0.0
                && one.top >= 0.0
                && one.right <= size.0
                && one.bottom <= size.1
                && !placed.iter().flatten().any(|other| other.meets(one))
                && !dots.iter().any(|dot| dot.meets(one))
        });
        let crossings =
            |one: &Rectangle| edges.iter().filter(|(from, to)| one.is_crossed(*from, *to)).count();
        let best = free.min_by_key(|(at, one)| crossings(one) + at / SIDES * FURTHER);
        placed[*index] = best.map(|(_, one)| one);
    }
    placed
}

/// Places for a name around a vertex, the better first.
fn around((x, y): Place, radius: f64, wide: f64, high: f64) -> Vec<Rectangle> {
    let mut boxes = Vec::new();
    for further in [0.0, high * 0.8, high * 1.6] {
        let away = radius + GAP + further;
        let slant = radius * 0.7 + GAP / 2.0 + further;
        let corners = [
            (x + away, y - high / 2.0),
            (x - away - wide, y - high / 2.0),
            (x - wide / 2.0, y - away - high),
            (x - wide / 2.0, y + away),
            (x + slant, y - slant - high),
            (x + slant, y + slant),
            (x - slant - wide, y - slant - high),
            (x - slant - wide, y + slant),
        ];
        boxes.extend(corners.map(|(left, top)| Rectangle {
            left,
            top,
            right: left + wide,
            bottom: top + high,
        }));
    }
    boxes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_crowd_do_not_meet_and_the_weightiest_have_room() {
        let places: Vec<Place> =
            (0..60).map(|at| (100.0 + 22.0 * f64::from(at % 10), 60.0 + 22.0 * f64::from(at / 10))).collect();
        let names = vec!["Amsterdam"; 60];
        let order: Vec<usize> = (0..60).rev().collect();
        let placed = place(&names, &places, &[5.0; 60], &[], (420.0, 240.0), &order);
        let boxes: Vec<Rectangle> = placed.iter().flatten().copied().collect();
        assert!(boxes.len() > 10 && boxes.len() < 60, "{}", boxes.len());
        assert!(placed[59].is_some());
        for (at, one) in boxes.iter().enumerate() {
            assert!(boxes[..at].iter().all(|other| !other.meets(one)));
        }
    }

    #[test]
    fn a_name_keeps_off_an_edge_if_it_can() {
        let line = ((50.0, 50.0), (150.0, 50.0));
        let placed = place(&["Ada"], &[line.0], &[5.0], &[line], (200.0, 100.0), &[0]);
        assert!(placed[0].is_some_and(|one| !one.is_crossed(line.0, line.1)), "{placed:?}");
        assert!(Rectangle { left: 90.0, top: 40.0, right: 99.0, bottom: 60.0 }.is_crossed(line.0, line.1));
    }
}
