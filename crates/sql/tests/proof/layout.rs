//! What SQL keeps in the tree is what docs/format/sql.md says: its statements are run, and the nodes are those that it shows.

use crate::scratch::Scratch;
use perilune::Node;
use perilune_sql::Result;

/// The blocks of a language in the document, one behind the other.
fn blocks(document: &str, language: &str) -> String {
    let of = |block: &str| block.strip_prefix(&format!("{language}\n")).map(str::to_owned);
    document.split("```").skip(1).step_by(2).filter_map(of).collect()
}

#[test]
fn nodes_are_those_of_the_document() -> Result<()> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/format/sql.md");
    let document = std::fs::read_to_string(path).expect("docs/format/sql.md");
    let mut s = Scratch::new("layout");
    s.run(&blocks(&document, "sql"))?;
    let shown = blocks(&document, "text");
    let mut globals: Vec<&str> = Vec::new();
    for line in shown.lines() {
        let name = line.split(['(', '=']).next().unwrap_or(line);
        if !globals.contains(&name) {
            globals.push(name);
        }
    }
    let mut nodes = String::new();
    for global in globals {
        for (node, value) in s.session.get_tree(&Node::new(global)?)? {
            nodes.push_str(&format!("{node}={value}\n"));
        }
    }
    assert_eq!(nodes, shown);
    Ok(())
}
