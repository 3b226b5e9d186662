//! CLIENT TRACKING, CACHING, TRACKINGINFO, GETREDIR.

use perilune_resp::{Arguments, Replies};

use crate::client::Client;
use crate::failure::{refuse, Result, SYNTAX};
use crate::gate::Context;
use crate::inquiry::{self, Form};
use crate::numbers::{integer, lower};
use crate::tracking::Tracking;

/// What CLIENT TRACKING asks for, without where the target is.
struct Wish {
    is_on: bool,
    tracking: Tracking,
    /// The number of the client that is told; 0: the one that asks.
    redirect: i64,
}

impl Wish {
    /// Of the words behind TRACKING.
    fn parse(rest: Arguments<'_>) -> Result<Wish> {
        let mut wish = Wish { is_on: false, tracking: Tracking::default(), redirect: 0 };
        let mut words = rest.from(1).iter();
        while let Some(word) = words.next() {
            match (&*lower(word), words.len()) {
                (b"optin", _) => wish.tracking.opt_in = true,
                (b"optout", _) => wish.tracking.opt_out = true,
                (b"noloop", _) => wish.tracking.no_loop = true,
                (b"redirect", 1..) if wish.redirect != 0 => {
                    return refuse("ERR A client can only redirect to a single other client");
                }
                (b"redirect", 1..) => {
                    wish.redirect = integer(words.next().unwrap_or_default())?;
                    if wish.redirect == 0 {
                        return refuse(NO_TARGET);
                    }
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
        wish.is_on = match &*lower(&rest[0]) {
            b"on" => true,
            b"off" => false,
            _ => return refuse(SYNTAX),
        };
        Ok(wish)
    }
}

/// The refusal of a client that is not there.
pub(crate) const NO_TARGET: &str = "ERR The client ID you want redirect to does not exist";

/// CLIENT TRACKING ON or OFF, with options. Where another client is that is to be told all servers are asked.
pub(super) fn tracking(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    need_loop(context)?;
    let Wish { is_on, tracking, redirect } = Wish::parse(arguments.from(2))?;
    if !is_on {
        context.client.tracking = None;
    } else {
        permit(context, &tracking)?;
        if redirect != 0 {
            inquiry::ask(context, arguments, Form::Target)?;
            if let Some(parked) = &mut context.client.parked {
                parked.tracking = Some(tracking);
            }
            return Ok(());
        }
        context.client.tracking = Some(tracking);
    }
    context.client.broken_redirect = 0;
    replies.simple("OK");
    Ok(())
}

/// Which client a question is about that [`tracking`] has asked.
pub(crate) fn target(words: Arguments<'_>) -> Option<i64> {
    Wish::parse(words.from(2)).ok().map(|wish| wish.redirect)
}

/// What is read in EXEC is remembered before it begins, when nothing of it has been chosen yet.
fn need_loop(context: &Context<'_>) -> Result<()> {
    if !context.may_park {
        return refuse("ERR what is tracked is chosen before MULTI, not inside");
    }
    Ok(())
}

/// Whether the client may turn tracking on like that.
fn permit(context: &Context<'_>, chosen: &Tracking) -> Result<()> {
    if context.server.number == 0 {
        return refuse(
            "ERR the database takes no writes, so that nothing can be watched: open it for writing",
        );
    }
    if chosen.opt_in && chosen.opt_out {
        return refuse("ERR You can't specify both OPTIN mode and OPTOUT mode");
    }
    if let Some(now) = &context.client.tracking {
        if chosen.opt_in && now.opt_out || chosen.opt_out && now.opt_in {
            return refuse(
                "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then re-enabling \
                 it with a different mode.",
            );
        }
    }
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
pub(super) fn tell(client: &Client, replies: &mut Replies<'_>) {
    let chosen = client.tracking.as_ref();
    let flags: Vec<&str> = match chosen {
        None => vec!["off"],
        Some(now) => [
            (true, "on"),
            (now.opt_in, "optin"),
            (now.opt_in && now.caching, "caching-yes"),
            (now.opt_out, "optout"),
            (now.opt_out && now.caching, "caching-no"),
            (now.no_loop, "noloop"),
            (has_lost_target(client), "broken_redirect"),
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
pub(crate) fn redirected(chosen: Option<&Tracking>) -> i64 {
    chosen.map_or(-1, |chosen| chosen.target.map_or(0, |target| target.seat.client))
}

/// Whether its notices were to go to a client that was found to have gone.
pub(crate) fn has_lost_target(client: &Client) -> bool {
    client.broken_redirect != 0 && redirected(client.tracking.as_ref()) == client.broken_redirect
}
