//! XML documents as nodes of the tree, in the layout of QEWD-JSdb: either reads what the other wrote.
//!
//! A document of an editor or a feed is read, changed and searched by many processes at once. Here each of its nodes
//! is a few values below one database node ([format](../../../docs/format/dom.md)), so that a change touches only
//! what it changes, and each change is one transaction: nobody ever sees half of it.
//!
//! ```
//! # let directory = std::env::temp_dir().join(format!("perilune-doc-dom-{}", std::process::id()));
//! # std::fs::create_dir_all(&directory).unwrap();
//! # let mut session = perilune::Database::open(directory.join("t.db")).unwrap().session().unwrap();
//! use perilune::node;
//! use perilune_dom::{Dom, ParseOptions};
//!
//! let dom = Dom::at(node!("^doc", "pubs")?);
//! dom.parse(&mut session, r#"<doc><pub name="Grogan's"/></doc>"#, &ParseOptions::default())?;
//! let root = dom.document_element(&mut session)?.unwrap();
//! let text = dom.create_text(&mut session, "open")?;
//! dom.append_child(&mut session, root, text)?;
//! assert_eq!(dom.to_xml(&mut session)?, r#"<doc><pub name="Grogan's" />open</doc>"#);
//! # let _ = std::fs::remove_dir_all(&directory);
//! # Ok::<(), perilune_dom::DomError>(())
//! ```
//!
//! Invariants
//! - A call that changes the document is one transaction, or a level of the caller's.
//! - [`Dom::check`] holds after each of them: links both ways, and every index.
//! - Entities and external DTDs are never read, so that no document opens a file or grows when it is parsed.

#![forbid(unsafe_code)]

mod attributes;
mod call;
mod change;
mod characters;
mod check;
mod copy;
mod create;
mod data;
mod error;
mod json;
mod kind;
mod layout;
mod namespaces;
mod order;
mod parse;
mod record;
mod references;
mod serialize;
mod store;
mod user_data;
mod whole;
mod xpath;

pub use crate::call::{Answer, Argument};
pub use crate::check::Fault;
pub use crate::error::{DomError, Result};
pub use crate::kind::{DomNode, NodeKind};
pub use crate::layout::Dom;
pub use crate::namespaces::{XML, XMLNS};
pub use crate::order::{CONTAINED_BY, CONTAINS, DISCONNECTED, FOLLOWING, IMPLEMENTATION_SPECIFIC, PRECEDING};
pub use crate::parse::{ParseOptions, Parsed, Whitespace};
pub use crate::record::Record;
pub use crate::xpath::{Surroundings, XPath, XPathItem, XPathValue};
