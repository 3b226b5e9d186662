//! `perilune dom`: a document goes in, is searched, and comes out as it was; what is none leaves nothing.

use std::fs;

use crate::program::Place;

const XML: &str = "<shop><item id=\"7\">bread</item><item>corn &amp; more</item></shop>";

#[test]
fn documents_go_in_are_searched_and_come_out() {
    let place = Place::new();
    place.file("shop.xml", XML);
    let run = |words: &[&str]| place.run(&[&["--db", "t.db", "dom"], words].concat());
    assert_eq!(run(&["export", "^doc(1)"]).0, 3, "what reads makes no database");
    assert!(!place.path().join("t.db").exists());
    let (code, _, err) = run(&["import", "shop.xml", "^doc(1)"]);
    assert_eq!(code, 0, "{err}");
    let (code, out, err) = run(&["export", "^doc(1)"]);
    assert!(code == 0 && out.trim_end().ends_with(XML), "{out}{err}");
    assert_eq!(run(&["xpath", "^doc(1)", "string(//item[@id='7'])"]).1, "bread\n");
    assert_eq!(run(&["xpath", "^doc(1)", "count(//item)"]).1, "2\n");
    let (code, _, err) = run(&["export", "^doc(1)", "t.db"]);
    assert!(code == 2 && err.contains("is a database"), "{code} {err}");
    assert_eq!(run(&["export", "^doc(1)", "out.xml"]).0, 0);
    let exported = fs::read_to_string(place.path().join("out.xml")).unwrap();
    assert!(exported.ends_with(XML), "{exported}");
    // Where there is a document already, and what is no document.
    let (code, _, err) = run(&["import", "shop.xml", "^doc(1)"]);
    assert!(code != 0 && !err.is_empty(), "{code} {err}");
    place.file("bad.xml", "<a><b></a>");
    let (code, _, err) = run(&["import", "bad.xml", "^bad"]);
    assert!(code != 0 && err.contains("bad.xml"), "{code} {err}");
    assert!(run(&["export", "^bad"]).0 != 0, "nothing of it is there");
    let (code, _, err) = place.run(&["--db", "new.db", "dom", "import", "bad.xml", "^bad"]);
    assert!(code == 1 && err.contains("bad.xml") && err.contains("byte"), "{code} {err}");
    assert!(!place.path().join("new.db").exists(), "a file that is no document makes no database");
    assert!(run(&["xpath", "^doc(1)", "//item["]).0 != 0);
}
