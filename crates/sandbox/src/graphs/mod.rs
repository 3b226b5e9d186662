//! Graphs in sandboxes: `require 'perilune.graph'` in scripts of a server and in functions of SQL.
//!
//! Problem: the library of programs (bindings/lua/perilune/graph.lua) stands on a C module that a sandbox must not have. Idea: its
//! text is the same here, and the module under it is a text of Lua, too (`sandboxed.lua`), which asks the host. The host keeps graphs
//! and walks by their numbers for one run.
//!
//! ```lua
//! local g = require('perilune.graph').open(perilune.node '^social')
//! for path in g:traversal():max_depth(2):from(ARGV[1]) do reached[#reached + 1] = tostring(path) end
//! ```
//!
//! Invariants
//! - Everything is in the run's transaction, so a walk sees one state with what the run has written.
//! - A host looks at what is wanted of which graph before it has a question answered: rights are its own.
//! - What a graph refuses is told with its kind before it, as `NO_VERTEX: `.

mod operations;
mod told;
mod walks;

use perilune::{Node, Session};
use perilune_graph::{Error, Graph, GraphOptions, VertexId};

use self::operations::{change, look};
use self::told::given;
use self::walks::Walks;
use crate::nodes::{Failure, Result};
use crate::sandbox::{HostFunction, Library, Question, Values};

/// What the host is asked for, by the places in [`library`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Create,
    Open,
    AddVertex,
    DeleteVertex,
    HasVertex,
    SetLabel,
    SetIndex,
    Get,
    Set,
    AddEdge,
    DeleteEdge,
    Degree,
    Ask,
    Walk,
    Next,
    Path,
    Prune,
    Lead,
}

const ALL: [Asked; 18] = [
    Asked::Create,
    Asked::Open,
    Asked::AddVertex,
    Asked::DeleteVertex,
    Asked::HasVertex,
    Asked::SetLabel,
    Asked::SetIndex,
    Asked::Get,
    Asked::Set,
    Asked::AddEdge,
    Asked::DeleteEdge,
    Asked::Degree,
    Asked::Ask,
    Asked::Walk,
    Asked::Next,
    Asked::Path,
    Asked::Prune,
    Asked::Lead,
];

static LIBRARY: Library = Library::new(
    c"perilune_graph",
    &[
        HostFunction::new(c"create"),
        HostFunction::new(c"open"),
        HostFunction::new(c"add_vertex"),
        HostFunction::new(c"delete_vertex"),
        HostFunction::new(c"has_vertex"),
        HostFunction::new(c"set_label"),
        HostFunction::new(c"set_index"),
        HostFunction::new(c"get"),
        HostFunction::new(c"set"),
        HostFunction::new(c"add_edge"),
        HostFunction::new(c"delete_edge"),
        HostFunction::new(c"degree"),
        HostFunction::new(c"ask"),
        HostFunction::new(c"walk"),
        HostFunction::new(c"next"),
        HostFunction::new(c"path"),
        HostFunction::new(c"prune"),
        HostFunction::new(c"lead"),
    ],
);

/// The functions that `sandboxed.lua` asks by, as the global `perilune_graph`.
#[must_use]
pub fn library() -> &'static Library {
    &LIBRARY
}

/// The text of a module that each sandbox with [`library`] has.
#[must_use]
pub fn module(name: &[u8]) -> Option<&'static str> {
    Some(match name {
        b"perilune" => "return {null = cjson and cjson.null}",
        b"_perilune.graph" => include_str!("sandboxed.lua"),
        b"perilune.graph" => include_str!("../../../../bindings/lua/perilune/graph.lua"),
        b"perilune.traversal" => include_str!("../../../../bindings/lua/perilune/traversal.lua"),
        b"perilune.graph.alchemy" => include_str!("../../../../bindings/lua/perilune/graph/alchemy.lua"),
        b"perilune.graph.relations" => include_str!("../../../../bindings/lua/perilune/graph/relations.lua"),
        _ => return None,
    })
}

/// What a question wants: whoever asks must have the right to this graph.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The node of the graph.
    pub root: Node,
    /// It changes the graph.
    pub writes: bool,
}

/// Graphs and walks of one run, by their numbers.
#[derive(Debug, Default)]
pub struct Graphs {
    graphs: Vec<Graph>,
    walks: Walks,
}

/// Graphs that a run may have open.
const GRAPHS_MAX: usize = 1_000;

impl Graphs {
    /// What a question wants of which graph.
    ///
    /// # Errors
    /// What the script is told of its mistake.
    pub fn wanted(&self, question: &Question<'_>) -> Result<Wanted> {
        let asked = asked_of(question)?;
        let given = given(question);
        let root = match asked {
            Asked::Create | Asked::Open => {
                let root = Node::parse(&given.text(0)?).map_err(|error| wrong(&error.to_string()))?;
                if root.is_local() {
                    return Err(wrong("graphs lie in the database: give a node whose name begins with ^"));
                }
                root
            }
            Asked::Next | Asked::Path | Asked::Prune | Asked::Lead => {
                self.walks.graph(given.number(0)?)?.root().clone()
            }
            _ => self.graph(given.number(0)?)?.root().clone(),
        };
        Ok(Wanted { root, writes: changes(asked) })
    }

    fn graph(&self, number: usize) -> Result<&Graph> {
        self.graphs.get(number).ok_or_else(|| wrong("this is no graph of this run"))
    }

    /// Answers a question in the open transaction, for who has the right to what is wanted.
    ///
    /// # Errors
    /// What the script is told; the database's, a conflict among them.
    pub fn answer(
        &mut self,
        session: &mut Session,
        question: &Question<'_>,
        answer: &mut Vec<u8>,
    ) -> Result<()> {
        let asked = asked_of(question)?;
        let given = given(question);
        let start = answer.len();
        let values = &mut Values::new(answer);
        match asked {
            Asked::Create | Asked::Open => {
                let root = self.wanted(question)?.root;
                values.integer(self.open(session, asked, &root, given.optional_text(1)?)?);
            }
            Asked::Walk => {
                let graph = self.graph(given.number(0)?)?.clone();
                values.integer(self.walks.begin(session, &graph, &given)?);
            }
            Asked::Next => self.walks.next(session, given.number(0)?, values)?,
            Asked::Path => self.walks.path(given.number(0)?, values)?,
            Asked::Prune => self.walks.prune(given.number(0)?)?,
            Asked::Lead => self.walks.lead(session, given.number(0)?, &given.text(1)?)?,
            _ if changes(asked) => {
                let number = given.number(0)?;
                let graph =
                    self.graphs.get_mut(number).ok_or_else(|| wrong("this is no graph of this run"))?;
                change(graph, session, asked, &given, values)?;
            }
            _ => look(self.graph(given.number(0)?)?, session, asked, &given, values)?,
        }
        if answer.len() - start > question.room {
            answer.truncate(start);
            return Err(wrong("the answer takes more memory than there is: ask for less, with limits"));
        }
        Ok(())
    }

    /// Makes or opens a graph; answers its number.
    fn open(
        &mut self,
        session: &mut Session,
        asked: Asked,
        root: &Node,
        weight: Option<String>,
    ) -> Result<i64> {
        if self.graphs.len() >= GRAPHS_MAX {
            return Err(wrong("a run opens at most 1,000 graphs: keep those that it has"));
        }
        let graph = match asked {
            Asked::Create => Graph::create(session, root, &GraphOptions { weight }),
            _ => Graph::open(session, root),
        };
        self.graphs.push(graph.map_err(failure)?);
        Ok(self.graphs.len() as i64 - 1)
    }
}

fn asked_of(question: &Question<'_>) -> Result<Asked> {
    ALL.get(question.function).copied().ok_or_else(|| wrong("there is no such function of graphs"))
}

/// Whether a question changes its graph.
fn changes(asked: Asked) -> bool {
    !matches!(
        asked,
        Asked::Open
            | Asked::HasVertex
            | Asked::Get
            | Asked::Degree
            | Asked::Ask
            | Asked::Walk
            | Asked::Next
            | Asked::Path
            | Asked::Prune
            | Asked::Lead
    )
}

/// What a script is told of its mistake.
fn wrong(text: &str) -> Failure {
    Failure::Refused(format!("ERR {text}").into())
}

/// What a script is told of what a graph refuses.
fn failure(error: Error) -> Failure {
    let kind = match &error {
        Error::Database(_) => return Failure::Database(perilune::Error::from(error)),
        Error::Limit { .. } => "LIMIT_REACHED",
        _ => error.kind().unwrap_or("INVALID"),
    };
    Failure::Refused(format!("{kind}: {error}").into())
}

/// An id of a vertex that the script has told.
fn vertex_of(value: &crate::sandbox::Value<'_>) -> Result<VertexId> {
    use crate::sandbox::Value;
    match value {
        Value::Integer(integer) => Ok(VertexId::from(*integer)),
        Value::Text(text) => Ok(VertexId::from(*text)),
        _ => Err(wrong("a vertex is a string, an integer or a node")),
    }
}
