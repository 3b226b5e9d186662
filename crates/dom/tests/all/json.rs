//! JSON as a document and back.

use perilune::{node, Database, Session};
use perilune_dom::{Dom, DomError, ParseOptions};

fn scratch() -> (Session, Dom) {
    let session = Database::open("memory:").unwrap().session().unwrap();
    (session, Dom::at(node!("^doc").unwrap()))
}

#[test]
fn what_goes_in_comes_out_in_its_order() {
    for json in [
        r#"{"b":1,"a":{"c":"x","b":[]},"list":["a",false,2222,null,[],{},[1,[2]]],"t":"","x":null}"#,
        r#"[{"p":1},{"p":-0.5},9223372036854775807,18446744073709551615,1e+300,"é<&>\"\n"]"#,
        r#""text""#,
        "null",
        "true",
        "-7",
        "[]",
        "{}",
        "[[]]",
    ] {
        let (mut session, dom) = scratch();
        dom.parse_json(&mut session, json).unwrap();
        assert_eq!(dom.to_json(&mut session, None).unwrap(), json);
        assert!(dom.check(&mut session).unwrap().is_empty(), "{json}");
        let xml = dom.to_xml(&mut session).unwrap();
        let options = ParseOptions { replace: true, ..ParseOptions::default() };
        dom.parse(&mut session, &xml, &options).unwrap();
        assert_eq!(dom.to_json(&mut session, None).unwrap(), json, "{xml}");
    }
}

#[test]
fn elements_are_those_of_jsdb() {
    let (mut session, dom) = scratch();
    assert_eq!(dom.to_json(&mut session, None).unwrap(), "null");
    dom.parse_json(&mut session, r#"{"a":123,"e":["x",true]}"#).unwrap();
    assert_eq!(
        dom.to_xml(&mut session).unwrap(),
        r#"<json><a type="number">123</a><e type="array"><val type="string">x</val><val type="boolean">true</val></e></json>"#
    );
    let a = dom.select(&mut session, "//e").unwrap()[0];
    assert_eq!(dom.to_json(&mut session, Some(a)).unwrap(), r#"["x",true]"#);
    let text = dom.select(&mut session, "//text()").unwrap()[0];
    assert!(matches!(dom.to_json(&mut session, Some(text)), Err(DomError::Hierarchy(_))));
}

#[test]
fn what_is_refused_leaves_nothing() {
    let (mut session, dom) = scratch();
    for json in ["", "{", r#"{"a":1"#, "[1,]", "[1] 2", "nul", "{\"a\":\n 1 x}"] {
        let outcome = dom.parse_json(&mut session, json);
        assert!(matches!(outcome, Err(DomError::Syntax { .. })), "{json}: {outcome:?}");
    }
    for json in [r#"{"not a name":1}"#, r#"{"":1}"#, r#"{"a":"\u0001"}"#] {
        let outcome = dom.parse_json(&mut session, json);
        assert!(matches!(outcome, Err(DomError::InvalidCharacter(_))), "{json}: {outcome:?}");
    }
    let deep = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
    assert!(matches!(dom.parse_json(&mut session, &deep(100_000)), Err(DomError::Syntax { .. })));
    assert!(dom.document_node(&mut session).unwrap().is_none(), "nothing of it is there");
    dom.parse_json(&mut session, &deep(120)).unwrap();
    assert_eq!(dom.to_json(&mut session, None).unwrap(), deep(120));
    assert!(matches!(dom.parse_json(&mut session, "1"), Err(DomError::DocumentExists)));
    let xml = format!("{}{}", "<a>".repeat(5_000), "</a>".repeat(5_000));
    let options = ParseOptions { replace: true, ..ParseOptions::default() };
    dom.parse(&mut session, &xml, &options).unwrap();
    assert!(matches!(dom.to_json(&mut session, None), Err(DomError::Hierarchy(_))));
}
