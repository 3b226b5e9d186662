//! The nodes are JSdb's, to the byte, and what JSdb leaves behind is read.

use perilune::{node, Database, Node, Session, ValueRef};
use perilune_models::{call, json, Children, Document, Error, KeyValue, List, Result, Shape};

const TEXTS: Shape = Shape { first: 0, typed: false };

fn session() -> Session {
    Database::open("memory:").and_then(|database| database.session()).expect("a database in memory")
}

/// All nodes below `node`, with their values as JSdb sees them.
fn lines(session: &mut Session, node: &Node) -> Result<Vec<String>> {
    let mut lines = Vec::new();
    for (node, value) in session.get_tree(node)? {
        let mut text = Vec::new();
        value.as_ref().write_text(&mut text);
        lines.push(format!("{node}={}", String::from_utf8_lossy(&text)));
    }
    Ok(lines)
}

#[test]
fn a_document_lies_as_jsdb_stores_it() -> Result<()> {
    let mut session = session();
    let document = Document::at(node!("^d", "x")?, TEXTS);
    document.put(
        &mut session,
        &json!({"a": [1, "two", {"b": true}], "none": null, "empty": [], "half": 0.5, "t": "007"}),
    )?;
    let want = [
        r#"^d("x","a",0)=1"#,
        r#"^d("x","a",1)=two"#,
        r#"^d("x","a",2,"b")=true"#,
        r#"^d("x","half")=0.5"#,
        r#"^d("x","none")="#,
        r#"^d("x","t")=007"#,
    ];
    assert_eq!(lines(&mut session, document.node())?, want);
    let read = json!({"a": [1, "two", {"b": true}], "none": "", "half": "0.5", "t": 7});
    assert_eq!(document.fetch(&mut session)?, Some(read));
    assert_eq!(document.count(&mut session)?, 4);
    Ok(())
}

/// What JSdb's own run of these calls has left (node.md, section 8).
#[test]
fn a_list_lies_as_jsdb_stores_it() -> Result<()> {
    let mut session = session();
    let list = List::at(node!("^l")?, TEXTS);
    let s = &mut session;
    assert_eq!(list.push_back(s, &json!({"a": 1}))?, 1);
    assert_eq!(list.push_back(s, &json!({"a": 2}))?, 2);
    assert_eq!(list.push_front(s, &json!({"a": 3}))?, 3);
    let want = [
        r#"^l("count")=3"#,
        r#"^l("firstNode")=3"#,
        r#"^l("lastNode")=2"#,
        r#"^l("nextNodeNo")=3"#,
        r#"^l("node",1,"content","a")=1"#,
        r#"^l("node",1,"nextNode")=2"#,
        r#"^l("node",1,"previousNode")=3"#,
        r#"^l("node",2,"content","a")=2"#,
        r#"^l("node",2,"previousNode")=1"#,
        r#"^l("node",3,"content","a")=3"#,
        r#"^l("node",3,"nextNode")=1"#,
    ];
    assert_eq!(lines(s, &node!("^l")?)?, want);
    assert_eq!(list.insert_before(s, 1, &json!({"a": 4}))?, Some(4));
    assert_eq!(list.insert_before(s, 9, &json!({"a": 4}))?, None);
    assert_eq!(list.range(s, 0, -1)?, [3, 4, 1, 2].map(|a| json!({"a": a})));
    assert_eq!(list.pop_front(s)?, Some(json!({"a": 3})));
    assert_eq!(list.pop_back(s)?, Some(json!({"a": 2})));
    assert_eq!((list.range(s, 0, -1)?, list.count(s)?), (vec![json!({"a": 4}), json!({"a": 1})], 2));
    assert!(list.trim(s, 5, 9)?);
    assert_eq!((lines(s, &node!("^l")?)?, list.trim(s, 0, -1)?), (Vec::new(), false));
    Ok(())
}

/// JSdb's insert_before gives the new element no previousNode, its links are texts, and some are empty.
#[test]
fn a_list_that_jsdb_has_left_is_read_and_told() -> Result<()> {
    let mut session = session();
    let s = &mut session;
    let list = List::at(node!("^l")?, TEXTS);
    for a in 1..=3 {
        list.push_back(s, &json!({"a": a}))?;
    }
    list.insert_before(s, 2, &json!({"a": 4}))?;
    s.delete_value(&node!("^l", "node", 4, "previousNode")?)?;
    s.set(&node!("^l", "lastNode")?, "3")?;
    s.set(&node!("^l", "node", 3, "nextNode")?, "")?;
    assert_eq!(list.check(s)?, ["element 4 has previousNode None, not Some(2)"]);
    assert_eq!(list.pop_back(s)?, Some(json!({"a": 3})));
    assert_eq!(list.pop_back(s)?, Some(json!({"a": 4})));
    assert_eq!(list.range(s, 0, -1)?, [1, 2].map(|a| json!({"a": a})));
    assert_eq!(list.check(s)?, [""; 0]);
    // What is no list is left as it is.
    s.set(&node!("^other", "x")?, 1)?;
    let other = List::at(node!("^other")?, TEXTS);
    assert!(matches!(other.push_back(s, &json!(1)), Err(Error::NotAList(_))));
    assert_eq!(lines(s, &node!("^other")?)?, [r#"^other("x")=1"#]);
    Ok(())
}

/// The calls of JSdb's kvsTest.js, and the twelve nodes that it leaves.
#[test]
fn a_store_lies_as_jsdb_stores_it() -> Result<()> {
    let mut session = session();
    let s = &mut session;
    let store = KeyValue::at(node!("^kvs", "test")?, TEXTS);
    let person = |name: &str, town: &str| json!({"name": name, "town": town});
    store.add_index(s, "town", Some("toLowerCase"))?;
    assert!(store.add(s, "key_1", &person("Rob", "Redhill"))?);
    assert!(store.add(s, "key_2", &person("Simon", "St Albans"))?);
    assert!(store.add(s, "key_3", &person("Susanne", "Redhill"))?);
    assert!(!store.add(s, "key_3", &person("Susanne", "Redhill"))?);
    assert!(store.delete(s, "key_1")?);
    store.add_index(s, "name", Some("toLowerCase"))?;
    store.reindex(s)?;
    assert!(store.edit(s, "key_3", &person("Chris", "Banstead"))?);
    let want = [
        r#"^kvs("test","content","key_2","name")=Simon"#,
        r#"^kvs("test","content","key_2","town")=St Albans"#,
        r#"^kvs("test","content","key_3","name")=Chris"#,
        r#"^kvs("test","content","key_3","town")=Banstead"#,
        r#"^kvs("test","index_by","name","chris","key_3")="#,
        r#"^kvs("test","index_by","name","simon","key_2")="#,
        r#"^kvs("test","index_by","town","banstead","key_3")="#,
        r#"^kvs("test","index_by","town","st albans","key_2")="#,
        r#"^kvs("test","indices","name","index")=true"#,
        r#"^kvs("test","indices","name","transform")=toLowerCase"#,
        r#"^kvs("test","indices","town","index")=true"#,
        r#"^kvs("test","indices","town","transform")=toLowerCase"#,
    ];
    assert_eq!(lines(s, &node!("^kvs")?)?, want);
    assert_eq!(store.keys_by_index(s, "planet", &json!("x"))?, None);
    assert_eq!(store.keys_by_index(s, "town", &json!("x"))?, Some(vec![]));
    let found = store.by_index(s, "town", &json!("banstead"))?;
    assert_eq!(found, Some(vec![("key_3".to_owned(), person("Chris", "Banstead"))]));
    assert!(matches!(store.add_index(s, "x", Some("./mine.js")), Err(Error::Transform(_))));
    // An index that only JSdb can load: nothing is half done.
    s.set(&node!("^kvs", "test", "indices", "age", "transform")?, "./mine.js")?;
    assert!(matches!(store.add(s, "key_9", &json!({"age": 3})), Err(Error::Transform(_))));
    assert_eq!(store.get(s, "key_9")?, None);
    Ok(())
}

/// Each pair of a `first` to write with and one to read with: an array comes back for the same alone.
#[test]
fn a_first_that_was_not_written_with_makes_no_array() -> Result<()> {
    let mut session = session();
    for typed in [false, true] {
        for (written, read) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let at = |first| Document::at(node!("^d", written).unwrap(), Shape { first, typed });
            at(written).replace(&mut session, &json!({"list": ["a", "b"]}))?;
            let want = match (written, read) {
                (0, 1) => json!({"list": {"0": "a", "1": "b"}}),
                (1, 0) => json!({"list": {"1": "a", "2": "b"}}),
                _ => json!({"list": ["a", "b"]}),
            };
            assert_eq!(at(read).fetch(&mut session)?, Some(want), "{typed}: {written}, {read}");
        }
    }
    Ok(())
}

/// The ranges of JSdb's documentation.
#[test]
fn children_are_those_of_for_each_child() -> Result<()> {
    let mut session = session();
    let document = Document::at(node!("^names")?, TEXTS);
    let names =
        "james frederick william alan andrew anthony brian brendan billy charles colin david richard Graham";
    for name in names.split(' ') {
        session.set(&document.node().child(name)?, "")?;
    }
    session.set(&document.node().child(10)?, "")?;
    let mut of = |from, to, prefix, reverse| -> Result<String> {
        let found = document.children(&mut session, Children { from, to, prefix, reverse })?;
        let texts: Vec<_> =
            found.iter().map(|name| String::from_utf8_lossy(&name.to_text()).into_owned()).collect();
        Ok(texts.join(" "))
    };
    assert_eq!(of(Some("d"), None, None, false)?, "david frederick james richard william");
    assert_eq!(
        of(Some("G"), Some("d"), None, false)?,
        "Graham alan andrew anthony billy brendan brian charles colin david"
    );
    assert_eq!(of(Some("b"), Some("d"), None, false)?, "billy brendan brian charles colin david");
    assert_eq!(of(Some("br"), Some("col"), None, false)?, "brendan brian charles colin");
    assert_eq!(of(None, None, Some("br"), false)?, "brendan brian");
    assert_eq!(of(None, None, Some("br"), true)?, "brian brendan");
    assert_eq!(of(None, Some("9"), None, false)?, "");
    assert_eq!(of(None, Some("10"), None, false)?, "10");
    Ok(())
}

#[test]
fn a_call_is_a_level_of_the_callers_transaction() -> Result<()> {
    let mut session = session();
    let (document, list) = (Document::at(node!("^d")?, TEXTS), List::at(node!("^l")?, TEXTS));
    let rolled_back = session.transaction(|s| {
        document.put(s, &json!({"a": 1}))?;
        list.push_back(s, &json!({"a": 1}))?;
        Err::<(), _>(perilune::Error::Rollback)
    });
    assert!(matches!(rolled_back, Err(perilune::Error::Rollback)));
    assert_eq!((document.fetch(&mut session)?, list.count(&mut session)?), (None, 0));
    Ok(())
}

#[test]
fn bad_input_is_an_error_that_names_the_argument_and_changes_nothing() -> Result<()> {
    let mut session = session();
    let node = node!("^d", "x")?;
    let text = |text: &'static str| ValueRef::String(text.as_bytes());
    let deep: &'static str = Box::leak("[".repeat(10_000).into_boxed_str());
    let wide: &'static str = Box::leak(format!("{{\"{}\": 1}}", "n".repeat(2_000)).into_boxed_str());
    let cases: &[(&str, &[ValueRef<'_>], &str)] = &[
        ("document.jump", &[], "no call"),
        ("document.put", &[], "argument 1 must be a text of JSON"),
        ("document.put", &[ValueRef::Int(1)], "argument 1 must be a text of JSON"),
        ("document.put", &[text("{")], "no JSON"),
        ("document.put", &[text("NaN")], "no JSON"),
        ("document.put", &[text(r#""\ud800""#)], "no JSON"),
        ("document.put", &[text("\u{1}")], "no JSON"),
        ("document.put", &[text(deep)], "no JSON"),
        ("document.put", &[text(wide)], "subscript"),
        ("document.put", &[text("[1,2]"), ValueRef::Int(i64::MAX)], "too large"),
        ("document.put", &[text("1"), text("x")], "argument 2 must be a whole number"),
        (
            "document.put",
            &[text("1"), ValueRef::Int(0), ValueRef::Int(1)],
            "argument 3 must be true or false",
        ),
        ("document.put", &[text("1"), ValueRef::Null, ValueRef::Null, ValueRef::Null], "3 arguments at most"),
        ("list.find_no", &[ValueRef::Double(0.5)], "argument 1 must be a whole number"),
        ("keyvalue.add", &[ValueRef::String(b"\xff"), text("1")], "argument 1 must be UTF-8"),
        ("keyvalue.get_by_index", &[text("a"), ValueRef::EmptyMap], "argument 2 must be a text"),
        ("keyvalue.add_index", &[text("a"), text("shout")], "toLowerCase"),
    ];
    for (name, arguments, want) in cases {
        match call(&mut session, &node, name, arguments) {
            Err(error) => assert!(error.to_string().contains(want), "{name}: {error}"),
            Ok(answer) => panic!("{name} answered {answer:?} instead of {want}"),
        }
        assert_eq!(lines(&mut session, &node)?, [""; 0], "{name} has left something");
    }
    // What JSON cannot say is an error that names the node.
    session.set(&node.child("bytes")?, &[0xff_u8])?;
    let error = Document::at(node.clone(), Shape::default()).fetch(&mut session).expect_err("no JSON");
    assert!(error.to_string().starts_with(r#"^d("x","bytes")"#), "{error}");
    Ok(())
}

/// The reference lists the calls that there are, with as many arguments as they take.
#[test]
fn the_reference_lists_every_call() -> Result<()> {
    let page = include_str!("../../../docs/reference/models.md");
    let source = concat!(include_str!("../src/call/mod.rs"), include_str!("../src/call/patterns.rs"));
    let mut session = session();
    let mut listed = Vec::new();
    for line in page.lines().filter_map(|line| line.strip_prefix("| `")) {
        let Some((head, _)) = line.split_once('`') else { continue };
        let Some((name, arguments)) = head.split_once('(') else { continue };
        if !name.contains('.') {
            continue;
        }
        let count = arguments.trim_end_matches(')').split(',').filter(|one| !one.trim().is_empty()).count();
        let too_many = vec![ValueRef::Null; count + 1];
        let known = call(&mut session, &node!("^none")?, name, &too_many);
        let message = known.expect_err(name).to_string();
        assert!(!message.contains("no call"), "{name}: {message}");
        listed.push(name.to_owned());
    }
    for name in source.split('"').filter(|text| {
        text.split_once('.').is_some_and(|(kind, call)| {
            let kinds = "document list keyvalue set hash records columns relations network";
            kinds.split(' ').any(|known| known == kind)
                && call.bytes().all(|byte| byte == b'_' || byte.is_ascii_lowercase())
        })
    }) {
        assert!(listed.iter().any(|known| known == name), "docs/reference/models.md does not list {name}");
    }
    Ok(())
}
