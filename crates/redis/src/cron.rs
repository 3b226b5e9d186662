//! `luacronfunc`: a function of a library that runs at intervals, on one server of the database at a time.
//!
//! ```text
//! CONFIG SET luacronfunc sweep
//! CONFIG SET luacronfunc-interval 5000
//! ^redis("cron") = 1795000005000                    when it runs next, in milliseconds since 1970
//! ```
//!
//! Each server has a thread that looks at that node. Who finds that it is time moves the node on and runs the function in one
//! transaction: others who were about to do so meet it, look again and find nothing to do.
//!
//! Invariants
//! - A server that is killed in the midst of it has neither moved the node nor done anything; another one runs the function.
//! - What was missed while no server ran is run once, and not as often as it was missed.
//! - It may do everything, as who has set it may: settings are for operators.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use perilune::{node, Node, Session, TransactionOptions};
use perilune_net::clock::clock;
use perilune_net::journal::Level;
use perilune_resp::{Answer, ArgumentsBuf, Replies};

use crate::acl::User;
use crate::client::Client;
use crate::command;
use crate::context::Context;
use crate::effects::Effects;
use crate::execution::{Inside, Way};
use crate::server::Server;
use crate::settings::Name;
use crate::tracking::broadcast;
use crate::transact::Span;

/// How long the thread sleeps between two looks at most: so long a change of the settings takes to be heeded.
const LOOK: Duration = Duration::from_millis(100);
/// Bytes of the function's reply, which nobody reads.
const REPLY_BYTES: usize = 1 << 20;

/// Runs the function whenever it is time, until the server stops.
pub(crate) fn run(server: &Arc<Server>, mut session: Session) {
    let (Ok(place), Ok(user)) = (node!("^redis", "cron"), User::parse("luacronfunc", "on ~* &* +@all"))
    else {
        return;
    };
    let (user, mut commands) = (Arc::new(user), 0);
    while !server.is_stopping() {
        let name = server.rules().live().text(Name::LuaCronFunc);
        let interval = server.rules().live().number(Name::LuaCronFuncInterval);
        if !name.is_empty() {
            let mut client = Client::new(0, "luacronfunc".to_owned(), String::new(), true, true);
            client.enter(Arc::clone(&user), server.rules().acl().version());
            let all = server.measures().statistics().commands();
            let count = all.saturating_sub(commands).to_string();
            match tick(server, &mut session, &mut client, &place, (&name, &count), interval) {
                Ok(true) => commands = all,
                Ok(false) => {}
                Err(error) => server.note_some(Level::Warning, "luacronfunc failed", &[("error", &error)]),
            }
        }
        thread::park_timeout(LOOK.min(Duration::from_millis(interval.unsigned_abs())));
    }
}

/// Runs the function if it is time; whether it was. Its error is told, and then it has had its turn.
fn tick(
    server: &Arc<Server>,
    session: &mut Session,
    client: &mut Client,
    place: &Node,
    (name, count): (&str, &str),
    interval: i64,
) -> Result<bool, String> {
    let is_due = |session: &mut Session| -> perilune::Result<bool> {
        let next = session.get_int(place)?.unwrap_or(0);
        // One that lies far ahead is of a longer interval, or of a clock that was wrong.
        Ok(clock() >= next || next > clock().saturating_add(interval))
    };
    if !is_due(session).map_err(|error| error.to_string())? {
        return Ok(false);
    }
    let words: ArgumentsBuf = ["luafunc", name, count].into_iter().collect();
    let Some(luafunc) = command::find(b"luafunc") else { return Ok(false) };
    let (mut effects, mut reply, mut ran) = (Effects::default(), Vec::new(), false);
    effects.begin(server);
    let mut context = Context { server, session, client, effects: &mut effects, may_park: false };
    let outcome = context.transaction(&TransactionOptions::default(), |session, client, effects| {
        reply.clear();
        ran = is_due(session)?;
        if !ran {
            return Ok(());
        }
        session.set(place, clock().saturating_add(interval))?;
        client.begin_visit();
        let now = client.time();
        let mut context = Context { server, session, client, effects, may_park: false };
        let mut replies = Replies::new(&mut reply, context.client.protocol).up_to(REPLY_BYTES);
        let way = Way::Inside(Inside { span: Span::Whole, now, by_script: true });
        context.run(luafunc, words.as_arguments(), way, &mut replies).map(drop)
    });
    if ran && server.commons().broadcast().was_turned_on(effects.broadcast) {
        // A database that takes no message any more takes no changes, either.
        let _ = broadcast::send_all(session, &mut effects);
    }
    effects.post_all(server.crew());
    outcome.map_err(|error| error.to_string())?;
    match Answer::parse(&reply) {
        Ok(Some((Answer::Error(text), _))) => Err(String::from_utf8_lossy(&text).into_owned()),
        _ => Ok(ran),
    }
}
