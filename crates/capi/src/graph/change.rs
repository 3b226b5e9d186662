//! `perilune_graph_*` that change a graph, and read single properties.
//!
//! Invariant: a property that is answered lies in memory of the session until its next call.

use std::ffi::{c_char, c_int};

use perilune::Value as NodeValue;
use perilune_graph::{Edges, Graph};

use super::{graph_at, text, vertex};
use crate::edge::{array, given, place, store};
use crate::session::{answer, call, Open, Session};
use crate::status::{Answer, Failure, NOT_FOUND, OK};
use crate::value::Value;

/// `perilune_graph_add_vertex`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_graph_add_vertex(
    session: *mut Session,
    graph: *mut Graph,
    id: *const Value,
    labels: *const Value,
    count: usize,
) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe {
        call(session, |open| {
            let labels = array(labels, count)?
                .iter()
                .map(|label| match label.given()? {
                    Some(perilune::ValueRef::String(bytes)) => {
                        Ok(String::from_utf8_lossy(bytes).into_owned())
                    }
                    _ => Err(Failure::invalid(c"a label is a PERILUNE_STRING")),
                })
                .collect::<Result<Vec<String>, Failure>>()?;
            let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
            graph_at(graph)?.add_vertex(open.inner, vertex(id)?, &labels)?;
            Ok(OK)
        })
    }
}

/// `perilune_graph_delete_vertex`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_graph_delete_vertex(
    session: *mut Session,
    graph: *mut Graph,
    id: *const Value,
    with_edges: c_int,
) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe {
        call(session, |open| {
            let edges = if with_edges == 0 { Edges::Refuse } else { Edges::Remove };
            graph_at(graph)?.delete_vertex(open.inner, &vertex(id)?, edges)?;
            Ok(OK)
        })
    }
}

/// `perilune_graph_set_label`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_graph_set_label(
    session: *mut Session,
    graph: *mut Graph,
    id: *const Value,
    label: *const c_char,
    label_size: usize,
    is_set: c_int,
) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe {
        call(session, |open| {
            let (graph, id, label) = (graph_at(graph)?, vertex(id)?, text(label, label_size)?);
            if is_set == 0 {
                graph.remove_label(open.inner, &id, label)?;
            } else {
                graph.add_label(open.inner, &id, label)?;
            }
            Ok(OK)
        })
    }
}

/// `perilune_graph_index`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_graph_index(
    session: *mut Session,
    graph: *mut Graph,
    label: *const c_char,
    label_size: usize,
    property: *const c_char,
    property_size: usize,
    is_kept: c_int,
) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe {
        call(session, |open| {
            let (label, property) = (text(label, label_size)?, text(property, property_size)?);
            let graph = graph_at(graph)?;
            if is_kept == 0 {
                graph.drop_index(open.inner, label, property)?;
            } else {
                graph.add_index(open.inner, label, property)?;
            }
            Ok(OK)
        })
    }
}

/// Answers a property, or that there is none.
///
/// # Safety
/// `to` is good for writing.
unsafe fn property_out(open: Open<'_>, found: Option<NodeValue>, to: *mut Value) -> Answer {
    let to = place(to)?;
    open.batch.clear();
    open.batch.push(found);
    // SAFETY: the caller's promise; the value lies in the session until its next call.
    unsafe {
        match &open.batch[0] {
            Some(value) => answer(to, Value::view(value.as_ref(), open.text)),
            None => {
                store(to, Value::absent());
                Ok(NOT_FOUND)
            }
        }
    }
}

/// `perilune_graph_get`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_graph_get(
    session: *mut Session,
    graph: *mut Graph,
    id: *const Value,
    name: *const c_char,
    name_size: usize,
    value: *mut Value,
) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe {
        call(session, |open| {
            let found = graph_at(graph)?.property(open.inner, &vertex(id)?, text(name, name_size)?)?;
            property_out(open, found, value)
        })
    }
}

/// `perilune_graph_set`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_graph_set(
    session: *mut Session,
    graph: *mut Graph,
    id: *const Value,
    name: *const c_char,
    name_size: usize,
    value: *const Value,
) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe {
        call(session, |open| {
            let (graph, id, name) = (graph_at(graph)?, vertex(id)?, text(name, name_size)?);
            match given(value)?.given()? {
                Some(value) => graph.set_property(open.inner, &id, name, value)?,
                None => graph.delete_property(open.inner, &id, name)?,
            }
            Ok(OK)
        })
    }
}

/// `perilune_graph_get_edge`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_graph_get_edge(
    session: *mut Session,
    graph: *mut Graph,
    edge: i64,
    name: *const c_char,
    name_size: usize,
    value: *mut Value,
) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe {
        call(session, |open| {
            let found = graph_at(graph)?.edge_property(open.inner, edge, text(name, name_size)?)?;
            property_out(open, found, value)
        })
    }
}

/// `perilune_graph_set_edge`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_graph_set_edge(
    session: *mut Session,
    graph: *mut Graph,
    edge: i64,
    name: *const c_char,
    name_size: usize,
    value: *const Value,
) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe {
        call(session, |open| {
            let (graph, name) = (graph_at(graph)?, text(name, name_size)?);
            match given(value)?.given()? {
                Some(value) => graph.set_edge_property(open.inner, edge, name, value)?,
                None => graph.delete_edge_property(open.inner, edge, name)?,
            }
            Ok(OK)
        })
    }
}

/// `perilune_graph_add_edge`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_graph_add_edge(
    session: *mut Session,
    graph: *mut Graph,
    source: *const Value,
    kind: *const c_char,
    kind_size: usize,
    target: *const Value,
    edge: *mut i64,
) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe {
        call(session, |open| {
            let (source, target) = (vertex(source)?, vertex(target)?);
            let id = graph_at(graph)?.add_edge(open.inner, &source, text(kind, kind_size)?, &target)?;
            store(edge, id);
            Ok(OK)
        })
    }
}

/// `perilune_graph_delete_edge`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_graph_delete_edge(
    session: *mut Session,
    graph: *mut Graph,
    edge: i64,
) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe {
        call(session, |open| {
            graph_at(graph)?.delete_edge(open.inner, edge)?;
            Ok(OK)
        })
    }
}
