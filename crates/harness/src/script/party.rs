//! Whoever runs the steps of one letter: a thread of this process, or another process.
//!
//! Invariant: at most one step is under way for a party, and each is answered by one line.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::thread::JoinHandle;
use std::time::Duration;

use perilune_store::{Locks, Session, Store};

use super::actor::Actor;

/// What ends a step that has to block.
pub(super) const WAITS: &str = " waits";

/// What begins an answer on a process's output. Anything before it, as a test runner's own lines, is not
/// part of the answer.
const ANSWER: &str = "=> ";

/// A step that has no answer after this time never gets one.
const PATIENCE: Duration = Duration::from_secs(60);

enum Steps {
    Thread(Sender<String>, JoinHandle<()>),
    Process(ChildStdin, Child),
}

/// One letter's session, wherever it lives.
pub(super) struct Party {
    steps: Steps,
    answers: Receiver<String>,
    waits: bool,
    /// No step has begun since the one that waits.
    fresh: bool,
}

impl Party {
    /// A session of `store` on a thread.
    pub(super) fn thread<S: Store>(store: &S) -> Result<Party, String>
    where
        S::Session: Locks,
    {
        let session = store.session().map_err(|error| format!("no session: {error}"))?;
        let (steps, todo) = mpsc::channel::<String>();
        let (answer, answers) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let mut actor = Actor::new(session);
            for step in todo {
                if answer.send(actor.run(&step)).is_err() {
                    return;
                }
            }
        });
        Ok(Party { steps: Steps::Thread(steps, thread), answers, waits: false, fresh: false })
    }

    /// A process that calls [`serve_steps`].
    pub(super) fn process(mut child: Child) -> Result<Party, String> {
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("the process's standard input and output must be piped".to_string());
        };
        let (answer, answers) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let Some((_, text)) = line.split_once(ANSWER) else {
                    continue;
                };
                if answer.send(text.to_string()).is_err() {
                    return;
                }
            }
        });
        Ok(Party { steps: Steps::Process(input, child), answers, waits: false, fresh: false })
    }

    /// Runs a step and gives its answer, or takes the answer of one that waited.
    pub(super) fn run(&mut self, step: &str) -> Result<String, String> {
        match (self.waits, step) {
            (true, "ends") => self.waits = false,
            (true, _) => return Err("its session still waits: end that step first".to_string()),
            (false, "ends") => return Err("its session does not wait".to_string()),
            (false, _) => {
                let waiting = step.strip_suffix(WAITS);
                self.send(waiting.unwrap_or(step))?;
                if waiting.is_some() {
                    (self.waits, self.fresh) = (true, true);
                    return Ok("... waits".to_string());
                }
            }
        }
        match self.answers.recv_timeout(PATIENCE) {
            Ok(answer) => Ok(answer),
            Err(RecvTimeoutError::Timeout) => Err(format!("no answer within {PATIENCE:?}")),
            Err(RecvTimeoutError::Disconnected) => Err("its thread or process has ended".to_string()),
        }
    }

    fn send(&mut self, step: &str) -> Result<(), String> {
        match &mut self.steps {
            Steps::Thread(steps, _) => steps.send(step.to_string()).map_err(|error| error.to_string()),
            Steps::Process(input, _) => {
                writeln!(input, "{step}").and_then(|()| input.flush()).map_err(|error| error.to_string())
            }
        }
    }

    /// Fails if a step that is to wait has answered before the step after it has begun.
    pub(super) fn still_waits(&mut self) -> Result<(), String> {
        // NB: only once: the next step may be what ends the wait.
        if !std::mem::take(&mut self.fresh) {
            return Ok(());
        }
        match self.answers.try_recv() {
            Err(TryRecvError::Empty) => Ok(()),
            Err(TryRecvError::Disconnected) => Err("has ended".to_string()),
            Ok(answer) => Err(format!("answered `{answer}`, but was to wait")),
        }
    }

    /// Lets the session go and waits until it is gone.
    pub(super) fn close(self) -> Result<(), String> {
        if self.waits {
            return Err("still waits: end its step".to_string());
        }
        match self.steps {
            Steps::Thread(steps, thread) => {
                drop(steps);
                thread.join().map_err(|_| "panicked".to_string())
            }
            Steps::Process(input, mut child) => {
                drop(input);
                let status = child.wait().map_err(|error| error.to_string())?;
                status.success().then_some(()).ok_or(format!("ended with {status}"))
            }
        }
    }
}

/// A process's side of a script: runs each line of `input` as a step of `session` and writes its answer
/// as a line to `output`, until the input ends.
///
/// # Errors
/// When the input cannot be read or the output not written.
pub fn serve_steps(
    session: impl Session + Locks,
    input: impl BufRead,
    mut output: impl Write,
) -> std::io::Result<()> {
    let mut actor = Actor::new(session);
    for step in input.lines() {
        writeln!(output, "{ANSWER}{}", actor.run(&step?))?;
        output.flush()?;
    }
    Ok(())
}
