//! The servers of one database: their numbers, which of them live, and what they tell each other.
//!
//! A server has a number that no other has had, is noted at `^redis("server",number)`, and holds the lock of
//! that node while it lives. What others tell it goes to the engine's channel `redis server NUMBER`, read by
//! one thread of the server (`dispatch`), asleep until something comes.
//!
//! Invariants
//! - A server whose lock is free is dead: what the tree says of it counts for nothing, and the server that
//!   removes expired keys removes it within a second.
//! - What is told in a transaction leaves with the commit.
//! - A channel drops its oldest messages when it is full: a server that does not read costs bounded memory.
//!
//! What if we are killed? Before the lock is taken only a number is lost; then the next sweep finds a node
//! without an owner. A sweep that is killed is done again: the server's node goes last.

use std::time::Duration;

use perilune::{node, ChannelOptions, Cursor, Database, LockMode, Node, Session, WhenFull};
use perilune_resp::ArgumentsBuf;

use crate::failure::{refuse, Result};
use crate::limits::{TOLD_BYTES, TOLD_PENDING_BYTES};
use crate::name::NAME;

/// A message of the engine holds so much of what is told.
const PIECE: usize = (1 << 20) - 1;

/// The node of a server.
pub(crate) fn place(server: i64) -> perilune::Result<Node> {
    Node::new(NAME)?.with("server")?.with(server)
}

/// What the names of the channels begin with by which servers tell each other something.
pub(crate) const CHANNELS: &str = "redis server ";

/// The channel by which a server is told.
pub(crate) fn channel(server: i64) -> String {
    format!("{CHANNELS}{server}")
}

/// Makes a server known: its number, and the session that holds its lock and reads what it is told. A
/// database that takes no writes has servers without a number, 0, of which nobody knows.
///
/// # Errors
/// No session is to be had.
pub(crate) fn enter(database: &Database) -> perilune::Result<(i64, Session)> {
    let mut session = database.session()?;
    match register(&mut session) {
        Ok(number) => Ok((number, session)),
        Err(perilune::Error::Store(perilune::StoreError::ReadOnly)) => Ok((0, session)),
        Err(error) => Err(error),
    }
}

fn register(session: &mut Session) -> perilune::Result<i64> {
    let number = session.increment(&node!("^redis", "server")?, 1)?.as_i64().unwrap_or(0);
    let place = place(number)?;
    session.lock(&place, LockMode::Exclusive, Some(Duration::from_secs(10)))?;
    let options =
        ChannelOptions { messages: 1_000_000, bytes: TOLD_PENDING_BYTES, when_full: WhenFull::DropOldest };
    session.channel(&channel(number)).create(options)?;
    session.set(&place, i64::from(std::process::id()))?;
    // Where earlier builds have kept cursors, which nobody reads any more.
    session.delete_tree(&node!("^redis", "scan")?)?;
    Ok(number)
}

/// Notes that server `number` serves `port`, or is about to: behind `enter`.
pub(crate) fn note_port(session: &mut Session, number: i64, port: u16) -> perilune::Result<()> {
    match number {
        0 => Ok(()),
        number => session.set(&place(number)?.with("port")?.with(i64::from(port))?, true).map(drop),
    }
}

/// Whether another server of the database serves `port`.
pub(crate) fn serve_port(session: &mut Session, home: i64, port: u16) -> perilune::Result<bool> {
    for server in all(session)? {
        let note = place(server)?.with("port")?.with(i64::from(port))?;
        if server != home && session.get(&note)?.is_some() && is_alive(session, server)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether a server lives. Costs an attempt to lock.
pub(crate) fn is_alive(session: &mut Session, server: i64) -> perilune::Result<bool> {
    let place = place(server)?;
    if session.lock(&place, LockMode::Shared, Some(Duration::ZERO))? {
        session.unlock(&place)?;
        return Ok(false);
    }
    Ok(true)
}

/// The servers that are noted, dead ones among them.
pub(crate) fn all(session: &mut Session) -> perilune::Result<Vec<i64>> {
    let mut cursor = Cursor::children(&node!("^redis", "server")?);
    let mut numbers = Vec::new();
    while cursor.next(session)? {
        numbers.extend(cursor.integer());
    }
    Ok(numbers)
}

/// Tells a server something; in a transaction, when that commits.
pub(crate) fn tell<T: AsRef<[u8]>>(
    session: &mut Session,
    server: i64,
    words: impl IntoIterator<Item = T>,
) -> Result<()> {
    let mut request = Vec::new();
    words.into_iter().collect::<ArgumentsBuf>().write_request(&mut request);
    if request.len() > TOLD_BYTES {
        return refuse("ERR a message to clients of another server has 16 MiB at most");
    }
    let channel = channel(server);
    let last = request.chunks(PIECE).count() - 1;
    session.transaction(|session| {
        for (number, piece) in request.chunks(PIECE).enumerate() {
            let mut body = vec![u8::from(number < last)];
            body.extend_from_slice(piece);
            session.channel(&channel).post(body)?;
        }
        Ok(())
    })?;
    Ok(())
}

/// Tells this server's listening thread to end.
pub(crate) fn stop(session: &mut Session, server: i64) {
    // If it cannot be told, it notices by the error that it gets itself.
    let _ = tell(session, server, ["stop"]);
}
