//! Every state of the publication handshake, enumerated.
//!
//! The story. A writer reads the control line ("E": flush, generation, lease), writes its record behind
//! its ring's head and decides by one compare-and-swap of the head, then changes pages. Meanwhile others
//! change E: a *flush* wants all records that carry its old number, a *cut* wants all page changes of the
//! old generation to have ended, and who takes the *lease* wants that nobody else publishes. None of them
//! may use fences, none may wait for a writer that is merely stopped before its decision. So each stores
//! its word, sets the FROZEN bit in the head by a read-modify-write, and takes the cut where the head
//! stood: a writer that decided before lies below it, and one that comes later fails, clears the bit by a
//! read-modify-write, thereby sees the stored word, and reads E again.
//!
//! The memory is weak. A load of a control word may answer any value between the thread's view and the
//! newest; only read-modify-writes of the head carry views from thread to thread. One writer performs a
//! set, a structure change and a set. What must hold:
//! - F. a record with a flush number up to a leader's old one lies below that leader's cut;
//! - G. once a cut has waited, no page is changed under its old generation;
//! - L. once the lease is stored and the head frozen, nothing is published under it, and once its taker
//!   has waited, no page is changed; a writer that had published before has been waited for;
//! - E. every run ends: nobody waits for ever.
//!
//! The lease as it is broken by a second taker is the same model: the writer is then the old holder, value
//! 0 is "mine", and its commit must fail after the breaker has frozen it.
//!
//! Two forms are checked: that of the design note (its Python model has 6,845 states; this is a port) and
//! that of the code, where a failed publication clears the bit before the step ends, a set's page change is
//! a step too, and a leader's load of the step word may be as old as the writer's last write of the head.
//! Each canary leaves one part of the protocol out and must be found.

use std::collections::HashSet;

/// What a thread is sure to have seen of each word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct View {
    flush: u8,
    generation: u8,
    lease: u8,
    step: u8,
}

impl View {
    fn join(self, other: View) -> View {
        View {
            flush: self.flush.max(other.flush),
            generation: self.generation.max(other.generation),
            lease: self.lease.max(other.lease),
            step: self.step.max(other.step),
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Head {
    position: u8,
    frozen: bool,
    view: View,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum WriterAt {
    #[default]
    Read,
    /// Has seen a foreign lease and waits until it is given back.
    AwaitLease,
    Publish,
    Clear,
    /// The bit is cleared, the step of the failed structure change is still to be ended.
    EndStep,
    /// Decided; changes pages.
    Change,
    /// Has changed pages; ends the step.
    Finish,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Writer {
    op: usize,
    at: WriterAt,
    view: View,
    /// Flush and generation of the operation under way.
    epoch: Option<(u8, u8)>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum LeaderAt {
    #[default]
    Start,
    /// A cut has stored the generation.
    Bump,
    Freeze,
    Wait,
    /// Flush and cut: over. Lease: held.
    Done,
    GivenBack,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Leader {
    at: LeaderAt,
    old_flush: u8,
    old_generation: u8,
    cut: u8,
    /// The step as it was met after freezing.
    step: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Task {
    Flush,
    Cut,
    Lease,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct State {
    flush: u8,
    generation: u8,
    /// 0: nobody's, 1: held, 2: given back.
    lease: u8,
    head: Head,
    applied: u8,
    /// Odd: a step is under way.
    step: u8,
    /// Flush number of each record.
    records: Vec<(u8, u8)>,
    writer: Writer,
    leaders: [Leader; 2],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Set,
    Structure,
}

const OPERATIONS: [Operation; 3] = [Operation::Set, Operation::Structure, Operation::Set];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Canary {
    None,
    /// The writer publishes over a frozen head.
    Ignore,
    /// The writer clears the bit without acquiring what the freezer had stored.
    Relaxed,
    /// Leaders read the head without freezing it.
    NoFreeze,
    /// Leaders do not wait after freezing.
    NoWait,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Note,
    Code,
}

struct Model {
    tasks: [Task; 2],
    form: Form,
    canary: Canary,
}

type Broken = &'static str;

impl Model {
    /// All states that one instruction leads to.
    fn successors(&self, state: &State) -> Result<Vec<State>, Broken> {
        let mut after = Vec::new();
        if state.writer.op < OPERATIONS.len() {
            self.writer(state, &mut after)?;
        }
        for index in 0..self.tasks.len() {
            self.leader(state, index, &mut after);
        }
        Ok(after)
    }

    fn writer(&self, state: &State, after: &mut Vec<State>) -> Result<(), Broken> {
        let mut next = state.clone();
        let operation = OPERATIONS[state.writer.op];
        match state.writer.at {
            WriterAt::Read => self.read_line(state, after),
            WriterAt::AwaitLease => {
                if state.lease != 1 {
                    next.writer.at = WriterAt::Read;
                    next.writer.view.lease = state.lease;
                    after.push(next);
                }
            }
            WriterAt::Publish if !state.head.frozen || self.canary == Canary::Ignore => {
                after.push(self.publish(state, operation)?);
            }
            WriterAt::Publish => {
                next.writer.at = WriterAt::Clear;
                if self.form == Form::Note {
                    next.step += next.step & 1;
                }
                after.push(next);
            }
            WriterAt::Clear => {
                next.head.frozen = false;
                let sees = if self.canary == Canary::Relaxed { View::default() } else { state.head.view };
                next.writer.view = state.writer.view.join(sees);
                next.head.view = state.head.view.join(self.own_step(state, state.writer.view));
                next.writer.epoch = None;
                let ended = next.step & 1 == 0;
                next.writer.at = if ended { WriterAt::Read } else { WriterAt::EndStep };
                after.push(next);
            }
            WriterAt::EndStep => {
                next.step += 1;
                next.writer.at = WriterAt::Read;
                after.push(next);
            }
            WriterAt::Change => {
                self.page_store(state)?;
                if operation == Operation::Set && self.form == Form::Code {
                    next.step += 1;
                    next.writer.at = WriterAt::Finish;
                    after.push(next);
                } else {
                    after.push(end_of_operation(next, operation));
                }
            }
            WriterAt::Finish => {
                self.page_store(state)?;
                after.push(end_of_operation(next, operation));
            }
        }
        Ok(())
    }

    /// Reads E: each word may be anything from the view on. A structure change begins its step first.
    fn read_line(&self, state: &State, after: &mut Vec<State>) {
        let seen = state.writer.view;
        for flush in seen.flush..=state.flush {
            for generation in seen.generation..=state.generation {
                for lease in seen.lease..=state.lease {
                    let mut next = state.clone();
                    next.writer.view = View { flush, generation, lease, ..seen };
                    if lease == 1 {
                        // NB: a structure change has begun its step by then, and ends it: two counts.
                        next.step += if OPERATIONS[state.writer.op] == Operation::Structure { 2 } else { 0 };
                        next.writer.at = WriterAt::AwaitLease;
                    } else {
                        next.step += u8::from(OPERATIONS[state.writer.op] == Operation::Structure);
                        next.writer.epoch = Some((flush, generation));
                        next.writer.at = WriterAt::Publish;
                    }
                    after.push(next);
                }
            }
        }
    }

    fn publish(&self, state: &State, operation: Operation) -> Result<State, Broken> {
        let mut next = state.clone();
        if self.lease_at(state, &[LeaderAt::Wait, LeaderAt::Done]) {
            return Err("L: published under somebody's lease");
        }
        let view = state.writer.view.join(state.head.view);
        next.writer.view = View { step: 0, ..view };
        next.head.view = self.own_step(state, view);
        if operation == Operation::Set {
            next.head.position += 1;
            next.records.extend(state.writer.epoch);
        }
        next.writer.at = WriterAt::Change;
        Ok(next)
    }

    /// What others see of the step once they have read the head that the writer writes now.
    fn own_step(&self, state: &State, view: View) -> View {
        match self.form {
            Form::Note => View { step: 0, ..view },
            Form::Code => View { step: state.step, ..view },
        }
    }

    fn page_store(&self, state: &State) -> Result<(), Broken> {
        let (_, generation) = state.writer.epoch.unwrap_or_default();
        for (task, leader) in self.tasks.iter().zip(&state.leaders) {
            if *task == Task::Cut && leader.at == LeaderAt::Done && generation <= leader.old_generation {
                return Err("G: a page changed under the old generation after the cut");
            }
        }
        if self.lease_at(state, &[LeaderAt::Done]) {
            return Err("L: a page changed under somebody's lease");
        }
        Ok(())
    }

    fn lease_at(&self, state: &State, at: &[LeaderAt]) -> bool {
        let mut leaders = self.tasks.iter().zip(&state.leaders);
        leaders.any(|(task, leader)| *task == Task::Lease && at.contains(&leader.at))
    }

    fn leader(&self, state: &State, index: usize, after: &mut Vec<State>) {
        let task = self.tasks[index];
        let mut next = state.clone();
        let leader = &mut next.leaders[index];
        match (leader.at, task) {
            (LeaderAt::Start, Task::Cut) => {
                leader.at = LeaderAt::Bump;
                leader.old_generation = state.generation;
                next.generation += 1;
            }
            (LeaderAt::Start, Task::Lease) => {
                leader.at = LeaderAt::Freeze;
                next.lease = 1;
            }
            (LeaderAt::Start, Task::Flush) | (LeaderAt::Bump, _) => {
                leader.at = LeaderAt::Freeze;
                leader.old_flush = state.flush;
                next.flush += 1;
            }
            (LeaderAt::Freeze, _) => return self.freeze(state, index, after),
            (LeaderAt::Wait, _) => {
                let same_step = leader.step & 1 != 0 && leader.step == state.step;
                let over = state.applied >= leader.cut && !same_step;
                if !over && self.canary != Canary::NoWait {
                    return;
                }
                leader.at = LeaderAt::Done;
                leader.step = 0;
            }
            (LeaderAt::Done, Task::Lease) => {
                leader.at = LeaderAt::GivenBack;
                next.lease = 2;
            }
            (LeaderAt::Done | LeaderAt::GivenBack, _) => return,
        }
        after.push(next);
    }

    fn freeze(&self, state: &State, index: usize, after: &mut Vec<State>) {
        let mut frozen = state.clone();
        let leader = &mut frozen.leaders[index];
        leader.cut = state.head.position;
        let stored = match self.tasks[index] {
            Task::Flush => View { flush: leader.old_flush + 1, ..View::default() },
            Task::Cut => {
                let generation = leader.old_generation + 1;
                View { flush: leader.old_flush + 1, generation, ..View::default() }
            }
            Task::Lease => View { lease: 1, ..View::default() },
        };
        if self.canary != Canary::NoFreeze {
            frozen.head.frozen = true;
            frozen.head.view = state.head.view.join(stored);
        }
        if self.tasks[index] == Task::Flush {
            leader.at = LeaderAt::Done;
            after.push(frozen);
            return;
        }
        leader.at = LeaderAt::Wait;
        let oldest = if self.form == Form::Code { state.head.view.step } else { state.step };
        for step in oldest..=state.step {
            let mut next = frozen.clone();
            next.leaders[index].step = step;
            after.push(next);
        }
    }

    /// F: what a leader's cut leaves out carries a newer flush number.
    fn check(&self, state: &State) -> Result<(), Broken> {
        for (task, leader) in self.tasks.iter().zip(&state.leaders) {
            let cuts = *task != Task::Lease && matches!(leader.at, LeaderAt::Wait | LeaderAt::Done);
            let beyond = &state.records[usize::from(leader.cut).min(state.records.len())..];
            if cuts && beyond.iter().any(|(flush, _)| *flush <= leader.old_flush) {
                return Err("F: a record of the old flush beyond the cut");
            }
        }
        Ok(())
    }

    fn is_over(&self, state: &State) -> bool {
        let leaders = state.leaders.iter().zip(&self.tasks);
        state.writer.op == OPERATIONS.len()
            && leaders.into_iter().all(|(leader, task)| match task {
                Task::Lease => leader.at == LeaderAt::GivenBack,
                _ => leader.at == LeaderAt::Done,
            })
    }

    /// Visits every state. Answers how many there are, or the rule that one breaks.
    fn explore(&self) -> Result<usize, String> {
        let mut seen = HashSet::from([State::default()]);
        let mut open = vec![State::default()];
        while let Some(state) = open.pop() {
            let broken = |rule: Broken| format!("{rule}: {state:?}");
            self.check(&state).map_err(broken)?;
            let after = self.successors(&state).map_err(broken)?;
            if after.is_empty() && !self.is_over(&state) {
                return Err(broken("E: somebody waits for ever"));
            }
            for next in after {
                if seen.insert(next.clone()) {
                    open.push(next);
                }
            }
        }
        Ok(seen.len())
    }
}

fn end_of_operation(mut state: State, operation: Operation) -> State {
    state.step += state.step & 1;
    if operation == Operation::Set {
        state.applied = state.head.position;
    }
    state.writer = Writer { op: state.writer.op + 1, view: state.writer.view, ..Writer::default() };
    state
}

const PAIRS: [[Task; 2]; 4] = [
    [Task::Flush, Task::Cut],
    [Task::Flush, Task::Lease],
    [Task::Cut, Task::Lease],
    [Task::Flush, Task::Flush],
];

fn explore(tasks: [Task; 2], form: Form, canary: Canary) -> Result<usize, String> {
    Model { tasks, form, canary }.explore()
}

#[test]
fn the_note_s_model_has_its_states_and_no_other() {
    assert_eq!(explore([Task::Flush, Task::Cut], Form::Note, Canary::None), Ok(6845));
}

#[test]
fn the_code_keeps_all_rules_with_every_pair_of_leaders() {
    for tasks in PAIRS {
        let states = explore(tasks, Form::Code, Canary::None).unwrap();
        println!("{tasks:?}: {states} states");
        assert!(states > 1000, "{tasks:?}: only {states} states");
    }
}

#[test]
fn publishing_over_a_frozen_head_is_found() {
    for form in [Form::Note, Form::Code] {
        for tasks in PAIRS {
            assert!(explore(tasks, form, Canary::Ignore).is_err(), "{tasks:?} {form:?}");
        }
    }
}

#[test]
fn clearing_the_bit_without_acquiring_is_found() {
    for form in [Form::Note, Form::Code] {
        for tasks in PAIRS {
            assert!(explore(tasks, form, Canary::Relaxed).is_err(), "{tasks:?} {form:?}");
        }
    }
}

#[test]
fn reading_the_head_without_freezing_is_found() {
    for tasks in PAIRS {
        assert!(explore(tasks, Form::Code, Canary::NoFreeze).is_err(), "{tasks:?}");
    }
}

#[test]
fn not_waiting_is_found() {
    for (tasks, rule) in [([Task::Flush, Task::Cut], "G:"), ([Task::Flush, Task::Lease], "L:")] {
        let broken = explore(tasks, Form::Code, Canary::NoWait).unwrap_err();
        assert!(broken.starts_with(rule), "{broken}");
    }
}
