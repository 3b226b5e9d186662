//! `graph draw`: the vertices around some, and the edges between them, as a picture.
//!
//! Invariants
//! - Of too many vertices the nearest are drawn, and the picture says so.
//! - Edges between drawn vertices are drawn even where the walk did not go along them: two at the rim that have an edge do not look
//!   like strangers.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use perilune_chart::{Link, Network, Spot};
use perilune_graph::{Edge, Limits, Traversal, VertexId, View};
use perilune_redis::files::replace;

use super::options::DrawOptions;
use super::place::Place;
use super::transfer::is_free;
use crate::exchange::Progress;
use crate::failure::{doing, environment, Result};

/// Edges that are read for a picture: a hub beyond it is no picture.
const EDGES_MAX: u64 = 1_000_000;

/// What is drawn.
struct Found {
    spots: Vec<Spot>,
    links: Vec<Link>,
    /// Whether there were more vertices.
    is_cut: bool,
}

/// Draws, and says where to.
pub(crate) fn run(options: &DrawOptions, flag: Option<&Path>) -> Result<()> {
    let place = Place::of(&options.words, flag)?;
    for file in options.svg.iter().chain(&options.png) {
        is_free(file, options.force)?;
    }
    let bar = Progress::of_unknown(&format!("{}: reading", place.node));
    let found = place.read(|view| gather(view, options));
    bar.end();
    let found = found?;
    let (vertices, edges) = (found.spots.len(), found.links.len());
    let from = options.from.join(", ");
    let mut note = format!("{vertices} vertices, {edges} edges, up to {} from {from}", options.depth);
    if found.is_cut {
        note = format!("{note}; the nearest {vertices}, there are more");
    }
    let network = Network::new(&place.node.to_string(), &note, found.spots, found.links);
    let write = |file: &Path, bytes: &[u8]| {
        replace(file, 0o666, bytes).map_err(doing(format!("write {}", file.display())))
    };
    if let Some(file) = &options.svg {
        write(file, network.svg().as_bytes())?;
        println!("{}: {note}", file.display());
    }
    if let Some(file) = &options.png {
        let failed = |error| environment(format!("cannot draw: {error}: try a smaller --width or --limit"));
        write(file, &network.png(options.width).map_err(failed)?)?;
        println!("{}: {note}", file.display());
    }
    Ok(())
}

fn gather(view: &mut View<'_>, options: &DrawOptions) -> Result<Found> {
    view.limit(Limits { edges: EDGES_MAX, ..Limits::default() });
    let starts: Vec<VertexId> = options.from.iter().map(|id| VertexId::from(id.as_str())).collect();
    let reach = options.reach.reach();
    let limit = options.limit as usize;
    let mut ids: Vec<VertexId> = Vec::new();
    let mut is_cut = false;
    let mut traversal = Traversal::breadth_first(reach.clone()).depths(0, options.depth);
    for path in traversal.walk(view, starts.iter())? {
        if ids.len() == limit {
            is_cut = true;
            break;
        }
        ids.push(path?.end().clone());
    }
    let places: HashMap<&VertexId, usize> = ids.iter().zip(0..).collect();
    let mut known = HashSet::new();
    let mut links = Vec::new();
    for id in &ids {
        for edge in view.edges(id, &reach)? {
            let Edge { id, source, kind, target, .. } = edge;
            let (Some(source), Some(target)) = (places.get(&source), places.get(&target)) else { continue };
            if known.insert(id) {
                links.push(Link { source: *source, target: *target, kind: kind.to_string() });
            }
        }
    }
    let mut spots = Vec::new();
    for id in &ids {
        let (graph, session) = view.parts();
        let name = graph.property_text(session, id, &options.name)?.unwrap_or_else(|| id.to_string());
        spots.push(Spot { name, is_start: starts.contains(id) });
    }
    Ok(Found { spots, links, is_cut })
}
