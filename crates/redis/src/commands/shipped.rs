//! PERILUNE.RUN: a function that a program sends runs here as one transaction.
//!
//! Invariants
//! - What it has written is kept if its answer says that it is done, and nothing else is: an error, a rollback
//!   and a run that is given up leave nothing.
//! - A conflict runs it again, from the request: no run sees what another one has done.

use perilune::remote::{line_of, run_options};
use perilune::{Levels, TransactionOptions};
use perilune_resp::{Arguments, Replies};
use perilune_sandbox::{Form, Outcome, Run};

use crate::commands::{nodes, scripts};
use crate::context::Context;
use crate::failure::{refuse, Failure, Result};
use crate::scripts::calls::Caller;
use crate::scripts::state::State;
use crate::scripts::watch;
use crate::settings::Name;
use perilune_net::clock::clock;

/// What errors call the function.
const NAME: &str = "perilune.run";

pub(crate) fn run(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    nodes::admit(context)?;
    let (server, fence) = (context.server, context.fence());
    let given: Vec<&[u8]> = arguments.iter().collect();
    let options = run_options(&given[1..4])?;
    let Some(mut state) = server.scripts().take(server) else {
        return refuse("OOM there is no memory for another script");
    };
    let (start, now, limit) =
        (replies.position(), clock(), server.rules().live().number(Name::ScriptTimeLimit));
    let number =
        state.watched.begin_within(server.measures().started(), watch::Kind::Script, options.timeout);
    server.scripts().wake();
    let run = Run {
        code: state.sandbox.shipped(),
        form: Form::Positional,
        number,
        variant: 2,
        name: NAME,
        keys: &[],
        arguments: &[given[4].into()],
    };
    let mut answered = false;
    let outcome = context.transaction(&options, |session, client, effects| {
        replies.rewind(start);
        let outer = session.depth();
        let mut caller = Caller::new(server, session, client, effects, now);
        caller.read_only = options.read_only;
        caller.shipped = true;
        caller.fence = fence;
        let outcome = state.sandbox.run(&run, &mut caller);
        let failure = caller.failure.take();
        drop(caller);
        while session.depth() > outer {
            session.rollback()?;
        }
        match outcome {
            Outcome::Replied(bytes) => {
                replies.raw(bytes);
                answered = true;
                if is_done(bytes) {
                    Ok(())
                } else {
                    Err(perilune::Error::Rollback)
                }
            }
            Outcome::Ended => Err(failure.unwrap_or(perilune::Error::Conflict)),
            Outcome::Stopped => Err(stopped(&options, limit, &state).into()),
        }
    });
    state.watched.end();
    match outcome {
        Err(perilune::Error::Rollback) if answered => Ok(()),
        Err(error) if !matches!(error, perilune::Error::Other(_)) => {
            replies.rewind(start);
            replies.error(&line_of(&error));
            Ok(())
        }
        outcome => Ok(outcome?),
    }
}

/// What the client of a function that was stopped is told.
fn stopped(options: &TransactionOptions, script_limit: i64, state: &State) -> Failure {
    let own = i64::try_from(options.timeout.as_millis()).unwrap_or(i64::MAX);
    if state.watched.why() != watch::TIME || (script_limit > 0 && script_limit < own) {
        return scripts::stopped(state, NAME);
    }
    let text =
        format!("TRANSACTION_TIMEOUT the function ran for {own} ms: give it more by the option `timeout`");
    Failure::Reply(text.into())
}

/// Whether an answer, a bulk string, says that the function has returned.
fn is_done(reply: &[u8]) -> bool {
    let text = reply.iter().position(|byte| *byte == b'\n').and_then(|end| reply.get(end + 1));
    reply.first() == Some(&b'$') && text == Some(&b'd')
}
