//! Each file as a table, and as vertices or edges.
//!
//! `person_0_0.csv` is the table `person` and vertices `person:ID` with the label `person`. `person_knows_person_0_0.csv` is the
//! table `person_knows_person(a, b, ...)`, indexed by both, and edges of type `knows`.

use std::fs;
use std::path::Path;

use perilune::{Session, Value as NodeValue};
use perilune_graph::{Graph, Missing, NewEdge, NewVertex, Result, VertexId};
use perilune_sql::{Connection, Value};

/// Rows of a transaction.
const BATCH: usize = 400;

/// Loads all files.
pub(crate) fn load(files: &Path, session: &mut Session, sql: &Connection, graph: &mut Graph) -> Result<()> {
    let mut found = Vec::new();
    for part in ["static", "dynamic"] {
        for entry in fs::read_dir(files.join(part)).unwrap_or_else(|error| panic!("{part}: {error}")) {
            let path = entry.expect("an entry").path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("").to_owned();
            if let Some(name) = name.strip_suffix("_0_0.csv") {
                found.push((name.matches('_').count(), name.to_owned(), path));
            }
        }
    }
    // Vertices first: their names have one word.
    found.sort();
    assert!(found.len() > 20, "the files of LDBC's generator for Cypher, not {}", found.len());
    for (_, name, path) in found {
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let mut lines = text.lines().map(|line| line.split('|').collect::<Vec<_>>());
        let columns = lines.next().expect("names of columns");
        let rows: Vec<Vec<&str>> = lines.collect();
        table(session, sql, &name, &columns, &rows)?;
        match name.split('_').collect::<Vec<_>>()[..] {
            [label] => vertices(session, graph, label, &columns, &rows)?,
            [source, kind, target] => edges(session, graph, [source, kind, target], &columns, &rows)?,
            _ => panic!("{name}: a file of vertices or edges"),
        }
    }
    Ok(())
}

fn table(
    session: &mut Session,
    sql: &Connection,
    name: &str,
    columns: &[&str],
    rows: &[Vec<&str>],
) -> Result<()> {
    let is_vertex = columns[0] == "id";
    let kind = |column: &str| match column {
        "creationDate" | "joinDate" | "classYear" | "workFrom" | "length" => "INT",
        _ => "TEXT",
    };
    let (heads, rest) =
        if is_vertex { ("id INTEGER PRIMARY KEY", &columns[1..]) } else { ("a INT, b INT", &columns[2..]) };
    let rest: String = rest.iter().map(|column| format!(", {column} {}", kind(column))).collect();
    let mut script = format!("CREATE TABLE {name}({heads}{rest});");
    if !is_vertex {
        script.push_str(&format!("CREATE INDEX {name}_a ON {name}(a); CREATE INDEX {name}_b ON {name}(b);"));
    }
    sql.execute_script(session, &script).unwrap_or_else(|error| panic!("{script}: {error}"));
    let marks = vec!["?"; columns.len()].join(", ");
    let insert = format!("INSERT INTO {name} VALUES ({marks})");
    for batch in rows.chunks(BATCH) {
        session.transaction(|session| {
            for row in batch {
                let values: Vec<Value> = row
                    .iter()
                    .map(|field| field.parse().map_or_else(|_| Value::Text((*field).into()), Value::Integer))
                    .collect();
                sql.execute(session, &insert, &values).map_err(perilune::Error::other)?;
            }
            Ok(())
        })?;
    }
    Ok(())
}

fn value(field: &str) -> NodeValue {
    field.parse().map_or_else(|_| NodeValue::String(field.into()), NodeValue::Int)
}

fn properties(columns: &[&str], row: &[&str]) -> Vec<(String, NodeValue)> {
    columns.iter().zip(row).map(|(column, field)| ((*column).to_owned(), value(field))).collect()
}

fn vertices(
    session: &mut Session,
    graph: &Graph,
    label: &str,
    columns: &[&str],
    rows: &[Vec<&str>],
) -> Result<()> {
    let vertices = rows.iter().map(|row| {
        Ok(NewVertex {
            id: VertexId::from(format!("{label}:{}", row[0]).as_str()),
            labels: vec![label.to_owned()],
            properties: properties(columns, row),
        })
    });
    graph.import_vertices(session, vertices, &mut |_| {}).map(drop)
}

fn edges(
    session: &mut Session,
    graph: &mut Graph,
    [source, kind, target]: [&str; 3],
    columns: &[&str],
    rows: &[Vec<&str>],
) -> Result<()> {
    let edges = rows.iter().map(|row| {
        Ok(NewEdge {
            source: VertexId::from(format!("{source}:{}", row[0]).as_str()),
            kind: kind.to_owned(),
            target: VertexId::from(format!("{target}:{}", row[1]).as_str()),
            properties: properties(&columns[2..], &row[2..]),
        })
    });
    graph.import(session, edges, Missing::Refuse, &mut |_| {}).map(drop)
}
