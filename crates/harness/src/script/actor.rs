//! The commands of a script, run in one session.
//!
//! A key is written `list/1/2`: each part's text and a zero byte, so `list` is a prefix of all below.
//! Values are words. The commands:
//!
//! | command | answer |
//! |---|---|
//! | `begin`, `begin read_only`, `commit`, `rollback`, `validate`, `retry` | `ok` |
//! | `depth`, `restarts` | the number |
//! | `get K` | the value, or `none` |
//! | `presence K` | `none`, `value`, `descendants`, `both` |
//! | `next K`, `at K` (inclusive), `previous K` | `key = value`, or `none` |
//! | `after K`: the first key after all below K | `key = value`, or `none` |
//! | `scan K`: all below K, by next | `key=value key=value`, or `none` |
//! | `set K V`, `kill_tree K`, `add K N` (an update) | `ok` |
//! | `remove K`, `cas K OLD NEW` (`-` for none) | `true` or `false` |
//! | `lock K exclusive`, `lock K shared`, with `now`: one attempt | `granted` or `refused` |
//! | `unlock K` | `true` or `false` |
//! | `run BODY` | see below |
//!
//! `run` runs a transaction by the runner, until it commits. Its body is commands separated by `;`, with
//! nested levels in `{` and `}`, `restart N` (asks to run again until it has been N times) and `fail` (ends
//! the level with an error). Answer: the answers of every run, separated by ` | `, and what became of it.

use std::time::Duration;

use perilune_store::{
    transact, Decision, Error, LockMode, LockOwner, LockRequest, Locks, Presence, Result, Session,
    TransactionOptions,
};

/// A wait for a lock ends after this time, so that a wrong script ends at all.
const LOCK_WAIT: Duration = Duration::from_secs(50);

/// A session that understands the commands.
pub(super) struct Actor<S> {
    session: S,
    owner: LockOwner,
}

impl<S: Session + Locks> Actor<S> {
    pub(super) fn new(mut session: S) -> Self {
        let owner = session.new_lock_owner();
        Actor { session, owner }
    }

    /// Runs a command and says in one line what it answers.
    pub(super) fn run(&mut self, step: &str) -> String {
        let result = match step.strip_prefix("run ") {
            Some(body) => self.transaction(body),
            None => command(&mut self.session, self.owner, step),
        };
        result.unwrap_or_else(|error| name(&error))
    }

    fn transaction(&mut self, body: &str) -> Result<String> {
        let owner = self.owner;
        let body = parse(&mut tokens(body).into_iter());
        let mut runs: Vec<Vec<String>> = Vec::new();
        let result = transact(&mut self.session, &TransactionOptions::default(), |session| {
            runs.push(Vec::new());
            level(session, owner, &body, runs.last_mut().expect("this run was just pushed"))
        });
        let end = result.map_or_else(|error| name(&error), |()| "committed".to_string());
        let runs: Vec<String> = runs.iter().map(|run| run.join("; ")).collect();
        Ok(format!("{} : {end}", runs.join(" | ")))
    }
}

/// A piece of a transaction's body.
enum Part<'a> {
    Command(&'a str),
    Level(Vec<Part<'a>>),
}

/// The commands of a body, and `{` and `}`.
fn tokens(body: &str) -> Vec<&str> {
    body.split_inclusive([';', '{', '}'])
        .flat_map(|piece| match piece.char_indices().next_back() {
            Some((at, ';')) => [&piece[..at], ""],
            Some((at, '{' | '}')) => [&piece[..at], &piece[at..]],
            _ => [piece, ""],
        })
        .map(str::trim)
        .filter(|token| !token.is_empty())
        .collect()
}

/// The parts up to the end of this level.
fn parse<'a>(tokens: &mut std::vec::IntoIter<&'a str>) -> Vec<Part<'a>> {
    let mut parts = Vec::new();
    while let Some(token) = tokens.next().filter(|token| *token != "}") {
        parts.push(if token == "{" { Part::Level(parse(tokens)) } else { Part::Command(token) });
    }
    parts
}

/// Runs one level's parts; an error of a nested level, but for a retry, ends that level only.
fn level<S: Session + Locks>(
    session: &mut S,
    owner: LockOwner,
    parts: &[Part<'_>],
    log: &mut Vec<String>,
) -> Result<()> {
    for part in parts {
        let answer = match part {
            Part::Command(command) => inside(session, owner, command),
            Part::Level(parts) => {
                let options = TransactionOptions::default();
                match transact(session, &options, |session| level(session, owner, parts, log)) {
                    Err(error) if error.is_retry() => return Err(error),
                    _ => continue,
                }
            }
        };
        match answer {
            Ok(answer) => log.push(answer),
            Err(error) => {
                log.push(name(&error));
                return Err(error);
            }
        }
    }
    Ok(())
}

/// A command inside a transaction that the runner runs.
fn inside<S: Session + Locks>(session: &mut S, owner: LockOwner, step: &str) -> Result<String> {
    match step.split_once(' ') {
        Some(("restart", times)) if i64::from(session.restarts()) < number(times)? => Err(Error::Restart),
        Some(("restart", _)) => Ok("ok".to_string()),
        None if step == "fail" => Err(Error::Refused("as told".to_string())),
        _ => command(session, owner, step),
    }
}

fn command<S: Session + Locks>(session: &mut S, owner: LockOwner, step: &str) -> Result<String> {
    let words: Vec<&str> = step.split_whitespace().collect();
    let done = |result: Result<()>| result.map(|()| "ok".to_string());
    match words[..] {
        ["begin"] => done(session.begin(&TransactionOptions::default())),
        ["begin", "read_only"] => {
            done(session.begin(&TransactionOptions { read_only: true, ..TransactionOptions::default() }))
        }
        ["commit"] => done(session.commit()),
        ["rollback"] => done(session.rollback()),
        ["validate"] => done(session.validate()),
        ["retry"] => done(session.retry()),
        ["depth"] => Ok(session.depth().to_string()),
        ["restarts"] => Ok(session.restarts().to_string()),
        ["set", k, v] => done(session.set(&key(k), v.as_bytes())),
        ["kill_tree", k] => done(session.remove_prefix(&key(k))),
        ["add", k, n] => done(add(session, &key(k), number(n)?)),
        ["remove", k] => Ok(session.remove(&key(k))?.to_string()),
        ["cas", k, old, new] => {
            let [old, new] = [old, new].map(|value| (value != "-").then_some(value.as_bytes()));
            Ok(session.compare_and_set(&key(k), old, new)?.to_string())
        }
        ["lock", k, mode] => lock(session, owner, k, mode, LOCK_WAIT),
        ["lock", k, mode, "now"] => lock(session, owner, k, mode, Duration::ZERO),
        ["unlock", k] => Ok(session.unlock(owner, &key(k))?.to_string()),
        [read, k] => question(session, read, k),
        _ => Err(unknown(step)),
    }
}

fn question(session: &mut impl Session, read: &str, k: &str) -> Result<String> {
    let mut from = key(k);
    let (mut found, mut value) = (Vec::new(), Vec::new());
    let is_found = match read {
        "get" => {
            let is_found = session.get(&from, &mut value)?;
            return Ok(if is_found { text(&value) } else { "none".to_string() });
        }
        "presence" => {
            let Presence { value, descendants } = session.presence(&from)?;
            let name = match (value, descendants) {
                (false, false) => "none",
                (true, false) => "value",
                (false, true) => "descendants",
                (true, true) => "both",
            };
            return Ok(name.to_string());
        }
        "scan" => return scan(session, &from),
        "next" => session.next(&from, false, &mut found, Some(&mut value))?,
        "at" => session.next(&from, true, &mut found, Some(&mut value))?,
        "after" => {
            from.push(0xFF);
            session.next(&from, false, &mut found, Some(&mut value))?
        }
        "previous" => session.previous(&from, &mut found, Some(&mut value))?,
        _ => return Err(unknown(read)),
    };
    Ok(if is_found { format!("{} = {}", path(&found), text(&value)) } else { "none".to_string() })
}

fn scan(session: &mut impl Session, prefix: &[u8]) -> Result<String> {
    let (mut from, mut found, mut value) = (prefix.to_vec(), Vec::new(), Vec::new());
    let mut entries = Vec::new();
    while session.next(&from, false, &mut found, Some(&mut value))? && found.starts_with(prefix) {
        entries.push(format!("{}={}", path(&found), text(&value)));
        std::mem::swap(&mut from, &mut found);
    }
    Ok(if entries.is_empty() { "none".to_string() } else { entries.join(" ") })
}

fn add(session: &mut impl Session, key: &[u8], more: i64) -> Result<()> {
    session.update(key, &mut |old, buffer| {
        let old = old.map_or(Ok(0), |old| number(&text(old)))?;
        let new = (old + more).to_string();
        buffer[..new.len()].copy_from_slice(new.as_bytes());
        Ok(Decision::Write(new.len()))
    })
}

fn lock(session: &mut impl Locks, owner: LockOwner, k: &str, mode: &str, wait: Duration) -> Result<String> {
    let name = key(k);
    let zeros = name.iter().enumerate().filter(|(_, &byte)| byte == 0);
    let mut ancestors: Vec<u16> = zeros.map(|(at, _)| at as u16 + 1).collect();
    ancestors.pop();
    let mode = match mode {
        "exclusive" => LockMode::Exclusive,
        "shared" => LockMode::Shared,
        _ => return Err(unknown(mode)),
    };
    let request = LockRequest { name: &name, ancestors: &ancestors, mode };
    let granted = session.lock(owner, &[request], Some(wait))?;
    Ok(if granted { "granted" } else { "refused" }.to_string())
}

fn key(path: &str) -> Vec<u8> {
    path.split('/').flat_map(|part| [part.as_bytes(), b"\0"].concat()).collect()
}

fn path(key: &[u8]) -> String {
    text(key.strip_suffix(b"\0").unwrap_or(key)).replace("\\x00", "/")
}

fn text(value: &[u8]) -> String {
    value.escape_ascii().to_string()
}

fn number(text: &str) -> Result<i64> {
    text.trim().parse().map_err(|_| Error::Refused(format!("`{text}` is no number")))
}

fn unknown(what: &str) -> Error {
    Error::Invalid(format!("`{what}` is no command"))
}

/// An error in a word or two where it has a name, else its text.
fn name(error: &Error) -> String {
    match error {
        Error::Conflict => "conflict".to_string(),
        Error::Restart => "restart".to_string(),
        Error::Deadlock => "deadlock".to_string(),
        Error::TransactionTimeout { .. } => "timeout".to_string(),
        Error::TransactionState(_) => "no transaction".to_string(),
        Error::Refused(why) => format!("refused {why}"),
        Error::ReadOnly => "read-only".to_string(),
        other => format!("error: {other}"),
    }
}
