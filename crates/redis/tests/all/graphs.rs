//! Graphs at the server: the key of its global is the right to a graph, whichever way a client asks.

use crate::peer::{Client, Ours, Place, Text};
use perilune::{key::parse_value, Node};
use perilune_redis::Settings;
use perilune_resp::Answer;

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

/// An answer as text, lists in brackets.
fn shown(answer: &Answer) -> String {
    match answer {
        Answer::Array(parts) => format!("[{}]", parts.iter().map(shown).collect::<Vec<_>>().join(" ")),
        Answer::Integer(integer) => integer.to_string(),
        other => other.to_text(),
    }
}

/// A graph of five, by the library that programs have, too.
const MAKES: &str = "
    local graph = require 'perilune.graph'
    local g = graph.create(perilune.node(KEYS[1]), {weight = 'km'})
    for _, name in ipairs {'a', 'b', 'c', 'd', 7} do g:add_vertex(name, {'Town'}, {size = #tostring(name)}) end
    for _, edge in ipairs {{'a', 'b', 1}, {'b', 'c', 1.5}, {'a', 'c', 4}, {'c', 'd', 1}, {'d', 7, 1}} do
        g:add_edge(edge[1], 'ROAD', edge[2], {km = edge[3]})
    end
    return {g:count()}";

#[test]
fn scripts_have_the_library_of_graphs() {
    let place = Place::new();
    let (_ours, mut owner, mut app) = start(&place);
    assert_eq!(shown(&owner.call(["EVAL", MAKES, "1", "^towns"])), "[5 5]");
    let cases = [
        ("local p = g:shortest_path('a', 'd') return tostring(p) .. ' ' .. p.length", "a-[ROAD]->c-[ROAD]->d 2"),
        ("local p = g:dijkstra('a', 'd') return tostring(p) .. ' ' .. p.cost", "a-[ROAD]->b-[ROAD]->c-[ROAD]->d 3.5"),
        ("local p = g:a_star('a', 'd', {cost = function(e) return 1 end}) return tostring(p.length)", "2"),
        ("local t = {} for p in g:traversal():min_depth(1):max_depth(2):from('a') do t[#t + 1] = p.vertex end return t", "[b c d]"),
        ("local t = g:traversal():expand(function(p, g) return g:edges(p.vertex) end):cheapest_first():cost('weight')
          return #t:all('a')", "5"),
        ("return {g:degree('c'), g:degree('c', 'in'), g:degree(7, 'out')}", "[3 2 0]"),
        ("return {g:get('a', 'size'), g:find('Town', 'size', 1)[1], tostring(g:get('a', 'none'))}", "[1 7 nil]"),
        ("local good, why = pcall(g.add_edge, g, 'a', 'ROAD', 'no') return why", "NO_VERTEX: there is no vertex no: create it first"),
        ("local e = g:edges('a')[1] g:set_edge(e.id, 'km', 9) return {g:edge(e.id).weight, g:get_edge(e.id, 'km')}", "[9 9]"),
        ("g:delete_vertex('d', true) return {g:count(), tostring(g:check())}", "[4 true]"),
        ("return tostring(g:page_rank{rounds = 5}.a > 0) .. #g:components()", "true2"),
        ("local t = g:traversal():limit{edges = 1} local good, why = pcall(t.all, t, 'a') return why:sub(1, 13)", "LIMIT_REACHED"),
    ];
    for (text, wanted) in cases {
        let script = format!("local g = require('perilune.graph').open(perilune.node(KEYS[1])) {text}");
        assert_eq!(shown(&owner.call(["EVAL", &script, "1", "^towns"])), wanted, "{text}");
    }
    // What the script is not: one transaction, that may write, of a client who may.
    let add = "local g = require('perilune.graph').open(perilune.node(ARGV[1])) g:add_vertex('e') return 1";
    assert!(owner.call(["EVAL_RO", add, "0", "^towns"]).to_text().contains("not allowed from read-only"));
    let apart = format!("#!lua flags=non-atomic\n{add}");
    assert!(owner.call(["EVAL", &apart, "0", "^towns"]).to_text().contains("leave non-atomic out"));
    let read = "return require('perilune.graph').open(perilune.node(ARGV[1])):count()";
    assert_eq!(shown(&app.call(["EVAL", read, "0", "^open"])), "2");
    assert!(app.call(["EVAL", read, "0", "^towns"]).to_text().contains("NOPERM"));
    assert!(app.call(["EVAL", add, "0", "^open"]).to_text().contains("NOPERM"));
    let create = "return require('perilune.graph').create(perilune.node(ARGV[1], 'g')):count()";
    assert!(owner.call(["EVAL", create, "0", "^redis"]).to_text().contains("NOPERM"));
    assert_eq!(shown(&owner.call(["EVAL", read, "0", "^towns"])), "4");
}

#[test]
fn functions_of_sql_have_the_library_of_graphs() {
    let place = Place::new();
    let (_ours, mut owner, mut app) = start(&place);
    for statement in [
        "CREATE FUNCTION reach(graph, v) AS 'local g = require(\"perilune.graph\").open(perilune.node(graph))
            return #g:traversal():all(v)'",
        "CREATE FUNCTION link(graph, a, b) AS 'local g = require(\"perilune.graph\").open(perilune.node(graph))
            return g:add_edge(a, \"likes\", b)'",
        "CREATE TABLE person(id INTEGER PRIMARY KEY)",
        "INSERT INTO person VALUES (1), (2)",
    ] {
        let told = owner.call(["SQL", statement]);
        assert!(!told.is_error(), "{statement}: {told:?}");
    }
    let reach = |graph: &str| format!("SELECT sum(reach('{graph}', id)) FROM person");
    assert_eq!(owner.call(["SQL", &reach("^open")]), owner.call(["SQL", "SELECT 3"]));
    assert_eq!(owner.line("ACL SETUSER app %R~^person").to_text(), "OK");
    assert_eq!(app.call(["SQL", &reach("^open")]), owner.call(["SQL", "SELECT 3"]));
    assert!(app.call(["SQL", &reach("^secret")]).to_text().contains("this user may not read secret"));
    // A statement that fails afterwards leaves nothing of what its functions did.
    let link = "SELECT link('^open', 2, 1), link('^open', 2, 9)";
    assert!(owner.call(["SQL", link]).to_text().contains("NO_VERTEX: there is no vertex 9"));
    assert_eq!(
        owner.call(["SQL", "SELECT count(*) FROM graph_edges('^open')"]),
        owner.call(["SQL", "SELECT 1"])
    );
    assert!(owner
        .call(["SQL_RO", "SELECT link('^open', 2, 1)"])
        .to_text()
        .contains("only statements that read"));
    assert!(!owner.call(["SQL", "SELECT link('^open', 2, 1)"]).is_error());
    assert_eq!(owner.call(["SQL", &reach("^open")]), owner.call(["SQL", "SELECT 4"]));
    assert!(app.call(["SQL", "SELECT link('^open', 2, 1)"]).to_text().contains("may not change open"));
    // What a function writes counts as its memory.
    let greedy =
        "CREATE FUNCTION greedy() AS 'local g = require(\"perilune.graph\").open(perilune.node(\"^open\"))
        for i = 1, 1e6 do g:add_vertex(\"v\" .. i, {}, {text = (\"x\"):rep(1e6)}) end'";
    assert!(!owner.call(["SQL", greedy]).is_error());
    let told = owner.call(["SQL", "SELECT greedy()"]).to_text();
    assert!(told.contains("bytes of the writes of a transaction") || told.contains("memory"), "{told}");
}

/// Loads examples/graph/alchemy.lua.
fn load_library(client: &mut Client) {
    let library =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/graph/alchemy.lua"));
    assert_eq!(client.call(["FUNCTION", "LOAD", &library.expect("the example")]).to_text(), "graphs");
}

/// The users of AlchemyDB's example, by its words and in SQL.
#[test]
fn alchemydbs_names_of_graphs() {
    let place = Place::new();
    let ours = Ours::start(&place, Settings::default());
    let mut client = Client::connect(&ours.socket);
    load_library(&mut client);
    for statement in [
        "CREATE TABLE users(pk INTEGER PRIMARY KEY, name TEXT, lo LUATABLE)",
        "CREATE TABLE cities(pk INTEGER PRIMARY KEY, lo LUATABLE)",
        "INSERT INTO users(pk, name) VALUES (1,'A'),(2,'B'),(3,'C'),(4,'D'),(5,'E'),(6,'F'),(7,'G')",
        "INSERT INTO cities(pk) VALUES (10), (20)",
    ] {
        let told = client.call(["SQL", statement]);
        assert!(!told.is_error(), "{statement}: {told:?}");
    }
    let made = "SELECT count(*) FROM users WHERE createNamedNode('users', 'lo', pk, name) = 'CREATED NODE'";
    assert_eq!(client.call(["SQL", made]), client.call(["SQL", "SELECT 7"]));
    assert_eq!(client.line("LUAFUNC createNamedNode cities lo 10 DC").to_text(), "CREATED NODE");
    assert!(client
        .line("LUAFUNC createNamedNode cities lo 30 X")
        .to_text()
        .contains("cities 30 ROW does not exist"));
    assert!(client.line("LUAFUNC createNamedNode cities lo 10 DC").to_text().contains("Node already exists"));
    for (kind, pairs) in [
        ("KNOWS", [(1, 2), (2, 4), (4, 7), (1, 3), (3, 5), (3, 6)].as_slice()),
        ("VIEWED_PIC", &[(1, 2), (2, 4), (4, 1), (6, 1), (5, 7)]),
    ] {
        for (from, to) in pairs {
            let line = format!("LUAFUNC addNodeRelationShipByPK users {from} {kind} users {to}");
            assert_eq!(client.line(&line).to_text(), "ADDED RELATIONSHIP", "{line}");
        }
    }
    let both = "[[A A-[KNOWS]->B-[KNOWS]->D-[VIEWED_PIC]->A] [A A-[KNOWS]->C-[KNOWS]->F-[VIEWED_PIC]->A]]";
    for order in ["BFS", "DFS"] {
        let line = format!(
            "LUAFUNC traverseByPK {order} users 1 REPLY.NODENAME_AND_PATH EXPANDER.FOF UNIQUENESS.PATH_GLOBAL EDGE_EVAL.FOF"
        );
        assert_eq!(shown(&client.line(&line)), both, "{order}");
    }
    // Users 10 and cities 10 are two, costs keep their fractions, and equal ones do not displace each other.
    for (from, to, weight) in [(1, 2, "0.5"), (2, 4, "0.25"), (1, 3, "0.5"), (3, 5, "0.5")] {
        let line =
            format!("LUAFUNC addPropertyToRelationshipByPK users {from} KNOWS users {to} weight {weight}");
        assert_eq!(client.line(&line).to_text(), "PROPERTY ADDED TO RELATION", "{line}");
    }
    let shortest = "LUAFUNC shortestPathByPK users 1 4 RELATIONSHIP_COST.WEIGHT";
    assert_eq!(shown(&client.line(shortest)), "[0.75 A-[KNOWS]->B-[KNOWS]->D]");
    assert_eq!(
        client.line("LUAFUNC deleteNodeRelationShipByPK users 2 KNOWS users 4").to_text(),
        "DELETED RELATIONSHIP"
    );
    assert!(client
        .line("LUAFUNC deleteNodeRelationShipByPK users 2 KNOWS users 4")
        .to_text()
        .contains("does not exist"));
    assert!(client
        .line("LUAFUNC traverseByPK BFS users 1 EXPANDER.NONE")
        .to_text()
        .contains("function not found"));
    assert!(client
        .line("LUAFUNC traverseByPK BFS users 1 SHAPE.ROUND")
        .to_text()
        .contains("there is no option"));
    // Both directions agree: SQL reads the same graph.
    let reads =
        "SELECT group_concat(vertex) FROM (SELECT vertex FROM graph_in('^graph', '^users(1)') ORDER BY 1)";
    assert_eq!(client.call(["SQL", reads]), client.call(["SQL", "SELECT '^users(4),^users(6)'"]));
}

/// AlchemyDB's users and cities, linked.
fn make_users_and_cities(client: &mut Client) {
    load_library(client);
    for statement in [
        "CREATE TABLE users(pk INTEGER PRIMARY KEY, name TEXT, lo LUATABLE)",
        "CREATE TABLE cities(pk INTEGER PRIMARY KEY, lo LUATABLE)",
        "INSERT INTO users(pk, name) VALUES (1,'A'),(2,'B'),(3,'C'),(4,'D')",
        "INSERT INTO cities(pk) VALUES (10), (20)",
        "SELECT createNamedNode('users', 'lo', pk, name) FROM users",
        "SELECT createNamedNode('cities', 'lo', pk, 'city' || pk) FROM cities",
        "SELECT addNodeRelationShipByPK('users', pk, 'HAS_VISITED', 'cities', 10) FROM users WHERE pk < 3",
        "SELECT addNodeRelationShipByPK('users', 3, 'KNOWS', 'users', 2)",
    ] {
        let told = client.call(["SQL", statement]);
        assert!(!told.is_error(), "{statement}: {told:?}");
    }
}

/// Rows by what their nodes are linked with, WHERE relindx() = 10: at two depths, in both directions, and as edges come and go.
#[test]
fn alchemydbs_indexes_of_relationships() {
    let place = Place::new();
    let ours = Ours::start(&place, Settings::default());
    let mut client = Client::connect(&ours.socket);
    make_users_and_cities(&mut client);
    // One by words, two by SQL; what is in the graph already comes in.
    let words = [
        "CREATE",
        "INDEX",
        "lf_users",
        "ON",
        "users",
        "(relindx())",
        "LONG",
        "constructUserGraphHooks",
        "destructUserGraphHooks",
    ];
    assert_eq!(shown(&client.call(words)), "0");
    let mut run = |statement: &str| {
        let told = client.call(["SQL", statement]);
        assert!(!told.is_error(), "{statement}: {told:?}");
        shown(&told)
    };
    run("CREATE INDEX lf_friends ON users (heard()) LONG constructFriendGraphHooks destructUserGraphHooks");
    run("CREATE INDEX lf_cities ON cities (visitor()) LONG constructCityGraphHooks destructUserGraphHooks");
    let one =
        |statement: &str| format!("SELECT group_concat(pk) FROM (SELECT pk FROM {statement} ORDER BY pk)");
    for (rows, wanted) in [
        ("users WHERE relindx() = 10", "1,2"),
        ("users WHERE relindx() BETWEEN 5 AND 15 AND name > 'A'", "2"),
        ("users WHERE heard() = 10", "3"),
        ("cities WHERE visitor() = 2", "10"),
        ("users WHERE relindx() = 10 OR heard() = 10", "1,2,3"),
    ] {
        assert_eq!(run(&one(rows)), run(&format!("SELECT '{wanted}'")).replace("'", ""), "{rows}");
    }
    // A user may have been in several cities; edges that come and go take the entries along, in one transaction.
    run("SELECT addNodeRelationShipByPK('users', 2, 'HAS_VISITED', 'cities', 20)");
    run("SELECT addNodeRelationShipByPK('users', 4, 'KNOWS', 'users', 2)");
    run("SELECT deleteNodeRelationShipByPK('users', 1, 'HAS_VISITED', 'cities', 10)");
    for (rows, wanted) in [
        ("users WHERE relindx() = 10", "2"),
        ("users WHERE relindx() IN (10, 20)", "2"),
        ("users WHERE heard() = 20", "3,4"),
        ("cities WHERE visitor() = 2", "10,20"),
        ("users WHERE relindx() IS NULL", "1,3,4"),
    ] {
        assert_eq!(run(&one(rows)), run(&format!("SELECT '{wanted}'")), "{rows}");
    }
    assert_eq!(
        shown(&client.line("MULTI"))
            + &shown(&client.line("LUAFUNC addNodeRelationShipByPK users 1 HAS_VISITED cities 20"))
            + &shown(&client.line("DISCARD")),
        "OKQUEUEDOK"
    );
    let mut run = |statement: &str| shown(&client.call(["SQL", statement]));
    assert_eq!(run(&one("users WHERE relindx() = 20")), run("SELECT '2'"));
    keep_an_index(&mut client);
    let mut run = |statement: &str| shown(&client.call(["SQL", statement]));
    // A row that goes takes its entries along; an index that is dropped tells its destructor.
    run("DELETE FROM users WHERE lucky() = 7 OR relindx() = 20");
    assert_eq!(run("SELECT count(*) FROM lf_users"), run("SELECT 0"));
    for index in ["lf_users", "lf_friends", "lf_cities", "\"o\"\"wn\""] {
        assert!(!client.call(["DROP", "INDEX", index]).is_error(), "{index}");
    }
    let left = client.call(["EVAL", "return perilune.node('^graph_hooks'):data()", "0"]);
    assert_eq!(shown(&left), "0");
}

/// AlchemyDB's names for whoever keeps an index himself.
fn keep_an_index(client: &mut Client) {
    let one =
        |statement: &str| format!("SELECT group_concat(pk) FROM (SELECT pk FROM {statement} ORDER BY pk)");
    let mut run = |statement: &str| shown(&client.call(["SQL", statement]));
    run("CREATE FUNCTION nothing(t, i) AS 'return 1'");
    run("CREATE INDEX \"o\"\"wn\" ON users (lucky()) LONG nothing");
    run(
        "CREATE FUNCTION luck(pk, old, new) AS 'if old then alchemyUpdateIndexByName([[o\"wn]], pk, old, new)
        else alchemySetIndexByName([[o\"wn]], pk, new) end return 1'",
    );
    run("SELECT luck(pk, NULL, pk % 2) FROM users");
    run("SELECT luck(1, 1, 7)");
    assert_eq!(run(&one("users WHERE lucky() = 1")), run("SELECT '3'"));
    assert_eq!(run(&one("users WHERE lucky() = 7")), run("SELECT '1'"));
}
