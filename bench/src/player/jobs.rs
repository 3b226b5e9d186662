//! The player's jobs besides 3n+1 and traces: sets and gets of `cm(n)` in sequence and at random, and transfers
//! between accounts.

use crate::globals::{Globals, Path};
use crate::player::{Random, VALUE};
use crate::subject::Result;

/// What each account holds at first.
pub(crate) const BALANCE: i64 = 1_000;

/// What all values begin with, two bytes before their end.
const START: &[u8] = b"Chris Mu";
const NAME: &str = "cm";
const BANK: &str = "bank";

#[inline]
fn is_right(value: &[u8]) -> bool {
    value == VALUE || (value.len() == VALUE.len() && value.starts_with(START))
}

pub(super) fn set(globals: &mut dyn Globals, first: u64, count: u64) -> Result<u64> {
    let mut path = Path::number(NAME, 0);
    for number in first..first + count {
        path.turn(number);
        globals.set(&path, VALUE)?;
    }
    Ok(count)
}

pub(super) fn get(globals: &mut dyn Globals, first: u64, count: u64) -> Result<u64> {
    let (mut path, mut value, mut right) = (Path::number(NAME, 0), Vec::new(), 0);
    for number in first..first + count {
        path.turn(number);
        globals.get(&path, &mut value)?;
        right += u64::from(is_right(&value));
    }
    Ok(right)
}

pub(super) fn random_set(globals: &mut dyn Globals, count: u64, seed: u64, keys: u64) -> Result<u64> {
    let (mut path, mut random) = (Path::number(NAME, 0), Random::new(seed));
    // Another value each time: some peers write nothing where the new value is the old one.
    let mut value = VALUE.to_vec();
    for turn in seed..seed + count {
        path.turn(random.upto(keys));
        let digits = (turn % 100) as u8;
        value[START.len()..].copy_from_slice(&[b'0' + digits / 10, b'0' + digits % 10]);
        globals.set(&path, &value)?;
    }
    Ok(count)
}

pub(super) fn random_get(globals: &mut dyn Globals, count: u64, seed: u64, keys: u64) -> Result<u64> {
    let (mut path, mut random) = (Path::number(NAME, 0), Random::new(seed));
    let (mut value, mut right) = (Vec::new(), 0);
    for _ in 0..count {
        path.turn(random.upto(keys));
        globals.get(&path, &mut value)?;
        right += u64::from(is_right(&value));
    }
    Ok(right)
}

pub(super) fn batch_set(globals: &mut dyn Globals, first: u64, count: u64, per: u64) -> Result<u64> {
    let mut done = 0;
    while done < count {
        let end = first + (done + per.max(1)).min(count);
        let paths: Vec<Path> = (first + done..end).map(|number| Path::number(NAME, number)).collect();
        globals.set_all(&paths, VALUE)?;
        done = end - first;
    }
    Ok(count)
}

fn pair(first: u64, second: u64) -> [Path; 2] {
    [Path::number(BANK, first), Path::number(BANK, second)]
}

pub(super) fn accounts(globals: &mut dyn Globals, count: u64) -> Result<u64> {
    for number in (1..=count).step_by(2) {
        globals.update_pair(&pair(number, number + 1), &mut |_| [Some(BALANCE), Some(BALANCE)])?;
    }
    Ok(count)
}

pub(super) fn bank(globals: &mut dyn Globals, count: u64) -> Result<u64> {
    let mut sum = 0;
    for number in (1..=count).step_by(2) {
        let mut found = 0;
        globals.update_pair(&pair(number, number + 1), &mut |now| {
            found = now[0].unwrap_or(0) + now[1].unwrap_or(0);
            [None, None]
        })?;
        sum += found;
    }
    Ok(sum as u64)
}

pub(super) fn transfer(globals: &mut dyn Globals, count: u64, seed: u64, accounts: u64) -> Result<u64> {
    let (mut random, mut paths) = (Random::new(seed), pair(1, 2));
    for _ in 0..count {
        let from = random.upto(accounts);
        // One to accounts - 1 places further: another one.
        let to = (from - 1 + random.upto(accounts - 1)) % accounts + 1;
        paths[0].turn(from);
        paths[1].turn(to);
        let mut complete = true;
        globals.update_pair(&paths, &mut |now| match now {
            [Some(from), Some(to)] => [Some(from - 1), Some(to + 1)],
            _ => {
                complete = false;
                [None, None]
            }
        })?;
        if !complete {
            return Err("an account is missing".into());
        }
    }
    Ok(count)
}
