//! What other faces walk by: journeys answer what walks do, scans what lists do; requests are read, or refused by name.

use perilune::{node, Database, Session};
use perilune_graph::{
    Cost, Direction, EdgeScan, Error, Graph, GraphOptions, Journey, Limits, Path, Reach, Request, Result,
    Step, Traversal, Uniqueness, VertexId,
};

/// Forty edges of two types between ten vertices, some of them loops, by a fixed rule.
fn graph() -> Result<(Session, Graph)> {
    let mut session = Database::open("memory:")?.session()?;
    let mut graph =
        Graph::create(&mut session, &node!("^g")?, &GraphOptions { weight: Some("w".to_owned()) })?;
    for id in 0..9_i64 {
        graph.add_vertex(&mut session, id, &[])?;
    }
    graph.add_vertex(&mut session, "x", &[])?;
    let vertex = |number: i64| if number == 9 { VertexId::from("x") } else { VertexId::from(number) };
    for number in 0..40_i64 {
        let (from, to) = (vertex(number * 7 % 10), vertex((number + number / 7 * 3) % 10));
        let edge = graph.add_edge(&mut session, &from, ["A", "B"][number as usize / 3 % 2], &to)?;
        graph.set_edge_property(&mut session, edge, "w", number % 5)?;
    }
    Ok((session, graph))
}

fn paths_of(graph: &Graph, session: &mut Session, mut journey: Journey) -> Result<Vec<String>> {
    let mut found = Vec::new();
    // A view for each path, as other languages come.
    while let Some(path) = graph.read(session, |view| journey.next(view))? {
        found.push(path.to_string());
    }
    Ok(found)
}

#[test]
fn a_journey_finds_what_a_walk_finds() -> Result<()> {
    let (mut session, graph) = graph()?;
    for text in [
        "",
        r#"{"direction": "both", "uniqueness": "edge_global"}"#,
        r#"{"order": "depth", "types": ["A"], "uniqueness": "vertex_path", "max_depth": 4}"#,
        r#"{"order": "cheapest", "cost": "weight"}"#,
        r#"{"direction": "in", "uniqueness": "none", "min_depth": 2, "max_depth": 3}"#,
        r#"{"uniqueness": "vertex_recent", "recent": 2, "max_depth": 3}"#,
    ] {
        let request = Request::parse(text)?;
        let walked = graph.read(&mut session, |view| {
            request.traversal().walk(view, [1])?.map(|path| Ok(path?.to_string())).collect::<Result<Vec<_>>>()
        })?;
        let journey = graph.read(&mut session, |view| {
            Journey::begin(request.traversal(), request.limits, view, vec![1.into()])
        })?;
        assert_eq!(paths_of(&graph, &mut session, journey)?, walked, "{text}");
        assert!(walked.len() > 3, "{text}");
    }
    Ok(())
}

#[test]
fn the_caller_prunes_and_leads() -> Result<()> {
    let (mut session, graph) = graph()?;
    let s = &mut session;
    // Cheapest first with the caller's costs and ranks finds what a function of a traversal finds.
    let cost = |id: i64| (id * 13 % 7) as f64;
    let expected = graph.read(s, |view| {
        let mut traversal = Traversal::lowest_first(Reach::out(), Path::cost)
            .cost(Cost::function(|edge| cost(edge.id)))
            .evaluate(|path, _| {
                let ends = *path.end() == 2.into();
                Ok(perilune_graph::Evaluation::of(true, !ends))
            });
        traversal.walk(view, [0])?.map(|path| Ok(path?.to_string())).collect::<Result<Vec<_>>>()
    })?;
    let mut found = Vec::new();
    let mut journey = graph.read(s, |view| {
        let traversal = Traversal::lowest_first(Reach::incoming(), |_| f64::NAN);
        Journey::begin(traversal, Limits::default(), view, vec![0.into()])
    })?;
    while let Some(path) = graph.read(s, |view| journey.next(view))? {
        found.push(path.to_string());
        if *path.end() == 2.into() {
            journey.prune();
            assert!(!journey.follow(Vec::new()), "what is pruned is not followed");
            continue;
        }
        let edges = graph.edges(s, path.end(), &Reach::out())?;
        let steps = edges.into_iter().map(|edge| {
            let price = cost(edge.id);
            Step { rank: path.cost() + price, cost: price, edge }
        });
        assert!(journey.follow(steps.collect()));
    }
    assert_eq!(found, expected);
    Ok(())
}

#[test]
fn limits_count_over_all_views() -> Result<()> {
    let (mut session, graph) = graph()?;
    let limits = Limits { edges: 9, ..Limits::default() };
    let journey = graph.read(&mut session, |view| {
        Journey::begin(Traversal::breadth_first(Reach::both()), limits, view, vec![1.into()])
    })?;
    let outcome = paths_of(&graph, &mut session, journey);
    assert!(matches!(outcome, Err(Error::Limit { what: "edges", limit: 9 })), "{outcome:?}");
    Ok(())
}

#[test]
fn a_scan_finds_what_a_list_holds() -> Result<()> {
    let (mut session, graph) = graph()?;
    let s = &mut session;
    let all = |scan: &mut EdgeScan, s: &mut Session| -> Result<Vec<i64>> {
        let mut ids = Vec::new();
        while let Some(edge) = scan.next(s)? {
            ids.push(edge.id);
        }
        Ok(ids)
    };
    for direction in [Direction::Out, Direction::In, Direction::Both] {
        for reach in
            [Reach::new(direction), Reach::new(direction).of("B"), Reach::new(direction).of("B").of("A")]
        {
            let mut count = 0;
            for vertex in graph.vertices(s)? {
                let listed = graph.edges(s, &vertex, &reach)?;
                let mut scan = EdgeScan::new(&graph, &reach, Some(&vertex), None)?;
                let ids: Vec<i64> = listed.iter().map(|edge| edge.id).collect();
                assert_eq!(all(&mut scan, s)?, ids, "{vertex} {reach:?}");
                count += ids.len();
                for other in graph.vertices(s)? {
                    let between = listed.iter().filter(|edge| *edge.other(&vertex) == other);
                    let ids: Vec<i64> = between.map(|edge| edge.id).collect();
                    let mut scan = EdgeScan::new(&graph, &reach, Some(&vertex), Some(&other))?;
                    assert_eq!(all(&mut scan, s)?, ids, "{vertex} {other} {reach:?}");
                }
            }
            if direction != Direction::Both {
                assert_eq!(all(&mut EdgeScan::new(&graph, &reach, None, None)?, s)?.len(), count);
            }
        }
    }
    Ok(())
}

#[test]
fn a_request_is_read_or_refused_by_name() -> Result<()> {
    let request = Request::parse(
        r#"{"types": "A", "uniqueness": "edge_recent", "recent": 3.0, "max_milliseconds": 5}"#,
    )?;
    assert_eq!((request.reach, request.uniqueness), (Reach::out().of("A"), Uniqueness::EdgeRecent(3)));
    assert_eq!(request.limits.time.as_millis(), 5);
    for (text, says) in [
        (r#"{"max_depth": -1}"#, "max_depth is a whole number"),
        (r#"{"max_depth": 1.5}"#, "max_depth is a whole number"),
        (r#"{"types": [7]}"#, "types is a word"),
        (r#"{"uniqueness": "vertex_recent"}"#, "needs the option recent"),
        (r#"{"cost": "km"}"#, "cost cannot be km"),
        (r#"{"nothing": 1}"#, "no option nothing"),
        ("[]", "options are a JSON object"),
    ] {
        let told = Request::parse(text).expect_err(text).to_string();
        assert!(told.contains(says), "{text}: {told}");
    }
    Ok(())
}
