//! Where the vertices of a network go: those with an edge near each other, all others apart.
//!
//! The method is that of T. Fruchterman and E. Reingold, "Graph drawing by force-directed placement" (1991): vertices repel each
//! other by `k*k/distance` and edges pull by `distance*distance/k`, where k is the distance that each vertex would have to the next
//! if all were spread evenly; a step is no longer than the temperature, which falls to nothing. Two things are added: a slight pull
//! to the centre, which keeps parts without an edge between them on the sheet, and a last pass that pushes apart what would
//! still lie on each other.
//!
//! Example: the first vertex begins in the centre, the others on a spiral around it, so what is given nearest first is untangled
//! soon.
//!
//! Invariants
//! - The places depend on the arguments alone, and lie on the sheet.
//! - It takes time by the square of the vertices: some hundred are meant.

use std::f64::consts::PI;

/// Steps until the temperature is nothing.
const STEPS: u32 = 400;
/// Of the way to the centre, in a step at k: as much as an edge of this part of k pulls.
const GRAVITY: f64 = 0.06;
/// Passes that push apart what lies on each other.
const SPREADS: u32 = 60;
/// How much more one side may be stretched than the other, to fill the sheet.
const STRETCH: f64 = 1.7;

/// A place on the sheet: right, down.
pub(crate) type Place = (f64, f64);

/// The places of `count` vertices on a sheet of this size, none nearer to another than `apart` if there is room.
pub(crate) fn layout(count: usize, edges: &[(usize, usize)], size: Place, apart: f64) -> Vec<Place> {
    let (wide, high) = size;
    let k = (wide * high / count.max(1) as f64).sqrt();
    let golden = PI * (3.0 - 5.0_f64.sqrt());
    let mut places: Vec<Place> = (0..count)
        .map(|index| {
            let (radius, angle) = (0.5 * k * (index as f64).sqrt(), golden * index as f64);
            (radius * angle.cos(), radius * angle.sin())
        })
        .collect();
    for step in 0..STEPS {
        let heat = wide / 10.0 * (1.0 - f64::from(step) / f64::from(STEPS));
        let forces = forces(&places, edges, k);
        for (place, force) in places.iter_mut().zip(forces) {
            let length = force.0.hypot(force.1).max(1e-9);
            let shift = length.min(heat) / length;
            *place = (place.0 + force.0 * shift, place.1 + force.1 * shift);
        }
    }
    fit(&mut places, size);
    for _ in 0..SPREADS {
        if !spread(&mut places, size, apart) {
            break;
        }
    }
    places
}

/// What pulls and pushes at each vertex.
fn forces(places: &[Place], edges: &[(usize, usize)], k: f64) -> Vec<Place> {
    let mut forces: Vec<Place> =
        places.iter().map(|place| (-place.0 * GRAVITY, -place.1 * GRAVITY)).collect();
    let mut add = |one: usize, other: usize, by: f64, (x, y): Place| {
        forces[one] = (forces[one].0 + x * by, forces[one].1 + y * by);
        forces[other] = (forces[other].0 - x * by, forces[other].1 - y * by);
    };
    for one in 0..places.len() {
        for other in one + 1..places.len() {
            let (x, y) = between(places, other, one);
            let square = (x * x + y * y).max(k * k * 1e-4);
            add(one, other, k * k / square, (x, y));
        }
    }
    for (one, other) in edges.iter().filter(|(one, other)| one != other) {
        let (x, y) = between(places, *one, *other);
        add(*one, *other, x.hypot(y) / k, (x, y));
    }
    forces
}

/// The way from one place to another.
fn between(places: &[Place], from: usize, to: usize) -> Place {
    (places[to].0 - places[from].0, places[to].1 - places[from].1)
}

/// Shifts and stretches the places until they fill the sheet.
fn fit(places: &mut [Place], (wide, high): Place) {
    let of = |side: fn(&Place) -> f64| {
        let (low, high) = places
            .iter()
            .map(side)
            .fold((f64::MAX, f64::MIN), |(low, high), one| (low.min(one), high.max(one)));
        ((low + high) / 2.0, (high - low).max(1e-6))
    };
    let ((middle_x, x), (middle_y, y)) = (of(|place| place.0), of(|place| place.1));
    let (mut by_x, mut by_y) = (wide / x, high / y);
    (by_x, by_y) = (by_x.min(by_y * STRETCH), by_y.min(by_x * STRETCH));
    for place in places {
        *place = (wide / 2.0 + (place.0 - middle_x) * by_x, high / 2.0 + (place.1 - middle_y) * by_y);
    }
}

/// Pushes apart what is too near; whether anything was.
fn spread(places: &mut [Place], (wide, high): Place, apart: f64) -> bool {
    let mut has_moved = false;
    for one in 0..places.len() {
        for other in one + 1..places.len() {
            let (mut x, mut y) = between(places, one, other);
            let distance = x.hypot(y);
            if distance >= apart {
                continue;
            }
            has_moved = true;
            if distance < 1e-6 {
                // Two at one place go apart in a direction of their own.
                let angle = one as f64 + 2.0 * other as f64;
                (x, y) = (angle.cos() * 1e-6, angle.sin() * 1e-6);
            }
            let by = (apart - distance) / 2.0 / x.hypot(y);
            places[one] = (places[one].0 - x * by, places[one].1 - y * by);
            places[other] = (places[other].0 + x * by, places[other].1 + y * by);
        }
    }
    for place in places {
        *place = (place.0.clamp(0.0, wide), place.1.clamp(0.0, high));
    }
    has_moved
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: Place = (600.0, 400.0);

    fn distance(places: &[Place], one: usize, other: usize) -> f64 {
        let (x, y) = between(places, one, other);
        x.hypot(y)
    }

    #[test]
    fn neighbours_are_nearer_than_others() {
        // Two rings of twelve with one edge between them.
        let ring = |first: usize| (0..12).map(move |at| (first + at, first + (at + 1) % 12));
        let edges: Vec<_> = ring(0).chain(ring(12)).chain([(0, 12)]).collect();
        let places = layout(24, &edges, SIZE, 20.0);
        let mean = |pairs: &mut dyn Iterator<Item = (usize, usize)>| {
            let all: Vec<f64> = pairs.map(|(one, other)| distance(&places, one, other)).collect();
            all.iter().sum::<f64>() / all.len() as f64
        };
        let near = mean(&mut edges.iter().copied());
        let far = mean(&mut (0..12).flat_map(|one| (12..24).map(move |other| (one, other))));
        assert!(near * 3.0 < far, "{near} {far}");
    }

    #[test]
    fn none_lie_on_each_other_or_off_the_sheet_whatever_is_drawn() {
        let star: Vec<_> = (1..150).map(|at| (0, at)).collect();
        for (count, edges) in [(0, &[][..]), (1, &[(0, 0)][..]), (9, &[][..]), (150, &star)] {
            let places = layout(count, edges, SIZE, 14.0);
            assert_eq!(places.len(), count);
            assert_eq!(places, layout(count, edges, SIZE, 14.0), "the same again");
            for one in 0..count {
                let (x, y) = places[one];
                assert!((0.0..=SIZE.0).contains(&x) && (0.0..=SIZE.1).contains(&y), "{x} {y}");
                for other in 0..one {
                    assert!(distance(&places, one, other) > 12.0, "{one} and {other} of {count}");
                }
            }
        }
    }
}
