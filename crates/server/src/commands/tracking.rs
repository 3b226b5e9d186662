//! CLIENT TRACKING, CACHING, TRACKINGINFO, GETREDIR.

use perilune_resp::{Arguments, Replies};

use crate::failure::{refuse, Result, SYNTAX};
use crate::gate::Context;
use crate::numbers::{integer, lower};
use crate::tracking::Tracking;

/// CLIENT TRACKING ON or OFF, with options.
pub(super) fn tracking(
    context: &mut Context<'_>,
    rest: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    need_loop(context)?;
    let mut chosen = Tracking::default();
    let mut words = rest.from(1).iter();
    while let Some(word) = words.next() {
        match (&*lower(word), words.len()) {
            (b"optin", _) => chosen.opt_in = true,
            (b"optout", _) => chosen.opt_out = true,
            (b"noloop", _) => chosen.no_loop = true,
            (b"redirect", 1..) => {
                integer(words.next().unwrap_or_default())?;
                return refuse("ERR REDIRECT is not supported: notices go to who reads, with HELLO 3");
            }
            (b"bcast", _) => {
                return refuse(
                    "ERR BCAST is not supported: subscribe to events of keys, or track what is read",
                )
            }
            (b"prefix", 1..) => return refuse("ERR PREFIX option requires BCAST mode to be enabled"),
            _ => return refuse(SYNTAX),
        }
    }
    match &*lower(&rest[0]) {
        b"off" => context.client.tracking = None,
        b"on" => turn_on(context, chosen)?,
        _ => return refuse(SYNTAX),
    }
    replies.simple("OK");
    Ok(())
}

/// What is read in EXEC is remembered before it begins, when nothing of it has been chosen yet.
fn need_loop(context: &Context<'_>) -> Result<()> {
    if !context.may_park {
        return refuse("ERR what is tracked is chosen before MULTI, not inside");
    }
    Ok(())
}

fn turn_on(context: &mut Context<'_>, chosen: Tracking) -> Result<()> {
    if context.server.number == 0 {
        return refuse(
            "ERR the database takes no writes, so that nothing can be watched: open it for writing",
        );
    }
    if chosen.opt_in && chosen.opt_out {
        return refuse("ERR You can't specify both OPTIN mode and OPTOUT mode");
    }
    if let Some(now) = context.client.tracking {
        if chosen.opt_in && now.opt_out || chosen.opt_out && now.opt_in {
            return refuse(
                "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then re-enabling \
                 it with a different mode.",
            );
        }
    }
    context.client.tracking = Some(chosen);
    Ok(())
}

/// CLIENT CACHING YES or NO: of the command that comes.
pub(super) fn caching(context: &mut Context<'_>, word: &[u8], replies: &mut Replies<'_>) -> Result<()> {
    need_loop(context)?;
    let Some(tracking) = context.client.tracking.as_mut().filter(|now| now.opt_in || now.opt_out) else {
        return refuse(
            "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode \
             enabled",
        );
    };
    match &*lower(word) {
        b"yes" if !tracking.opt_in => {
            return refuse("ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.")
        }
        b"no" if !tracking.opt_out => {
            return refuse("ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.")
        }
        b"yes" | b"no" => tracking.caching = true,
        _ => return refuse(SYNTAX),
    }
    replies.simple("OK");
    Ok(())
}

/// CLIENT TRACKINGINFO.
pub(super) fn tell(chosen: Option<Tracking>, replies: &mut Replies<'_>) {
    let flags: Vec<&str> = match chosen {
        None => vec!["off"],
        Some(now) => [
            (true, "on"),
            (now.opt_in, "optin"),
            (now.opt_in && now.caching, "caching-yes"),
            (now.opt_out, "optout"),
            (now.opt_out && now.caching, "caching-no"),
            (now.no_loop, "noloop"),
        ]
        .into_iter()
        .filter_map(|(is_so, flag)| is_so.then_some(flag))
        .collect(),
    };
    replies.map(3);
    replies.bulk(b"flags");
    replies.set(flags.len());
    flags.iter().for_each(|flag| replies.bulk(flag.as_bytes()));
    replies.bulk(b"redirect");
    replies.integer(redirected(chosen));
    replies.bulk(b"prefixes");
    replies.array(0);
}

/// To which client notices go: 0 is the one that reads, -1 none.
pub(crate) fn redirected(chosen: Option<Tracking>) -> i64 {
    if chosen.is_some() {
        0
    } else {
        -1
    }
}
