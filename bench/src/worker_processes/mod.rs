//! A workers: worker processes of one peer that begin a round together.
//!
//! Invariants
//! - Workers speak in lines over pipes and block between them: a workers that is not asked uses no CPU,
//!   so that sides can alternate. Nothing waits by sleeping.
//! - A round begins when all workers are warmed up: each then waits for one line.

pub(crate) mod message;
pub(crate) mod worker;

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use crate::machine;
use crate::subject::{Passage, Peer, Result, Tree};
use crate::worker_processes::message::{Reply, Request};
use crate::workload::{Order, Outcome};

/// Worker processes with one database open.
pub(crate) struct Workers {
    members: Vec<Member>,
    /// Nanoseconds that the first took to open the database and to get a value.
    opened: u64,
}

impl Workers {
    /// Starts `processes` workers on the database of `peer` in `directory`; the first creates it.
    ///
    /// # Errors
    /// A worker cannot be started or cannot open the database.
    pub(crate) fn start(peer: &Peer, directory: &Path, processes: usize) -> Result<Workers> {
        let mut workers = Workers { members: Vec::new(), opened: 0 };
        for index in 0..processes {
            workers.members.push(Member::start(peer, directory, processes)?);
            if index == 0 {
                workers.opened = workers.members[0].opened()?;
            }
        }
        for member in workers.members.iter_mut().skip(1) {
            member.opened()?;
        }
        Ok(workers)
    }

    /// Loads keys into a tree.
    ///
    /// # Errors
    /// The peer's.
    pub(crate) fn fill(&mut self, tree: Tree, count: u64) -> Result<()> {
        match self.ask(Request::Fill(tree, count))? {
            Reply::Done => Ok(()),
            other => Err(unexpected(&other)),
        }
    }

    /// Loads keys in an order without order.
    ///
    /// # Errors
    /// The peer's.
    pub(crate) fn scatter(&mut self, tree: Tree, count: u64) -> Result<()> {
        match self.ask(Request::Scatter(tree, count))? {
            Reply::Done => Ok(()),
            other => Err(unexpected(&other)),
        }
    }

    /// Nanoseconds that the first worker took to open the database and to get a value.
    pub(crate) fn opened(&self) -> u64 {
        self.opened
    }

    /// Bytes of memory of the first worker, mapped files included.
    ///
    /// # Errors
    /// The kernel does not tell.
    pub(crate) fn memory(&self) -> Result<u64> {
        machine::memory_of(self.members[0].child.id())
    }

    /// Reads one value.
    ///
    /// # Errors
    /// The peer's.
    pub(crate) fn get(&mut self, tree: Tree, number: u64) -> Result<Option<i64>> {
        match self.ask(Request::Get(tree, number))? {
            Reply::Value(value) => Ok(value),
            other => Err(unexpected(&other)),
        }
    }

    /// Makes sure that every worker sees a value: that they have one database, not one each.
    ///
    /// # Errors
    /// One does not; the peer's.
    pub(crate) fn all_see(&mut self, tree: Tree, number: u64) -> Result<()> {
        for member in &mut self.members {
            member.tell(&Request::Get(tree, number))?;
            match member.hear()? {
                Reply::Value(Some(_)) => {}
                Reply::Value(None) => return Err("a worker does not see what another loaded".into()),
                other => return Err(unexpected(&other)),
            }
        }
        Ok(())
    }

    /// Walks a tree with its values.
    ///
    /// # Errors
    /// The peer's.
    pub(crate) fn scan(&mut self, tree: Tree) -> Result<Passage> {
        match self.ask(Request::Scan(tree))? {
            Reply::Passage(passage) => Ok(passage),
            other => Err(unexpected(&other)),
        }
    }

    /// Runs one round on all workers, each with a seed of its own.
    ///
    /// # Errors
    /// The peer's, or a wrong result that a worker found. The workers is of no use afterwards.
    pub(crate) fn run(&mut self, order: Order) -> Result<Vec<Outcome>> {
        self.begin(order)?;
        let outcome = |member: &mut Member| match member.hear()? {
            Reply::Outcome(outcome) => Ok(outcome),
            other => Err(unexpected(&other)),
        };
        self.members.iter_mut().map(outcome).collect()
    }

    fn begin(&mut self, order: Order) -> Result<()> {
        for (index, member) in (0..).zip(&mut self.members) {
            let seed = order.seed.wrapping_add(index * 7_919_000_017);
            member.tell(&Request::Prepare(Order { seed, ..order }))?;
        }
        for member in &mut self.members {
            match member.hear()? {
                Reply::Ready => {}
                other => return Err(unexpected(&other)),
            }
        }
        for member in &mut self.members {
            member.tell(&Request::Go)?;
        }
        Ok(())
    }

    /// Begins a round, and kills all workers `after` that time, in the middle of it.
    ///
    /// # Errors
    /// A worker does not begin, or cannot be killed.
    pub(crate) fn kill(mut self, order: Order, after: Duration) -> Result<()> {
        self.begin(order)?;
        std::thread::sleep(after);
        for member in &mut self.members {
            member.child.kill()?;
        }
        for member in &mut self.members {
            member.child.wait()?;
        }
        Ok(())
    }

    /// Ends the workers; each closes its database first.
    ///
    /// # Errors
    /// A worker ended otherwise than by itself.
    pub(crate) fn finish(mut self) -> Result<()> {
        for mut member in self.members.drain(..) {
            drop(member.input.take());
            let status = member.child.wait()?;
            if !status.success() {
                return Err(format!("a worker ended with {status}").into());
            }
        }
        Ok(())
    }

    fn ask(&mut self, request: Request) -> Result<Reply> {
        self.members[0].tell(&request)?;
        self.members[0].hear()
    }
}

fn unexpected(reply: &Reply) -> Box<dyn std::error::Error + Send + Sync> {
    format!("a worker answered {reply:?}").into()
}

struct Member {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Member {
    fn start(peer: &Peer, directory: &Path, processes: usize) -> Result<Member> {
        let mut child = Command::new(env::current_exe()?)
            .args(["worker", "--peer", peer.name, "--class", &peer.class.name().to_lowercase()])
            .args(["--processes", &processes.to_string(), "--dir"])
            .arg(directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let output = output.ok_or("a worker has no output")?;
        Ok(Member { child, input, output: BufReader::new(output) })
    }

    fn opened(&mut self) -> Result<u64> {
        match self.hear()? {
            Reply::Opened(nanoseconds) => Ok(nanoseconds),
            other => Err(unexpected(&other)),
        }
    }

    fn tell(&mut self, request: &Request) -> Result<()> {
        let mut line = serde_json::to_vec(request)?;
        line.push(b'\n');
        let input = self.input.as_mut().ok_or("the worker has been told to end")?;
        Ok(input.write_all(&line)?)
    }

    fn hear(&mut self) -> Result<Reply> {
        let mut line = String::new();
        if self.output.read_line(&mut line)? == 0 {
            return Err("a worker ended before it answered; its last words are above".into());
        }
        match serde_json::from_str(&line)? {
            Reply::Failed(why) => Err(why.into()),
            reply => Ok(reply),
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        // Harmless after `finish`: a child that was waited for is not signalled.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
