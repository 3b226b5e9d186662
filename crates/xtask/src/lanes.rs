//! Runs stages two at a time.
//!
//! Many stages keep one core busy at most: kill-step traces one process, a storm waits, a linker links. Two of them beside
//! each other take about half the time of a run on two cores, which is what the project promises to need.
//!
//! Stages start in the order of their list, but for those that wait for another one ([`Place::After`]): these let the next
//! pass. Where a stage needs the machine for itself ([`Place::Alone`]), nobody passes it.
//!
//! Invariants: at most [`LANES`] stages run, one if it is alone; each runs once; a stage that waits for one which is not in
//! the list waits for nobody.

use std::sync::{Condvar, Mutex, PoisonError};

use crate::stages::{Place, Stage};

/// How many stages run at a time.
const LANES: usize = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waiting,
    Running,
    Ended,
}

/// Runs all stages; what they came to, in the order in which they ended.
pub(crate) fn run<T: Send>(stages: &[&Stage], act: impl Fn(&Stage) -> T + Sync) -> Vec<T> {
    let states = Mutex::new(vec![State::Waiting; stages.len()]);
    let (changed, results) = (Condvar::new(), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..LANES {
            scope.spawn(|| {
                let mut guard = states.lock().unwrap_or_else(PoisonError::into_inner);
                while guard.contains(&State::Waiting) {
                    let Some(at) = next(stages, &guard) else {
                        guard = changed.wait(guard).unwrap_or_else(PoisonError::into_inner);
                        continue;
                    };
                    guard[at] = State::Running;
                    drop(guard);
                    let ends = Ends { states: &states, at, changed: &changed };
                    let result = act(stages[at]);
                    results.lock().unwrap_or_else(PoisonError::into_inner).push(result);
                    drop(ends);
                    guard = states.lock().unwrap_or_else(PoisonError::into_inner);
                }
            });
        }
    });
    results.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Says that a stage has ended when it is dropped, by a panic too: the other lane waits for it.
struct Ends<'a> {
    states: &'a Mutex<Vec<State>>,
    at: usize,
    changed: &'a Condvar,
}

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)[self.at] = State::Ended;
        self.changed.notify_all();
    }
}

/// The stage that may start now.
fn next(stages: &[&Stage], states: &[State]) -> Option<usize> {
    let running = |at: usize| states[at] == State::Running;
    let is_idle = !(0..stages.len()).any(running);
    if (0..stages.len()).any(|at| running(at) && stages[at].place == Place::Alone) {
        return None;
    }
    let has_ended =
        |name: &str| (0..stages.len()).all(|at| stages[at].name != name || states[at] == State::Ended);
    for at in (0..stages.len()).filter(|at| states[*at] == State::Waiting) {
        match stages[at].place {
            Place::Alone => return is_idle.then_some(at),
            Place::After(name) if !has_ended(name) => {}
            Place::After(_) | Place::Beside => return Some(at),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stages::{Kind, STAGES};
    use State::{Ended, Running, Waiting};

    fn stage(name: &'static str, place: Place) -> Stage {
        Stage { name, kind: Kind::Check, place, seconds_max: 1, variables: &[], commands: &[] }
    }

    #[test]
    fn a_stage_alone_is_passed_by_nobody() {
        let stages = [
            stage("a", Place::Alone),
            stage("b", Place::Beside),
            stage("c", Place::Alone),
            stage("d", Place::Beside),
        ];
        let stages: Vec<&Stage> = stages.iter().collect();
        assert_eq!(next(&stages, &[Waiting; 4]), Some(0));
        assert_eq!(next(&stages, &[Running, Waiting, Waiting, Waiting]), None);
        assert_eq!(next(&stages, &[Ended, Running, Waiting, Waiting]), None);
        assert_eq!(next(&stages, &[Ended, Ended, Waiting, Waiting]), Some(2));
    }

    #[test]
    fn a_stage_that_waits_lets_the_next_pass() {
        let stages =
            [stage("a", Place::Beside), stage("b", Place::After("a")), stage("c", Place::After("not there"))];
        let stages: Vec<&Stage> = stages.iter().collect();
        assert_eq!(next(&stages, &[Running, Waiting, Waiting]), Some(2));
        assert_eq!(next(&stages, &[Running, Waiting, Running]), None);
        assert_eq!(next(&stages, &[Ended, Waiting, Running]), Some(1));
    }

    #[test]
    fn each_stage_runs_once_and_two_at_a_time() {
        let (running, most) = (Mutex::new(0), Mutex::new(0));
        let all: Vec<&Stage> = STAGES.iter().collect();
        let ran = run(&all, |stage| {
            let now = {
                let mut running = running.lock().unwrap();
                *running += 1;
                *running
            };
            let mut most = most.lock().unwrap();
            *most = now.max(*most);
            drop(most);
            assert!(now <= if stage.place == Place::Alone { 1 } else { LANES });
            *running.lock().unwrap() -= 1;
            stage.name
        });
        let (mut ran, mut names) = (ran, STAGES.iter().map(|stage| stage.name).collect::<Vec<_>>());
        ran.sort_unstable();
        names.sort_unstable();
        assert_eq!(ran, names);
        assert!(*most.lock().unwrap() >= 1);
    }
}
