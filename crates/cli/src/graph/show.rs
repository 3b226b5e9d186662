//! `graph check`, `stat`, `walk` and `path`: what is printed of a graph.

use std::io::{self, Write};

use perilune_graph::{algorithm, Cost, Edge, Path, Traversal, Uniqueness, VertexId, View};
use serde_json::{json, Value as Json};

use super::options::{Once, PathOptions, Show, WalkOptions};
use super::place::Place;
use crate::exchange::Progress;
use crate::failure::{doing, found, wrong_use, Result};

/// Tells what is wrong with the graph.
pub(crate) fn check(place: &Place) -> Result<()> {
    let bar = Progress::of_unknown(&format!("{}: checking", place.node));
    let report = place.read(|view| {
        let (graph, session) = view.parts();
        let graph = graph.clone();
        Ok(graph.check(session)?)
    });
    bar.end();
    let report = report?;
    report.faults.iter().for_each(|fault| println!("{fault}"));
    let counts = format!("{}: {} vertices, {} edges", place.node, report.vertices, report.edges);
    match report.faults.len() {
        0 => {
            println!("{counts}, sound");
            Ok(())
        }
        // It tells so many and no more.
        100 => Err(found(format!("{counts}, 100 faults or more"))),
        1 => Err(found(format!("{counts}, 1 fault"))),
        count => Err(found(format!("{counts}, {count} faults"))),
    }
}

/// Prints the numbers of the graph.
pub(crate) fn stat(place: &Place, as_json: bool) -> Result<()> {
    let bar = Progress::of_unknown(&format!("{}: counting", place.node));
    let counted = place.read(|view| {
        let weight = view.parts().0.weight().map(str::to_owned);
        Ok((view.statistics()?, weight))
    });
    bar.end();
    let (found, weight) = counted?;
    if as_json {
        let counts = |counts: &[(String, u64)]| {
            counts
                .iter()
                .map(|(name, count)| (name.clone(), Json::from(*count)))
                .collect::<serde_json::Map<_, _>>()
        };
        let indexes: Vec<_> = found
            .indexes
            .iter()
            .map(|(label, property)| json!({"label": label, "property": property}))
            .collect();
        let busiest = found.busiest.as_ref().map(|(id, degree)| json!({"id": id_of(id), "edges": degree}));
        let object = json!({"node": place.node.to_string(), "vertices": found.vertices,
            "isolated": found.isolated, "edges": found.edges, "weight": weight, "labels": counts(&found.labels),
            "types": counts(&found.types), "indexes": indexes, "busiest": busiest});
        println!("{object}");
        return Ok(());
    }
    println!("{:<24} {:>12}", "vertices", found.vertices);
    println!("{:<24} {:>12}", "  without edges", found.isolated);
    for (label, count) in &found.labels {
        println!("  label {label:<16} {count:>12}");
    }
    println!("{:<24} {:>12}", "edges", found.edges);
    for (kind, count) in &found.types {
        println!("  type {kind:<17} {count:>12}");
    }
    if let Some((id, degree)) = &found.busiest {
        println!("most edges               {degree:>12}  {id}");
    }
    println!("weight of edges: {}", weight.as_deref().unwrap_or("none"));
    for (label, property) in &found.indexes {
        println!("index: {label}, {property}");
    }
    Ok(())
}

/// Prints the paths of a walk, each as soon as it is found.
pub(crate) fn walk(options: &WalkOptions, place: &Place) -> Result<()> {
    let reach = options.reach.reach();
    let (from, to) = options.depth;
    place.read(|view| {
        let traversal = match options.depth_first {
            true => Traversal::depth_first(reach.clone()),
            false => Traversal::breadth_first(reach.clone()),
        };
        let uniqueness = match options.unique {
            Once::Vertex => Uniqueness::VertexGlobal,
            Once::Edge => Uniqueness::EdgeGlobal,
            Once::VertexOfPath => Uniqueness::VertexPath,
            Once::EdgeOfPath => Uniqueness::EdgePath,
        };
        let weighs = view.parts().0.weight().is_some();
        let mut traversal = traversal.unique(uniqueness).depths(from, to);
        if weighs {
            traversal = traversal.cost(Cost::function(|edge| edge.weight.unwrap_or(0.0)));
        }
        let starts = options.from.iter().map(|id| VertexId::from(id.as_str()));
        let mut out = io::stdout().lock();
        for path in traversal.walk(view, starts)?.take(options.limit.unwrap_or(usize::MAX)) {
            if !tell(&mut out, &path?, options.show, false)? {
                break;
            }
        }
        Ok(())
    })
}

/// Prints the path that was asked for.
pub(crate) fn path(options: &PathOptions, place: &Place) -> Result<()> {
    let (from, to) = (VertexId::from(options.from.as_str()), VertexId::from(options.to.as_str()));
    let bar = Progress::of_unknown(&format!("{}: searching", place.node));
    let paths = place.read(|view| search(view, options, &from, &to));
    bar.end();
    let paths = paths?;
    if paths.is_empty() {
        return Err(found(format!(
            "there is no path from {from} to {to}: try --direction both, or leave out --type"
        )));
    }
    let mut out = io::stdout().lock();
    for path in &paths {
        if !tell(&mut out, path, options.show, true)? {
            break;
        }
    }
    Ok(())
}

fn search(view: &mut View<'_>, options: &PathOptions, from: &VertexId, to: &VertexId) -> Result<Vec<Path>> {
    let reach = options.reach.reach();
    if options.cheapest && view.parts().0.weight().is_none() {
        return Err(wrong_use(
            "the graph has no weight, which --cheapest adds up: make it with --weight PROPERTY, or leave it out",
        ));
    }
    Ok(match (options.cheapest, options.count) {
        (false, 1) => algorithm::shortest_path(view, from, to, &reach)?.into_iter().collect(),
        (false, count) => algorithm::all_shortest_paths(view, from, to, &reach, count)?,
        (true, 1) => {
            algorithm::cheapest_path(view, from, to, &reach, &mut Cost::Weight)?.into_iter().collect()
        }
        (true, count) => algorithm::cheapest_paths(view, from, to, &reach, &mut Cost::Weight, count)?,
    })
}

/// Prints a path; false when nobody reads any more.
fn tell(out: &mut dyn Write, path: &Path, show: Show, with_cost: bool) -> Result<bool> {
    let written = match show {
        Show::Vertex => writeln!(out, "{}", path.end()),
        Show::Json => writeln!(out, "{}", as_json(path)),
        Show::Path if with_cost => writeln!(out, "{path} ({})", path.cost()),
        Show::Path => writeln!(out, "{path}"),
    };
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        written => written.map(|()| true).map_err(doing("write the path")),
    }
}

fn as_json(path: &Path) -> Json {
    let vertices: Vec<Json> = path.vertices().into_iter().map(id_of).collect();
    let edge = |edge: &Edge| {
        json!({"id": edge.id, "source": id_of(&edge.source), "type": *edge.kind, "target": id_of(&edge.target),
               "weight": edge.weight})
    };
    let edges: Vec<Json> = path.edges().into_iter().map(edge).collect();
    json!({"vertices": vertices, "edges": edges, "cost": path.cost()})
}

fn id_of(id: &VertexId) -> Json {
    id.as_i64().map_or_else(|| Json::from(id.to_string()), Json::from)
}
