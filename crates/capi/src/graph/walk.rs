//! `perilune_graph_walk_*`: a walk, a path at a time, which the caller may prune and lead.
//!
//! Invariants
//! - A walk goes on only where it began: in the same transaction, or with the same snapshot. So all its paths are of one state.
//! - What a step refers to lies in the walk until its next path.

use std::ffi::{c_char, c_int};

use perilune_graph::{Error, Graph, Journey, Path, Request, Step as Lead, VertexId};

use super::{graph_at, look, text, vertex};
use crate::edge::{array, place, store, thread_call};
use crate::session::{call, Open, Session};
use crate::status::{Answer, Failure, NOT_FOUND, OK, TRANSACTION_STATE};
use crate::value::Value;

/// `perilune_graph_walk`.
pub struct Walk {
    graph: Graph,
    journey: Journey,
    /// The session that it goes by, and which of its transactions; that is none for a snapshot.
    session: usize,
    begun: Option<u64>,
    /// The beginnings of the last path, from no edges on.
    last: Vec<Path>,
}

/// `perilune_graph_step`.
#[repr(C)]
pub struct Step {
    /// The vertex that is reached.
    pub vertex: Value,
    /// Where the edge begins.
    pub source: Value,
    /// Where it ends.
    pub target: Value,
    /// Its type.
    pub kind: Value,
    /// Its weight.
    pub weight: Value,
    /// Its number; 0 at the start.
    pub edge: i64,
    /// How many edges led here.
    pub depth: u64,
    /// What they cost.
    pub cost: f64,
}

const _: () = assert!(size_of::<Step>() == 144);

/// `perilune_graph_lead`.
#[repr(C)]
pub struct GivenLead {
    /// The number of an edge at the path's end.
    pub edge: i64,
    /// What it costs.
    pub cost: f64,
    /// Where the longer path stands in a walk "cheapest".
    pub rank: f64,
}

const _: () = assert!(size_of::<GivenLead>() == 24);

const ELSEWHERE: Failure = Failure::fixed(
    TRANSACTION_STATE,
    c"a walk goes on in the transaction that it began in, or with its snapshot: begin another walk",
);

/// Which transaction is open; none for a snapshot.
fn place_of(open: &Open<'_>) -> Result<Option<u64>, Failure> {
    if open.is_snapshot {
        return Ok(None);
    }
    if open.inner.depth() == 0 {
        return Err(Failure::fixed(
            TRANSACTION_STATE,
            c"a walk sees one state: begin it in a transaction, or with perilune_snapshot_open",
        ));
    }
    Ok(Some(*open.begun))
}

/// The walk, if this is where it may go on.
///
/// # Safety
/// `walk` is NULL or an open walk that no other thread uses now.
unsafe fn walk_at<'a>(
    walk: *mut Walk,
    session: *mut Session,
    open: &Open<'_>,
) -> Result<&'a mut Walk, Failure> {
    // SAFETY: the caller's promise.
    let walk = unsafe { place(walk)?.as_mut() }.ok_or(ELSEWHERE)?;
    let is_here = place_of(open).is_ok_and(|begun| begun == walk.begun);
    if walk.session != session as usize || !is_here {
        return Err(ELSEWHERE);
    }
    Ok(walk)
}

fn id(vertex: &VertexId) -> Value {
    match (vertex.as_i64(), vertex.as_bytes()) {
        (Some(int), _) => Value::int(int),
        (None, bytes) => Value::bytes(bytes.unwrap_or_default()),
    }
}

/// The last step of a path.
fn step_of(path: &Path) -> Step {
    let mut step = Step {
        vertex: id(path.end()),
        source: Value::absent(),
        target: Value::absent(),
        kind: Value::absent(),
        weight: Value::absent(),
        edge: 0,
        depth: path.length() as u64,
        cost: path.cost(),
    };
    if let Some(edge) = path.last_edge() {
        step.edge = edge.id;
        step.source = id(&edge.source);
        step.target = id(&edge.target);
        step.kind = Value::bytes(edge.kind.as_bytes());
        step.weight = edge.weight.map_or(Value::absent(), Value::double);
    }
    step
}

/// `perilune_graph_walk_open`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_graph_walk_open(
    session: *mut Session,
    graph: *mut Graph,
    starts: *const Value,
    count: usize,
    options: *const c_char,
    options_size: usize,
    walk: *mut *mut Walk,
) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe {
        store(walk, std::ptr::null_mut());
        call(session, |mut open| {
            let to = place(walk)?;
            let begun = place_of(&open)?;
            let request = Request::parse(text(options, options_size)?)?;
            let starts = array(starts, count)?
                .iter()
                .map(|start| vertex(start))
                .collect::<Result<Vec<VertexId>, Failure>>()?;
            let graph = graph_at(graph)?.clone();
            let journey = look(&mut open, &graph, |view| {
                Journey::begin(request.traversal(), request.limits, view, starts.clone())
            })?;
            let session = session as usize;
            to.write(Box::into_raw(Box::new(Walk { graph, journey, session, begun, last: Vec::new() })));
            Ok(OK)
        })
    }
}

/// `perilune_graph_walk_close`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_graph_walk_close(walk: *mut Walk) {
    thread_call(|| {
        if !walk.is_null() {
            // SAFETY: made by `Box::into_raw`, and by the header nobody uses it any more.
            drop(unsafe { Box::from_raw(walk) });
        }
        Ok(OK)
    });
}

/// `perilune_graph_walk_next`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_graph_walk_next(
    session: *mut Session,
    walk: *mut Walk,
    step: *mut Step,
) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe {
        call(session, |mut open| {
            let walk = walk_at(walk, session, &open)?;
            walk.last.clear();
            let Walk { graph, journey, .. } = walk;
            match look(&mut open, graph, |view| journey.next(view))? {
                None => Ok(NOT_FOUND),
                Some(path) => {
                    store(step, step_of(&path));
                    // Its beginnings are found when they are asked for.
                    walk.last.push(path);
                    Ok(OK)
                }
            }
        })
    }
}

/// `perilune_graph_walk_step`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_graph_walk_step(walk: *mut Walk, depth: u64, step: *mut Step) -> c_int {
    thread_call(|| {
        // SAFETY: the caller's pointers are good or NULL, as the header asks.
        unsafe {
            let walk = place(walk)?.as_mut().ok_or(ELSEWHERE)?;
            let Some(whole) = walk.last.last() else { return Ok(NOT_FOUND) };
            if walk.last.len() == 1 {
                walk.last = whole.beginnings();
            }
            step_out(walk.last.get(usize::try_from(depth).unwrap_or(usize::MAX)), step)
        }
    })
}

/// # Safety
/// `to` is NULL or good for writing.
unsafe fn step_out(path: Option<&Path>, to: *mut Step) -> Answer {
    let Some(path) = path else { return Ok(NOT_FOUND) };
    // SAFETY: the caller's promise.
    unsafe { store(to, step_of(path)) };
    Ok(OK)
}

/// `perilune_graph_walk_prune`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_graph_walk_prune(walk: *mut Walk) -> c_int {
    thread_call(|| {
        // SAFETY: the caller's pointers are good or NULL, as the header asks.
        unsafe { place(walk)?.as_mut() }.ok_or(ELSEWHERE)?.journey.prune();
        Ok(OK)
    })
}

/// `perilune_graph_walk_lead`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_graph_walk_lead(
    session: *mut Session,
    walk: *mut Walk,
    leads: *const GivenLead,
    count: usize,
) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe {
        call(session, |open| {
            let walk = walk_at(walk, session, &open)?;
            let Some(end) = walk.last.last().map(|path| path.end().clone()) else { return Ok(NOT_FOUND) };
            let mut steps = Vec::with_capacity(count.min(1_024));
            for lead in array(leads, count)? {
                let edge = walk.graph.edge(open.inner, lead.edge)?.ok_or(Error::NoEdge(lead.edge))?;
                if edge.source != end && edge.target != end {
                    return Err(Failure::invalid(c"an edge that leads on has an end at the path's end"));
                }
                if !lead.cost.is_finite() || lead.cost < 0.0 || !lead.rank.is_finite() {
                    return Err(Error::Cost(lead.edge).into());
                }
                steps.push(Lead { edge, cost: lead.cost, rank: lead.rank });
            }
            Ok(if walk.journey.follow(steps) { OK } else { NOT_FOUND })
        })
    }
}
