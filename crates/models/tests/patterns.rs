//! The patterns lie as the literature on globals has them, its worked examples come out, and random changes agree with
//! plain models.

use std::collections::{BTreeMap, BTreeSet};

use perilune::{node, Database, Node, Session, Value, ValueRef};
use perilune_models::{
    call, json, Columns, Direction, Edge, Fields, Hash, Json, Network, Records, Relations, Result, Set,
    Wanted,
};
use proptest::prelude::*;

fn session() -> Session {
    Database::open("memory:").and_then(|database| database.session()).expect("a database in memory")
}

fn fields(json: Json) -> Fields {
    match json {
        Json::Object(fields) => fields,
        other => panic!("{other} is no object"),
    }
}

/// All nodes below `node`, with their values as M sees them.
fn lines(session: &mut Session, node: &Node) -> Result<Vec<String>> {
    let mut lines = Vec::new();
    for (node, value) in session.get_tree(node)? {
        let mut text = Vec::new();
        value.as_ref().write_text(&mut text);
        lines.push(format!("{node}={}", String::from_utf8_lossy(&text)));
    }
    Ok(lines)
}

fn text_value(text: &str) -> Value {
    Value::String(text.as_bytes().to_vec())
}

#[test]
fn sets_and_hashes() -> Result<()> {
    let s = &mut session();
    let set = Set::at(node!("^s", "names")?);
    assert_eq!(
        [set.add(s, &json!("b"))?, set.add(s, &json!(10))?, set.add(s, &json!("b"))?],
        [true, true, false]
    );
    assert_eq!([set.has(s, &json!("10"))?, set.has(s, &json!("c"))?], [true, false]);
    assert_eq!((set.members(s)?, set.count(s)?), (vec![json!(10), json!("b")], 2));
    assert_eq!(lines(s, &node!("^s")?)?, [r#"^s("names",10)="#, r#"^s("names","b")="#]);
    assert_eq!([set.remove(s, &json!("b"))?, set.remove(s, &json!("b"))?], [true, false]);
    assert!(
        set.add(s, &json!("")).is_err()
            && set.add(s, &json!([1])).is_err()
            && set.add(s, &json!(null)).is_err()
    );

    let telephone = Hash::at(node!("^telephone")?);
    assert!(telephone.put(s, &json!("211-555-9012"), &json!("James, George"))?);
    assert!(telephone.put(s, &json!("617-555-1414"), &json!("Tweed, Rob"))?);
    assert!(!telephone.put(s, &json!("617-555-1414"), &json!("Tweed, R"))?);
    assert_eq!(telephone.get(s, &json!("617-555-1414"))?, Some(text_value("Tweed, R")));
    let all = json!({"211-555-9012": "James, George", "617-555-1414": "Tweed, R"});
    assert_eq!((Json::Object(telephone.all(s)?), telephone.count(s)?), (all, 2));
    assert_eq!(
        [telephone.delete(s, &json!("211-555-9012"))?, telephone.delete(s, &json!("x"))?],
        [true, false]
    );
    assert_eq!(telephone.increment(s, &json!("calls"), 2)?.as_i64(), Some(2));
    assert!(telephone.increment(s, &json!("617-555-1414"), 2).is_err());
    Ok(())
}

#[test]
fn records_with_indexes() -> Result<()> {
    let s = &mut session();
    let employees = Records::at(node!("^employee")?);
    let people = [
        ("Smith", "Programmer", "London"),
        ("Jones", "Consultant", "Paris"),
        ("Gray", "Programmer", "London"),
        ("Adams", "Programmer", "London"),
    ];
    let record = |(name, role, office): (&str, &str, &str)| {
        fields(json!({"last_name": name, "role": role, "office": office}))
    };
    assert_eq!(employees.insert(s, &record(people[0]))?, 1);
    // An index that is added has those that are there.
    assert_eq!(employees.add_index(s, &["last_name"])?, "by_last_name");
    assert_eq!(employees.add_index(s, &["role", "office"])?, "by_role_and_office");
    assert_eq!(employees.add_index(s, &["role"])?, "by_role");
    for (id, person) in (2..).zip(&people[1..]) {
        assert_eq!(employees.insert(s, &record(*person))?, id);
    }
    let values = [json!("Programmer"), json!("London")];
    let london = Wanted { values: &values, ..Wanted::default() };
    assert_eq!(employees.find(s, "by_role_and_office", london)?, [json!(1), json!(3), json!(4)]);
    assert!(employees.edit(s, &json!(1), &fields(json!({"role": "Director", "office": null})))?);
    assert_eq!(employees.find(s, "by_role_and_office", london)?, [json!(3), json!(4)]);
    assert_eq!(employees.get(s, &json!(1))?, Some(fields(json!({"last_name": "Smith", "role": "Director"}))));
    let programmers = Wanted { values: &values[..1], ..Wanted::default() };
    assert_eq!(employees.find(s, "by_role_and_office", programmers)?, [json!(3), json!(4)]);
    let (from, to) = (json!("B"), json!("Jones"));
    let range = Wanted { values: &[], from: Some(&from), to: Some(&to) };
    assert_eq!(employees.find(s, "by_last_name", range)?, [json!(3), json!(2)]);
    let found = employees.find_records(s, "by_last_name", Wanted { values: &[to], ..Wanted::default() })?;
    assert_eq!(found, [(json!(2), record(people[1]))]);
    assert!(employees.delete(s, &json!(2))?);
    let want = [
        r#"^employee("by_id",1,"last_name")=Smith"#,
        r#"^employee("by_id",1,"role")=Director"#,
        r#"^employee("by_id",4,"last_name")=Adams"#,
        r#"^employee("by_id",4,"office")=London"#,
        r#"^employee("by_id",4,"role")=Programmer"#,
        r#"^employee("by_last_name","Adams",4)="#,
        r#"^employee("by_last_name","Smith",1)="#,
        r#"^employee("by_role","Director",1)="#,
        r#"^employee("by_role","Programmer",4)="#,
        r#"^employee("by_role_and_office","Programmer","London",4)="#,
        r#"^employee("counter")=4"#,
        r#"^employee("indices","by_last_name",1)=last_name"#,
        r#"^employee("indices","by_role",1)=role"#,
        r#"^employee("indices","by_role_and_office",1)=role"#,
        r#"^employee("indices","by_role_and_office",2)=office"#,
    ];
    assert!(employees.delete(s, &json!(3))?);
    assert_eq!(lines(s, &node!("^employee")?)?, want);
    assert_eq!(employees.check(s)?, [""; 0]);
    refused_and_empty_records(s, &employees, &values)
}

/// What is wrong is found, what is refused leaves nothing, a record without properties is there.
fn refused_and_empty_records(s: &mut Session, employees: &Records, values: &[Json]) -> Result<()> {
    let london = Wanted { values, ..Wanted::default() };
    s.set(&node!("^employee", "by_role", "Cook", 9)?, "")?;
    s.delete_value(&node!("^employee", "by_role", "Director", 1)?)?;
    assert_eq!(employees.check(s)?.len(), 2, "the check finds what is wrong");
    assert!(employees.put(s, &json!(9), &Fields::new())?, "a record without properties is there");
    assert_eq!(
        (employees.get(s, &json!(9))?, employees.insert(s, &Fields::new())?),
        (Some(Fields::new()), 10)
    );
    assert!(employees.delete_index(s, "by_role")? && !employees.delete_index(s, "by_role")?);
    let too_many = Wanted { values, ..Wanted::default() };
    assert!(
        employees.find(s, "by_last_name", too_many).is_err() && employees.find(s, "by_role", london).is_err()
    );
    assert!(employees.add_index(s, &[]).is_err() && employees.add_index(s, &["id"]).is_err());
    assert!(employees.insert(s, &fields(json!({"a": [1]}))).is_err());
    assert_eq!(employees.count(s)?, 4, "a record that is refused has left nothing");
    Ok(())
}

#[test]
fn columns_by_row_and_value() -> Result<()> {
    let s = &mut session();
    let table = Columns::at(node!("^table")?);
    table.put(s, &json!(1), &fields(json!({"name": "Rob", "state": "CA"})))?;
    table.put(
        s,
        &json!(2),
        &fields(json!({"name": "George", "email": "g@foo.com", "state": "NY", "telephone": 12})),
    )?;
    let rows = table.find(s, "state", &json!("NY"))?;
    assert_eq!(rows, [json!(2)]);
    let row = table.row(s, &rows[0])?.expect("a row");
    assert_eq!(row.keys().collect::<Vec<_>>(), ["email", "name", "state", "telephone"]);
    assert_eq!(table.column(s, "name")?, [(json!(1), json!("Rob")), (json!(2), json!("George"))]);
    table.put(s, &json!(1), &fields(json!({"state": "NY", "name": null, "note": ""})))?;
    assert_eq!(table.find(s, "state", &json!("NY"))?, [json!(1), json!(2)]);
    assert_eq!(
        table.range(s, "telephone", Some(&json!(9)), Some(&json!(100)))?,
        [json!(2)],
        "numbers as numbers"
    );
    assert!(table.range(s, "state", Some(&json!("O")), None)?.is_empty());
    let want = [
        r#"^table("by_row",1,"note")="#,
        r#"^table("by_row",1,"state")="#,
        r#"^table("by_value","state","NY",1)="#,
        r#"^table("cells","note",1)="#,
        r#"^table("cells","state",1)=NY"#,
    ];
    assert_eq!([table.delete(s, &json!(2))?, table.delete(s, &json!(2))?], [true, false]);
    assert_eq!(lines(s, &node!("^table")?)?, want);
    assert_eq!((table.rows(s)?, table.columns(s)?), (vec![json!(1)], vec![json!("note"), json!("state")]));
    assert_eq!(table.check(s)?, [""; 0]);
    s.set(&node!("^table", "cells", "state", 1)?, "TX")?;
    assert_eq!(table.check(s)?.len(), 2, "the check finds what is wrong");
    Ok(())
}

/// The customer with two orders of four items, then one more order of two.
#[test]
fn relations_between_tables() -> Result<()> {
    let s = &mut session();
    let shop = Relations::at(node!("^DATABASE")?);
    shop.table(s, "CUSTOMER", &["customerId"], None)?;
    shop.table(s, "ORDERS", &["orderId"], Some("CUSTOMER"))?;
    shop.table(s, "ITEM", &["orderId", "itemNumber"], Some("ORDERS"))?;
    shop.insert(s, "CUSTOMER", &fields(json!({"customerId": 123, "name": "Rob Tweed"})))?;
    for order in [28, 42] {
        shop.insert(s, "ORDERS", &fields(json!({"orderId": order, "customerId": 123})))?;
    }
    for (order, item, value) in [(28, 1, 10.0), (28, 2, 25.0), (28, 3, 5.0), (42, 1, 60.0)] {
        let row = json!({"orderId": order, "itemNumber": item, "value": value});
        assert!(shop.insert(s, "ITEM", &fields(row.clone()))? && !shop.insert(s, "ITEM", &fields(row))?);
    }
    let total = |s: &mut Session| -> Result<Vec<f64>> {
        let mut totals = Vec::new();
        for order in shop.children(s, "CUSTOMER", &[json!(123)], "ORDERS")? {
            let items = shop.children(s, "ORDERS", &[order["orderId"].clone()], "ITEM")?;
            totals.push(items.iter().filter_map(|item| item["value"].as_f64()).sum());
        }
        Ok(totals)
    };
    assert_eq!(total(s)?, [40.0, 60.0]);
    let want = [
        r#"^ITEM(42,1,"fields","value")=60"#,
        r#"^ITEM(42,1,"parentTable","ORDERS","key:orderId")="#,
        r#"^ORDERS(42,"fields","customerId")=123"#,
        r#"^ORDERS(42,"parentTable","CUSTOMER","key:customerId",123)="#,
        r#"^ORDERS(42,"subTable","ITEM","key:orderId,itemNumber",1)="#,
        r#"^CUSTOMER(123,"subTable","ORDERS","key:orderId",28)="#,
        r#"^CUSTOMER(123,"subTable","ORDERS","key:orderId",42)="#,
        r#"^DATABASE("subTable","CUSTOMER","key:customerId")="#,
    ];
    let mut stored = lines(s, &node!("^ITEM", 42)?)?;
    stored.extend(lines(s, &node!("^ORDERS", 42)?)?);
    stored.extend(lines(s, &node!("^CUSTOMER", 123, "subTable")?)?);
    stored.extend(lines(s, &node!("^DATABASE", "subTable")?)?);
    assert_eq!(stored, want);
    shop.insert(s, "ORDERS", &fields(json!({"orderId": 101, "customerId": 123})))?;
    for (item, value) in [(1, 40.0), (2, 60.0)] {
        shop.insert(s, "ITEM", &fields(json!({"orderId": 101, "itemNumber": item, "value": value})))?;
    }
    assert_eq!(total(s)?, [40.0, 60.0, 100.0]);
    assert_eq!(shop.parent(s, "ITEM", &[json!(101), json!(2)])?.expect("an order")["customerId"], json!(123));
    assert_eq!(shop.rows(s, "ITEM", &[json!(28)])?.len(), 3);
    // An order that goes to another customer, and one to nobody.
    shop.insert(s, "CUSTOMER", &fields(json!({"customerId": 7})))?;
    assert!(shop.update(s, "ORDERS", &[json!(42)], &fields(json!({"customerId": 7})))?);
    assert_eq!(shop.children(s, "CUSTOMER", &[json!(7)], "ORDERS")?.len(), 1);
    assert!(shop.update(s, "ORDERS", &[json!(42)], &fields(json!({"customerId": null})))?);
    assert_eq!((shop.parent(s, "ORDERS", &[json!(42)])?, shop.check(s)?), (None, vec![]));
    refused_rows(s, &shop)
}

fn refused_rows(s: &mut Session, shop: &Relations) -> Result<()> {
    // What is refused changes nothing.
    let before = lines(s, &node!("^ORDERS")?)?;
    for refused in [
        shop.insert(s, "ORDERS", &fields(json!({"orderId": 1, "customerId": 999}))),
        shop.insert(s, "ORDERS", &fields(json!({"customerId": 7}))),
        shop.insert(s, "NONE", &Fields::new()),
        shop.update(s, "ORDERS", &[json!(42)], &fields(json!({"orderId": 43}))),
        shop.delete(s, "ORDERS", &[json!(28)], false),
        shop.delete(s, "ITEM", &[json!(28)], false),
        shop.table(s, "ORDERS", &["other"], None).map(|()| true),
        shop.table(s, "NEW", &["a"], Some("NONE")).map(|()| true),
    ] {
        assert!(refused.is_err(), "{refused:?}");
    }
    assert_eq!(lines(s, &node!("^ORDERS")?)?, before);
    assert!(shop.delete(s, "CUSTOMER", &[json!(123)], true)?);
    assert_eq!((shop.rows(s, "ITEM", &[])?.len(), shop.rows(s, "ORDERS", &[])?.len()), (1, 1));
    s.set(&node!("^ORDERS", 42, "subTable", "ITEM", "key:orderId,itemNumber", 5)?, "")?;
    assert_eq!(shop.check(s)?.len(), 1, "the check finds what is wrong");
    Ok(())
}

#[test]
fn a_network_of_people() -> Result<()> {
    let s = &mut session();
    let graph = Network::at(node!("^graph")?);
    for (id, name) in [(1, "Rob"), (2, "John"), (7, "George")] {
        graph.add_node(s, &fields(json!({"name": name})), Some(&json!(id)))?;
    }
    let edge = |kind: &str, from: i64, to: i64, properties: Json| Edge {
        kind: kind.to_owned(),
        from: json!(from),
        to: json!(to),
        properties: fields(properties),
    };
    graph.add_edge(s, &edge("knows", 1, 2, json!({"since": 2010})), Some(&json!(21)))?;
    graph.add_edge(s, &edge("knows", 1, 7, json!({"since": 1995})), Some(&json!(23)))?;
    assert_eq!(graph.add_edge(s, &edge("employs", 7, 2, json!({"from": 2002})), None)?, json!(24));
    assert_eq!(graph.edges(s, "knows")?, [json!(21), json!(23)]);
    assert_eq!(graph.neighbours(s, &json!(1), Direction::Out, None)?, [json!(2), json!(7)]);
    assert_eq!(graph.neighbours(s, &json!(2), Direction::In, Some("employs"))?, [json!(7)]);
    assert_eq!(graph.edges_of(s, &json!(7), Direction::Both, None)?, [json!(24), json!(23)]);
    let want = [
        r#"^graph("edge",24,"from_node")=7"#,
        r#"^graph("edge",24,"properties","from")=2002"#,
        r#"^graph("edge",24,"to_node")=2"#,
        r#"^graph("edge",24,"type")=employs"#,
        r#"^graph("edge_counter")=24"#,
        r#"^graph("edge_type","employs",24)="#,
        r#"^graph("node",7,"edge_from",23)="#,
        r#"^graph("node",7,"edge_to",24)="#,
        r#"^graph("node",7,"properties","name")=George"#,
        r#"^graph("node_counter")=7"#,
    ];
    let mut stored = Vec::new();
    for node in [
        node!("^graph", "edge", 24)?,
        node!("^graph", "edge_counter")?,
        node!("^graph", "edge_type", "employs")?,
        node!("^graph", "node", 7)?,
        node!("^graph", "node_counter")?,
    ] {
        stored.extend(lines(s, &node)?);
    }
    assert_eq!(stored, want);
    assert!(graph.edit_edge(s, &json!(24), &fields(json!({"position": "administrator", "from": null})))?);
    assert_eq!(
        graph.get_edge(s, &json!(24))?,
        Some(edge("employs", 7, 2, json!({"position": "administrator"})))
    );
    assert!(graph.add_edge(s, &edge("knows", 1, 99, json!({})), None).is_err());
    assert!(graph.add_node(s, &Fields::new(), Some(&json!(7))).is_err());
    assert_eq!([graph.delete_node(s, &json!(7))?, graph.delete_node(s, &json!(7))?], [true, false]);
    assert_eq!(
        (graph.edges(s, "knows")?, graph.edges(s, "employs")?, graph.check(s)?),
        (vec![json!(21)], vec![], vec![])
    );
    s.set(&node!("^graph", "node", 1, "edge_to", 99)?, "")?;
    assert_eq!(graph.check(s)?.len(), 1, "the check finds what is wrong");
    Ok(())
}

/// The calls by name reach all of them, and refuse wrong arguments before anything happens.
#[test]
fn calls_by_name() -> Result<()> {
    let s = &mut session();
    let node = node!("^x")?;
    let text = |text: &'static str| ValueRef::String(text.as_bytes());
    assert_eq!(call(s, &node, "records.add_index", &[text(r#"["a"]"#)])?, Some(text_value("by_a")));
    assert_eq!(call(s, &node, "records.insert", &[text(r#"{"a":1.5}"#)])?, Some(Value::Int(1)));
    let found = call(
        s,
        &node,
        "records.find",
        &[text("by_a"), text("[1.5]"), ValueRef::Null, ValueRef::Null, ValueRef::Bool(true)],
    )?;
    assert_eq!(found, Some(text_value(r#"[[1,{"a":1.5}]]"#)));
    let edge = [text("knows"), ValueRef::Int(1), text("two")];
    assert!(call(s, &node, "network.add_edge", &edge).is_err());
    for (name, arguments) in [
        ("records.insert", vec![text("[1]")]),
        ("records.add_index", vec![text("{}")]),
        ("records.add_index", vec![text("[1]")]),
        ("records.get", vec![ValueRef::Null]),
        ("records.get", vec![ValueRef::Int(1), ValueRef::Int(2)]),
        ("set.add", vec![]),
        ("hash.put", vec![text("a")]),
        ("hash.increment", vec![text("a"), text("x")]),
        ("columns.find", vec![text("a")]),
        ("relations.rows", vec![text("NONE")]),
        ("network.edges_of", vec![ValueRef::Int(1), text("sideways")]),
        ("network.nothing", vec![]),
    ] {
        let before = lines(s, &node)?;
        assert!(call(s, &node, name, &arguments).is_err(), "{name} {arguments:?}");
        assert_eq!(lines(s, &node)?, before, "{name}");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Records and columns beside maps.
    #[test]
    fn random_records_agree_with_maps(
        steps in prop::collection::vec((0..4, 0i64..6, "[ab]?", prop::option::of(-2i64..3)), 1..40)
    ) {
        let s = &mut session();
        let (records, table) = (Records::at(node!("^r").unwrap()), Columns::at(node!("^c").unwrap()));
        records.add_index(s, &["x", "y"]).unwrap();
        records.add_index(s, &["y"]).unwrap();
        let mut rows: BTreeMap<i64, Fields> = BTreeMap::new();
        for (what, id, x, y) in steps {
            let row = fields(json!({"x": x, "y": y}));
            let merged = |old: &Fields| {
                let mut new = old.clone();
                new.extend(row.clone());
                new.retain(|_, json| !json.is_null());
                new
            };
            match what {
                0 => {
                    prop_assert_eq!(records.put(s, &json!(id), &row).unwrap(), !rows.contains_key(&id));
                    table.delete(s, &json!(id)).unwrap();
                    table.put(s, &json!(id), &row).unwrap();
                    rows.insert(id, merged(&Fields::new()));
                }
                1 => {
                    prop_assert_eq!(records.delete(s, &json!(id)).unwrap(), rows.contains_key(&id));
                    prop_assert_eq!(table.delete(s, &json!(id)).unwrap(), rows.contains_key(&id));
                    rows.remove(&id);
                }
                _ => {
                    prop_assert_eq!(records.edit(s, &json!(id), &row).unwrap(), rows.contains_key(&id));
                    if let Some(old) = rows.get_mut(&id) {
                        *old = merged(old);
                        table.put(s, &json!(id), &row).unwrap();
                    }
                }
            }
        }
        prop_assert_eq!(records.check(s).unwrap(), [""; 0]);
        prop_assert_eq!(table.check(s).unwrap(), [""; 0]);
        prop_assert_eq!(records.ids(s).unwrap(), rows.keys().map(|&id| json!(id)).collect::<Vec<_>>());
        for (id, row) in &rows {
            prop_assert_eq!(records.get(s, &json!(id)).unwrap(), Some(row.clone()));
            prop_assert_eq!(table.row(s, &json!(id)).unwrap(), Some(row.clone()));
        }
        for y in -2i64..3 {
            let want: Vec<Json> = rows.iter().filter(|(_, row)| row.get("y") == Some(&json!(y))).map(|(id, _)| json!(id)).collect();
            let wanted = Wanted { values: &[json!(y)], ..Wanted::default() };
            prop_assert_eq!(records.find(s, "by_y", wanted).unwrap(), want.clone());
            prop_assert_eq!(table.find(s, "y", &json!(y)).unwrap(), want);
        }
        let both: BTreeSet<String> =
            records.find(s, "by_x_and_y", Wanted::default()).unwrap().iter().map(Json::to_string).collect();
        let has_both = |row: &&Fields| row.get("x") != Some(&json!("")) && row.len() == 2;
        prop_assert_eq!(both.len(), rows.values().filter(has_both).count());
    }

    /// Edges beside a list of them.
    #[test]
    fn random_networks_agree_with_lists(
        steps in prop::collection::vec((0..5, 1i64..5, 1i64..5, "[kl]"), 1..40)
    ) {
        let s = &mut session();
        let graph = Network::at(node!("^g").unwrap());
        let mut nodes: BTreeSet<i64> = BTreeSet::new();
        let mut edges: BTreeMap<i64, (i64, i64, String)> = BTreeMap::new();
        for (what, a, b, kind) in steps {
            match what {
                0 | 1 if !nodes.contains(&a) => {
                    graph.add_node(s, &Fields::new(), Some(&json!(a))).unwrap();
                    nodes.insert(a);
                }
                0 => {
                    graph.delete_node(s, &json!(a)).unwrap();
                    nodes.remove(&a);
                    edges.retain(|_, (from, to, _)| *from != a && *to != a);
                }
                4 => {
                    let id = edges.keys().nth(a as usize).copied().unwrap_or(99);
                    prop_assert_eq!(graph.delete_edge(s, &json!(id)).unwrap(), edges.remove(&id).is_some());
                }
                _ => {
                    let edge = Edge { kind: kind.clone(), from: json!(a), to: json!(b), properties: Fields::new() };
                    let added = graph.add_edge(s, &edge, None);
                    prop_assert_eq!(added.is_ok(), nodes.contains(&a) && nodes.contains(&b));
                    if let Ok(id) = added {
                        edges.insert(id.as_i64().unwrap(), (a, b, kind));
                    }
                }
            }
        }
        prop_assert_eq!(graph.check(s).unwrap(), [""; 0]);
        for kind in ["k", "l"] {
            let want: Vec<Json> = edges.iter().filter(|(_, edge)| edge.2 == kind).map(|(id, _)| json!(id)).collect();
            prop_assert_eq!(graph.edges(s, kind).unwrap(), want);
        }
        for node in 1i64..5 {
            let want: Vec<Json> = edges.iter().filter(|(_, edge)| edge.0 == node).map(|(id, _)| json!(id)).collect();
            prop_assert_eq!(graph.edges_of(s, &json!(node), Direction::Out, None).unwrap(), want);
        }
    }
}
