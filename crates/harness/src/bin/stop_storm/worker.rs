//! What a worker does: mostly transfers, and some of everything else that may wait for a page.

use std::time::Duration;

use perilune_engine::{Database, OpenOptions, Session};
use perilune_harness::bank::{Bank, Random};
use perilune_store::{
    transact, Decision, Error, LockMode, LockRequest, Locks, Result, Session as _, Store, TransactionOptions,
};

use crate::progress::Progress;
use crate::storm::{Plan, LIMIT};

/// Banks, each in leaves of its own, and accounts of each.
pub(crate) const BANKS: usize = 8;
const ACCOUNTS: u64 = 40;

/// Of 10,000 operations so many are checkpoints, which take long; up to here they are snapshots, and up to there locks.
const CHECKPOINTS: u64 = 1;
const SNAPSHOTS: u64 = 4;
const LOCKS: u64 = 100;

pub(crate) fn bank(number: usize) -> Bank {
    Bank::new(format!("bank{number}\0").as_bytes(), ACCOUNTS, 1_000)
}

pub(crate) fn options(plan: &Plan, limit: Duration) -> OpenOptions {
    OpenOptions { max_size: 1 << 30, wait_limit: limit, wake_stopped: plan.wakes, ..OpenOptions::default() }
}

/// Works until the storm is over.
pub(crate) fn run(plan: &Plan, number: usize) -> std::result::Result<(), String> {
    let limit = if plan.canary { Duration::from_secs(100_000) } else { LIMIT };
    let progress = Progress::open(&plan.progress(), plan.processes).map_err(|error| error.to_string())?;
    let database =
        Database::open(&plan.database(), &options(plan, limit)).map_err(|error| error.to_string())?;
    let mut session = database.session().map_err(|error| error.to_string())?;
    let mut random = Random::new(plan.seed ^ (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    while !progress.is_over() {
        let kind = random.below(10_000);
        // A cut looks whether it can be made, and then is: two waits; a checkpoint takes its time.
        let waits = if kind < SNAPSHOTS { 4 } else { 1 };
        progress.begin(number, LIMIT.as_nanos() as u64 * waits);
        let result = match kind {
            0..CHECKPOINTS => database.checkpoint().map(drop),
            CHECKPOINTS..SNAPSHOTS => {
                database.snapshot().and_then(|mut session| session.get(b"bank0", &mut Vec::new())).map(drop)
            }
            SNAPSHOTS..LOCKS => lock(&mut session),
            _ => work(&mut session, &mut random, limit, kind / 100),
        };
        progress.end(number, result.is_err());
        match result {
            Ok(()) => {}
            Err(Error::Busy { holder: Some(_), .. } | Error::TransactionTimeout { .. }) => {}
            // Others may be faster for as long as this one was stopped.
            Err(Error::Busy { holder: None, .. }) => {}
            Err(error) => return Err(error.to_string()),
        }
    }
    Ok(())
}

fn work(session: &mut Session, random: &mut Random, limit: Duration, kind: u64) -> Result<()> {
    let number = random.below(BANKS as u64) as usize;
    let key = |random: &mut Random| format!("free{number}\0{:03}", random.below(200)).into_bytes();
    let options = TransactionOptions { timeout: limit, ..TransactionOptions::default() };
    match kind {
        0..60 => bank(number).transfer_within(session, random, &options),
        60..70 => session.get(&key(random), &mut Vec::new()).map(drop),
        70..80 => session.set(&key(random), &vec![7; random.below(300) as usize]),
        80..85 => session.update(&key(random), &mut |_, buffer| {
            buffer[0] = 1;
            Ok(Decision::Write(1))
        }),
        85..90 => {
            let (from, mut found) = (key(random), Vec::new());
            session.next(&from, false, &mut found, None).map(drop)
        }
        90..95 => session.remove(&key(random)).map(drop),
        95..97 => {
            transact(session, &options, |session| session.remove_prefix(format!("free{number}\0").as_bytes()))
        }
        _ => {
            let keys: Vec<Vec<u8>> = (0..4).map(|_| key(random)).collect();
            transact(session, &options, |session| {
                keys.iter().try_for_each(|key| session.set(key, b"several"))
            })
        }
    }
}

fn lock(session: &mut Session) -> Result<()> {
    let owner = session.new_lock_owner();
    let request = [LockRequest { name: b"lock", ancestors: &[], mode: LockMode::Exclusive }];
    if session.lock(owner, &request, Some(Duration::ZERO))? {
        // One that cannot be released now is by the next call, of this owner there is none: it goes with the process.
        session.unlock(owner, b"lock")?;
    }
    Ok(())
}
