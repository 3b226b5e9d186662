//! Graphs as tables of SQL: functions in FROM, that joins and recursive queries take like any table.
//!
//! ```text
//! SELECT users.name, walk.depth, walk.path
//! FROM graph_walk('^social', 7, '{"direction": "both", "max_depth": 2}') AS walk JOIN users ON users.id = walk.vertex
//! ```
//!
//! Each is a table that exists by its name. Its arguments are hidden columns, which is SQLite's way of table functions; some of
//! its other columns narrow it, too, where a WHERE or a join says what they are.
//!
//! Invariants
//! - All is read in the statement's transaction. What reads more than single edges never runs in a one-shot one, which may see
//!   halves of two states.
//! - Whoever reads a graph has the right to read its global; it is asked for once in each statement, when it runs, since a name
//!   may be computed.
//! - A vertex that does not exist has no rows, as a key has none that no row has; a graph that does not exist is an error.

mod ask;
mod cursor;
mod found;
mod write;

pub(crate) use self::ask::global_of;

use std::rc::Rc;

use perilune::Session;
use perilune_sqlite::{
    constants as sqlite, Change, Conflict, Connection, Failure, IndexInfo, Module, Operator,
    Table as SqliteTable,
};

use self::cursor::GraphCursor;
use crate::error::{Error, Result, SqlState};
use crate::stage::Stage;

/// Which of the functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Out,
    In,
    Neighbours,
    Walk,
    ShortestPath,
    Edges,
    Vertices,
}

/// What a function is.
#[derive(Debug)]
struct Shape {
    kind: Kind,
    name: &'static str,
    /// What it answers.
    columns: &'static [&'static str],
    /// What it is asked with: hidden columns behind the others.
    arguments: &'static [&'static str],
    /// How many of the arguments must be told.
    required: usize,
    /// Columns that narrow it.
    narrowing: &'static [&'static str],
    example: &'static str,
    /// Rows, about.
    rows: i64,
}

const EDGES: &[&str] = &["vertex", "edge", "type TEXT", "source", "target", "weight REAL"];

const SHAPES: &[Shape] = &[
    Shape {
        kind: Kind::Out,
        name: "graph_out",
        columns: EDGES,
        arguments: &["graph", "start", "of_type"],
        required: 2,
        narrowing: &["vertex", "type"],
        example: "graph_out('^social', 7, 'KNOWS')",
        rows: 10,
    },
    Shape {
        kind: Kind::In,
        name: "graph_in",
        columns: EDGES,
        arguments: &["graph", "start", "of_type"],
        required: 2,
        narrowing: &["vertex", "type"],
        example: "graph_in('^social', 7, 'KNOWS')",
        rows: 10,
    },
    Shape {
        kind: Kind::Neighbours,
        name: "graph_neighbours",
        columns: EDGES,
        arguments: &["graph", "start", "options"],
        required: 2,
        narrowing: &["vertex"],
        example: "graph_neighbours('^social', 7, '{\"types\": [\"KNOWS\"]}')",
        rows: 20,
    },
    Shape {
        kind: Kind::Walk,
        name: "graph_walk",
        columns: &[
            "vertex",
            "edge",
            "type TEXT",
            "depth INT",
            "cost REAL",
            "path TEXT",
            "vertices TEXT",
            "edges TEXT",
        ],
        arguments: &["graph", "start", "options"],
        required: 2,
        narrowing: &[],
        example: "graph_walk('^social', 7, '{\"max_depth\": 2}')",
        rows: 1_000,
    },
    Shape {
        kind: Kind::ShortestPath,
        name: "graph_shortest_path",
        columns: &["vertex", "edge", "type TEXT", "depth INT", "cost REAL", "path TEXT", "number INT"],
        arguments: &["graph", "start", "goal", "options"],
        required: 3,
        narrowing: &[],
        example: "graph_shortest_path('^social', 7, 9)",
        rows: 10,
    },
    Shape {
        kind: Kind::Edges,
        name: "graph_edges",
        columns: &["edge", "source", "type TEXT", "target", "weight REAL", "properties TEXT"],
        arguments: &["graph"],
        required: 1,
        narrowing: &["edge", "source", "type", "target"],
        example: "graph_edges('^social')",
        rows: 1_000_000,
    },
    Shape {
        kind: Kind::Vertices,
        name: "graph_vertices",
        columns: &["vertex", "labels TEXT", "properties TEXT"],
        arguments: &["graph", "label", "property", "value"],
        required: 1,
        narrowing: &["vertex"],
        example: "graph_vertices('^social', 'Person')",
        rows: 100_000,
    },
];

impl Shape {
    /// The name of a column, the hidden ones counted behind the others.
    fn column(&self, at: usize) -> Option<&'static str> {
        let declared = self.columns.iter().chain(self.arguments).nth(at)?;
        declared.split(' ').next()
    }

    fn declaration(&self) -> String {
        let hidden = self.arguments.iter().map(|name| format!("{name} HIDDEN"));
        let columns: Vec<String> = self.columns.iter().map(|name| (*name).to_owned()).chain(hidden).collect();
        let columns = columns.join(", ");
        if self.is_changed() {
            format!("CREATE TABLE x({columns}, graph_key BLOB HIDDEN PRIMARY KEY) WITHOUT ROWID")
        } else {
            format!("CREATE TABLE x({columns})")
        }
    }

    /// Whether statements change its rows; then these have a hidden key behind all columns.
    fn is_changed(&self) -> bool {
        matches!(self.kind, Kind::Edges | Kind::Vertices)
    }

    /// How many rows come, about, if this is told.
    fn rows_with(&self, asked: &[&str]) -> f64 {
        let narrows =
            |name: &&&str| self.narrowing.contains(*name) || self.arguments[self.required..].contains(*name);
        asked.iter().filter(narrows).fold(self.rows as f64, |rows, name| match *name {
            "options" => rows,
            "type" | "of_type" | "label" => rows / 5.0,
            _ => rows / 1_000.0,
        })
    }
}

/// Tells SQLite of the functions.
pub(crate) fn add(sqlite: &Connection<Session>, stage: &Rc<Stage>) -> Result<()> {
    for shape in SHAPES {
        let stage = Rc::clone(stage);
        if shape.is_changed() {
            sqlite.add_module(shape.name, Graphs::<true> { stage, shape })?;
        } else {
            sqlite.add_module(shape.name, Graphs::<false> { stage, shape })?;
        }
    }
    Ok(())
}

/// Whether one of the functions has this name, in lower case.
pub(crate) fn has(name: &str) -> bool {
    SHAPES.iter().any(|shape| shape.name.eq_ignore_ascii_case(name))
}

/// Makes one of the functions, whose rows change or not.
struct Graphs<const CHANGES: bool> {
    stage: Rc<Stage>,
    shape: &'static Shape,
}

/// One of the functions, as the table that it is.
struct GraphTable {
    stage: Rc<Stage>,
    shape: &'static Shape,
}

impl<const CHANGES: bool> Module<Session> for Graphs<CHANGES> {
    type Table = GraphTable;

    const EPONYMOUS: bool = true;
    const CHANGES: bool = CHANGES;

    fn connect(
        &self,
        _session: &mut Session,
        _name: &str,
    ) -> std::result::Result<(GraphTable, String), Failure> {
        let table = GraphTable { stage: Rc::clone(&self.stage), shape: self.shape };
        Ok((table, self.shape.declaration()))
    }
}

impl SqliteTable<Session> for GraphTable {
    type Cursor = GraphCursor;

    /// Takes each argument and each narrowing column once. What the cursor is told is their names, which EXPLAIN QUERY PLAN shows.
    fn best_index(&self, info: &mut IndexInfo<'_>) -> std::result::Result<(), Failure> {
        let shape = self.shape;
        let required = &shape.arguments[..shape.required];
        let mut asked: Vec<&str> = Vec::new();
        let mut later = false;
        for (index, constraint) in info.constraints().into_iter().enumerate() {
            let name = constraint.column.and_then(|column| shape.column(column));
            let Some(name) = name.filter(|_| constraint.operator == Operator::Equal) else { continue };
            let is_argument = shape.arguments.contains(&name);
            if !is_argument && !shape.narrowing.contains(&name) || asked.contains(&name) {
                continue;
            }
            if !constraint.usable {
                later |= required.contains(&name);
                continue;
            }
            info.take(index, is_argument);
            asked.push(name);
        }
        if let Some(missing) = required.iter().find(|name| !asked.contains(*name)) {
            if later {
                return Err(Failure::of(sqlite::SQLITE_CONSTRAINT, "its arguments are not known yet"));
            }
            let what = format!("{} lacks {missing}: write it as {}", shape.name, shape.example);
            return Err(self.stage.fail(Error::new(SqlState::PARAMETER, what)));
        }
        let rows = shape.rows_with(&asked).max(1.0);
        info.plan(0, &asked.join(","));
        info.cost(rows * 2.0 + 5.0, rows as i64, false);
        Ok(())
    }

    fn open(&self) -> GraphCursor {
        GraphCursor::new()
    }

    fn update(
        &self,
        session: &mut Session,
        change: &Change<'_>,
        conflict: Conflict,
    ) -> std::result::Result<i64, Failure> {
        self.change(session, change, conflict).map_err(|error| self.stage.fail(error))
    }
}
