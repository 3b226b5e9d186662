//! Runs one case: lets the child do an instruction, looks at the files as survivors would, and compares what is
//! found with the states that are allowed; until the operation is over.

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::Path;

use perilune_engine::instrument::{Party, Tree};
use perilune_store::Result;

use crate::cases::Case;
use crate::setup::{Content, Plan, Setup, Write, ACTOR, WITNESS};
use crate::stores::Stores;
use crate::tracee::{self, Step, Tracee};

/// Of the looks, one in so many also writes.
const WRITE_EVERY: u64 = 16;
/// Problems told of one case.
const PROBLEMS_MAX: usize = 4;
/// From one look to the next it takes less, even on a busy machine.
pub(crate) const SECONDS_MAX: u32 = 300;

/// How many kill points are tried.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// One in so many instructions.
    pub(crate) every: u64,
    /// Where to begin counting, together with the case's name.
    pub(crate) seed: u64,
}

impl Pace {
    /// Which of so many is tried first.
    pub(crate) fn phase(&self, name: &str) -> u64 {
        let hash = name
            .bytes()
            .fold(self.seed, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        (hash ^ hash >> 32) % self.every
    }
}

/// What has come of a case.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) instructions: u64,
    pub(crate) points: u64,
    /// Points whose memory is not that of the point before.
    pub(crate) looks: u64,
    pub(crate) failed: u64,
    /// The first problems, in words.
    pub(crate) problems: Vec<String>,
}

impl Report {
    pub(crate) fn problem(&mut self, problem: String) {
        self.failed += 1;
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(problem);
        }
    }

    /// Takes up what has come of a part.
    pub(crate) fn add(&mut self, part: Report) {
        self.instructions += part.instructions;
        self.points += part.points;
        self.looks += part.looks;
        self.failed += part.failed;
        self.problems.extend(part.problems);
        self.problems.truncate(PROBLEMS_MAX);
    }

    /// The report of `body`, which runs in a process of its own.
    pub(crate) fn of(body: impl FnOnce(&mut Report) -> Result<()>) -> Report {
        let text = tracee::apart(|| {
            let mut report = Report::default();
            tracee::expect_progress(SECONDS_MAX);
            match catch_unwind(AssertUnwindSafe(|| body(&mut report))) {
                Ok(Ok(())) => {}
                Ok(Err(error)) => report.problem(format!("the case cannot be played: {error}")),
                Err(panic) => report.problem(format!("the case cannot be played: {}", words(&*panic))),
            }
            report.to_text()
        });
        let read = text.and_then(|text| Report::from_text(&text).ok_or(format!("not a report: {text}")));
        read.unwrap_or_else(|problem| Report { failed: 1, problems: vec![problem], ..Report::default() })
    }

    fn to_text(&self) -> String {
        let problems = self.problems.iter().map(|problem| problem.replace('\n', " "));
        let numbers = format!("{} {} {} {}", self.instructions, self.points, self.looks, self.failed);
        std::iter::once(numbers).chain(problems).collect::<Vec<_>>().join("\n")
    }

    fn from_text(text: &str) -> Option<Report> {
        let mut lines = text.lines();
        let mut numbers = lines.next()?.split(' ').map_while(|number| number.parse().ok());
        let mut number = || numbers.next();
        let (instructions, points, looks, failed) = (number()?, number()?, number()?, number()?);
        Some(Report { instructions, points, looks, failed, problems: lines.map(str::to_owned).collect() })
    }
}

/// The state of a place as its survivors find it.
pub(crate) struct Survivor {
    party: Party,
    dead: Vec<u16>,
    states: Vec<Content>,
    /// The last state found: later looks find no earlier one.
    reached: usize,
    looks: u64,
}

impl Survivor {
    pub(crate) fn new(setup: &Setup, dead: &[u16], states: Vec<Content>) -> Result<Survivor> {
        let party = setup.place.watch(WITNESS, dead)?;
        Ok(Survivor { party, dead: dead.to_vec(), states, reached: 0, looks: 0 })
    }

    /// Looks at the place as if those who are to be dead had just died; answers which state it is.
    pub(crate) fn look(&mut self) -> std::result::Result<usize, String> {
        tracee::expect_progress(SECONDS_MAX);
        self.looks += 1;
        match catch_unwind(AssertUnwindSafe(|| self.find())) {
            Ok(found) => found,
            Err(panic) => Err(format!("panic: {}", words(&*panic))),
        }
    }

    fn find(&mut self) -> std::result::Result<usize, String> {
        let told = |what: &'static str| move |error| format!("{what}: {error}");
        self.party.forget().map_err(told("forget"))?;
        for dead in &self.dead {
            self.party.repair(*dead).map_err(told("repair"))?;
        }
        self.party.verify().map_err(told("verify"))?;
        let found = self.state().map_err(told("read"))?;
        self.reached = found;
        if self.looks.is_multiple_of(WRITE_EVERY) {
            self.write().map_err(told("write"))?;
        }
        Ok(found)
    }

    fn state(&self) -> Result<usize> {
        for (index, state) in self.states.iter().enumerate().skip(self.reached) {
            if state.is_seen_by(&self.party)? {
                return Ok(index);
            }
        }
        let seen = Content::seen_by(&self.party)?;
        let earlier = self.states.iter().position(|state| *state == seen);
        Err(perilune_store::Error::Internal(match earlier {
            Some(index) => format!("state {index} after state {} had been reached", self.reached),
            None => {
                let odd: Vec<_> = self.states.iter().map(|state| differences(&seen, state)).collect();
                format!("{} records, neither the old nor a new state: {}", seen.count(), odd.join("; "))
            }
        }))
    }

    /// Another session can write: over a value there is, and one more.
    fn write(&self) -> Result<()> {
        let old = self.states[self.reached].any();
        if let Some((key, value)) = old {
            self.party.set(Tree::Main, key, value)?;
        }
        self.party.set(Tree::Main, b"\x01witness", b"saw it")?;
        self.party.verify()
    }
}

/// What distinguishes two states, in short.
fn differences(seen: &Content, state: &Content) -> String {
    let mut names = Vec::new();
    for Write { key, value, .. } in seen.changes_to(state).iter().take(3) {
        let len = value.as_ref().map(Vec::len);
        names.push(format!("`{}` should be {len:?} bytes", key.escape_ascii()));
    }
    names.join(", ")
}

fn words(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default()
}

/// The states that a plan may lead through.
pub(crate) fn states(setup: &Setup, plan: &Plan) -> Vec<Content> {
    let mut states = vec![setup.content.clone()];
    for stage in &plan.stages {
        let mut next = states[states.len() - 1].clone();
        stage.iter().for_each(|write| next.apply(write));
        states.push(next);
    }
    states
}

/// Runs a case at the given pace.
pub(crate) fn run(case: &Case, pace: &Pace) -> Report {
    Report::of(|report| act(case, pace, report))
}

fn act(case: &Case, pace: &Pace, report: &mut Report) -> Result<()> {
    let mut setup = Setup::new()?;
    let plan = (case.build)(&mut setup)?;
    let states = states(&setup, &plan);
    let before = setup.actor.shape()?;
    let mut survivor = Survivor::new(&setup, &[ACTOR], states)?;
    let child = Tracee::start(|| (plan.act)(&setup.actor).expect("the operation succeeds"));
    watch(&mut child.map_err(broken)?, setup.directory(), &mut survivor, pace, case.name, report);
    let after = setup.actor.shape()?;
    let wanted = survivor.states.len() - 1;
    if !survivor.states[wanted].is_seen_by(&setup.actor)? {
        report.problem("the operation has not done what it should".to_owned());
    }
    if !(plan.took)(&before, &after) {
        report.problem(format!("the operation took another way: {before:?} {after:?}"));
    }
    Ok(())
}

pub(crate) fn broken(error: std::io::Error) -> perilune_store::Error {
    perilune_store::Error::Internal(format!("tracing: {error}"))
}

/// Steps the child to its end. After each step that the pace names a kill is tried: the survivor looks if
/// the shared memory may have changed since its last look; else what it would find is known.
pub(crate) fn watch(
    child: &mut Tracee,
    directory: &Path,
    survivor: &mut Survivor,
    pace: &Pace,
    name: &str,
    report: &mut Report,
) {
    let tracing = |error| format!("tracing: {error}");
    let phase = pace.phase(name);
    let mut stores = match Stores::new(child, Some(directory)) {
        Ok(stores) => stores,
        Err(error) => return report.problem(tracing(error)),
    };
    loop {
        let step = match stores.before(child).and_then(|()| child.step()) {
            Ok(step) => step,
            Err(error) => return report.problem(tracing(error)),
        };
        if let Step::Broken(status) = step {
            return report.problem(format!("instruction {}: the child broke: {status}", report.instructions));
        }
        report.instructions += 1;
        if step == Step::Over || report.instructions % pace.every == phase {
            report.points += 1;
            match stores.after().and_then(|()| stores.take_changed()) {
                Ok(true) => look(child, survivor, report),
                Ok(false) => {}
                Err(error) => return report.problem(tracing(error)),
            }
        }
        if step == Step::Over {
            return;
        }
    }
}

fn look(child: &Tracee, survivor: &mut Survivor, report: &mut Report) {
    report.looks += 1;
    if let Err(problem) = survivor.look() {
        report.problem(format!(
            "killed after instruction {} at {:#x}: {problem}",
            report.instructions,
            child.address().wrapping_sub(run as *const () as u64)
        ));
    }
}
