//! A walk: paths one at a time, as its traversal says.
//!
//! Example: `traversal.walk(&mut view, [7])?.take(10)` reads what ten paths need, and no more.
//!
//! Invariants
//! - A path is expanded when the one after it is asked for, so what is not asked for is not read.
//! - Breadth first, uniqueness is looked at when a path is found, which keeps the frontier small; otherwise when its turn comes,
//!   since a path found earlier may have its turn later.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

use super::uniqueness::Seen;
use super::{Order, Traversal};
use crate::{Path, Result, VertexId, View};

/// The paths of a traversal, one at a time. It ends after an error.
#[derive(Debug)]
pub struct Walk<'t, 'f, 'v, 's> {
    traversal: &'t mut Traversal<'f>,
    view: &'v mut View<'s>,
    steps: Steps,
}

impl<'t, 'f, 'v, 's> Walk<'t, 'f, 'v, 's> {
    pub(super) fn new(
        traversal: &'t mut Traversal<'f>,
        view: &'v mut View<'s>,
        starts: Vec<VertexId>,
    ) -> Result<Walk<'t, 'f, 'v, 's>> {
        view.begin(&starts.iter().collect::<Vec<_>>())?;
        let steps = Steps::new(traversal, starts);
        Ok(Walk { traversal, view, steps })
    }
}

impl Iterator for Walk<'_, '_, '_, '_> {
    type Item = Result<Path>;

    fn next(&mut self) -> Option<Result<Path>> {
        self.steps.next(self.traversal, self.view).transpose()
    }
}

/// What a walk holds: the paths that wait, and what must not be met again.
#[derive(Debug)]
pub(super) struct Steps {
    frontier: Frontier,
    seen: Seen,
    /// The path that was looked at last, if it is to be followed.
    to_follow: Option<Path>,
}

impl Steps {
    pub(super) fn new(traversal: &mut Traversal<'_>, starts: Vec<VertexId>) -> Steps {
        let frontier = match traversal.order {
            Order::BreadthFirst => Frontier::Queue(VecDeque::new()),
            Order::DepthFirst => Frontier::Stack(Vec::new()),
            Order::Rank(_) => Frontier::Heap(BinaryHeap::new(), 0),
        };
        let mut steps = Steps { frontier, seen: Seen::new(traversal.uniqueness), to_follow: None };
        steps.add(traversal, starts.into_iter().map(Path::at).collect());
        steps
    }

    /// Adds paths that were found, to be ranked by the traversal.
    fn add(&mut self, traversal: &mut Traversal<'_>, mut paths: Vec<Path>) {
        match &mut self.frontier {
            Frontier::Queue(queue) => queue.extend(paths.into_iter().filter(|path| self.seen.admit(path))),
            Frontier::Stack(stack) => {
                paths.reverse();
                stack.append(&mut paths);
            }
            Frontier::Heap(..) => {
                let Order::Rank(rank) = &mut traversal.order else { return };
                let ranked = paths.into_iter().map(|path| (rank(&path), path)).collect();
                self.add_ranked(ranked);
            }
        }
    }

    /// Adds paths with their ranks, which count in a walk by rank alone.
    pub(super) fn add_ranked(&mut self, paths: Vec<(f64, Path)>) {
        match &mut self.frontier {
            Frontier::Heap(heap, count) => {
                for (rank, path) in paths {
                    heap.push(Ranked { rank, found: *count, path });
                    *count += 1;
                }
            }
            Frontier::Stack(stack) => stack.extend(paths.into_iter().rev().map(|(_, path)| path)),
            Frontier::Queue(queue) => {
                let paths = paths.into_iter().map(|(_, path)| path);
                queue.extend(paths.filter(|path| self.seen.admit(path)));
            }
        }
    }

    /// The path that was answered last, if it is still to be followed; it is not from now on.
    pub(super) fn take_last(&mut self) -> Option<Path> {
        self.to_follow.take()
    }

    /// The next path whose turn it is.
    fn take(&mut self) -> Option<Path> {
        loop {
            let path = match &mut self.frontier {
                Frontier::Queue(queue) => return queue.pop_front(),
                Frontier::Stack(stack) => stack.pop()?,
                Frontier::Heap(heap, _) => heap.pop()?.path,
            };
            if self.seen.admit(&path) {
                return Some(path);
            }
        }
    }

    /// The next path that counts. After an error there is none.
    pub(super) fn next(
        &mut self,
        traversal: &mut Traversal<'_>,
        view: &mut View<'_>,
    ) -> Result<Option<Path>> {
        let step = self.step(traversal, view);
        if step.is_err() {
            self.to_follow = None;
            self.frontier = Frontier::Stack(Vec::new());
        }
        step
    }

    fn step(&mut self, traversal: &mut Traversal<'_>, view: &mut View<'_>) -> Result<Option<Path>> {
        loop {
            if let Some(path) = self.to_follow.take() {
                let paths = traversal.follow(&path, view)?;
                self.add(traversal, paths);
            }
            let Some(path) = self.take() else {
                return Ok(None);
            };
            let evaluation = traversal.judge(&path, view)?;
            if evaluation.continues() {
                self.to_follow = Some(path.clone());
            }
            if evaluation.includes() {
                return Ok(Some(path));
            }
        }
    }
}

/// Paths that have been found, and wait for their turn.
#[derive(Debug)]
enum Frontier {
    Queue(VecDeque<Path>),
    Stack(Vec<Path>),
    /// With how many have been found.
    Heap(BinaryHeap<Ranked>, u64),
}

#[derive(Debug)]
struct Ranked {
    rank: f64,
    found: u64,
    path: Path,
}

impl Ord for Ranked {
    fn cmp(&self, other: &Ranked) -> Ordering {
        // The heap gives its greatest: here the lowest rank, and of equal ones the first.
        other.rank.total_cmp(&self.rank).then(other.found.cmp(&self.found))
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Ranked) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ranked {
    fn eq(&self, other: &Ranked) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Ranked {}
