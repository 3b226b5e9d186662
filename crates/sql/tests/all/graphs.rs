//! Graphs as tables: functions in FROM, joins with tables, recursive queries, one state, rights, limits.

use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::scratch::Scratch;
use perilune::node;
use perilune_graph::{Error as GraphError, Graph, GraphOptions, Reach};
use perilune_sql::{Access, Nowhere, Result, SqlState, Terms};

fn own(error: GraphError) -> perilune_sql::Error {
    perilune::Error::from(error).into()
}

/// Users 1 to 5, who know each other in a ring with 1 -> 3 besides; users 1 and 2 have visited city 10, which is the vertex
/// `^cities(10)`.
fn social(name: &str) -> Result<(Scratch, Graph)> {
    let mut s = Scratch::new(name);
    s.run(
        "CREATE TABLE users(id INTEGER PRIMARY KEY, name TEXT);
        INSERT INTO users(name) VALUES ('Ada'), ('Ben'), ('Cem'), ('Dag'), ('Eva'), ('Fay')",
    )?;
    let options = GraphOptions { weight: Some("km".to_owned()) };
    let mut graph = Graph::create(&mut s.session, &node!("^social")?, &options).map_err(own)?;
    let g = &mut s.session;
    for id in 1..=5_i64 {
        graph.add_vertex(g, id, &["Person"]).map_err(own)?;
    }
    graph.set_property(g, &1.into(), "name", "Ada").map_err(own)?;
    graph.set_property(g, &2.into(), "age", 7).map_err(own)?;
    graph.add_vertex(g, "^cities(10)", &["City"]).map_err(own)?;
    for (from, to, km) in [(1, 2, 1), (2, 3, 1), (3, 4, 1), (4, 5, 1), (5, 1, 1), (1, 3, 9)] {
        let edge = graph.add_edge(g, &from.into(), "KNOWS", &to.into()).map_err(own)?;
        graph.set_edge_property(g, edge, "km", km).map_err(own)?;
    }
    for user in [1, 2] {
        graph.add_edge(g, &user.into(), "visited", &"^cities(10)".into()).map_err(own)?;
    }
    Ok((s, graph))
}

#[test]
fn edges_of_a_vertex_are_rows() -> Result<()> {
    let (mut s, _) = social("graph-edges")?;
    for (sql, answer) in [
        (
            "SELECT vertex, type, source, target, weight FROM graph_out('^social', 1, 'KNOWS')",
            "2|KNOWS|1|2|1.0 3|KNOWS|1|3|9.0",
        ),
        ("SELECT vertex FROM graph_out('^social', '1') WHERE type = 'visited'", "^cities(10)"),
        ("SELECT vertex, weight FROM graph_in('^social', '^cities(10)')", "1|NULL 2|NULL"),
        ("SELECT vertex FROM graph_neighbours('^social', 1, '{\"types\": [\"KNOWS\"]}')", "2 3 5"),
        ("SELECT vertex FROM graph_neighbours('^social', 1, '{\"direction\": \"in\"}')", "5"),
        ("SELECT count(*) FROM graph_out('^social', 1) WHERE vertex = 3", "1"),
        ("SELECT count(*) FROM graph_out('^social', 1) WHERE vertex = '3'", "0"),
        ("SELECT count(*) FROM graph_out('^social', 1, 'KNOWS') WHERE type = 'visited'", "0"),
        ("SELECT count(*) FROM graph_out('^social', 99)", "0"),
        ("SELECT count(*) FROM graph_out('^social', NULL)", "0"),
        ("SELECT count(*) FROM graph_edges('^social')", "8"),
        (
            "SELECT edge, properties FROM graph_edges('^social') WHERE source = 1 AND target = 3",
            "6|{\"km\":9}",
        ),
        (
            "SELECT source FROM graph_edges('^social') WHERE target = '^cities(10)' AND type = 'visited'",
            "1 2",
        ),
        ("SELECT source, target FROM graph_edges('^social') WHERE edge = 6", "1|3"),
        (
            "SELECT source, target FROM graph_edges('^social') WHERE type = 'visited'",
            "1|^cities(10) 2|^cities(10)",
        ),
        ("SELECT vertex FROM graph_vertices('^social', 'City')", "^cities(10)"),
        (
            "SELECT vertex, labels, properties FROM graph_vertices('^social') WHERE vertex = 1",
            "1|[\"Person\"]|{\"name\":\"Ada\"}",
        ),
        ("SELECT vertex FROM graph_vertices('^social', 'Person', 'age', 7.0)", "2"),
        ("SELECT count(*), max(properties ->> '$.age') FROM graph_vertices('^social')", "6|7"),
    ] {
        assert_eq!(s.rows(sql), answer, "{sql}");
    }
    Ok(())
}

#[test]
fn walks_and_paths_are_rows() -> Result<()> {
    let (mut s, _) = social("graph-walks")?;
    let two = r#"'{"types": "KNOWS", "direction": "both", "min_depth": 1, "max_depth": 2}'"#;
    for (sql, answer) in [
        (
            &*format!("SELECT vertex, depth, path FROM graph_walk('^social', 1, {two})"),
            "2|1|1-[KNOWS]->2 3|1|1-[KNOWS]->3 5|1|1<-[KNOWS]-5 4|2|1-[KNOWS]->3-[KNOWS]->4",
        ),
        (
            r#"SELECT vertex, edge, type, cost, vertices, edges FROM graph_walk('^social', 1,
                '{"order": "cheapest", "cost": "weight", "types": "KNOWS"}') WHERE depth = 2"#,
            "3|2|KNOWS|2.0|[1,2,3]|[1,2]",
        ),
        (r#"SELECT vertex FROM graph_walk('^social', 1, '{"max_edges": 3}') LIMIT 2"#, "1 2"),
        (
            "SELECT vertex, depth, path FROM graph_shortest_path('^social', 2, 4)",
            "2|0|2 3|1|2-[KNOWS]->3 4|2|2-[KNOWS]->3-[KNOWS]->4",
        ),
        (
            r#"SELECT vertex, cost FROM graph_shortest_path('^social', 1, 3, '{"cost": "weight", "types": "KNOWS"}')"#,
            "1|0.0 2|1.0 3|2.0",
        ),
        (
            r#"SELECT number, max(depth) FROM graph_shortest_path('^social', 1, 3,
                '{"cost": "weight", "count": 2, "types": "KNOWS"}') GROUP BY number"#,
            "1|2 2|1",
        ),
        ("SELECT count(*) FROM graph_shortest_path('^social', 1, 77)", "0"),
        ("SELECT count(*) FROM graph_shortest_path('^social', '^cities(10)', 1)", "0"),
        // The lists of a path are JSON.
        (
            "SELECT each.value FROM graph_walk('^social', 1) AS walk, json_each(walk.vertices) AS each
                WHERE walk.depth = 3",
            "1 3 4 5",
        ),
    ] {
        assert_eq!(s.rows(sql), answer, "{sql}");
    }
    Ok(())
}

#[test]
fn functions_join_tables_and_recursive_queries() -> Result<()> {
    let (mut s, mut graph) = social("graph-joins")?;
    for (sql, answer) in [
        // The inventory's relationship index in WHERE: users who have visited city 10.
        (
            "SELECT name FROM users WHERE id IN (SELECT source FROM graph_in('^social', '^cities(10)', 'visited'))",
            "Ada Ben",
        ),
        (
            "SELECT users.name, friends.vertex FROM users JOIN graph_out('^social', users.id, 'KNOWS') AS friends
                WHERE users.name < 'C'",
            "Ada|2 Ada|3 Ben|3",
        ),
        (
            r#"SELECT name FROM graph_walk('^social', 1, '{"types": "KNOWS", "min_depth": 2}') AS walk
                JOIN users ON users.id = walk.vertex"#,
            "Dag Eva",
        ),
        (
            "WITH RECURSIVE reached(id, depth) AS (SELECT 1, 0 UNION SELECT vertex, depth + 1 FROM reached
                JOIN graph_out('^social', reached.id, 'KNOWS') WHERE depth < 2) SELECT id, min(depth) FROM reached GROUP BY id",
            "1|0 2|1 3|1 4|2",
        ),
        (
            "WITH RECURSIVE reached(id) AS (SELECT 4 UNION SELECT target FROM reached JOIN graph_edges('^social') ON source = reached.id)
                SELECT count(*) FROM reached",
            "6",
        ),
        ("SELECT count(*) FROM users LEFT JOIN graph_out('^social', users.id, 'visited') AS v WHERE v.vertex IS NULL", "4"),
    ] {
        assert_eq!(s.rows(sql), answer, "{sql}");
    }
    // By name: a view.
    s.run("CREATE VIEW visits AS SELECT source, target FROM graph_edges('^social') WHERE type = 'visited'")?;
    let by_name =
        "SELECT name FROM users WHERE id IN (SELECT source FROM visits WHERE target = '^cities(10)')";
    assert_eq!(s.rows(by_name), "Ada Ben");
    // Maintained in the transaction of the edge, and seen in it.
    let Scratch { session, sql, .. } = &mut s;
    session.transaction(|session| {
        graph.add_edge(session, &5.into(), "visited", &"^cities(10)".into())?;
        assert_eq!(sql.query(session, by_name, &[])?.len(), 3);
        sql.execute(
            session,
            "UPDATE users SET name = upper(name) WHERE id IN (SELECT source FROM visits)",
            &[],
        )?;
        Ok(())
    })?;
    assert_eq!(s.rows(by_name), "ADA BEN EVA");
    Ok(())
}

#[test]
fn what_the_reference_shows_runs() -> Result<()> {
    let (mut s, _) = social("graph-reference")?;
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/graph.md");
    let text = std::fs::read_to_string(path).expect("the reference is there");
    let blocks: Vec<&str> =
        text.split("```sql\n").skip(1).filter_map(|block| block.split("```").next()).collect();
    assert_eq!(blocks.len(), 3);
    for block in blocks {
        s.run(block)?;
    }
    assert_eq!(s.rows("SELECT count(*) FROM visits"), "2");
    Ok(())
}

#[test]
fn explain_names_them_and_what_narrows_them() -> Result<()> {
    let (mut s, _) = social("graph-explain")?;
    let plan = |s: &mut Scratch, sql: &str| s.rows(&format!("EXPLAIN QUERY PLAN {sql}"));
    let told = plan(&mut s, "SELECT * FROM graph_out('^social', 1) WHERE type = 'KNOWS'");
    assert!(told.contains("graph_out VIRTUAL TABLE INDEX 0:type,graph,start"), "{told}");
    let told = plan(&mut s, "SELECT * FROM users LEFT JOIN graph_edges('^social') ON target = users.id");
    assert!(told.contains("graph_edges VIRTUAL TABLE INDEX 0:target,graph"), "{told}");
    Ok(())
}

#[test]
fn errors_say_what_to_do() -> Result<()> {
    let (mut s, _) = social("graph-errors")?;
    for (sql, answer) in [
        (
            "SELECT * FROM graph_out('^none', 1)",
            "42P01: no graph lies at ^none: create one there, or name another node",
        ),
        (
            "SELECT * FROM graph_out('^social')",
            "22023: graph_out lacks start: write it as graph_out('^social', 7, 'KNOWS')",
        ),
        (
            "SELECT * FROM graph_walk",
            "22023: graph_walk lacks graph: write it as graph_walk('^social', 7, '{\"max_depth\": 2}')",
        ),
        (
            "SELECT * FROM graph_walk('social', 1)",
            "0A000: SQL reads graphs that lie in the database, and social does not, or is not for it",
        ),
        (
            "SELECT * FROM graph_walk('^social', 1, '{\"max_edges\": 3}')",
            "54000: the walk has come to its limit of 3 edges: allow more, or narrow the walk",
        ),
        ("SELECT * FROM graph_walk('^social', 1, '{\"depth\": 3}')", "22023: there is no option depth"),
        (
            "SELECT * FROM graph_walk('^social', 1, '{\"order\": \"up\"}')",
            "22023: the option order cannot be up: it is one of breadth, depth, cheapest",
        ),
        ("SELECT * FROM graph_walk('^social', 1, 'x')", "22023: options are a JSON object"),
        (
            "SELECT * FROM graph_shortest_path('^social', 1, '^cities(10)', '{\"cost\": \"weight\"}')",
            "22003: edge 7 costs no number from 0 on",
        ),
        (
            "SELECT * FROM graph_vertices('^social') WHERE property = 'age' AND value = 7",
            "22023: graph_vertices finds a property of the vertices with a label",
        ),
        ("INSERT INTO graph_out(graph) VALUES ('^social')", "42601: table graph_out may not be modified"),
    ] {
        let told = s.rows(sql);
        assert!(told.starts_with(answer), "{sql}: {told}");
    }
    Ok(())
}

/// What a graph holds, and whether its parts agree.
fn checked(s: &mut Scratch, graph: &Graph) -> Result<String> {
    let report = graph.check(&mut s.session).map_err(own)?;
    assert!(report.faults.is_empty(), "{:?}", report.faults);
    Ok(format!("{} {}", report.vertices, report.edges))
}

#[test]
fn statements_change_edges() -> Result<()> {
    let (mut s, graph) = social("graph-change-edges")?;
    s.run(
        "INSERT INTO graph_edges(graph, source, type, target, weight, properties)
            VALUES ('^social', 1, 'LIKES', '^cities(10)', 2.5, '{\"since\": 1999, \"name\": \"x\"}')",
    )?;
    let found =
        "SELECT edge, source, target, weight, properties FROM graph_edges('^social') WHERE type = 'LIKES'";
    assert_eq!(s.rows("SELECT last_insert_rowid()"), s.rows(&format!("SELECT edge FROM ({found})")));
    let edge = s.rows("SELECT last_insert_rowid()");
    assert_eq!(
        s.rows(found),
        format!("{edge}|1|^cities(10)|2.5|{{\"km\":2.5,\"name\":\"x\",\"since\":1999}}")
    );
    s.run(&format!("UPDATE graph_edges SET weight = 4 WHERE graph = '^social' AND edge = {edge}"))?;
    assert_eq!(s.rows("SELECT weight FROM graph_out('^social', 1, 'LIKES')"), "4.0");
    s.run(
        "UPDATE graph_edges SET properties = json_set(json_remove(properties, '$.name'), '$.rank', 1)
            WHERE graph = '^social' AND source = 1 AND type = 'LIKES'",
    )?;
    assert!(s.rows(found).ends_with("|4.0|{\"km\":4,\"rank\":1,\"since\":1999}"), "{}", s.rows(found));
    // The weight is gone with its property.
    s.run("UPDATE graph_edges SET properties = NULL WHERE graph = '^social' AND type = 'LIKES'")?;
    assert!(s.rows(found).ends_with("|NULL|{}"), "{}", s.rows(found));
    // A statement does not meet the edges that it makes, and the rows of a table become edges.
    s.run(
        "INSERT INTO graph_edges(graph, source, type, target)
            SELECT '^social', source, type, target FROM graph_out('^social', 1, 'KNOWS');
        INSERT INTO graph_edges(graph, source, type, target)
            SELECT '^social', id, 'KNOWS', 1 FROM users WHERE id BETWEEN 3 AND 4",
    )?;
    assert_eq!(s.rows("SELECT count(*) FROM graph_edges('^social')"), "13");
    assert_eq!(checked(&mut s, &graph)?, "6 13");
    s.run("DELETE FROM graph_edges WHERE graph = '^social' AND target = 1 AND source <> 3")?;
    assert_eq!(s.rows("SELECT source FROM graph_in('^social', 1)"), "3");
    s.run("DELETE FROM graph_edges WHERE graph = '^social'")?;
    assert_eq!(checked(&mut s, &graph)?, "6 0");
    Ok(())
}

#[test]
fn statements_change_vertices() -> Result<()> {
    let (mut s, graph) = social("graph-change-vertices")?;
    graph.add_index(&mut s.session, "Person", "name").map_err(own)?;
    s.run(
        "INSERT INTO graph_vertices(graph, vertex, labels, properties)
            SELECT '^social', id + 100, '[\"Person\"]', json_object('name', name) FROM users WHERE id < 3;
        INSERT OR IGNORE INTO graph_vertices(graph, vertex) VALUES ('^social', 1), ('^social', 'new');
        INSERT OR REPLACE INTO graph_vertices(graph, vertex, labels) VALUES ('^social', 102, '[\"Robot\"]')",
    )?;
    assert_eq!(s.rows("SELECT vertex FROM graph_vertices('^social', 'Person', 'name', 'Ada')"), "1 101");
    assert_eq!(
        s.rows("SELECT labels, properties FROM graph_vertices('^social') WHERE vertex IN (102, 'new') ORDER BY 1"),
        "[\"Robot\"]|{} []|{}"
    );
    s.run(
        "UPDATE graph_vertices SET properties = json_set(properties, '$.name', 'Eve') WHERE graph = '^social' AND vertex = 101;
        UPDATE graph_vertices SET labels = '[]' WHERE graph = '^social' AND label = 'Robot'",
    )?;
    assert_eq!(s.rows("SELECT vertex FROM graph_vertices('^social', 'Person', 'name', 'Eve')"), "101");
    assert_eq!(s.rows("SELECT vertex FROM graph_vertices('^social', 'Person', 'name', 'Ada')"), "1");
    assert_eq!(s.rows("SELECT count(*) FROM graph_vertices('^social', 'Robot')"), "0");
    s.run("DELETE FROM graph_vertices WHERE graph = '^social' AND vertex IN (101, 102, 'new')")?;
    assert_eq!(checked(&mut s, &graph)?, "6 8");
    Ok(())
}

#[test]
fn a_change_that_fails_leaves_nothing() -> Result<()> {
    let (mut s, graph) = social("graph-change-errors")?;
    for (sql, answer) in [
        (
            "INSERT INTO graph_edges(graph, source, type, target) VALUES ('^social', 1, 'KNOWS', 4), ('^social', 1, 'KNOWS', 99)",
            "23503: there is no vertex 99: create it first",
        ),
        ("INSERT INTO graph_edges VALUES (NULL, 1, 'KNOWS', 2, NULL, NULL)", "23502: graph_edges lacks graph"),
        ("INSERT INTO graph_edges(graph, source, target) VALUES ('^social', 1, 2)", "23502: graph_edges lacks type"),
        (
            "INSERT INTO graph_edges(graph, edge, source, type, target) VALUES ('^social', 7, 1, 'KNOWS', 2)",
            "0A000: the graph numbers its edges: leave edge out",
        ),
        (
            "INSERT INTO graph_edges(graph, source, type, target, properties) VALUES ('^social', 1, 'KNOWS', 2, '{\"a\":[1]}')",
            "42804: the property a cannot be a list or an object: make several properties",
        ),
        ("INSERT INTO graph_edges(graph, source, type, target) VALUES ('^none', 1, 'KNOWS', 2)", "42P01: no graph"),
        (
            "UPDATE graph_edges SET target = 4 WHERE graph = '^social' AND edge = 1",
            "0A000: an edge keeps its number, its type and its ends: delete it, and insert another",
        ),
        ("UPDATE graph_vertices SET vertex = 9 WHERE graph = '^social'", "0A000: a vertex keeps its id"),
        ("UPDATE graph_edges SET weight = 1", "22023: graph_edges lacks graph"),
        (
            "DELETE FROM graph_vertices WHERE graph = '^social' AND vertex = 1",
            "23503: vertex 1 has edges: delete them from graph_edges first",
        ),
        ("DELETE FROM graph_edges WHERE graph = '^social' RETURNING edge", "0A000: graph_edges has no RETURNING"),
        (
            "INSERT INTO graph_vertices(graph, vertex) VALUES ('^social', 1) ON CONFLICT DO NOTHING",
            "0A000: graph_vertices has no RETURNING and no ON CONFLICT",
        ),
        ("INSERT INTO graph_vertices(graph, vertex) VALUES ('^social', 7), ('^social', 1)", "23505: there is a vertex 1"),
        ("INSERT INTO graph_vertices(graph, vertex, labels) VALUES ('^social', 7, 'Person')", "22P02: labels are a JSON list"),
        (
            "INSERT INTO graph_vertices(graph, vertex, label) VALUES ('^social', 7, 'Person')",
            "22023: a vertex is inserted with labels, a JSON list, and properties, a JSON object",
        ),
    ] {
        let told = s.rows(sql);
        assert!(told.starts_with(answer), "{sql}: {told}");
        assert_eq!(checked(&mut s, &graph)?, "6 8", "{sql}");
    }
    // With the rest of a transaction, or not at all.
    s.run(
        "BEGIN; INSERT INTO users(name) VALUES ('Gus');
        INSERT INTO graph_vertices(graph, vertex) VALUES ('^social', 7);
        INSERT INTO graph_edges(graph, source, type, target) VALUES ('^social', 7, 'KNOWS', 1);
        DELETE FROM graph_edges WHERE graph = '^social' AND source = 1; ROLLBACK",
    )?;
    assert_eq!(checked(&mut s, &graph)?, "6 8");
    assert_eq!(s.rows("SELECT count(*) FROM users"), "6");
    Ok(())
}

/// Two connections add edges at one vertex at once: what meets runs again, and both directions agree.
#[test]
fn changes_that_meet_run_again() -> Result<()> {
    let (mut s, graph) = social("graph-change-together")?;
    let database = s.database.clone();
    std::thread::scope(|scope| -> Result<()> {
        let writers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| -> Result<()> {
                    let (mut session, sql) = (database.session()?, perilune_sql::Connection::open()?);
                    for _ in 0..50 {
                        let add = "INSERT INTO graph_edges(graph, source, type, target) VALUES ('^social', 1, 'MET', 2)";
                        sql.execute(&mut session, add, &[])?;
                    }
                    Ok(())
                })
            })
            .collect();
        writers.into_iter().try_for_each(|writer| writer.join().expect("no panic"))
    })?;
    assert_eq!(s.rows("SELECT count(DISTINCT edge) FROM graph_out('^social', 1, 'MET')"), "100");
    assert_eq!(checked(&mut s, &graph)?, "6 108");
    Ok(())
}

#[test]
fn a_graph_that_is_made_anew_is_seen() -> Result<()> {
    let mut s = Scratch::new("graph-anew");
    let graph = |s: &mut Scratch, weight: &str| {
        let options = GraphOptions { weight: Some(weight.to_owned()) };
        s.session.delete_tree(&node!("^g")?)?;
        Graph::create(&mut s.session, &node!("^g")?, &options).map_err(own)
    };
    let add = "INSERT INTO graph_vertices(graph, vertex) VALUES ('^g', 1);
        INSERT INTO graph_edges(graph, source, type, target, weight) VALUES ('^g', 1, 'T', 1, 7)";
    let properties = "SELECT properties FROM graph_edges('^g')";
    graph(&mut s, "km")?;
    s.run(add)?;
    assert_eq!(s.rows(properties), "{\"km\":7}");
    graph(&mut s, "miles")?;
    s.run(add)?;
    assert_eq!(s.rows(properties), "{\"miles\":7}");
    s.session.delete_tree(&node!("^g")?)?;
    assert!(s.rows(properties).starts_with("42P01"));
    Ok(())
}

#[test]
fn a_graph_is_read_with_the_right_to_its_global() -> Result<()> {
    let (mut s, _) = social("graph-rights")?;
    let terms = |allowed: &'static str| Terms {
        permit: Some(Rc::new(move |table: &str, access: Access| table == allowed && access == Access::Reads)),
        ..Terms::default()
    };
    let Scratch { session, sql, .. } = &mut s;
    let mut run =
        |terms: &Terms, text: &str| sql.run_under(session, text, &[], terms, &mut Nowhere).map(drop);
    for text in [
        "SELECT * FROM graph_out('^social', 1)",
        "SELECT * FROM graph_walk('^social', 1)",
        "SELECT * FROM graph_shortest_path('^so' || 'cial', 1, 2)",
        "SELECT * FROM graph_vertices('^social')",
    ] {
        run(&terms("social"), text)?;
        let refused = run(&terms("users"), text).expect_err("no right to ^social");
        assert_eq!(
            (refused.state(), refused.message()),
            (SqlState::DENIED, "this user may not read social"),
            "{text}"
        );
    }
    // To change one takes the other right.
    let change = "INSERT INTO graph_vertices(graph, vertex) VALUES ('^social', 77)";
    let refused = run(&terms("social"), change).expect_err("no right to change ^social");
    assert_eq!((refused.state(), refused.message()), (SqlState::DENIED, "this user may not change social"));
    let writes = Terms {
        permit: Some(Rc::new(|table: &str, access: Access| table == "social" && access == Access::Writes)),
        ..Terms::default()
    };
    run(&writes, change)?;
    let refused = run(&writes, "DELETE FROM graph_vertices WHERE graph = '^social' AND vertex = 77");
    assert_eq!(refused.map_err(|error| error.state()), Err(SqlState::DENIED));
    let reading = Terms { read_only: true, ..Terms::default() };
    assert_eq!(run(&reading, change).map_err(|error| error.state()), Err(SqlState::READ_ONLY));
    // Of a join both sides count.
    let joined = "SELECT * FROM users JOIN graph_out('^social', users.id)";
    assert_eq!(run(&terms("social"), joined).map_err(|error| error.state()), Err(SqlState::DENIED));
    Ok(())
}

/// A writer turns a ring of ten around between two walks; a walk that saw halves of two states would not come around.
#[test]
fn a_walk_sees_one_state() -> Result<()> {
    let mut s = Scratch::new("graph-state");
    let mut graph = Graph::create(&mut s.session, &node!("^ring")?, &GraphOptions::default()).map_err(own)?;
    for id in 0..10_i64 {
        graph.add_vertex(&mut s.session, id, &[]).map_err(own)?;
    }
    let turn = |graph: &mut Graph, session: &mut perilune::Session, by: i64| {
        session.transaction(|session| {
            let mut edges = Vec::new();
            graph.view(session)?.each_edge(&Reach::out(), &mut |edge| edges.push(edge.id))?;
            for edge in edges {
                graph.delete_edge(session, edge)?;
            }
            for id in 0..10_i64 {
                graph.add_edge(session, &id.into(), "NEXT", &((id + by) % 10).into())?;
            }
            Ok(())
        })
    };
    turn(&mut graph, &mut s.session, 1)?;
    let database = s.database.clone();
    let mut writes = graph.clone();
    let turns = AtomicU32::new(0);
    std::thread::scope(|scope| -> Result<()> {
        let writer = scope.spawn(|| -> perilune::Result<()> {
            let mut session = database.session()?;
            while turns.load(Ordering::Relaxed) < 40 {
                let by = [3, 7, 9, 1][turns.load(Ordering::Relaxed) as usize % 4];
                turn(&mut writes, &mut session, by)?;
                turns.fetch_add(1, Ordering::Relaxed);
            }
            Ok(())
        });
        while !writer.is_finished() {
            assert_eq!(s.rows("SELECT count(*), max(depth) FROM graph_walk('^ring', 0)"), "10|9");
        }
        writer.join().expect("no panic")?;
        assert_eq!(turns.load(Ordering::Relaxed), 40);
        Ok(())
    })
}
