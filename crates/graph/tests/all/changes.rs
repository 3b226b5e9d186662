//! Vertices and edges: what each change leaves behind, refuses, and takes back.

use perilune::{node, Database, Session, Value};
use perilune_graph::{Direction, Edges, Error, Graph, GraphOptions, Reach, Result, VertexId};

fn fresh(options: &GraphOptions) -> Result<(Session, Graph)> {
    let mut session = Database::open("memory:")?.session()?;
    let graph = Graph::create(&mut session, &node!("^app", "social")?, options)?;
    Ok((session, graph))
}

fn faults(session: &mut Session, graph: &Graph) -> Result<Vec<String>> {
    Ok(graph.check(session)?.faults)
}

#[test]
fn edges_are_seen_from_both_ends_and_several_of_a_type_are_told_apart() -> Result<()> {
    let (mut session, mut graph) = fresh(&GraphOptions::default())?;
    let s = &mut session;
    let (user, city) = (VertexId::of_node(&node!("^users", 10)?), VertexId::of_node(&node!("^cities", 10)?));
    for id in [&user, &city] {
        graph.add_vertex(s, id, &[])?;
    }
    let first = graph.add_edge(s, &user, "VISITED", &city)?;
    let second = graph.add_edge(s, &user, "VISITED", &city)?;
    let own = graph.add_edge(s, &user, "KNOWS", &user)?;
    let ids = |edges: Vec<perilune_graph::Edge>| edges.iter().map(|edge| edge.id).collect::<Vec<_>>();
    assert_eq!(ids(graph.edges(s, &user, &Reach::out())?), [own, first, second]);
    assert_eq!(ids(graph.edges(s, &user, &Reach::both())?), [own, first, second], "a loop counts once");
    assert_eq!(ids(graph.edges(s, &user, &Reach::incoming())?), [own]);
    assert_eq!(ids(graph.edges(s, &city, &Reach::incoming().of("VISITED"))?), [first, second]);
    assert_eq!(graph.edges(s, &city, &Reach::out())?, []);
    assert_eq!(graph.degree(s, &user, Direction::Out, None)?, 3);
    assert_eq!(graph.degree(s, &city, Direction::In, Some("VISITED"))?, 2);
    let edge = graph.edge(s, second)?.expect("it was added");
    assert_eq!((&edge.source, &*edge.kind, &edge.target), (&user, "VISITED", &city));
    assert_eq!((graph.count_vertices(s)?, graph.count_edges(s)?), (2, 3));

    graph.delete_edge(s, first)?;
    assert!(matches!(graph.delete_edge(s, first), Err(Error::NoEdge(id)) if id == first));
    assert_eq!(ids(graph.edges(s, &city, &Reach::both())?), [second]);
    assert_eq!(faults(s, &graph)?, [""; 0]);
    assert_eq!(user.node(), Some(node!("^users", 10)?));
    Ok(())
}

#[test]
fn a_vertex_goes_with_its_edges_or_not_at_all() -> Result<()> {
    let (mut session, mut graph) = fresh(&GraphOptions::default())?;
    let s = &mut session;
    for id in 1..=3 {
        graph.add_vertex(s, id, &["Person"])?;
    }
    graph.add_index(s, "Person", "name")?;
    graph.set_property(s, &1.into(), "name", "Ada")?;
    graph.add_edge(s, &1.into(), "KNOWS", &2.into())?;
    let own = graph.add_edge(s, &1.into(), "KNOWS", &1.into())?;
    graph.set_edge_property(s, own, "since", 1833)?;
    let kept = graph.add_edge(s, &2.into(), "KNOWS", &3.into())?;
    assert!(matches!(graph.delete_vertex(s, &1.into(), Edges::Refuse), Err(Error::HasEdges(_))));
    assert_eq!(graph.count_edges(s)?, 3);
    graph.delete_vertex(s, &1.into(), Edges::Remove)?;
    assert_eq!((graph.count_vertices(s)?, graph.count_edges(s)?), (2, 1));
    assert!(graph.edge(s, kept)?.is_some());
    assert_eq!(graph.edge_properties(s, own)?, []);
    assert_eq!(graph.find(s, "Person", "name", "Ada")?, []);
    assert_eq!(graph.vertices_with(s, "Person")?, [2.into(), 3.into()]);
    assert!(matches!(graph.delete_vertex(s, &1.into(), Edges::Remove), Err(Error::NoVertex(_))));
    assert!(matches!(graph.add_edge(s, &1.into(), "KNOWS", &2.into()), Err(Error::NoVertex(_))));
    assert!(matches!(graph.add_vertex(s, 2, &[]), Err(Error::VertexExists(_))));
    assert_eq!(faults(s, &graph)?, [""; 0]);
    Ok(())
}

#[test]
fn indexes_follow_labels_and_properties() -> Result<()> {
    let (mut session, graph) = fresh(&GraphOptions::default())?;
    let s = &mut session;
    let long = "x".repeat(4_000);
    let values = [
        Value::Int(5),
        Value::Double(5.0),
        Value::Bool(true),
        Value::Null,
        Value::Double(f64::INFINITY),
        Value::String(long.clone().into_bytes()),
    ];
    for (id, value) in (1_i64..).zip(&values) {
        graph.add_vertex(s, id, &["Thing"])?;
        graph.set_property(s, &id.into(), "is", value)?;
    }
    for is_indexed in [false, true] {
        if is_indexed {
            graph.add_index(s, "Thing", "is")?;
        }
        assert_eq!(graph.find(s, "Thing", "is", 5)?, [1.into(), 2.into()], "numbers by value");
        assert_eq!(graph.find(s, "Thing", "is", "5")?, [], "a text is no number");
        assert_eq!(graph.find(s, "Thing", "is", true)?, [3.into()]);
        assert_eq!(graph.find(s, "Thing", "is", &*long)?, [6.into()]);
        assert_eq!(graph.find(s, "Thing", "is", &long[..200])?, []);
    }
    graph.set_property(s, &1.into(), "is", "changed")?;
    graph.remove_label(s, &2.into(), "Thing")?;
    graph.delete_property(s, &3.into(), "is")?;
    assert_eq!(graph.find(s, "Thing", "is", 5)?, []);
    assert_eq!(graph.find(s, "Thing", "is", true)?, []);
    assert_eq!(graph.find(s, "Thing", "is", "changed")?, [1.into()]);
    graph.add_label(s, &2.into(), "Thing")?;
    assert_eq!(graph.find(s, "Thing", "is", 5)?, [2.into()]);
    assert_eq!(faults(s, &graph)?, [""; 0]);
    graph.drop_index(s, "Thing", "is")?;
    assert_eq!(graph.find(s, "Thing", "is", 5)?, [2.into()]);
    Ok(())
}

#[test]
fn weights_are_told_with_the_edges() -> Result<()> {
    let (mut session, mut graph) = fresh(&GraphOptions { weight: Some("km".to_owned()) })?;
    let s = &mut session;
    for id in [1, 2] {
        graph.add_vertex(s, id, &[])?;
    }
    let road = graph.add_edge(s, &1.into(), "ROAD", &2.into())?;
    assert_eq!(graph.edges(s, &1.into(), &Reach::out())?[0].weight, None);
    graph.set_edge_property(s, road, "km", 12.5)?;
    let mut graph = Graph::open(s, graph.root())?;
    assert_eq!(graph.edges(s, &2.into(), &Reach::incoming())?[0].weight, Some(12.5));
    assert_eq!(graph.edge(s, road)?.and_then(|edge| edge.weight), Some(12.5));
    graph.delete_edge_property(s, road, "km")?;
    assert_eq!(graph.edges(s, &1.into(), &Reach::out())?[0].weight, None);
    let other = graph.add_edge(s, &1.into(), "ROAD", &2.into())?;
    assert!(other > road, "a handle that is opened anew takes other ids");
    assert_eq!(faults(s, &graph)?, [""; 0]);
    Ok(())
}

#[test]
fn what_the_callers_transaction_takes_back_leaves_nothing() -> Result<()> {
    let (mut session, mut graph) = fresh(&GraphOptions::default())?;
    let s = &mut session;
    graph.add_vertex(s, 1, &["Person"])?;
    let before = s.get_tree(&graph.root().clone())?;
    let outcome = s.transaction(|s| {
        graph.add_vertex(s, 2, &["Person"])?;
        graph.add_edge(s, &1.into(), "KNOWS", &2.into())?;
        Ok(graph.delete_vertex(s, &7.into(), Edges::Remove)?)
    });
    assert!(matches!(outcome.map_err(Error::from), Err(Error::NoVertex(id)) if id == 7.into()));
    assert_eq!(s.get_tree(&graph.root().clone())?, before);
    assert!(matches!(Graph::open(s, &node!("^app")?), Err(Error::NotAGraph(_))));
    assert!(matches!(Graph::create(s, &node!("^app")?, &GraphOptions::default()), Err(Error::NotEmpty(_))));
    assert!(matches!(graph.add_vertex(s, &*"v".repeat(501), &[]), Err(Error::Invalid(_))));
    assert!(matches!(graph.add_edge(s, &1.into(), "", &1.into()), Err(Error::Invalid(_))));
    Ok(())
}

/// Each entry that is missing or too many is found: the canary of the check.
#[test]
fn a_check_finds_every_node_that_is_missing() -> Result<()> {
    let (mut session, mut graph) = fresh(&GraphOptions { weight: Some("km".to_owned()) })?;
    let s = &mut session;
    graph.add_index(s, "Person", "name")?;
    for id in [1, 2] {
        graph.add_vertex(s, id, &["Person"])?;
        graph.set_property(s, &id.into(), "name", "Ada")?;
    }
    let edge = graph.add_edge(s, &1.into(), "KNOWS", &2.into())?;
    graph.set_edge_property(s, edge, "km", 3)?;
    assert_eq!(faults(s, &graph)?, [""; 0]);
    let root = graph.root().clone();
    for (node, value) in s.get_tree(&root)? {
        // What no other node tells of: how it was made, which ids are used, what is indexed.
        let text = node.to_string();
        if text.contains("\"graph\"") || text.ends_with(r#""index","Person","name")"#) {
            continue;
        }
        s.delete_value(&node)?;
        assert!(!faults(s, &graph)?.is_empty(), "{node} is missing");
        s.set(&node, &value)?;
    }
    for stray in [
        root.child("out")?.with(1)?.with("KNOWS")?.with(2)?.with(99)?,
        root.child("in")?.with(2)?.with("KNOWS")?.with(1)?.with(99)?,
        root.child("label")?.with("Person")?.with(3)?,
        root.child("index")?.with("Person")?.with("name")?.with("Ben")?.with(1)?,
        root.child("vertex")?.with(1)?.with("out")?.with("LIKES")?,
    ] {
        s.set(&stray, 1)?;
        assert!(!faults(s, &graph)?.is_empty(), "{stray} is too many");
        s.delete_value(&stray)?;
    }
    assert_eq!(faults(s, &graph)?, [""; 0]);
    Ok(())
}
