//! The cases of [`crate::cases`] that are changes of a graph: its edges, vertices and properties.
//!
//! The harness knows nothing of graphs; the nodes are those of `docs/format/graph.md`, and each change is the transaction that its
//! table "By hand" tells. Long properties spread the parts of the graph over several leaves, so that a commit takes several
//! latches. Whatever instruction the process is killed at, all of the change is there or nothing of it: then both entries of an
//! edge, both degrees and the index agree as they did before.
//!
//! Example: an edge is six nodes, those of `edge`, `out`, `in`, its property, and two degrees.

use perilune_key::parse_key;
use perilune_store::Result;

use crate::cases::{any, value, Case, MAIN};
use crate::commits::transaction;
use crate::setup::{Setup, Write};

/// Vertices 0 to 7, each with an edge to the next and to the one after that.
const VERTICES: usize = 8;
/// Bytes of a long property.
const LONG: usize = 900;

fn key(text: &str) -> Vec<u8> {
    parse_key(text).expect("the text of a node").key.as_bytes().to_vec()
}

/// A node's new value, or none.
fn write(node: &str, value: Option<&[u8]>) -> Write {
    Write { tree: MAIN, key: key(&format!("^g({node})")), value: value.map(<[u8]>::to_vec) }
}

/// The nodes of an edge, but for its property.
fn entries(edge: usize, source: usize, target: usize) -> [String; 3] {
    [
        format!("\"edge\",{edge}"),
        format!("\"in\",{target},\"KNOWS\",{source},{edge}"),
        format!("\"out\",{source},\"KNOWS\",{target},{edge}"),
    ]
}

/// How many edges a vertex has on each side, as its nodes say it.
fn degrees(vertex: usize) -> [String; 2] {
    ["in", "out"].map(|side| format!("\"vertex\",{vertex},\"{side}\",\"KNOWS\""))
}

fn ends(edge: usize) -> (usize, usize) {
    (edge / 2, (edge / 2 + 1 + edge % 2) % VERTICES)
}

/// The graph before the change.
fn ring(setup: &mut Setup) -> Result<()> {
    let mut set = |node: &str, value: &[u8]| setup.set(MAIN, &key(&format!("^g({node})")), value);
    set("\"graph\"", b"1")?;
    set("\"index\",\"Person\",\"age\"", b"t")?;
    for edge in 0..2 * VERTICES {
        let (source, target) = ends(edge);
        for node in entries(edge, source, target) {
            set(&node, b"entry")?;
        }
        set(&format!("\"edge\",{edge},\"note\""), &value(LONG, edge))?;
    }
    for vertex in 0..VERTICES {
        set(&format!("\"vertex\",{vertex}"), b"t")?;
        set(&format!("\"vertex\",{vertex},\"label\",\"Person\""), b"")?;
        set(&format!("\"label\",\"Person\",{vertex}"), b"")?;
        set(&format!("\"vertex\",{vertex},\"property\",\"age\""), &[vertex as u8])?;
        set(&format!("\"index\",\"Person\",\"age\",{vertex},{vertex}"), b"")?;
        set(&format!("\"vertex\",{vertex},\"property\",\"note\""), &value(LONG, vertex))?;
        for degree in degrees(vertex) {
            set(&degree, &[2])?;
        }
    }
    Ok(())
}

pub(crate) const CASES: &[Case] = &[
    Case {
        name: "graph-edge-added",
        build: |setup| {
            ring(setup)?;
            let (edge, source, target) = (2 * VERTICES, 1, 6);
            let mut writes: Vec<Write> =
                entries(edge, source, target).iter().map(|node| write(node, Some(b"entry"))).collect();
            writes.push(write(&format!("\"edge\",{edge},\"note\""), Some(&value(LONG, edge))));
            let [_, out] = degrees(source);
            let [inward, _] = degrees(target);
            writes.extend([write(&out, Some(&[3])), write(&inward, Some(&[3]))]);
            Ok(transaction(writes, vec![], setup, any))
        },
    },
    Case {
        name: "graph-edge-deleted",
        build: |setup| {
            ring(setup)?;
            let edge = 7;
            let (source, target) = ends(edge);
            let [own, inward, out] = entries(edge, source, target);
            let mut writes = vec![write(&inward, None), write(&out, None)];
            let [_, out] = degrees(source);
            let [inward, _] = degrees(target);
            writes.extend([write(&out, Some(&[1])), write(&inward, Some(&[1]))]);
            Ok(transaction(writes, vec![(MAIN, key(&format!("^g({own})")))], setup, any))
        },
    },
    Case {
        name: "graph-vertex-deleted",
        build: |setup| {
            ring(setup)?;
            let gone = 3;
            let mut writes = Vec::new();
            let mut prefixes = vec![(MAIN, key(&format!("^g(\"vertex\",{gone})")))];
            let mut counts = [[2_u8; 2]; VERTICES];
            for edge in 0..2 * VERTICES {
                let (source, target) = ends(edge);
                if source != gone && target != gone {
                    continue;
                }
                let [own, inward, out] = entries(edge, source, target);
                writes.extend([write(&inward, None), write(&out, None)]);
                prefixes.push((MAIN, key(&format!("^g({own})"))));
                counts[source][1] -= 1;
                counts[target][0] -= 1;
            }
            for (vertex, count) in counts.iter().enumerate().filter(|(vertex, _)| *vertex != gone) {
                for (node, count) in degrees(vertex).iter().zip(count).filter(|(_, count)| **count < 2) {
                    writes.push(write(node, (*count > 0).then_some(&[*count][..])));
                }
            }
            writes.push(write(&format!("\"label\",\"Person\",{gone}"), None));
            writes.push(write(&format!("\"index\",\"Person\",\"age\",{gone},{gone}"), None));
            Ok(transaction(writes, prefixes, setup, any))
        },
    },
    Case {
        name: "graph-property-changed",
        build: |setup| {
            ring(setup)?;
            let writes = vec![
                write("\"index\",\"Person\",\"age\",5,5", None),
                write("\"index\",\"Person\",\"age\",99,5", Some(b"")),
                write("\"vertex\",5,\"property\",\"age\"", Some(&[99])),
            ];
            Ok(transaction(writes, vec![], setup, any))
        },
    },
];
