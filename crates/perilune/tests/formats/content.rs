//! What the databases of the fixtures hold. Never changed: files of released formats were made of it.

use perilune::{node, Decimal, Node, Result, Session, Value};

/// Nodes up to the checkpoint.
pub(crate) fn first() -> Result<Vec<(Node, Value)>> {
    let text = |text: &str| Value::String(text.as_bytes().to_vec());
    let mut nodes = vec![
        (node!("^kinds", "null")?, Value::Null),
        (node!("^kinds", "true")?, Value::Bool(true)),
        (node!("^kinds", "false")?, Value::Bool(false)),
        (node!("^kinds", "integer")?, Value::Int(-9_007_199_254_740_993)),
        (node!("^kinds", "decimal")?, Value::Decimal(decimal(1))),
        (node!("^kinds", "double")?, Value::Double(-1.5e300)),
        (node!("^kinds", "empty")?, text("")),
        (node!("^kinds", "bytes")?, Value::String((0..=255).collect())),
        (node!("^kinds", "list")?, Value::EmptyList),
        (node!("^kinds", "map")?, Value::EmptyMap),
        (node!("^kinds", "long")?, Value::String((0..30_000u32).map(|at| (at / 100) as u8).collect())),
        (node!("^keys", "")?, text("the empty string")),
        (node!("^keys", -5)?, text("a negative number")),
        (node!("^keys", decimal(25))?, text("a decimal")),
        (node!("^keys", "a\0b")?, text("a zero byte")),
        (node!("^keys", "x".repeat(900).as_str())?, text("a long subscript")),
    ];
    for at in 0..1500 {
        nodes.push((node!("^many", at % 30, at)?, text(&format!("node {at} of many"))));
    }
    Ok(nodes)
}

/// What is done after the checkpoint of a database that is not closed.
pub(crate) fn then(session: &mut Session) -> Result<()> {
    session.delete_tree(&node!("^many", 7)?)?;
    session.delete_value(&node!("^kinds", "null")?)?;
    session.transaction(|t| {
        t.set(&node!("^then", 1)?, "one")?;
        t.set(&node!("^then", "long")?, vec![b'l'; 20_000])?;
        t.increment(&node!("^keys", -5, "count")?, 3).map(drop)
    })
}

/// All that a database holds then.
pub(crate) fn last() -> Result<Vec<(Node, Value)>> {
    let mut nodes = first()?;
    let gone = node!("^many", 7)?;
    let null = node!("^kinds", "null")?;
    nodes.retain(|(node, _)| !node.encoded().starts_with(gone.encoded()) && *node != null);
    nodes.push((node!("^then", 1)?, Value::String(b"one".to_vec())));
    nodes.push((node!("^then", "long")?, Value::String(vec![b'l'; 20_000])));
    nodes.push((node!("^keys", -5, "count")?, Value::Int(3)));
    Ok(nodes)
}

fn decimal(tenths: i128) -> Decimal {
    Decimal::new(tenths, -1).expect("a decimal")
}
