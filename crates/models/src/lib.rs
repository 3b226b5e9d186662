//! Documents, lists and key/value stores as nodes, in the layout of QEWD-JSdb: either reads what the other wrote.
//!
//! A handle is a node and the way in which values lie below it; it holds nothing else, so that making one costs nothing.
//! Values come and go as JSON. Each call is one transaction, run again by itself when it conflicts, or a level of the caller's.
//!
//! ```
//! # let directory = std::env::temp_dir().join(format!("perilune-doc-models-{}", std::process::id()));
//! # std::fs::create_dir_all(&directory).unwrap();
//! # let mut session = perilune::Database::open(directory.join("t.db"))?.session()?;
//! use perilune::node;
//! use perilune_models::{json, Document, KeyValue, List, Shape};
//!
//! let ada = Document::at(node!("^people", "ada")?, Shape::default());
//! ada.put(&mut session, &json!({"name": "Ada", "likes": ["numbers", "engines"]}))?;
//! ada.patch(&mut session, &json!({"born": 1815}))?;
//! assert_eq!(ada.fetch(&mut session)?, Some(json!({"born": 1815, "likes": ["numbers", "engines"], "name": "Ada"})));
//!
//! let queue = List::at(node!("^queue")?, Shape::default());
//! queue.push_back(&mut session, &json!({"job": 1}))?;
//! assert_eq!(queue.pop_front(&mut session)?, Some(json!({"job": 1})));
//!
//! let towns = KeyValue::at(node!("^towns")?, Shape::default());
//! towns.add_index(&mut session, "town", Some("toLowerCase"))?;
//! towns.add(&mut session, "key_1", &json!({"name": "Rob", "town": "Redhill"}))?;
//! assert_eq!(towns.keys_by_index(&mut session, "town", &json!("redhill"))?, Some(vec!["key_1".into()]));
//! # let _ = std::fs::remove_dir_all(&directory);
//! # Ok::<(), perilune_models::Error>(())
//! ```
//!
//! - [`Document`]: a JSON value, whole or changed in parts.
//! - [`List`]: documents in an order, pushed and popped at both ends.
//! - [`KeyValue`]: documents by key, found by properties that are indexed.
//! - The patterns on globals of the literature: [`Set`], [`Hash`](struct@Hash), [`Records`] with indexes,
//!   [`Columns`], [`Relations`] between tables, [`Network`] of nodes and edges.
//! - [`call()`]: all of them by name, for bindings.
//!
//! The nodes: `docs/format/models.md`. What this crate does not do: events, and SQL of M.

#![forbid(unsafe_code)]

mod call;
mod columns;
mod document;
mod error;
mod fields;
mod keyvalue;
mod leaf;
mod list;
mod network;
mod records;
mod relations;
mod set;

pub use serde_json::{json, Value as Json};

pub use crate::call::call;
pub use crate::columns::Columns;
pub use crate::document::{Children, Document};
pub use crate::error::{Error, Result};
pub use crate::fields::Fields;
pub use crate::keyvalue::KeyValue;
pub use crate::leaf::Shape;
pub use crate::list::List;
pub use crate::network::{Direction, Edge, Network};
pub use crate::records::{Records, Wanted};
pub use crate::relations::Relations;
pub use crate::set::{Hash, Set};
