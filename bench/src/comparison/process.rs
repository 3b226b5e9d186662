//! One side while it plays: its directory, its server if it has one, and its players.
//!
//! Invariants
//! - Time is taken here, by one clock, from the first line sent to the last answer, for players in all
//!   languages alike; CPU time is that of all players and of the server, from the kernel.
//! - Whatever happens, nothing outlives its side: processes are killed and directories removed.
//! - Nothing is waited for longer than the side's patience: its watch then kills what plays, so that reading
//!   its answers ends.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::Arc;
use std::time::Duration;

use crate::clock;
use crate::comparison::watch::Watch;
use crate::machine::cpu_of;
use crate::peers::subjects::{Server, Side, Site};
use crate::scratch::Scratch;
use crate::subject::Result;

/// What was measured.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Measured {
    pub(crate) operations: u64,
    /// Of those, how many answered as they should.
    pub(crate) right: u64,
    pub(crate) wall_seconds: f64,
    pub(crate) cpu_seconds: f64,
}

/// A side that plays. Fields are dropped in their order.
pub(crate) struct Play {
    watch: Watch,
    players: Vec<Player>,
    server: Option<Server>,
    pub(crate) site: Site,
    /// None where the directory belongs to somebody else.
    _scratch: Option<Scratch>,
}

/// A chunk of work is made to last about this long.
const CHUNK: Duration = Duration::from_millis(25);

impl Play {
    /// Starts a side in a fresh directory below `parent`.
    ///
    /// # Errors
    /// It does not start.
    pub(crate) fn start(
        side: &Side,
        address: Option<&str>,
        processes: usize,
        parent: &Path,
        number: usize,
        patience: f64,
    ) -> Result<Play> {
        let scratch = Scratch::new(parent, &format!("{}-{number}", side.name))?;
        let directory = scratch.path().to_owned();
        let site = Site { directory, class: side.class, processes, address: address.map(str::to_owned) };
        Play::resume(side, site, Some(scratch), patience)
    }

    /// Starts a side where its files are already.
    ///
    /// # Errors
    /// It does not start.
    pub(crate) fn resume(side: &Side, site: Site, scratch: Option<Scratch>, patience: f64) -> Result<Play> {
        let server = match (side.serve, &site.address) {
            (Some(serve), None) => Some(serve(&site)?),
            _ => None,
        };
        let watch = Watch::new(patience);
        if let Some(server) = &server {
            watch.add(server.id())?;
        }
        let mut play = Play { watch, players: Vec::new(), server, site, _scratch: scratch };
        for index in 0..play.site.processes {
            let player = Player::start(side, &play.site)?;
            play.watch.add(player.child.id())?;
            play.players.push(player);
            // The first makes the database.
            if index == 0 {
                play.players[0].opened()?;
            }
        }
        for player in play.players.iter_mut().skip(1) {
            player.opened()?;
        }
        Ok(play)
    }

    /// Has the watch killed this play?
    pub(crate) fn watch(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.watch.fired)
    }

    /// Asks one player.
    ///
    /// # Errors
    /// What it says.
    pub(crate) fn ask(&mut self, line: &str) -> Result<String> {
        self.players[0].ask(line)
    }

    /// Asks the first player for a number.
    ///
    /// # Errors
    /// What it says.
    pub(crate) fn number(&mut self, line: &str) -> Result<u64> {
        let answer = self.ask(line)?;
        answer.trim().parse().map_err(|_| format!("`{line}` was answered by `{answer}`").into())
    }

    /// Has all players do one whole, each its line; their answers.
    ///
    /// # Errors
    /// What one of them says.
    pub(crate) fn whole(&mut self, line: impl Fn(usize) -> String) -> Result<(Measured, Vec<String>)> {
        let cpu = self.cpu();
        let begun = clock::now();
        for (index, player) in self.players.iter_mut().enumerate() {
            player.tell(&line(index))?;
        }
        let answers = self.players.iter_mut().map(Player::hear).collect::<Result<Vec<_>>>()?;
        let wall_seconds = (clock::now() - begun) as f64 / 1e9;
        let measured = Measured { wall_seconds, cpu_seconds: self.cpu() - cpu, ..Measured::default() };
        Ok((measured, answers))
    }

    /// Has all players work in chunks until the time is over, or until one has nothing left to do. `line`
    /// says what player `index` does next: it has done so many, and shall do so many more, at most as many
    /// as the answer says.
    ///
    /// # Errors
    /// What one of them says.
    pub(crate) fn drive(
        &mut self,
        seconds: f64,
        line: impl Fn(usize, u64, u64) -> Option<(String, u64)> + Sync,
    ) -> Result<Measured> {
        let cpu = self.cpu();
        let length = (seconds * 1e9) as u64;
        let line = &line;
        let drive = move |index: usize, player: &mut Player| -> std::result::Result<Span, String> {
            player.drive(length, |done, count| line(index, done, count)).map_err(|error| error.to_string())
        };
        let spans: Vec<Result<Span>> = std::thread::scope(|scope| {
            let players = self.players.iter_mut().enumerate();
            let running: Vec<_> =
                players.map(|(index, player)| scope.spawn(move || drive(index, player))).collect();
            let join = |thread: std::thread::ScopedJoinHandle<'_, std::result::Result<Span, String>>| {
                thread.join().map_err(|_| "a thread panicked")?.map_err(Into::into)
            };
            running.into_iter().map(join).collect()
        });
        let spans = spans.into_iter().collect::<Result<Vec<_>>>()?;
        let from = spans.iter().map(|span| span.from).min().unwrap_or(0);
        let to = spans.iter().map(|span| span.to).max().unwrap_or(0);
        Ok(Measured {
            operations: spans.iter().map(|span| span.operations).sum(),
            right: spans.iter().map(|span| span.right).sum(),
            wall_seconds: (to - from) as f64 / 1e9,
            cpu_seconds: self.cpu() - cpu,
        })
    }

    /// Bytes of memory of all processes, shared pages counted once.
    ///
    /// # Errors
    /// The kernel does not tell.
    pub(crate) fn memory(&self) -> Result<u64> {
        let processes = self.players.iter().map(|player| player.child.id());
        let processes = processes.chain(self.server.as_ref().map(Server::id));
        processes.map(crate::machine::memory_of).sum()
    }

    /// Ends the players, then the server, in good order; the directory stays until what is answered goes.
    ///
    /// # Errors
    /// One does not end as it should.
    pub(crate) fn finish(mut self) -> Result<Option<Scratch>> {
        for player in self.players.drain(..) {
            player.finish()?;
        }
        if let Some(server) = self.server.take() {
            server.finish()?;
        }
        Ok(self._scratch.take())
    }

    /// Kills the server and all players.
    ///
    /// # Errors
    /// One cannot be killed.
    pub(crate) fn kill(mut self) -> Result<Option<Scratch>> {
        self.players.clear();
        if let Some(server) = self.server.take() {
            server.kill()?;
        }
        Ok(self._scratch.take())
    }

    /// CPU seconds of all processes so far.
    fn cpu(&self) -> f64 {
        let processes = self.players.iter().map(|player| player.child.id());
        let processes = processes.chain(self.server.as_ref().map(Server::id));
        processes.map(cpu_of).sum::<u64>() as f64 / 1e9
    }
}

struct Span {
    from: u64,
    to: u64,
    operations: u64,
    right: u64,
}

struct Player {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Player {
    fn start(side: &Side, site: &Site) -> Result<Player> {
        let mut command = match side.player {
            Some(player) => player(site)?,
            None => own(side, site)?,
        };
        let program = command.get_program().to_string_lossy().into_owned();
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = child.map_err(|error| format!("cannot start {program}: {error}"))?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let output = output.ok_or("a player has no output")?;
        Ok(Player { child, input, output: BufReader::new(output) })
    }

    fn opened(&mut self) -> Result<()> {
        let line = self.line()?;
        if line == "ready" {
            return Ok(());
        }
        Err(line.into())
    }

    fn ask(&mut self, line: &str) -> Result<String> {
        self.tell(line)?;
        self.hear()
    }

    fn tell(&mut self, line: &str) -> Result<()> {
        let input = self.input.as_mut().ok_or("the player has been told to end")?;
        Ok(input.write_all(format!("{line}\n").as_bytes())?)
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        if self.output.read_line(&mut line)? == 0 {
            return Err("the player ended before it answered".into());
        }
        Ok(line.trim_end().to_owned())
    }

    fn hear(&mut self) -> Result<String> {
        let line = self.line()?;
        match line.strip_prefix("ok") {
            Some(answer) => Ok(answer.trim().to_owned()),
            None => Err(line.into()),
        }
    }

    fn drive(&mut self, length: u64, line: impl Fn(u64, u64) -> Option<(String, u64)>) -> Result<Span> {
        let from = clock::now();
        let mut span = Span { from, to: from, operations: 0, right: 0 };
        let mut chunk = 1;
        while let Some((line, count)) = line(span.operations, chunk) {
            let begun = span.to;
            let right = self.ask(&line)?;
            span.to = clock::now();
            span.operations += count;
            span.right += right.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(count);
            if span.to - from >= length {
                break;
            }
            let took = Duration::from_nanos(span.to - begun);
            if took < CHUNK / 2 {
                chunk *= 2;
            } else if took > CHUNK * 2 {
                chunk = (chunk / 2).max(1);
            }
        }
        Ok(span)
    }

    fn finish(mut self) -> Result<()> {
        drop(self.input.take());
        let status = self.child.wait()?;
        if status.success() {
            return Ok(());
        }
        Err(format!("a player ended with {status}").into())
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        // After `finish` both do nothing.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The player of this program.
fn own(side: &Side, site: &Site) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["player", "--side", side.name, "--class", &side.class.name().to_lowercase()]);
    command.args(["--processes", &site.processes.to_string(), "--dir"]).arg(&site.directory);
    if let Some(address) = &site.address {
        command.args(["--address", address]);
    }
    Ok(command)
}
