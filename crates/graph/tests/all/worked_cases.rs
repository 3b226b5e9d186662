//! Worked cases of a graph database over rows that users knew: rows of tables as vertices, friends of friends, roads between
//! cities. Each answer is the one that was published, or the right one where that was wrong.

use perilune::{node, Database, Session};
use perilune_graph::{
    algorithm, Cost, Edge, Evaluation, Graph, GraphOptions, Path, Reach, Result, Traversal, Uniqueness,
    VertexId,
};

/// A graph of edges written `source TYPE target`, or with a weight behind, divided by commas.
fn graph_of(edges: &str) -> Result<(Session, Graph)> {
    let mut session = Database::open("memory:")?.session()?;
    let s = &mut session;
    let mut graph = Graph::create(s, &node!("^g")?, &GraphOptions { weight: Some("weight".to_owned()) })?;
    for edge in edges.split(',') {
        let words: Vec<&str> = edge.split_whitespace().collect();
        for end in [words[0], words[2]] {
            if !graph.has_vertex(s, &end.into())? {
                graph.add_vertex(s, end, &[])?;
            }
        }
        let id = graph.add_edge(s, &words[0].into(), words[1], &words[2].into())?;
        if let Some(weight) = words.get(3) {
            graph.set_edge_property(
                s,
                id,
                "weight",
                weight.parse::<i64>().map_err(perilune::Error::other)?,
            )?;
        }
    }
    Ok((session, graph))
}

fn paths(
    session: &mut Session,
    graph: &Graph,
    traversal: &mut Traversal<'_>,
    start: &str,
) -> Result<Vec<String>> {
    graph.read(session, |view| traversal.walk(view, [start])?.map(|path| Ok(path?.to_string())).collect())
}

fn ends(
    session: &mut Session,
    graph: &Graph,
    traversal: &mut Traversal<'_>,
    start: &str,
) -> Result<Vec<String>> {
    graph.read(session, |view| {
        traversal.walk(view, [start])?.map(|path| Ok(path?.end().to_string())).collect()
    })
}

#[test]
fn a_walk_goes_against_edges_too() -> Result<()> {
    let (mut session, graph) = graph_of("KEN KNOWS JACK, JILL KNOWS JACK")?;
    let mut both = Traversal::breadth_first(Reach::both());
    assert_eq!(
        paths(&mut session, &graph, &mut both, "KEN")?,
        ["KEN", "KEN-[KNOWS]->JACK", "KEN-[KNOWS]->JACK<-[KNOWS]-JILL"]
    );
    Ok(())
}

#[test]
fn friends_of_friends_who_have_seen_the_picture() -> Result<()> {
    let (mut session, graph) = graph_of(
        "A KNOWS B, B KNOWS D, D KNOWS G, A KNOWS C, C KNOWS E, C KNOWS F, \
         A VIEWED_PIC B, B VIEWED_PIC D, D VIEWED_PIC A, F VIEWED_PIC A, E VIEWED_PIC G",
    )?;
    let third = |path: &Path, _: &mut perilune_graph::View<'_>| {
        Ok(match path.length() {
            0..=2 => Evaluation::ExcludeAndContinue,
            3 => Evaluation::IncludeAndContinue,
            _ => Evaluation::IncludeAndPrune,
        })
    };
    // The last edge must lead back to the start.
    let by = |kind: &'static str| {
        move |path: &Path, view: &mut perilune_graph::View<'_>| {
            let is_last = path.length() >= 2;
            let reach = Reach::out().of(if is_last { "VIEWED_PIC" } else { kind });
            let mut edges = view.edges(path.end(), &reach)?;
            edges.retain(|edge: &Edge| !is_last || edge.target == *path.start());
            Ok(edges)
        }
    };
    for (kind, expected) in [
        (
            "KNOWS",
            &["A-[KNOWS]->B-[KNOWS]->D-[VIEWED_PIC]->A", "A-[KNOWS]->C-[KNOWS]->F-[VIEWED_PIC]->A"][..],
        ),
        ("VIEWED_PIC", &["A-[VIEWED_PIC]->B-[VIEWED_PIC]->D-[VIEWED_PIC]->A"]),
    ] {
        for traversal in [Traversal::breadth_first(Reach::out()), Traversal::depth_first(Reach::out())] {
            let mut traversal = traversal.unique(Uniqueness::EdgeGlobal).evaluate(third).expand(by(kind));
            assert_eq!(paths(&mut session, &graph, &mut traversal, "A")?, expected);
        }
    }
    Ok(())
}

#[test]
fn rows_of_two_tables_are_found_by_their_relation() -> Result<()> {
    let mut session = Database::open("memory:")?.session()?;
    let s = &mut session;
    let mut graph = Graph::create(s, &node!("^g")?, &GraphOptions::default())?;
    let user = |pk: i32| node!("^users", pk).map(|row| VertexId::of_node(&row));
    let city = |pk: i32| node!("^cities", pk).map(|row| VertexId::of_node(&row));
    for pk in 1..=10 {
        graph.add_vertex(s, user(pk)?, &["User"])?;
        graph.add_vertex(s, city(10 * pk)?, &["City"])?;
    }
    let visits = [(10, &[1, 4, 7, 10][..]), (20, &[1, 2, 3, 4, 5]), (30, &[1, 2, 4])];
    for (pk, users) in visits {
        for visitor in users {
            graph.add_edge(s, &user(*visitor)?, "HAS_VISITED", &city(pk)?)?;
        }
    }
    let visitors = |graph: &Graph, s: &mut Session, pk| -> Result<Vec<VertexId>> {
        let edges = graph.edges(s, &city(pk)?, &Reach::incoming().of("HAS_VISITED"))?;
        Ok(edges.into_iter().map(|edge| edge.source).collect())
    };
    // User 10 and city 10 are two vertices.
    assert_eq!(visitors(&graph, s, 10)?, [user(1)?, user(10)?, user(4)?, user(7)?]);
    assert_eq!(graph.edges(s, &user(10)?, &Reach::incoming())?, []);
    let edge = graph.edges(s, &user(7)?, &Reach::out().of("HAS_VISITED"))?[0].id;
    graph.delete_edge(s, edge)?;
    assert_eq!(visitors(&graph, s, 10)?, [user(1)?, user(10)?, user(4)?]);
    assert_eq!(visitors(&graph, s, 30)?, [user(1)?, user(2)?, user(4)?]);
    Ok(())
}

#[test]
fn the_cheapest_way_from_washington_to_san_francisco() -> Result<()> {
    let (mut session, graph) = graph_of(
        "DC PATH CHI 200, CHI PATH SF 500, CHI PATH CHE 200, CHE PATH SF 200, DC PATH ATL 100, \
         ATL PATH DAL 100, DAL PATH SF 300, DAL PATH ALB 100, ALB PATH SF 100, DC PATH LEX 50, \
         LEX PATH STL 50, STL PATH KC 50, KC PATH DEN 50, DEN PATH SLC 50, SLC PATH SF 50",
    )?;
    graph.read(&mut session, |view| {
        let (from, to) = ("DC".into(), "SF".into());
        let paths = algorithm::cheapest_paths(view, &from, &to, &Reach::out(), &mut Cost::Weight, 9)?;
        let costs: Vec<f64> = paths.iter().map(Path::cost).collect();
        assert_eq!(costs, [300.0, 400.0, 500.0, 600.0, 700.0]);
        assert_eq!(
            paths[0].to_string(),
            "DC-[PATH]->LEX-[PATH]->STL-[PATH]->KC-[PATH]->DEN-[PATH]->SLC-[PATH]->SF"
        );
        let fewest = algorithm::shortest_path(view, &from, &to, &Reach::out())?;
        assert_eq!(fewest.map(|path| path.to_string()).as_deref(), Some("DC-[PATH]->CHI-[PATH]->SF"));
        Ok(())
    })
}

#[test]
fn fractions_of_distances_count() -> Result<()> {
    let (mut session, graph) = graph_of("A PATH G, G PATH H, H PATH B, A PATH I, I PATH B")?;
    let place = |id: &VertexId| match id.to_string().as_str() {
        "A" => (0.0, 0.0),
        "B" => (100.0, 100.0),
        "G" => (25.0, 25.0),
        "H" => (75.0, 75.0),
        _ => (60.0_f64, 40.0_f64),
    };
    let mut cost = Cost::function(|edge: &Edge| {
        let ((ax, ay), (bx, by)) = (place(&edge.source), place(&edge.target));
        (ax - bx).hypot(ay - by)
    });
    let path = graph.read(&mut session, |view| {
        algorithm::cheapest_path(view, &"A".into(), &"B".into(), &Reach::out(), &mut cost)
    })?;
    let path = path.expect("there are two");
    assert_eq!(path.to_string(), "A-[PATH]->G-[PATH]->H-[PATH]->B");
    // Where costs were cut to integers it was 140.
    assert!((path.cost() - 20_000_f64.sqrt()).abs() < 1e-12, "{}", path.cost());
    Ok(())
}

#[test]
fn around_a_circle_without_uniqueness_and_over_each_edge_once() -> Result<()> {
    let (mut session, graph) = graph_of("X KNOWS Y, Y KNOWS Z, Z KNOWS X")?;
    let mut around = Traversal::breadth_first(Reach::out()).unique(Uniqueness::None).depths(0, 9);
    assert_eq!(ends(&mut session, &graph, &mut around, "X")?.concat(), "XYZXYZXYZX");
    let (mut session, graph) = graph_of(
        "X KNOWS Y, X KNOWS W, Y LIKES Z, W BLOCKS Z, W KNOWS V, Z KNOWS X, Z FRIENDS U, V KNOWS Z, U KNOWS V",
    )?;
    for mut each_once in [Traversal::breadth_first(Reach::out()), Traversal::depth_first(Reach::out())]
        .map(|traversal| traversal.unique(Uniqueness::EdgeGlobal))
    {
        let mut found = ends(&mut session, &graph, &mut each_once, "X")?;
        found.sort_unstable();
        assert_eq!(found.concat(), "UVVWXXYZZZ", "the start, and each of nine edges once");
    }
    Ok(())
}

#[test]
fn orders_and_depths_of_ten_friends() -> Result<()> {
    let (mut session, graph) = graph_of(
        "2 KNOWS 1, 2 KNOWS 3, 3 KNOWS 4, 4 KNOWS 5, 2 KNOWS 6, 6 KNOWS 7, 1 KNOWS 8, 8 KNOWS 9, \
         4 KNOWS Lori9, 1 LIKES 2",
    )?;
    let s = &mut session;
    let knows = || Reach::out().of("KNOWS");
    let walk = |s: &mut Session, mut traversal: Traversal<'_>| -> Result<String> {
        Ok(ends(s, &graph, &mut traversal, "2")?.join(" "))
    };
    assert_eq!(walk(s, Traversal::breadth_first(knows()))?, "2 1 3 6 8 4 7 9 5 Lori9");
    assert_eq!(walk(s, Traversal::depth_first(knows()))?, "2 1 8 9 3 4 5 Lori9 6 7");
    assert_eq!(walk(s, Traversal::breadth_first(knows()).depths(1, 2))?, "1 3 6 8 4 7");
    assert_eq!(walk(s, Traversal::depth_first(knows()).depths(1, 2))?, "1 8 3 4 6 7");
    assert_eq!(walk(s, Traversal::breadth_first(Reach::incoming().of("LIKES")))?, "2 1");
    Ok(())
}
