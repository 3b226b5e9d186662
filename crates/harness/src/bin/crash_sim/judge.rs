//! Is what came back what was promised? Compares a recovered database with what every session had tried, been told
//! and seen.
//!
//! Invariants checked
//! - Each session's keys are as after some number of its operations: a prefix.
//! - The prefix reaches what was promised to be on disk: what was acknowledged so, what had been acknowledged when
//!   a completed checkpoint began, what had been when a batch was begun that is durable.
//! - If an operation is there, so is what it saw; what it overwrote does not come back.

use perilune_shm::platform::monotonic_nanos;

use crate::history::{History, Seen};
use crate::operations::{self, Mark, State, CELLS, SESSIONS};
use crate::power_loss::Logged;

/// What is known of a run besides what the sessions tell.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    pub(crate) seed: u64,
    /// How many operations of each session were there before.
    pub(crate) begin: Vec<u64>,
    /// What was there before.
    pub(crate) before: State,
    pub(crate) histories: Vec<History>,
    /// When the last checkpoint began that was completed.
    pub(crate) checkpoint: Option<u64>,
    pub(crate) logged: Option<Logged>,
    /// All processes had closed the database.
    pub(crate) is_closed: bool,
    /// When the power failed: from then on nobody flushed.
    pub(crate) ended: u64,
}

/// What came back.
#[derive(Clone, Debug, Default)]
pub(crate) struct Verdict {
    /// How many operations of each session.
    pub(crate) counts: Vec<u64>,
    pub(crate) acknowledged: u64,
    /// Acknowledged operations that are gone, as the level allows.
    pub(crate) lost: u64,
    /// Nanoseconds by which the oldest of these had been acknowledged before the end.
    pub(crate) age: u64,
}

/// How many operations of a session may be there: from, to.
type Prefix = (u64, u64);

impl Facts {
    /// Compares `found` with what was promised.
    pub(crate) fn judge(&self, found: &State) -> Result<Verdict, String> {
        let prefixes: Vec<Prefix> =
            (0..SESSIONS).map(|session| self.prefix(session, found)).collect::<Result<_, _>>()?;
        let horizon = self.horizon();
        let mut verdict = Verdict::default();
        for (session, history) in self.histories.iter().enumerate() {
            let (_, there) = prefixes[session];
            for done in &history.done {
                verdict.acknowledged += 1;
                if done.number <= there {
                    continue;
                }
                let age = self.ended.saturating_sub(done.time);
                let why = match horizon {
                    _ if done.is_durable => "was acknowledged as durable",
                    Some((until, why)) if done.time <= until => why,
                    _ => {
                        verdict.lost += 1;
                        verdict.age = verdict.age.max(age);
                        continue;
                    }
                };
                let (number, age) = (done.number, age / 1_000);
                return Err(format!(
                    "session {session}: operation {number} {why}, {age} us before the end; {there} are there"
                ));
            }
        }
        self.check_causes(&prefixes)?;
        self.check_cells(&prefixes, found)?;
        if let Some(key) = found.keys().find(|key| !key.starts_with(b"p/") && !key.starts_with(b"c/")) {
            return Err(format!("nobody ever wrote {}", key.escape_ascii()));
        }
        verdict.counts = prefixes.iter().map(|(_, most)| *most).collect();
        Ok(verdict)
    }

    /// Until when what was acknowledged must be there, and why.
    fn horizon(&self) -> Option<(u64, &'static str)> {
        if self.is_closed {
            return Some((u64::MAX, "was there when all closed the database"));
        }
        let checkpoint = self.checkpoint.map(|until| (until, "was acknowledged before a checkpoint"));
        // A log counts from when somebody was promised one.
        let is_promised = |logged: &Logged| {
            let done = self.histories.iter().flat_map(|history| &history.done);
            done.filter(|done| done.is_logged).any(|done| (logged.since..=logged.until).contains(&done.time))
        };
        let logged = self.logged.filter(is_promised);
        let logged = logged.map(|logged| (logged.until, "was acknowledged before a durable batch was begun"));
        checkpoint.into_iter().chain(logged).max_by_key(|(until, _)| *until)
    }

    /// How many of a session's operations are there: the least and the greatest number after which its keys
    /// were as they are found.
    fn prefix(&self, session: usize, found: &State) -> Result<Prefix, String> {
        let found = operations::private_of(found, session);
        let mut private = operations::private_of(&self.before, session);
        let begin = self.begin[session];
        let tried = self.histories[session].tried.max(begin);
        let mut prefix: Option<Prefix> = None;
        let mut nearest = (usize::MAX, begin, String::new());
        for number in begin..=tried {
            if number > begin {
                let operation = operations::operation(self.seed, session, number, &private);
                operations::apply(&operation, session, &mut private);
            }
            if private == found {
                prefix = Some((prefix.map_or(number, |(least, _)| least), number));
            } else if prefix.is_none() {
                let (count, names) = difference(&private, &found);
                if count < nearest.0 {
                    nearest = (count, number, names);
                }
            }
        }
        prefix.ok_or_else(|| {
            let (_, number, names) = nearest;
            format!(
                "session {session}: its keys are as after none of its operations {begin} to {tried}; nearest \
                 is {number}, but {names}"
            )
        })
    }

    fn check_causes(&self, prefixes: &[Prefix]) -> Result<(), String> {
        for (session, history) in self.histories.iter().enumerate() {
            let seen = history.looked.iter().chain(&history.overwrote);
            for (number, (cell, mark)) in seen.filter(|(number, _)| *number <= prefixes[session].0) {
                is_there(prefixes, *mark).map_err(|why| {
                    format!("session {session}: operation {number} is there and saw cell {cell}: {why}")
                })?;
            }
        }
        Ok(())
    }

    fn check_cells(&self, prefixes: &[Prefix], found: &State) -> Result<(), String> {
        for cell in 0..CELLS {
            let value = found.get(&operations::cell_key(cell)).map(|value| &value[..]);
            let last = Mark::decode(value).ok_or(format!("cell {cell} holds {value:?}"))?;
            is_there(prefixes, last).map_err(|why| format!("cell {cell} is there: {why}"))?;
            for (session, history) in self.histories.iter().enumerate() {
                let is_of_cell =
                    |(number, (of, _)): &&(u64, Seen)| *of == cell && *number <= prefixes[session].0;
                for (number, (_, seen)) in history.overwrote.iter().filter(is_of_cell) {
                    if last.count <= seen.count {
                        return Err(format!(
                            "session {session}: operation {number} wrote cell {cell} over {seen:?}, which is \
                             followed by {last:?}"
                        ));
                    }
                }
            }
        }
        Ok(())
    }
}

fn is_there(prefixes: &[Prefix], mark: Mark) -> Result<(), String> {
    let Some(session) = (mark.session as usize).checked_sub(1) else { return Ok(()) };
    match prefixes.get(session) {
        Some((_, most)) if mark.number <= *most => Ok(()),
        Some((_, most)) => Err(format!("{mark:?} wrote it, of which only {most} are there")),
        None => Err(format!("{mark:?} wrote it, who does not exist")),
    }
}

/// In how many keys two states differ, and some of them.
fn difference(expected: &State, found: &State) -> (usize, String) {
    let keys: std::collections::BTreeSet<_> = expected.keys().chain(found.keys()).collect();
    let show = |value: Option<&Vec<u8>>| match value {
        None => "nothing".to_owned(),
        Some(value) => format!("{} bytes {:02x?}", value.len(), &value[..value.len().min(8)]),
    };
    let differing: Vec<_> = keys.into_iter().filter(|key| expected.get(*key) != found.get(*key)).collect();
    let names = differing.iter().take(4).map(|key| {
        format!("{} is {}, not {}", key.escape_ascii(), show(found.get(*key)), show(expected.get(*key)))
    });
    (differing.len(), names.collect::<Vec<_>>().join("; "))
}

/// Now, on the clock of all the journals.
pub(crate) fn now() -> u64 {
    monotonic_nanos()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::Done;

    /// One session that did operations 1 to 6, as it told.
    fn facts() -> (Facts, Vec<State>) {
        let mut facts = Facts { begin: vec![0; SESSIONS], ended: 100, ..Facts::default() };
        facts.histories = vec![History::default(); SESSIONS];
        let mut states = vec![State::new()];
        for number in 1..=6 {
            let mut state = states.last().unwrap().clone();
            operations::apply(&operations::operation(0, 0, number, &state), 0, &mut state);
            states.push(state);
            let done = Done { number, time: 10 * number, is_durable: number == 2, is_logged: true };
            facts.histories[0].done.push(done);
        }
        facts.histories[0].tried = 6;
        (facts, states)
    }

    #[test]
    fn a_prefix_is_fine_down_to_what_was_promised() {
        let (mut facts, states) = facts();
        let verdict = facts.judge(&states[4]).unwrap();
        assert_eq!((verdict.counts[0], verdict.acknowledged, verdict.lost, verdict.age), (4, 6, 2, 50));
        facts.judge(&states[2]).unwrap();
        assert!(facts.judge(&states[1]).unwrap_err().contains("operation 2 was acknowledged as durable"));
        facts.checkpoint = Some(35);
        facts.judge(&states[3]).unwrap();
        assert!(facts.judge(&states[2]).unwrap_err().contains("operation 3 was acknowledged before a check"));
        facts.logged = Some(Logged { since: 20, until: 50 });
        assert!(facts.judge(&states[4]).unwrap_err().contains("durable batch"));
        facts.logged = Some(Logged { since: 51, until: 59 });
        facts.judge(&states[4]).unwrap();
        facts.is_closed = true;
        assert!(facts.judge(&states[5]).unwrap_err().contains("operation 6 was there when all closed"));
    }

    #[test]
    fn what_is_no_prefix_is_found() {
        let (facts, mut states) = facts();
        states[6].insert(b"p/0/key99".to_vec(), b"no".to_vec());
        assert!(facts.judge(&states[6]).unwrap_err().contains("nearest is 6, but p/0/key99 is 2 bytes"));
        states[5].insert(b"q".to_vec(), b"no".to_vec());
        assert!(facts.judge(&states[5]).unwrap_err().contains("nobody ever wrote q"));
    }

    #[test]
    fn effects_without_causes_are_found() {
        let (mut facts, mut states) = facts();
        let mark = Mark { session: 2, number: 1, count: 3 };
        facts.histories[0].looked.push((4, (1, mark)));
        facts.judge(&states[3]).unwrap();
        assert!(facts.judge(&states[4]).unwrap_err().contains("operation 4 is there and saw cell 1"));
        facts.histories[0].looked.clear();
        let mine = Mark { session: 1, number: 3, count: 7 };
        states[4].insert(operations::cell_key(0), mine.encode().to_vec());
        facts.judge(&states[4]).unwrap();
        facts.histories[0].overwrote.push((4, (0, mine)));
        assert!(facts.judge(&states[4]).unwrap_err().contains("operation 4 wrote cell 0 over"));
        states[4].insert(operations::cell_key(0), Mark { number: 5, ..mine }.encode().to_vec());
        assert!(facts.judge(&states[4]).unwrap_err().contains("of which only 4 are there"));
    }
}
