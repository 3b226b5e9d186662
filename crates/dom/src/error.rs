//! What can go wrong with a document, each with what to do about it.

use std::fmt;

use crate::kind::DomNode;

/// Result of the calls of this crate.
pub type Result<T> = std::result::Result<T, DomError>;

/// Why a call on a document failed. Nothing of the call has happened then.
#[derive(Debug)]
pub enum DomError {
    /// The database's own error.
    Database(perilune::Error),
    /// The text is not well-formed XML.
    Syntax {
        /// Byte offset in the text.
        position: usize,
        /// What is wrong there.
        what: String,
    },
    /// A reference to an entity that is not one of XML's five.
    Entity {
        /// Byte offset in the text.
        position: usize,
        /// The entity's name.
        name: String,
    },
    /// A document type with declarations of its own, or one that names an external DTD.
    Dtd {
        /// Byte offset in the text.
        position: usize,
        /// Whether it is declarations inside the document.
        internal: bool,
    },
    /// The bytes are not UTF-8, or the declaration names another encoding.
    Encoding(String),
    /// There is a document already.
    DocumentExists,
    /// There is no such node.
    NotFound(DomNode),
    /// A node of this kind cannot be there, or would be its own ancestor.
    Hierarchy(&'static str),
    /// Not a name, or a character that XML has not.
    InvalidCharacter(String),
    /// Another element has this id.
    IdExists(String),
    /// The attribute is another element's.
    InUse(DomNode),
    /// A place in a text that is behind its end, or inside a character.
    IndexSize {
        /// The offset, in UTF-16 units.
        offset: usize,
        /// How many units the text has.
        length: usize,
    },
    /// A name and a namespace that do not go together.
    Namespace(String),
    /// The expression cannot be read.
    Expression {
        /// Byte offset in the expression.
        position: usize,
        /// What is wrong there.
        what: String,
    },
    /// The expression cannot be evaluated: an unknown name, or a value of the wrong type.
    Evaluation(String),
    /// The evaluation has looked at more nodes than it may.
    TooManyNodes(usize),
    /// A call by a name that there is not, or with arguments that it does not take.
    Call(String),
    /// What is stored contradicts the layout.
    Damaged(String),
}

impl DomError {
    /// What the DOM calls it, `HierarchyRequestError` and the like; ours for what the DOM has no name for. `None` for the
    /// database's errors and for wrong calls.
    #[must_use]
    pub fn dom_name(&self) -> Option<&'static str> {
        Some(match self {
            DomError::Database(_) | DomError::Call(_) => return None,
            DomError::Syntax { .. }
            | DomError::Entity { .. }
            | DomError::Dtd { .. }
            | DomError::Encoding(_) => "ParseError",
            DomError::DocumentExists => "InvalidStateError",
            DomError::NotFound(_) => "NotFoundError",
            DomError::Hierarchy(_) => "HierarchyRequestError",
            DomError::InvalidCharacter(_) => "InvalidCharacterError",
            DomError::IdExists(_) => "ConstraintError",
            DomError::InUse(_) => "InUseAttributeError",
            DomError::IndexSize { .. } => "IndexSizeError",
            DomError::Namespace(_) => "NamespaceError",
            DomError::Expression { .. } => "SyntaxError",
            DomError::Evaluation(_) => "EvaluationError",
            DomError::TooManyNodes(_) => "QuotaExceededError",
            DomError::Damaged(_) => "DataError",
        })
    }
}

impl fmt::Display for DomError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DomError::Database(error) => error.fmt(f),
            DomError::Syntax { position, what } => write!(f, "not well-formed at byte {position}: {what}"),
            DomError::Entity { position, name } => write!(
                f,
                "entity &{name}; at byte {position}: only amp, lt, gt, quot, apos and character references are \
                 expanded; write its text instead"
            ),
            DomError::Dtd { position, internal: true } => write!(
                f,
                "the document type at byte {position} declares something: declarations are not read; remove what is \
                 between [ and ]"
            ),
            DomError::Dtd { position, internal: false } => write!(
                f,
                "the document type at byte {position} names an external DTD, which is never read; remove it, or \
                 allow to keep its identifiers (ParseOptions::keep_external_dtd)"
            ),
            DomError::Encoding(what) => write!(f, "{what}: convert the document to UTF-8"),
            DomError::DocumentExists => {
                f.write_str("there is a document at this node: remove it first, or parse with `replace`")
            }
            DomError::NotFound(node) => write!(f, "there is no node {}", node.number()),
            DomError::Hierarchy(why) => f.write_str(why),
            DomError::InvalidCharacter(text) => write!(f, "{text:?} is no XML name or has a forbidden character"),
            DomError::IdExists(id) => write!(f, "an element has the id {id:?} already: choose another one"),
            DomError::InUse(node) => {
                write!(f, "attribute {} belongs to another element: remove it there first", node.number())
            }
            DomError::IndexSize { offset, length } => write!(
                f,
                "offset {offset} is no place between characters of a text of {length} units: offsets count UTF-16 units \
                 from 0"
            ),
            DomError::Namespace(what) | DomError::Call(what) => f.write_str(what),
            DomError::Expression { position, what } => write!(f, "XPath, at byte {position}: {what}"),
            DomError::Evaluation(what) => write!(f, "XPath: {what}"),
            DomError::TooManyNodes(limit) => {
                write!(f, "XPath: more than {limit} nodes looked at: narrow the expression or raise nodes_max")
            }
            DomError::Damaged(what) => write!(f, "the document is damaged: {what}"),
        }
    }
}

impl std::error::Error for DomError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            DomError::Database(error) => Some(error),
            _ => None,
        }
    }
}

impl From<perilune::Error> for DomError {
    fn from(error: perilune::Error) -> DomError {
        DomError::Database(error)
    }
}
