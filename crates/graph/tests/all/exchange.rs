//! Files of edges in, and graphs out.

use std::fmt::Write;

use perilune::{node, Database, Session, Value};
use perilune_graph::{export, import, Direction, Error, Graph, GraphOptions, Missing, Reach, Result, View};

fn fresh() -> Result<(Session, Graph)> {
    let mut session = Database::open("memory:")?.session()?;
    let options = GraphOptions { weight: Some("km".to_owned()) };
    let graph = Graph::create(&mut session, &node!("^g")?, &options)?;
    Ok((session, graph))
}

fn written(
    session: &mut Session,
    graph: &Graph,
    write: impl Fn(&mut View<'_>, &mut dyn std::io::Write) -> Result<()>,
) -> Result<String> {
    graph.read(session, |view| {
        let mut out = Vec::new();
        write(view, &mut out)?;
        Ok(String::from_utf8_lossy(&out).into_owned())
    })
}

#[test]
fn csv_and_json_lines_make_the_same_edges() -> Result<()> {
    let csv = "source,km,type,target,note\r\n\
        1,2.50,ROAD,\"New \"\"York\"\", NY\",\"two\nlines\"\r\n\
        \r\n\
        1,7,ROAD,3,007\r\n\
        3,,RAIL,3,\r\n";
    let lines = r#"{"source":1,"type":"ROAD","target":"New \"York\", NY","km":2.5,"note":"two\nlines"}

{"source":"1","type":"ROAD","target":3,"km":7,"note":"007"}
{"source":3,"type":"RAIL","target":3}"#;
    let mut trees = Vec::new();
    for is_csv in [true, false] {
        let (mut session, mut graph) = fresh()?;
        let s = &mut session;
        let mut told = Vec::new();
        let mut progress = |count| told.push(count);
        let count = if is_csv {
            graph.import(s, import::from_csv(csv.as_bytes())?, Missing::Create, &mut progress)?
        } else {
            graph.import(s, import::from_json_lines(lines.as_bytes()), Missing::Create, &mut progress)?
        };
        assert_eq!((count, told), (3, vec![3]));
        assert_eq!(graph.check(s)?.faults, [""; 0]);
        let roads = graph.edges(s, &1.into(), &Reach::out().of("ROAD"))?;
        assert_eq!(roads.iter().map(|edge| edge.weight).collect::<Vec<_>>(), [Some(7.0), Some(2.5)]);
        assert_eq!(graph.edge_property(s, roads[0].id, "note")?, Some(Value::String(b"007".to_vec())));
        assert_eq!(graph.degree(s, &3.into(), Direction::In, None)?, 2);
        trees.push(s.get_tree(&node!("^g")?)?);
    }
    assert_eq!(trees[0], trees[1]);
    Ok(())
}

#[test]
fn edges_at_once_are_those_one_by_one() -> Result<()> {
    let (mut session, mut graph) = fresh()?;
    let s = &mut session;
    let mut text = String::from("source,type,target,km\n");
    for number in 0..1_234 {
        writeln!(text, "{},R{},{},{number}", number % 17, number % 3, number % 29)
            .map_err(perilune::Error::other)?;
    }
    let mut told = Vec::new();
    let edges = import::from_csv(text.as_bytes())?;
    graph.import(s, edges, Missing::Create, &mut |count| told.push(count))?;
    assert_eq!(told, [500, 1_000, 1_234]);
    assert_eq!(graph.check(s)?.faults, [""; 0]);
    let (mut other, mut single) = fresh()?;
    for vertex in 0..29 {
        single.add_vertex(&mut other, vertex, &[])?;
    }
    for number in 0..1_234_i64 {
        let (source, target) = ((number % 17).into(), (number % 29).into());
        let edge = single.add_edge(&mut other, &source, &format!("R{}", number % 3), &target)?;
        single.set_edge_property(&mut other, edge, "km", number)?;
    }
    // But for the ids that handles have taken ahead.
    for session in [&mut *s, &mut other] {
        session.delete_value(&node!("^g", "graph", "edges")?)?;
    }
    assert_eq!(s.get_tree(&node!("^g")?)?, other.get_tree(&node!("^g")?)?);
    let next = single.add_edges(&mut other, &[], Missing::Refuse)?;
    assert!(next >= 0);
    Ok(())
}

#[test]
fn what_is_wrong_with_a_file_is_told_with_its_line() -> Result<()> {
    let (mut session, mut graph) = fresh()?;
    let s = &mut session;
    let mut refused = |text: &str, is_csv: bool, wanted: &str| -> Result<()> {
        let outcome = match is_csv {
            true => import::from_csv(text.as_bytes())
                .and_then(|edges| graph.import(s, edges, Missing::Create, &mut |_| {})),
            false => graph.import(s, import::from_json_lines(text.as_bytes()), Missing::Create, &mut |_| {}),
        };
        let message = outcome.expect_err(text).to_string();
        assert!(message.contains(wanted), "{message}");
        assert_eq!(graph.count_edges(s)?, 0);
        Ok(())
    };
    refused("source,target\n", true, "`type` once")?;
    refused("source,type,target\na,R,b\na,R\n", true, "line 3: 2 fields, not 3")?;
    refused("source,type,target\n\"a\nb\",R,b\n,R,b\n", true, "line 4: no source")?;
    refused("source,type,target\na,R,b\"c\"\n", true, "line 2: a quote inside")?;
    refused("source,type,target\n\"a,R,b\n", true, "line 2: a quote is not closed")?;
    refused("source,type,target\na,,b\n", true, "1 to 255 bytes")?;
    refused("{\"source\":1,\"target\":2}", false, "line 1: no string as `type`")?;
    refused(
        "\n{\"source\":1.5,\"type\":\"R\",\"target\":2}",
        false,
        "line 2: no string or integer as `source`",
    )?;
    refused("{\"source\":1,\"type\":\"R\",\"target\":2,\"x\":[]}", false, "`x` is a list")?;
    refused("{", false, "line 1: EOF")?;
    let edges = import::from_csv("source,type,target\na,R,b\n".as_bytes())?;
    assert!(matches!(graph.import(s, edges, Missing::Refuse, &mut |_| {}), Err(Error::NoVertex(_))));
    Ok(())
}

#[test]
fn exports_say_what_the_graph_is() -> Result<()> {
    let (mut session, mut graph) = fresh()?;
    let s = &mut session;
    graph.add_vertex(s, 1, &["City", "Port"])?;
    graph.add_vertex(s, "a\"<b>\\", &[])?;
    graph.set_property(s, &1.into(), "name", "K\u{1}öln & Co")?;
    let edge = graph.add_edge(s, &1.into(), "ROAD", &"a\"<b>\\".into())?;
    graph.set_edge_property(s, edge, "km", 2.5)?;
    let dot = written(s, &graph, |view, out| export::dot(view, out))?;
    assert_eq!(
        dot,
        "digraph {\n  \"1\" [label=\"K\u{1}öln & Co\\nCity, Port\"];\n  \"a\\\"<b>\\\\\" [label=\"a\\\"<b>\\\\\"];\n  \
         \"1\" -> \"a\\\"<b>\\\\\" [label=\"ROAD\"];\n}\n"
    );
    let xml = written(s, &graph, |view, out| export::graphml(view, out))?;
    for part in [
        r#"<key id="v.name" for="node" attr.name="name" attr.type="string"/>"#,
        r#"<key id="e.km" for="edge" attr.name="km" attr.type="string"/>"#,
        "<node id=\"1\"><data key=\"labels\">City:Port</data><data key=\"v.name\">K\u{fffd}öln &amp; Co</data></node>",
        r#"<edge id="e1" source="1" target="a&quot;&lt;b&gt;\"><data key="type">ROAD</data><data key="e.km">2.5</data></edge>"#,
    ] {
        assert!(xml.contains(part), "{xml}");
    }
    let json = written(s, &graph, |view, out| export::json(view, out))?;
    assert_eq!(
        json,
        "{\"vertices\":[\n\
         {\"id\":1,\"labels\":[\"City\",\"Port\"],\"properties\":{\"name\":\"K\\u0001öln & Co\"}},\n\
         {\"id\":\"a\\\"<b>\\\\\",\"labels\":[],\"properties\":{}}],\n\
         \"edges\":[\n\
         {\"id\":1,\"properties\":{\"km\":2.5},\"source\":1,\"target\":\"a\\\"<b>\\\\\",\"type\":\"ROAD\"}]}\n"
    );
    Ok(())
}

#[test]
fn vertices_come_from_csv_and_json_lines() -> Result<()> {
    let csv = "id,labels,name,age\n7,Person:Member,Ada,36\nx,,\"Ben, Jr\",\n";
    let lines = "{\"id\":7,\"labels\":[\"Person\",\"Member\"],\"name\":\"Ada\",\"age\":36}\n{\"id\":\"x\",\"name\":\"Ben, Jr\"}\n";
    let mut trees = Vec::new();
    for is_csv in [true, false] {
        let (mut session, graph) = fresh()?;
        let s = &mut session;
        graph.add_index(s, "Person", "age")?;
        // Twice is no harm: what is there gets the same once more.
        for _ in 0..2 {
            let count = match is_csv {
                true => graph.import_vertices(s, import::vertices_from_csv(csv.as_bytes())?, &mut |_| {})?,
                false => {
                    let vertices = import::vertices_from_json_lines(lines.as_bytes());
                    graph.import_vertices(s, vertices, &mut |_| {})?
                }
            };
            assert_eq!(count, 2);
        }
        assert_eq!(graph.find(s, "Person", "age", 36)?, [7.into()]);
        assert_eq!(graph.labels(s, &7.into())?, ["Member", "Person"]);
        // A new value takes the place of the old one, in the index, too.
        let older = "id,age\n7,37\n";
        graph.import_vertices(s, import::vertices_from_csv(older.as_bytes())?, &mut |_| {})?;
        assert_eq!(graph.find(s, "Person", "age", 36)?, []);
        assert_eq!(graph.property_text(s, &7.into(), "age")?.as_deref(), Some("37"));
        assert_eq!(graph.check(s)?.faults, [""; 0]);
        let found = graph.read(s, |view| view.statistics())?;
        assert_eq!((found.vertices, found.isolated, found.edges), (2, 2, 0));
        assert_eq!(found.labels, [("Member".to_owned(), 1), ("Person".to_owned(), 1)]);
        assert_eq!(found.indexes, [("Person".to_owned(), "age".to_owned())]);
        trees.push(s.get_tree(&node!("^g")?)?);
    }
    assert_eq!(trees[0], trees[1]);
    for (text, wanted) in [
        ("name\nAda\n", "`id` once"),
        ("id\nx\n\"\"\n", "line 3: no id"),
        ("id,labels\nx,A\ny,B,C\n", "line 3: 3 fields"),
    ] {
        let outcome = import::vertices_from_csv(text.as_bytes())
            .and_then(|vertices| vertices.collect::<Result<Vec<_>>>());
        let message = outcome.expect_err(text).to_string();
        assert!(message.contains(wanted), "{message}");
    }
    for (text, wanted) in [
        ("{\"id\":1,\"labels\":[1]}", "line 1: `labels` is no list of strings"),
        ("\n{\"id\":[]}", "line 2: no string or integer as `id`"),
        ("{\"id\":1,\"labels\":[\"\"]}", "line 1: a label has a name of 1 to 255 bytes"),
    ] {
        let outcome = import::vertices_from_json_lines(text.as_bytes()).collect::<Result<Vec<_>>>();
        let message = outcome.expect_err(text).to_string();
        assert!(message.contains(wanted), "{message}");
    }
    Ok(())
}
