//! The k cheapest paths, by Yen's algorithm: each next one leaves one of those found before at some vertex.
//!
//! Example: `cheapest_paths(&mut view, &a, &b, &Reach::out(), &mut Cost::Weight, 3)` are the cheapest path, the second and
//! the third.
//!
//! Invariant: no path meets a vertex twice. Paths over other edges between the same vertices are others.

use std::collections::HashSet;

use super::weighted::{search, Banned, Ends};
use crate::{Cost, Path, Reach, Result, VertexId, View};

/// The `most` cheapest paths from one vertex to another that meet no vertex twice, cheapest first; fewer if there are fewer.
///
/// # Errors
/// As [`super::cheapest_path`].
pub fn cheapest_paths(
    view: &mut View<'_>,
    from: &VertexId,
    to: &VertexId,
    reach: &Reach,
    cost: &mut Cost<'_>,
    most: usize,
) -> Result<Vec<Path>> {
    view.begin(&[from, to])?;
    let mut found: Vec<Path> = Vec::new();
    let mut candidates: Vec<Path> =
        search(view, Ends { from, to }, reach, cost, &mut |_, _| Ok(0.0), &Banned::default())?
            .into_iter()
            .collect();
    let mut known: HashSet<Vec<i64>> = candidates.iter().map(ids).collect();
    while found.len() < most {
        let cheapest = (0..candidates.len()).min_by(|a, b| {
            let (a, b) = (&candidates[*a], &candidates[*b]);
            a.cost().total_cmp(&b.cost()).then(a.length().cmp(&b.length()))
        });
        let Some(cheapest) = cheapest else { break };
        let path = candidates.swap_remove(cheapest);
        found.push(path);
        for index in 0..found[found.len() - 1].length() {
            if let Some(path) = deviate(view, &found, index, to, reach, cost)? {
                if known.insert(ids(&path)) {
                    candidates.push(path);
                }
            }
        }
    }
    Ok(found)
}

fn ids(path: &Path) -> Vec<i64> {
    path.edges().iter().map(|edge| edge.id).collect()
}

/// The cheapest path that goes with the last one found for `index` edges, and there unlike any that was found.
fn deviate(
    view: &mut View<'_>,
    found: &[Path],
    index: usize,
    to: &VertexId,
    reach: &Reach,
    cost: &mut Cost<'_>,
) -> Result<Option<Path>> {
    let Some(last) = found.last() else { return Ok(None) };
    let beginning = ids(last)[..index].to_vec();
    let vertices = last.vertices();
    let mut banned = Banned::default();
    banned.vertices.extend(vertices[..=index].iter().map(|vertex| (*vertex).clone()));
    for path in found {
        let path = ids(path);
        if path.len() > index && path[..index] == beginning[..] {
            banned.edges.insert(path[index]);
        }
    }
    let ends = Ends { from: vertices[index], to };
    let Some(rest) = search(view, ends, reach, cost, &mut |_, _| Ok(0.0), &banned)? else {
        return Ok(None);
    };
    let mut whole = Path::at(last.start().clone());
    for edge in last.edges().into_iter().take(index).chain(rest.edges()) {
        whole = whole.with(edge.clone(), cost.of(edge)?);
    }
    Ok(Some(whole))
}
