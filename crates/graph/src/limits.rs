//! Every bound of a graph.

/// Bytes of the longest name of a label, a type of edges or a property.
pub const NAME_BYTES: usize = 255;

/// Bytes of the longest id of a vertex: an edge's key holds two, beside its type and the graph's node.
pub const VERTEX_BYTES: usize = 500;

/// How many ids of edges a graph's handle takes at once: one write to their counter for so many edges.
pub(crate) const ID_BLOCK: usize = 64;

/// Bytes of a text that an index sorts by; what begins alike is told apart by the property itself.
pub(crate) const INDEXED_BYTES: usize = 128;

/// How many faults a check tells at most.
pub(crate) const FAULTS: usize = 100;
