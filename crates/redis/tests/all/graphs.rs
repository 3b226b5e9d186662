//! Graphs at the server: the key of its global is the right to a graph, whichever way a client asks.

use crate::peer::{Client, Ours, Place, Text};
use perilune::{key::parse_value, Node};
use perilune_redis::Settings;

/// Makes two vertices and an edge of type `knows` from 1 to 2, node by node as docs/format/graph.md has it.
fn make_graph(ours: &Ours, name: &str) {
    let mut session = ours.database.session().expect("a session");
    for (subscripts, value) in [
        ("\"graph\"", "1"),
        ("\"graph\",\"edges\"", "1"),
        ("\"vertex\",1", "true"),
        ("\"vertex\",2", "true"),
        ("\"vertex\",1,\"out\",\"knows\"", "1"),
        ("\"vertex\",2,\"in\",\"knows\"", "1"),
        ("\"edge\",1", "record(1,2,\"knows\")"),
        ("\"out\",1,\"knows\",2,1", "null"),
        ("\"in\",2,\"knows\",1,1", "null"),
    ] {
        let node = Node::parse(&format!("{name}({subscripts})")).expect("a node");
        session.set(&node, parse_value(value.as_bytes()).expect("a value")).expect("a node is set");
    }
}

/// Reads of a graph, each of which has at least one row in those that `make_graph` makes.
fn reads(graph: &str) -> [String; 7] {
    [
        format!("SELECT count(*) FROM graph_out('{graph}', 1)"),
        format!("SELECT count(*) FROM graph_in('{graph}', 2, 'knows')"),
        format!("SELECT count(*) FROM graph_neighbours('{graph}', 1)"),
        format!("SELECT count(*) FROM graph_edges('{graph}')"),
        format!("SELECT max(depth) FROM graph_walk('{graph}', 1)"),
        format!("SELECT max(depth) FROM graph_shortest_path('{graph}', 1, 2)"),
        // The name is known only as the statement runs.
        format!("SELECT count(*) FROM (SELECT '{graph}' AS g) AS named, graph_out(named.g, 1)"),
    ]
}

/// A server with the graphs `^open` and `^secret`, its owner, and a user whose only key of them is `^open`, to read.
fn start(place: &Place) -> (Ours, Client, Client) {
    let ours = Ours::start(place, Settings::default());
    make_graph(&ours, "^open");
    make_graph(&ours, "^secret");
    let mut owner = Client::connect(&ours.socket);
    let rules = "ACL SETUSER app on >p +sql +eval +perilune.get +perilune.set +perilune.kill ~mine %R~^open";
    assert_eq!(owner.line(rules).to_text(), "OK");
    let mut app = Client::connect(&ours.socket);
    assert_eq!(app.line("AUTH app p").to_text(), "OK");
    (ours, owner, app)
}

#[test]
fn statements_read_the_graphs_whose_key_their_user_may_read() {
    let place = Place::new();
    let (_ours, mut owner, mut app) = start(&place);
    for (open, secret) in reads("^open").iter().zip(&reads("^secret")) {
        let row = owner.call(["SQL", secret]);
        assert!(!row.is_error(), "{secret}: {row:?}");
        assert_eq!(app.call(["SQL", open]), row, "{open}");
        let told = app.call(["SQL", secret]).to_text();
        assert!(told.starts_with("NOPERM 42501 this user may not read secret"), "{secret}: {told}");
    }
    // A view lends the rights to its tables, not to a graph, whose name may be computed.
    let view = "CREATE VIEW friends AS SELECT source, target FROM graph_edges('^secret')";
    assert!(!owner.call(["SQL", view]).is_error());
    let friends = ["SQL", "SELECT * FROM friends"];
    assert!(app.call(friends).to_text().starts_with("NOPERM"));
    assert_eq!(owner.line("ACL SETUSER app %R~^friends").to_text(), "OK");
    assert!(app.call(friends).to_text().starts_with("NOPERM 42501 this user may not read secret"));
    assert_eq!(owner.call(friends), owner.call(["SQL", "SELECT 1, 2"]));
}

#[test]
fn statements_change_the_graphs_whose_key_their_user_may_write() {
    let place = Place::new();
    let (ours, mut owner, mut app) = start(&place);
    let add = |graph: &str, target: u32| {
        format!(
            "INSERT INTO graph_edges(graph, source, type, target) VALUES ('{graph}', 2, 'likes', {target})"
        )
    };
    let count = ["SQL", "SELECT count(*) FROM graph_edges('^open')"];
    for graph in ["^open", "^secret"] {
        let told = app.call(["SQL", &add(graph, 1)]).to_text();
        assert!(
            told.starts_with(&format!("NOPERM 42501 this user may not change {}", &graph[1..])),
            "{told}"
        );
    }
    // Reading and writing are two rights.
    assert_eq!(owner.line("ACL SETUSER app %W~^open").to_text(), "OK");
    assert!(!app.call(["SQL", &add("^open", 1)]).is_error());
    assert_eq!(app.call(count), owner.call(["SQL", "SELECT 2"]));
    // All of a statement, or nothing.
    let half = "INSERT INTO graph_edges(graph, source, type, target) SELECT '^open', 1, 'likes', value FROM json_each('[1, 2, 9]')";
    let told = app.call(["SQL", half]).to_text();
    assert!(told.contains("23503 there is no vertex 9"), "{told}");
    assert_eq!(app.call(count), owner.call(["SQL", "SELECT 2"]));
    let marked = "INSERT INTO graph_vertices(graph, vertex, labels, properties) VALUES ('^open', 3, '[\"Person\"]', '{\"age\":7}')";
    assert!(!app.call(["SQL", marked]).is_error());
    // A script's statements change it, too.
    let script = "return redis.call('SQL', ARGV[1])";
    assert!(!app.call(["EVAL", script, "0", &add("^open", 3)]).is_error());
    assert!(!app.call(["SQL", "DELETE FROM graph_edges WHERE graph = '^open' AND target = 1"]).is_error());
    assert_eq!(
        owner.call(["SQL", "SELECT source, target FROM graph_edges('^open') WHERE type = 'likes'"]),
        owner.call(["SQL", "SELECT 2, 3"])
    );
    // Both directions, and the degrees.
    let both = "SELECT (SELECT group_concat(vertex) FROM graph_out('^open', 2)), (SELECT group_concat(vertex) FROM graph_in('^open', 3))";
    assert_eq!(app.call(["SQL", both]), owner.call(["SQL", "SELECT '3', '2'"]));
    let mut session = ours.database.session().expect("a session");
    let degree = Node::parse("^open(\"vertex\",3,\"in\",\"likes\")").expect("a node");
    assert_eq!(session.get_int(&degree).expect("a degree"), Some(1));
}

#[test]
fn scripts_read_and_change_graphs_with_the_rights_of_their_caller() {
    let place = Place::new();
    let (ours, mut owner, mut app) = start(&place);
    let read = "return redis.call('SQL', ARGV[1])";
    for (open, secret) in reads("^open").iter().zip(&reads("^secret")) {
        let row = owner.call(["EVAL", read, "0", secret]);
        assert!(!row.is_error(), "{secret}: {row:?}");
        assert_eq!(app.call(["EVAL", read, "0", open]), row, "{open}");
        let told = app.call(["EVAL", read, "0", secret]).to_text();
        assert!(told.contains("this user may not read secret"), "{secret}: {told}");
    }
    // The nodes of a graph, which are its layout, are behind the rules of nodes.
    for script in [
        "return perilune.node('^secret', 'vertex', 1).__",
        "perilune.node('^secret', 'vertex', 3).__ = true",
        "perilune.node('^secret', 'edge', 1).__ = 'x'",
        "perilune.node('^secret', 'out', 1):kill()",
    ] {
        let told = app.call(["EVAL", script, "0"]).to_text();
        assert!(told.contains("no permissions"), "{script}: {told}");
    }
    let left = owner.call(["SQL", "SELECT group_concat(vertex) FROM graph_vertices('^secret')"]);
    assert_eq!(left, owner.call(["SQL", "SELECT '1,2'"]));
    drop(ours);
}
