//! Walks: order, evaluators, uniqueness, depths, limits; and that a view is one state.

use std::time::Duration;

use perilune::{node, Database, Session};
use perilune_graph::{
    Cost, Edges, Error, Evaluation, Graph, GraphOptions, Limits, Path, Reach, Result, Traversal, Uniqueness,
    View,
};

/// A graph of these edges, `source type target weight`.
fn graph_of(edges: &[(&str, &str, &str, f64)]) -> Result<(Database, Session, Graph)> {
    let database = Database::open("memory:")?;
    let mut session = database.session()?;
    let s = &mut session;
    let mut graph = Graph::create(s, &node!("^g")?, &GraphOptions { weight: Some("km".to_owned()) })?;
    for (source, kind, target, weight) in edges {
        for end in [*source, *target] {
            if !graph.has_vertex(s, &end.into())? {
                graph.add_vertex(s, end, &[])?;
            }
        }
        let edge = graph.add_edge(s, &(*source).into(), kind, &(*target).into())?;
        graph.set_edge_property(s, edge, "km", *weight)?;
    }
    Ok((database, session, graph))
}

/// The paths of a walk from `a`, as they are written.
fn paths(session: &mut Session, graph: &Graph, traversal: &mut Traversal<'_>) -> Result<Vec<String>> {
    graph.read(session, |view| traversal.walk(view, ["a"])?.map(|path| Ok(path?.to_string())).collect())
}

fn ends(session: &mut Session, graph: &Graph, traversal: &mut Traversal<'_>) -> Result<String> {
    graph.read(session, |view| traversal.walk(view, ["a"])?.map(|path| Ok(path?.end().to_string())).collect())
}

const TREE: &[(&str, &str, &str, f64)] = &[
    ("a", "R", "b", 5.0),
    ("a", "R", "c", 1.0),
    ("b", "R", "d", 1.0),
    ("c", "R", "e", 1.0),
    ("c", "R", "f", 9.0),
];

#[test]
fn orders_differ_in_what_comes_first() -> Result<()> {
    let (_database, mut session, graph) = graph_of(TREE)?;
    let s = &mut session;
    assert_eq!(ends(s, &graph, &mut Traversal::breadth_first(Reach::out()))?, "abcdef");
    assert_eq!(ends(s, &graph, &mut Traversal::depth_first(Reach::out()))?, "abdcef");
    let mut cheapest = Traversal::lowest_first(Reach::out(), Path::cost).cost(Cost::Weight);
    assert_eq!(ends(s, &graph, &mut cheapest)?, "acebdf");
    let mut deepest = Traversal::lowest_first(Reach::out(), |path| -(path.length() as f64));
    assert_eq!(ends(s, &graph, &mut deepest)?, "abdcef");
    let mut none = Traversal::breadth_first(Reach::incoming());
    assert_eq!(ends(s, &graph, &mut none)?, "a");
    let mut between = Traversal::depth_first(Reach::out()).depths(1, 1);
    assert_eq!(ends(s, &graph, &mut between)?, "bc");
    Ok(())
}

#[test]
fn evaluators_include_and_prune_in_both_orders() -> Result<()> {
    let (_database, mut session, graph) = graph_of(TREE)?;
    for (evaluation, breadth, depth) in [
        (Evaluation::IncludeAndContinue, "abcdef", "abdcef"),
        (Evaluation::IncludeAndPrune, "abcd", "abdc"),
        (Evaluation::ExcludeAndContinue, "abdef", "abdef"),
        (Evaluation::ExcludeAndPrune, "abd", "abd"),
    ] {
        let at_c = |path: &Path, _: &mut View<'_>| {
            Ok(if *path.end() == "c".into() { evaluation } else { Evaluation::IncludeAndContinue })
        };
        let mut traversal = Traversal::breadth_first(Reach::out()).evaluate(at_c);
        assert_eq!(ends(&mut session, &graph, &mut traversal)?, breadth, "{evaluation:?}");
        let mut traversal = Traversal::depth_first(Reach::out()).evaluate(at_c);
        assert_eq!(ends(&mut session, &graph, &mut traversal)?, depth, "{evaluation:?}");
        // Another one cannot include what this one excludes.
        let mut both = Traversal::breadth_first(Reach::out())
            .evaluate(at_c)
            .evaluate(|_, _| Ok(Evaluation::IncludeAndContinue));
        assert_eq!(ends(&mut session, &graph, &mut both)?, breadth, "{evaluation:?}");
    }
    Ok(())
}

#[test]
fn uniqueness_says_what_may_be_met_again() -> Result<()> {
    let (_database, mut session, graph) =
        graph_of(&[("a", "R", "b", 1.0), ("b", "R", "c", 1.0), ("c", "R", "a", 1.0), ("a", "S", "b", 1.0)])?;
    let s = &mut session;
    // Those that forget go around for ever: eleven paths are enough.
    for (uniqueness, expected) in [
        (Uniqueness::VertexGlobal, "abc"),
        (Uniqueness::VertexPath, "abbcc"),
        (Uniqueness::EdgeGlobal, "abbca"),
        (Uniqueness::EdgePath, "abbccaabb"),
        (Uniqueness::VertexRecent(3), "abc"),
        (Uniqueness::VertexRecent(2), "abcabcabcab"),
        (Uniqueness::EdgeRecent(4), "abbca"),
        (Uniqueness::EdgeRecent(3), "abbcabbcabb"),
    ] {
        let mut traversal = Traversal::breadth_first(Reach::out()).unique(uniqueness);
        let found: String = graph.read(s, |view| {
            traversal.walk(view, ["a"])?.take(11).map(|path| Ok(path?.end().to_string())).collect()
        })?;
        assert_eq!(found, expected, "{uniqueness:?}");
    }
    let mut around = Traversal::breadth_first(Reach::out()).unique(Uniqueness::None).depths(3, 4);
    assert_eq!(ends(s, &graph, &mut around)?, "aabbbb");
    let mut around = Traversal::depth_first(Reach::both().of("S")).unique(Uniqueness::EdgePath);
    assert_eq!(paths(s, &graph, &mut around)?, ["a", "a-[S]->b"]);
    Ok(())
}

#[test]
fn a_function_decides_where_edges_lead() -> Result<()> {
    let (_database, mut session, graph) = graph_of(TREE)?;
    // Against all edges but at the start.
    let mut traversal =
        Traversal::breadth_first(Reach::out()).unique(Uniqueness::EdgePath).expand(|path, view| {
            view.edges(path.end(), &if path.length() == 0 { Reach::out() } else { Reach::both() })
        });
    assert_eq!(
        paths(&mut session, &graph, &mut traversal)?,
        ["a", "a-[R]->b", "a-[R]->c", "a-[R]->b-[R]->d", "a-[R]->c-[R]->e", "a-[R]->c-[R]->f"]
    );
    Ok(())
}

#[test]
fn limits_end_a_walk_with_an_error() -> Result<()> {
    let (_database, mut session, graph) = graph_of(TREE)?;
    let whole = |limits: Limits, session: &mut Session| {
        graph.read(session, |view| {
            view.limit(limits);
            let walked: Result<Vec<Path>> =
                Traversal::breadth_first(Reach::out()).walk(view, ["a"])?.collect();
            Ok(walked?.len())
        })
    };
    let limits = |edges, vertices, time| Limits { edges, vertices, time };
    let long = Duration::from_secs(1_000);
    assert_eq!(whole(limits(5, 6, long), &mut session)?, 6);
    for (limits, which) in [
        (limits(4, 6, long), "edges"),
        (limits(5, 5, long), "vertices"),
        (limits(5, 6, Duration::ZERO), "milliseconds"),
    ] {
        let outcome = whole(limits, &mut session);
        assert!(matches!(outcome, Err(Error::Limit { what, .. }) if what == which), "{outcome:?}");
    }
    // What is not asked for is not read.
    let first = graph.read(&mut session, |view| {
        view.limit(Limits { edges: 2, ..Limits::default() });
        let mut traversal = Traversal::breadth_first(Reach::out());
        let some: Result<Vec<Path>> = traversal.walk(view, ["a"])?.take(2).collect();
        Ok(some?.len())
    })?;
    assert_eq!(first, 2);
    assert!(matches!(graph.view(&mut session), Err(Error::Invalid(_))));
    let none = graph.read(&mut session, |view| {
        Ok(Traversal::breadth_first(Reach::out()).walk(view, ["nobody"])?.count())
    });
    assert!(matches!(none, Err(Error::NoVertex(_))));
    Ok(())
}

/// A path of 200,000 edges is let go of without a stack as deep; the walk holds one path at a time.
#[test]
fn a_long_path_takes_no_stack() -> Result<()> {
    let (_database, mut session, graph) = graph_of(&[("a", "R", "a", 1.0)])?;
    let mut traversal =
        Traversal::depth_first(Reach::out()).unique(Uniqueness::None).depths(200_000, 200_000);
    let length = graph.read(&mut session, |view| {
        traversal.walk(view, ["a"])?.next().expect("one path").map(|path| path.length())
    })?;
    assert_eq!(length, 200_000);
    Ok(())
}

#[test]
fn a_view_of_a_file_stays_as_it_was() -> Result<()> {
    let directory = std::env::temp_dir().join(format!("perilune-graph-walks-{}", std::process::id()));
    std::fs::create_dir_all(&directory).map_err(perilune::Error::other)?;
    let database = Database::open(directory.join("t.db"))?;
    let mut session = database.session()?;
    let s = &mut session;
    let mut graph = Graph::create(s, &node!("^g")?, &GraphOptions::default())?;
    for id in 0..100 {
        graph.add_vertex(s, id, &[])?;
    }
    for id in 0..99_i64 {
        graph.add_edge(s, &id.into(), "NEXT", &(id + 1).into())?;
    }
    graph.add_label(s, &99.into(), "Last")?;
    graph.set_property(s, &99.into(), "name", "Zoe")?;
    let mut view = graph.snapshot(&database)?;
    let mut traversal = Traversal::depth_first(Reach::out());
    let mut count = 0;
    for path in traversal.walk(&mut view, [0])? {
        // The next vertex but one is gone before the walk comes there.
        let next = path?.end().as_i64().unwrap_or(0) + 1;
        if next < 100 {
            graph.delete_vertex(s, &next.into(), Edges::Remove)?;
        }
        count += 1;
    }
    assert_eq!((count, graph.count_vertices(s)?), (100, 1));
    // All reads work on a snapshot, also those that take a transaction elsewhere.
    let (graph, snapshot) = view.parts();
    assert_eq!(graph.find(snapshot, "Last", "name", "Zoe")?, [99.into()]);
    assert_eq!((graph.count_vertices(snapshot)?, graph.count_edges(snapshot)?), (100, 99));
    assert_eq!(graph.check(snapshot)?.faults, [""; 0]);
    assert_eq!(graph.clone().find(s, "Last", "name", "Zoe")?, []);
    drop((view, session, database));
    std::fs::remove_dir_all(&directory).map_err(perilune::Error::other)?;
    Ok(())
}
