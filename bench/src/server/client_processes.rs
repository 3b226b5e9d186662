//! The clients of a measurement: several processes of `process`, told what to do by lines on their pipes.
//!
//! Each has an address of its own of 127.0.0.1 to 127.0.0.4, since an address has some 28,000 ports.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::subject::Result;

use super::client_process::{Answer, Order, Outcome, Work};
use super::histogram::Histogram;
use super::requests::Job;

/// The addresses that clients come from.
const SOURCES: usize = 4;

/// Client processes of one server.
pub(crate) struct ClientProcesses {
    members: Vec<Member>,
}

struct Member {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    connections: usize,
}

/// What all of them have done.
#[derive(Clone, Debug)]
pub(crate) struct Done {
    pub(crate) requests: u64,
    pub(crate) operations: u64,
    pub(crate) wall_seconds: f64,
    pub(crate) cpu_seconds: f64,
    pub(crate) latencies: Histogram,
}

impl ClientProcesses {
    /// Starts processes that will connect to a port of this machine.
    ///
    /// # Errors
    /// They cannot be started.
    pub(crate) fn start(processes: usize, port: u16) -> Result<ClientProcesses> {
        let start = |index: usize| -> Result<Member> {
            let source = format!("127.0.0.{}", 1 + index % SOURCES);
            let mut child = Command::new(std::env::current_exe()?)
                .args(["client-process", "--port", &port.to_string(), "--source", &source])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()?;
            let (input, output) = (child.stdin.take(), child.stdout.take());
            let (input, output) = input.zip(output).ok_or("a client process has no pipes")?;
            Ok(Member { child, input, output: BufReader::new(output), connections: 0 })
        };
        Ok(ClientProcesses { members: (0..processes).map(start).collect::<Result<_>>()? })
    }

    /// Has so many connections in all, old ones kept.
    ///
    /// # Errors
    /// The server refuses one.
    pub(crate) fn connect(&mut self, count: usize) -> Result<()> {
        let shares = shares(count as u64, self.members.len());
        for (member, share) in self.members.iter_mut().zip(shares) {
            member.connections = share as usize;
        }
        self.all(|member| Some(Order::Connect(member.connections))).map(drop)
    }

    /// Says what will be sent.
    ///
    /// # Errors
    /// A process has gone.
    pub(crate) fn load(&mut self, job: Job, pipeline: usize) -> Result<()> {
        self.all(|_| Some(Order::Load(job, pipeline))).map(drop)
    }

    /// Does so many operations on all connections.
    ///
    /// # Errors
    /// A connection ends, or an answer is wrong.
    pub(crate) fn work(&mut self, operations: u64) -> Result<Done> {
        let busy = self.members.iter().map(|member| member.connections).sum();
        self.part(Work { operations, nanoseconds: 0, busy, interval: 0 })
    }

    /// Does work on a part of the connections; the interval is that of all processes together.
    ///
    /// # Errors
    /// A connection ends, or an answer is wrong.
    pub(crate) fn part(&mut self, work: Work) -> Result<Done> {
        // Every process has as large a part of the work as of the connections.
        let count = self.members.len();
        let (operations, busy) = (shares(work.operations, count), shares(work.busy as u64, count));
        let workers = busy.iter().filter(|share| **share > 0).count().max(1) as u64;
        let operations =
            if work.busy < count { shares(work.operations, workers as usize) } else { operations };
        let mut index = 0;
        let answers = self.all(|_| {
            let (operations, busy) = (operations.get(index).copied().unwrap_or(0), busy[index] as usize);
            index += 1;
            let interval = work.interval * workers;
            (busy > 0).then_some(Order::Work(Work { operations, busy, interval, ..work }))
        })?;
        let mut latencies = Histogram::default();
        let mut outcomes = Vec::new();
        for answer in answers {
            let Answer::Done(outcome) = answer else { return Err("a client process has not worked".into()) };
            latencies.merge(&outcome.latencies);
            outcomes.push(outcome);
        }
        let sum = |of: fn(&Outcome) -> u64| outcomes.iter().map(of).sum::<u64>();
        if let Some(outcome) = outcomes.iter().find(|outcome| outcome.wrong > 0) {
            let (wrong, all) = (sum(|outcome| outcome.wrong), sum(|outcome| outcome.requests));
            return Err(format!("{wrong} of {all} answers were wrong, the first: {}", outcome.sample).into());
        }
        let start = outcomes.iter().map(|outcome| outcome.start).min().unwrap_or(0);
        let end = outcomes.iter().map(|outcome| outcome.end).max().unwrap_or(0);
        Ok(Done {
            requests: sum(|outcome| outcome.requests),
            operations: sum(|outcome| outcome.operations),
            wall_seconds: (end - start) as f64 / 1e9,
            cpu_seconds: sum(|outcome| outcome.cpu) as f64 / 1e9,
            latencies,
        })
    }

    /// Gives orders to all, and hears what has become of them.
    fn all(&mut self, mut order: impl FnMut(&Member) -> Option<Order>) -> Result<Vec<Answer>> {
        let mut told = Vec::new();
        for member in &mut self.members {
            if let Some(order) = order(member) {
                let mut line = serde_json::to_string(&order)?;
                line.push('\n');
                member.input.write_all(line.as_bytes())?;
                told.push(member);
            }
        }
        let mut answers = Vec::new();
        for member in told {
            let mut line = String::new();
            if member.output.read_line(&mut line)? == 0 {
                return Err("a client process ended before it answered".into());
            }
            answers.push(serde_json::from_str(&line)?);
        }
        match answers
            .iter()
            .find_map(|answer| if let Answer::Failed(why) = answer { Some(why) } else { None })
        {
            Some(why) => Err(why.clone().into()),
            None => Ok(answers),
        }
    }
}

/// A number in so many parts, the first ones larger where it does not divide.
fn shares(all: u64, parts: usize) -> Vec<u64> {
    let parts = parts as u64;
    (0..parts).map(|part| all / parts + u64::from(part < all % parts)).collect()
}

impl Drop for ClientProcesses {
    fn drop(&mut self) {
        for member in &mut self.members {
            let _ = member.child.kill();
        }
        for member in &mut self.members {
            let _ = member.child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::shares;

    #[test]
    fn shares_add_up() {
        assert_eq!(shares(10, 4), [3, 3, 2, 2]);
        assert_eq!(shares(1, 2), [1, 0]);
    }
}
