//! What a caller that is no Rust asks of a graph: one JSON object, the same for SQL, C and Lua.
//!
//! ```
//! use perilune_graph::Request;
//!
//! let request = Request::parse(r#"{"direction": "both", "types": ["KNOWS"], "max_depth": 2}"#)?;
//! assert_eq!(request.to, 2);
//! assert!(Request::parse(r#"{"depth": 2}"#).is_err());
//! # Ok::<(), perilune_graph::Error>(())
//! ```
//!
//! Invariant: what is not known, or of another type, is an error that names it; nothing is passed over.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::budget::Limits;
use crate::{Cost, Direction, Error, Path, Reach, Result, Traversal, Uniqueness};

/// In which order paths are walked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Shorter paths first.
    Breadth,
    /// What lies behind a path before its neighbours.
    Depth,
    /// Cheapest paths first.
    Cheapest,
}

/// What a caller asks for. All members have defaults.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Which edges lead on: `direction` ("out", "in", "both"), `types` (a name or a list of names).
    pub reach: Reach,
    /// `order`: "breadth", "depth", "cheapest".
    pub order: Order,
    /// `uniqueness`: "vertex_global", "vertex_path", "vertex_recent", "edge_global", "edge_path", "edge_recent", "none"; of the
    /// two recent ones with `recent`, how many.
    pub uniqueness: Uniqueness,
    /// `min_depth`.
    pub from: usize,
    /// `max_depth`.
    pub to: usize,
    /// `cost`: "weight", or "one", the default but for cheapest paths of a graph with weights.
    pub by_weight: Option<bool>,
    /// `count`: how many answers at most.
    pub count: Option<usize>,
    /// `max_vertices`, `max_edges`, `max_milliseconds`.
    pub limits: Limits,
}

impl Default for Request {
    fn default() -> Request {
        Request {
            reach: Reach::out(),
            order: Order::Breadth,
            uniqueness: Uniqueness::VertexGlobal,
            from: 0,
            to: usize::MAX,
            by_weight: None,
            count: None,
            limits: Limits::default(),
        }
    }
}

impl Request {
    /// Reads the JSON of a request; an empty text asks for the defaults.
    ///
    /// # Errors
    /// `Invalid`.
    pub fn parse(text: &str) -> Result<Request> {
        Request::default().with_options(text)
    }

    /// This request with what the JSON of another one says besides.
    ///
    /// # Errors
    /// `Invalid`.
    pub fn with_options(self, text: &str) -> Result<Request> {
        let mut request = self;
        if text.trim().is_empty() {
            return Ok(request);
        }
        let members: Map<String, Value> = serde_json::from_str(text)
            .map_err(|error| Error::invalid(format!("options are a JSON object: {error}")))?;
        let recent = members.get("recent").map(|value| whole("recent", value)).transpose()?;
        for (name, value) in &members {
            request.take(name, value, recent)?;
        }
        Ok(request)
    }

    fn take(&mut self, name: &str, value: &Value, recent: Option<u64>) -> Result<()> {
        match name {
            "direction" => {
                self.reach.direction = direction(word(name, value)?)?;
            }
            "types" => {
                let list = std::slice::from_ref(value);
                for kind in value.as_array().map_or(list, Vec::as_slice) {
                    self.reach = self.reach.clone().of(word(name, kind)?);
                }
            }
            "order" => {
                self.order = match word(name, value)? {
                    "breadth" => Order::Breadth,
                    "depth" => Order::Depth,
                    "cheapest" => Order::Cheapest,
                    other => return Err(unknown(name, other, "breadth, depth, cheapest")),
                };
            }
            "uniqueness" => self.uniqueness = uniqueness(word(name, value)?, recent)?,
            "recent" => {}
            "min_depth" => self.from = size(whole(name, value)?),
            "max_depth" => self.to = size(whole(name, value)?),
            "cost" => {
                self.by_weight = match word(name, value)? {
                    "weight" => Some(true),
                    "one" => Some(false),
                    other => return Err(unknown(name, other, "weight, one")),
                };
            }
            "count" => self.count = Some(size(whole(name, value)?)),
            "max_vertices" => self.limits.vertices = whole(name, value)?,
            "max_edges" => self.limits.edges = whole(name, value)?,
            "max_milliseconds" => self.limits.time = Duration::from_millis(whole(name, value)?),
            _ => {
                return Err(Error::invalid(format!(
                    "there is no option {name}: options are direction, types, order, uniqueness, recent, min_depth, max_depth, \
                     cost, count, max_vertices, max_edges, max_milliseconds"
                )))
            }
        }
        Ok(())
    }

    /// What edges cost in a walk: one each, if not told.
    fn walk_cost(&self) -> Cost<'static> {
        cost_of(self.by_weight.unwrap_or(false))
    }

    /// What edges cost on the cheapest path: their weights, if not told.
    #[must_use]
    pub fn path_cost(&self) -> Cost<'static> {
        cost_of(self.by_weight.unwrap_or(true))
    }

    /// The walk that is asked for.
    #[must_use]
    pub fn traversal(&self) -> Traversal<'static> {
        let reach = self.reach.clone();
        let traversal = match self.order {
            Order::Breadth => Traversal::breadth_first(reach),
            Order::Depth => Traversal::depth_first(reach),
            Order::Cheapest => Traversal::lowest_first(reach, Path::cost),
        };
        traversal.unique(self.uniqueness).depths(self.from, self.to).cost(self.walk_cost())
    }
}

/// The direction that a word means.
///
/// # Errors
/// `Invalid`.
pub fn direction(word: &str) -> Result<Direction> {
    match word {
        "out" => Ok(Direction::Out),
        "in" => Ok(Direction::In),
        "both" => Ok(Direction::Both),
        other => Err(unknown("direction", other, "out, in, both")),
    }
}

fn cost_of(is_weight: bool) -> Cost<'static> {
    if is_weight {
        Cost::Weight
    } else {
        Cost::One
    }
}

fn uniqueness(word: &str, recent: Option<u64>) -> Result<Uniqueness> {
    let last = || match recent {
        Some(count) => Ok(size(count)),
        None => Err(Error::invalid(format!("uniqueness {word} needs the option recent: how many"))),
    };
    Ok(match word {
        "vertex_global" => Uniqueness::VertexGlobal,
        "vertex_path" => Uniqueness::VertexPath,
        "vertex_recent" => Uniqueness::VertexRecent(last()?),
        "edge_global" => Uniqueness::EdgeGlobal,
        "edge_path" => Uniqueness::EdgePath,
        "edge_recent" => Uniqueness::EdgeRecent(last()?),
        "none" => Uniqueness::None,
        other => {
            let good = "vertex_global, vertex_path, vertex_recent, edge_global, edge_path, edge_recent, none";
            return Err(unknown("uniqueness", other, good));
        }
    })
}

fn unknown(name: &str, word: &str, good: &str) -> Error {
    Error::invalid(format!("the option {name} cannot be {word}: it is one of {good}"))
}

fn word<'v>(name: &str, value: &'v Value) -> Result<&'v str> {
    value.as_str().ok_or_else(|| Error::invalid(format!("the option {name} is a word, not {value}")))
}

fn whole(name: &str, value: &Value) -> Result<u64> {
    // Lua's numbers may be doubles.
    let double = value.as_f64().filter(|double| *double >= 0.0 && *double <= 9e15 && double.fract() == 0.0);
    value
        .as_u64()
        .or(double.map(|double| double as u64))
        .ok_or_else(|| Error::invalid(format!("the option {name} is a whole number from 0 on, not {value}")))
}

fn size(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
