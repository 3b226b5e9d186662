//! Questions by name: each answers what the function behind it does; what is no question is refused.

use perilune::{node, Database, Session, Value};
use perilune_graph::{Error, Graph, GraphOptions, Request, Result, VertexId};

/// a to e in a line with weights, and a -> e at once.
fn line() -> Result<(Session, Graph)> {
    let mut session = Database::open("memory:")?.session()?;
    let s = &mut session;
    let mut graph = Graph::create(s, &node!("^g")?, &GraphOptions { weight: Some("w".to_owned()) })?;
    for name in ["a", "b", "c", "d", "e"] {
        graph.add_vertex(s, name, &["Letter"])?;
    }
    graph.set_property(s, &"b".into(), "n", 2)?;
    for (from, to, weight) in [("a", "b", 1), ("b", "c", 1), ("c", "d", 1), ("d", "e", 1), ("a", "e", 9)] {
        let edge = graph.add_edge(s, &from.into(), "NEXT", &to.into())?;
        graph.set_edge_property(s, edge, "w", weight)?;
    }
    Ok((session, graph))
}

fn text(value: &Value) -> String {
    match value {
        Value::Int(int) => int.to_string(),
        Value::Double(double) => format!("{double:.3}"),
        Value::String(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::Null => "-".to_owned(),
        other => format!("{other:?}"),
    }
}

fn v(text: &str) -> Value {
    Value::String(text.as_bytes().to_vec())
}

#[test]
fn every_question_has_its_answer() -> Result<()> {
    let (mut session, graph) = line()?;
    let ends = || vec![v("a"), v("e")];
    for (question, arguments, options, answer) in [
        ("vertices", vec![], "", "a b c d e"),
        ("vertices", vec![v("Letter")], "", "a b c d e"),
        ("find", vec![v("Letter"), v("n"), Value::Int(2)], "", "b"),
        ("labels", vec![v("a")], "", "Letter"),
        ("properties", vec![v("b")], "", "n|2"),
        ("edges", vec![v("a")], "", "1|a|NEXT|b|1.000 5|a|NEXT|e|9.000"),
        ("edges", vec![v("e")], r#"{"direction": "in"}"#, "5|a|NEXT|e|9.000 4|d|NEXT|e|1.000"),
        ("edge", vec![Value::Int(2)], "", "2|b|NEXT|c|1.000"),
        ("edge", vec![Value::Int(77)], "", ""),
        ("edge_properties", vec![Value::Int(2)], "", "w|1"),
        ("count", vec![], "", "5|5"),
        ("shortest_path", ends(), "", "1|0|a|0.000|-|-|-|-|- 1|1|e|1.000|5|a|NEXT|e|9.000"),
        ("shortest_paths", ends(), "", "1|0|a|0.000|-|-|-|-|- 1|1|e|1.000|5|a|NEXT|e|9.000"),
        (
            "cheapest_path",
            vec![v("a"), v("c")],
            "",
            "1|0|a|0.000|-|-|-|-|- 1|1|b|1.000|1|a|NEXT|b|1.000 1|2|c|2.000|2|b|NEXT|c|1.000",
        ),
        ("components", vec![], "", "a|1 b|1 c|1 d|1 e|1"),
        ("triangles", vec![], "", "0"),
        ("cycle", vec![], "", ""),
        ("topological_order", vec![], "", "a b c d e"),
        ("betweenness", vec![], "", "a|0.000 b|2.000 c|3.000 d|2.000 e|0.000"),
        ("check", vec![], "", "5|5|-"),
    ] {
        let request = Request::parse(options)?;
        let table = graph.read(&mut session, |view| view.ask(question, &arguments, &request))?;
        let row = |row: &Vec<Value>| {
            assert_eq!(row.len(), table.columns.len(), "{question}");
            row.iter().map(text).collect::<Vec<_>>().join("|")
        };
        assert_eq!(table.rows.iter().map(row).collect::<Vec<_>>().join(" "), answer, "{question}");
    }
    let request = Request { count: Some(2), ..Request::default() };
    let table = graph.read(&mut session, |view| view.ask("cheapest_paths", &ends(), &request))?;
    assert_eq!(table.rows.len(), 5 + 2);
    let table = graph
        .read(&mut session, |view| view.ask("page_rank", &[Value::Double(0.5), Value::Int(3)], &request))?;
    assert_eq!(table.rows.len(), 5);
    Ok(())
}

#[test]
fn what_is_no_question_is_refused() -> Result<()> {
    let (mut session, mut graph) = line()?;
    for (question, arguments, says) in [
        ("weather", vec![], "there is no question weather"),
        ("find", vec![v("Letter")], "find does not take 1 arguments"),
        ("edge", vec![v("a")], "edge takes the number of an edge"),
        ("shortest_path", vec![v("a")], "which are too few"),
        ("labels", vec![Value::Null], "an id of a vertex is an integer or a string"),
        ("cheapest_paths", vec![v("a"), v("b")], "needs the option count"),
        ("page_rank", vec![v("x")], "page_rank takes numbers"),
    ] {
        let told = graph.read(&mut session, |view| view.ask(question, &arguments, &Request::default()));
        let told = told.expect_err(question).to_string();
        assert!(told.contains(says), "{question}: {told}");
    }
    graph.add_edge(&mut session, &"e".into(), "NEXT", &"a".into())?;
    let told = graph.read(&mut session, |view| view.ask("topological_order", &[], &Request::default()));
    assert!(matches!(told, Err(Error::Invalid(_))), "{told:?}");
    let limited = Request::parse(r#"{"max_edges": 2}"#)?;
    let told = graph.read(&mut session, |view| view.ask("components", &[], &limited));
    assert!(matches!(told, Err(Error::Limit { what: "edges", .. })), "{told:?}");
    // What finds vertices ends where there are too many, and not because there are many others.
    let limited = Request::parse(r#"{"max_vertices": 4}"#)?;
    graph.set_property(&mut session, &"a".into(), "n", 2)?;
    for (arguments, question, is_over) in [
        (vec![], "vertices", true),
        (vec![v("Letter")], "vertices", true),
        (vec![v("Letter"), v("n"), Value::Int(2)], "find", false),
    ] {
        let told = graph.read(&mut session, |view| view.ask(question, &arguments, &limited));
        assert_eq!(
            matches!(told, Err(Error::Limit { what: "vertices", limit: 4 })),
            is_over,
            "{question}: {told:?}"
        );
    }
    let limited = Request::parse(r#"{"max_vertices": 1}"#)?;
    let told =
        graph.read(&mut session, |view| view.ask("find", &[v("Letter"), v("n"), Value::Int(2)], &limited));
    assert!(matches!(told, Err(Error::Limit { limit: 1, .. })), "{told:?}");
    Ok(())
}

#[test]
fn ids_are_values_and_back() -> Result<()> {
    for id in [VertexId::from(7), VertexId::from("x"), VertexId::from(-3)] {
        assert_eq!(VertexId::try_from(&id.to_value())?, id);
    }
    assert_eq!(VertexId::try_from(&Value::Double(7.0))?, VertexId::from(7));
    assert!(VertexId::try_from(&Value::Double(7.5)).is_err());
    Ok(())
}
