//! `perilune_graph_*`: graphs of a database: changed, asked by name, walked a path at a time.
//!
//! Invariants
//! - A graph's handle holds no session; a change is a transaction of the session that it is called with, or a level of its own.
//! - What a graph refuses is `PERILUNE_GRAPH`, whose message begins with what kind it is, as `NO_VERTEX: `.

pub mod change;
pub mod walk;

use std::ffi::{c_char, c_int};

use perilune::Value as NodeValue;
use perilune_graph::{Direction, Error, Graph, GraphOptions, Request, VertexId, View};

use crate::edge::{array, bytes, given, place, store, thread_call};
use crate::node::{Head, View as NodeView};
use crate::rows::Rows;
use crate::session::{call, node_of, Open, Session};
use crate::status::{Failure, CORRUPT, GRAPH, INVALID, LIMIT_REACHED, NOT_FOUND, OK};
use crate::value::Value;

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        match &error {
            Error::Database(_) => return Failure::from(perilune::Error::from(error)),
            Error::Limit { .. } => return Failure::with(LIMIT_REACHED, error),
            Error::Damaged(_) => return Failure::with(CORRUPT, error),
            _ => {}
        }
        let Some(kind) = error.kind() else { return Failure::with(INVALID, error) };
        Failure::with(GRAPH, format_args!("{kind}: {error}"))
    }
}

/// A value from C, owned.
///
/// # Safety
/// The bytes of a string or decimal are good for reading.
unsafe fn owned(value: &Value) -> Result<NodeValue, Failure> {
    // SAFETY: the caller's promise.
    Ok(unsafe { value.given() }?.map_or(NodeValue::Null, |value| value.to_owned_value()))
}

/// # Safety
/// `value` is NULL or good for reading, with its bytes.
unsafe fn vertex(value: *const Value) -> Result<VertexId, Failure> {
    // SAFETY: the caller's promise.
    Ok(VertexId::try_from(&unsafe { owned(given(value)?) }?)?)
}

/// # Safety
/// As of [`bytes`].
unsafe fn text<'a>(start: *const c_char, size: usize) -> Result<&'a str, Failure> {
    // SAFETY: the caller's promise.
    let bytes = unsafe { bytes(start, size) }?;
    std::str::from_utf8(bytes).map_err(|_| Failure::invalid(c"names and options of graphs are UTF-8"))
}

/// # Safety
/// `graph` is NULL or a graph that no other thread uses now.
unsafe fn graph_at<'a>(graph: *mut Graph) -> Result<&'a mut Graph, Failure> {
    // SAFETY: the caller's promise.
    unsafe { place(graph)?.as_mut() }
        .ok_or(Failure::invalid(c"the graph is NULL: open one with perilune_graph_open"))
}

/// Runs `body` over one state: a snapshot, the open transaction, or one of its own that reads.
fn look<R>(
    open: &mut Open<'_>,
    graph: &Graph,
    mut body: impl FnMut(&mut View<'_>) -> perilune_graph::Result<R>,
) -> Result<R, Failure> {
    Ok(if open.is_snapshot {
        body(&mut graph.view_of_snapshot(open.inner))?
    } else if open.inner.depth() > 0 {
        body(&mut graph.view(open.inner)?)?
    } else {
        graph.read(open.inner, body)?
    })
}

/// `perilune_graph_create`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_graph_create(
    session: *mut Session,
    node: *const Head,
    weight: *const c_char,
    weight_size: usize,
    graph: *mut *mut Graph,
) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe {
        store(graph, std::ptr::null_mut());
        call(session, |open| {
            let to = place(graph)?;
            let root = node_of(&NodeView::of(node)?).to_node()?;
            let weight = if weight.is_null() { None } else { Some(text(weight, weight_size)?.to_owned()) };
            let made = Graph::create(open.inner, &root, &GraphOptions { weight })?;
            to.write(Box::into_raw(Box::new(made)));
            Ok(OK)
        })
    }
}

/// `perilune_graph_open`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_graph_open(
    session: *mut Session,
    node: *const Head,
    graph: *mut *mut Graph,
) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe {
        store(graph, std::ptr::null_mut());
        call(session, |open| {
            let to = place(graph)?;
            let root = node_of(&NodeView::of(node)?).to_node()?;
            let opened = Graph::open(open.inner, &root)?;
            to.write(Box::into_raw(Box::new(opened)));
            Ok(OK)
        })
    }
}

/// `perilune_graph_close`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_graph_close(graph: *mut Graph) {
    thread_call(|| {
        if !graph.is_null() {
            // SAFETY: made by `Box::into_raw`, and by the header nobody uses it any more.
            drop(unsafe { Box::from_raw(graph) });
        }
        Ok(OK)
    });
}

/// `perilune_graph_has_vertex`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_graph_has_vertex(
    session: *mut Session,
    graph: *mut Graph,
    id: *const Value,
) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe {
        call(session, |open| {
            let is_there = graph_at(graph)?.has_vertex(open.inner, &vertex(id)?)?;
            Ok(if is_there { OK } else { NOT_FOUND })
        })
    }
}

/// `perilune_graph_degree`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_graph_degree(
    session: *mut Session,
    graph: *mut Graph,
    id: *const Value,
    direction: i32,
    kind: *const c_char,
    kind_size: usize,
    degree: *mut u64,
) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe {
        call(session, |open| {
            let direction = match direction {
                0 => Direction::Out,
                1 => Direction::In,
                2 => Direction::Both,
                _ => return Err(Failure::invalid(c"a direction is one of enum perilune_direction")),
            };
            let kind = if kind.is_null() { None } else { Some(text(kind, kind_size)?) };
            let found = graph_at(graph)?.degree(open.inner, &vertex(id)?, direction, kind)?;
            store(degree, found);
            Ok(OK)
        })
    }
}

/// `perilune_graph_ask`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_graph_ask(
    session: *mut Session,
    graph: *mut Graph,
    question: *const c_char,
    question_size: usize,
    arguments: *const Value,
    count: usize,
    options: *const c_char,
    options_size: usize,
    rows: *mut *mut Rows,
) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe {
        store(rows, std::ptr::null_mut());
        call(session, |mut open| {
            let to = place(rows)?;
            let arguments = array(arguments, count)?
                .iter()
                .map(|argument| owned(argument))
                .collect::<Result<Vec<NodeValue>, Failure>>()?;
            let request = Request::parse(text(options, options_size)?)?;
            let question = text(question, question_size)?;
            let table = look(&mut open, graph_at(graph)?, |view| view.ask(question, &arguments, &request))?;
            to.write(Box::into_raw(Box::new(Rows::of(table.columns, table.rows))));
            Ok(OK)
        })
    }
}
