//! A worker: one process with one peer's database open, which does what the suite asks.
//!
//! It ends when its standard input does, so that none is left when the suite dies.

use std::io::{self, BufRead, Write};
use std::path::Path;
use std::sync::Barrier;
use std::thread;

use crate::clock;
use crate::data;
use crate::peers;
use crate::subject::{Class, Database, Result, Session, Tree};
use crate::worker_processes::message::{Reply, Request};
use crate::workload::{boundaries, Order, Outcome, Work};

/// What each account of the bank holds at first.
pub(crate) const BALANCE: i64 = 1_000_000_000;

/// Opens the database of `peer` in `directory` and serves requests until there are no more.
///
/// # Errors
/// The peer is unknown or does not open; the suite is gone.
pub(crate) fn serve(peer: &str, class: Class, directory: &Path, processes: usize) -> Result<()> {
    let peer = peers::all(class).into_iter().find(|known| known.name == peer);
    let peer = peer.ok_or("there is no such peer")?;
    let begun = clock::now();
    let mut lines = Lines { input: io::stdin().lock(), line: String::new() };
    let database = match (peer.open)(directory, processes) {
        Ok(database) => database,
        Err(error) => return answer(&Reply::Failed(error.to_string())),
    };
    let mut session = match database.session() {
        Ok(session) => session,
        Err(error) => return answer(&Reply::Failed(error.to_string())),
    };
    if let Err(error) = session.get(Tree::Data, 0) {
        return answer(&Reply::Failed(error.to_string()));
    }
    answer(&Reply::Opened(clock::now() - begun))?;
    while let Some(request) = lines.next()? {
        let reply = reply(&*database, &mut *session, request, &mut lines);
        answer(&reply.unwrap_or_else(|error| Reply::Failed(error.to_string())))?;
    }
    Ok(())
}

struct Lines {
    input: io::StdinLock<'static>,
    line: String,
}

impl Lines {
    fn next(&mut self) -> Result<Option<Request>> {
        self.line.clear();
        if self.input.read_line(&mut self.line)? == 0 {
            return Ok(None);
        }
        Ok(Some(serde_json::from_str(&self.line)?))
    }

    /// Says that this worker is warmed up, and waits for all the others.
    fn ready(&mut self) -> Result<()> {
        answer(&Reply::Ready)?;
        match self.next()? {
            Some(Request::Go) => Ok(()),
            other => Err(format!("a round begins with Go, not {other:?}").into()),
        }
    }
}

fn answer(reply: &Reply) -> Result<()> {
    let mut output = io::stdout().lock();
    serde_json::to_writer(&mut output, reply)?;
    output.write_all(b"\n")?;
    Ok(output.flush()?)
}

fn reply(
    database: &dyn Database,
    session: &mut dyn Session,
    request: Request,
    lines: &mut Lines,
) -> Result<Reply> {
    match request {
        Request::Fill(tree, count) => {
            fill(session, tree, count)?;
            Ok(Reply::Done)
        }
        Request::Scatter(tree, count) => {
            session.fill(tree, &mut data::scattered(count).map(|number| (number, data::value(number, 1))))?;
            Ok(Reply::Done)
        }
        Request::Get(tree, number) => Ok(Reply::Value(session.get(tree, number)?)),
        Request::Scan(tree) => Ok(Reply::Passage(session.scan(tree, u64::MAX)?)),
        Request::Prepare(order) if order.threads > 1 => threads(database, order, lines).map(Reply::Outcome),
        Request::Prepare(order) => {
            let mut work = Work::new(order, 0, session);
            work.warm_up()?;
            lines.ready()?;
            let cpu = clock::cpu();
            let outcome = work.measure()?;
            Ok(Reply::Outcome(Outcome { cpu: clock::cpu() - cpu, ..outcome }))
        }
        Request::Go => Err("Go without a round".into()),
    }
}

fn fill(session: &mut dyn Session, tree: Tree, count: u64) -> Result<()> {
    match tree {
        Tree::Bank => session.fill(tree, &mut (0..count).map(|number| (number, BALANCE))),
        Tree::Blocks => session.fill(tree, &mut boundaries(count)),
        _ => session.fill(tree, &mut (0..count).map(|number| (number, data::value(number, 1)))),
    }
}

/// A round by several threads of this process, a session each.
fn threads(database: &dyn Database, order: Order, lines: &mut Lines) -> Result<Outcome> {
    let (warm, go) = (Barrier::new(order.threads + 1), Barrier::new(order.threads + 1));
    let (outcomes, cpu) = thread::scope(|scope| {
        let spawn = |index| {
            let (warm, go) = (&warm, &go);
            scope.spawn(move || {
                // Whatever fails, the barriers are passed: the others wait there.
                let mut session = database.session();
                let prepared =
                    session.as_deref_mut().map_err(|error| error.to_string()).and_then(|session| {
                        let mut work = Work::new(order, index, session);
                        work.warm_up().map(|()| work).map_err(|error| error.to_string())
                    });
                warm.wait();
                go.wait();
                prepared.and_then(|work| work.measure().map_err(|error| error.to_string()))
            })
        };
        let running: Vec<_> = (0..order.threads).map(spawn).collect();
        warm.wait();
        let begun = lines.ready();
        let before = clock::cpu();
        go.wait();
        let outcomes: Vec<_> = running.into_iter().map(|thread| thread.join()).collect();
        (begun.map(|()| outcomes), clock::cpu() - before)
    });
    let mut total = Outcome { start: u64::MAX, cpu, ..Outcome::default() };
    for outcome in outcomes? {
        let outcome = outcome.map_err(|_| "a thread panicked")??;
        total.start = total.start.min(outcome.start);
        total.end = total.end.max(outcome.end);
        total.operations += outcome.operations;
        total.applied += outcome.applied;
    }
    Ok(total)
}
