//! Killing the repairer, and the repairer's repairer.
//!
//! An operation is killed in each of its stages: just after what its session notes has changed (latches, pages, the
//! record, saved bytes, the step's phase). A second party repairs what is left, one instruction at a time, and
//! after each a survivor looks at the files as if both were dead. Then the second party is killed in each of *its*
//! stages, a third repairs after both, and the survivor looks again after each instruction.
//!
//! Whatever the operation's death has decided, no death of a repairer may change.

use perilune_store::Result;

use crate::cases::{self, Case};
use crate::run_case::{broken, states, watch, Pace, Report, Survivor};
use crate::setup::{Plan, Setup, ACTOR};
use crate::tracee::{Step, Tracee};

/// The party that repairs the actor, and the one that repairs both.
const REPAIRERS: [u16; 2] = [1, 2];

/// The cases whose repair is killed.
const REPAIRED: &[&str] = &[
    "set-new",
    "compact-replace",
    "volatile-set",
    "leaf-split-middle",
    "root-split-leaf",
    "merge",
    "lower-root-to-leaf",
    "first-touch-leaf-root",
    "first-touch-update",
    "long-replaces-older",
    "long-removed",
    "transaction-leaves",
    "transaction-mixed",
    "remove-prefix",
];
/// Those whose repair's repair is.
const REPAIRED_TWICE: &[&str] = &["set-new", "lower-root-to-leaf", "transaction-mixed"];
/// Stages of an operation that are killed; those of longer ones are thinned out.
const STAGES_MAX: usize = 12;
/// Stages of an operation that are killed where not every instruction is.
const STAGES_QUICK: usize = 4;
/// Stages of a repairer that are.
const REPAIR_STAGES_MAX: usize = 3;

const ONCE: &str = "repair-of-";
const TWICE: &str = "repair-of-repair-of-";

/// The names of all cases here.
pub(crate) fn names() -> impl Iterator<Item = String> {
    let once = REPAIRED.iter().map(|name| format!("{ONCE}{name}"));
    once.chain(REPAIRED_TWICE.iter().map(|name| format!("{TWICE}{name}")))
}

/// Runs one case.
pub(crate) fn run(name: &str, pace: &Pace) -> Report {
    let (base, twice) = match name.strip_prefix(TWICE) {
        Some(base) => (base, true),
        None => (name.strip_prefix(ONCE).unwrap_or(name), false),
    };
    Report::of(|report| {
        let case = cases::all().find(|case| case.name == base).expect("the case exists");
        let most = if pace.every > 1 { STAGES_QUICK } else { STAGES_MAX };
        for stage in thin(stages(case, &[])?, most) {
            if twice {
                for second in thin(stages(case, &[stage])?, REPAIR_STAGES_MAX) {
                    repair(case, &[stage, second], pace, report)?;
                }
            } else {
                repair(case, &[stage], pace, report)?;
            }
        }
        Ok(())
    })
}

fn thin(stages: Vec<u64>, most: usize) -> Vec<u64> {
    let every = stages.len().div_ceil(most).max(1);
    // From the end: there is the most to be repaired.
    stages.into_iter().rev().step_by(every).collect()
}

/// A setup on which the operation was killed after so many instructions, and then one repairer after the other.
fn killed(case: &Case, deaths: &[u64]) -> Result<(Setup, Plan)> {
    let mut setup = Setup::new()?;
    let plan = (case.build)(&mut setup)?;
    for (number, stages) in deaths.iter().enumerate() {
        let mut child = start(&setup, &plan, number)?;
        for _ in 0..*stages {
            if !next_stage(&setup, &mut child)? {
                return Err(perilune_store::Error::Internal("it does not take the same way twice".into()));
            }
        }
    }
    Ok((setup, plan))
}

/// The operation (0), its repairer (1), or the repairer's repairer.
fn start(setup: &Setup, plan: &Plan, number: usize) -> Result<Tracee> {
    let Some(repairer) = number.checked_sub(1) else {
        let child = Tracee::start(|| (plan.act)(&setup.actor).expect("the operation succeeds"));
        return child.map_err(broken);
    };
    let dead: Vec<u16> = std::iter::once(ACTOR).chain(REPAIRERS[..repairer].iter().copied()).collect();
    let party = setup.place.join(REPAIRERS[repairer], &dead)?;
    let child = Tracee::start(|| {
        for dead in &dead {
            party.repair(*dead).expect("repair succeeds");
        }
    });
    child.map_err(broken)
}

/// Lets a child go on until what the actor's session notes has changed; false when it is over.
fn next_stage(setup: &Setup, child: &mut Tracee) -> Result<bool> {
    let before = setup.actor.signature(ACTOR);
    loop {
        match child.step().map_err(broken)? {
            Step::Instruction if setup.actor.signature(ACTOR) != before => return Ok(true),
            Step::Instruction => {}
            Step::Over => return Ok(false),
            Step::Broken(status) => {
                return Err(perilune_store::Error::Internal(format!("the child broke: {status}")))
            }
        }
    }
}

/// The stages of the one who comes after `deaths`.
fn stages(case: &Case, deaths: &[u64]) -> Result<Vec<u64>> {
    let (setup, plan) = killed(case, deaths)?;
    let mut child = start(&setup, &plan, deaths.len())?;
    let mut count = 0;
    while next_stage(&setup, &mut child)? {
        count += 1;
    }
    Ok((1..=count).collect())
}

/// Repairs after `deaths` and looks after each instruction.
fn repair(case: &Case, deaths: &[u64], pace: &Pace, report: &mut Report) -> Result<()> {
    let (setup, plan) = killed(case, deaths)?;
    let dead: Vec<u16> = std::iter::once(ACTOR).chain(REPAIRERS[..deaths.len()].iter().copied()).collect();
    let mut all = states(&setup, &plan);
    let mut first = Survivor::new(&setup, &dead, all.clone())?;
    let place = match first.look() {
        Ok(decided) => all.swap_remove(decided),
        Err(problem) => {
            report.problem(format!("killed after {deaths:?}: {problem}"));
            return Ok(());
        }
    };
    let mut survivor = Survivor::new(&setup, &dead, vec![place])?;
    let mut child = start(&setup, &plan, deaths.len())?;
    let mut part = Report::default();
    watch(&mut child, setup.directory(), &mut survivor, pace, case.name, &mut part);
    part.problems.iter_mut().for_each(|problem| *problem = format!("{problem} (deaths before: {deaths:?})"));
    report.add(part);
    Ok(())
}
