//! CLIENT TRACKING, CACHING, TRACKINGINFO, GETREDIR.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;
use std::time::{Duration, Instant};

use perilune_resp::{Arguments, Replies};

use crate::asking;
use crate::client::Client;
use crate::context::Context;
use crate::failure::{refuse, refuse_with, Result, SYNTAX};
use crate::inquiry::Form;
use crate::invalidation::{redirected, Prefixes, Tracking};
use crate::limits::SUBSCRIBED_BYTES;
use crate::numbers::{integer, lower};
use crate::tracking::broadcast;

/// What CLIENT TRACKING asks for, without where the target is.
struct Wish {
    is_on: bool,
    tracking: Tracking,
    /// The number of the client that is told; 0: the one that asks.
    redirect: i64,
    broadcasts: bool,
    prefixes: Vec<Vec<u8>>,
}

impl Wish {
    /// Of the words behind TRACKING.
    fn parse(rest: Arguments<'_>) -> Result<Wish> {
        let mut wish = Wish {
            is_on: false,
            tracking: Tracking::default(),
            redirect: 0,
            broadcasts: false,
            prefixes: Vec::new(),
        };
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
                (b"bcast", _) => wish.broadcasts = true,
                (b"prefix", 1..) => wish.prefixes.extend(words.next().map(<[u8]>::to_vec)),
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

/// How long all servers have to hear that there is somebody to tell.
const HEARD: Duration = Duration::from_secs(10);

/// The refusal where one has not.
pub(crate) const UNHEARD: &str =
    "ERR a server of this database does not answer, and could leave changes out: try again";

/// The refusal of a client that is not there.
pub(crate) const NO_TARGET: &str = "ERR The client ID you want redirect to does not exist";

/// CLIENT TRACKING ON or OFF, with options. Where another client is that is to be told all servers are asked.
pub(super) fn tracking(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    need_loop(context)?;
    let wish = Wish::parse(arguments.from(2))?;
    if !wish.is_on {
        context.client.tracking = None;
    } else {
        permit(context, &wish)?;
        let Wish { mut tracking, redirect, broadcasts, prefixes, .. } = wish;
        if broadcasts {
            tracking.prefixes = Some(all_prefixes(context.client.tracking.as_ref(), prefixes)?);
            // Before anybody is asked: who is on behind that finds it.
            broadcast::note(context.session, context.server.number(), context.client.seat.thread)?;
        }
        if redirect != 0 || broadcasts {
            asking::ask(context, arguments, Form::Target)?;
            if let Some(parked) = &mut context.client.parked {
                parked.tracking = Some(tracking);
                parked.redirects = redirect != 0;
                if broadcasts {
                    parked.until = Instant::now().checked_add(HEARD);
                }
            }
            return Ok(());
        }
        context.client.tracking = Some(tracking);
    }
    context.client.broken_redirect = 0;
    replies.simple("OK");
    Ok(())
}

/// The prefixes that a client has from now on: those that it has, and those that it chooses; with none all keys.
fn all_prefixes(now: Option<&Tracking>, mut chosen: Vec<Vec<u8>>) -> Result<Prefixes> {
    if chosen.is_empty() {
        chosen.push(Vec::new());
    }
    let known = now.and_then(|now| now.prefixes.as_deref()).into_iter().flatten().cloned();
    let prefixes: BTreeSet<Vec<u8>> = known.chain(chosen).collect();
    if prefixes.iter().map(Vec::len).sum::<usize>() > SUBSCRIBED_BYTES {
        return refuse("ERR the prefixes of this client take too much memory");
    }
    Ok(Arc::new(prefixes))
}

/// Whether a question is that all commands are to tell what they change.
pub(crate) fn wants_all(words: Arguments<'_>) -> bool {
    Wish::parse(words.from(2)).is_ok_and(|wish| wish.broadcasts)
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
fn permit(context: &Context<'_>, wish: &Wish) -> Result<()> {
    let (chosen, now) = (&wish.tracking, context.client.tracking.as_ref());
    if context.server.number() == 0 {
        return refuse(
            "ERR the database takes no writes, so that nothing can be watched: open it for writing",
        );
    }
    if !wish.broadcasts && !wish.prefixes.is_empty() {
        return refuse("ERR PREFIX option requires BCAST mode to be enabled");
    }
    if now.is_some_and(|now| now.prefixes.is_some() != wish.broadcasts) {
        return refuse(
            "ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then re-enabling it \
             with a different mode.",
        );
    }
    if wish.broadcasts && (chosen.opt_in || chosen.opt_out) {
        return refuse("ERR OPTIN and OPTOUT are not compatible with BCAST");
    }
    if chosen.opt_in && chosen.opt_out {
        return refuse("ERR You can't specify both OPTIN mode and OPTOUT mode");
    }
    if let Some(now) = now {
        if chosen.opt_in && now.opt_out || chosen.opt_out && now.opt_in {
            return refuse(
                "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then re-enabling \
                 it with a different mode.",
            );
        }
    }
    let none = BTreeSet::new();
    let known = now.and_then(|now| now.prefixes.as_deref()).unwrap_or(&none);
    let mut others: BTreeSet<Vec<u8>> = BTreeSet::new();
    for prefix in &wish.prefixes {
        let text = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
        let clash = |what: &str, prefix: &[u8], other: &[u8]| {
            refuse_with(format!(
                "ERR Prefix '{}' overlaps with {what} prefix '{}'. Prefixes for a single client must not overlap.",
                text(prefix),
                text(other)
            ))
        };
        if let Some(other) = overlapping(known, prefix) {
            return clash("an existing", prefix, other);
        }
        if let Some(other) = overlapping(&others, prefix) {
            return clash("another provided", other, prefix);
        }
        others.insert(prefix.clone());
    }
    Ok(())
}

/// What begins with a prefix, or is the beginning of it. None of `others` is of another one.
fn overlapping<'o>(others: &'o BTreeSet<Vec<u8>>, prefix: &[u8]) -> Option<&'o Vec<u8>> {
    let above = others.range::<[u8], _>((Bound::Included(prefix), Bound::Unbounded)).next();
    let below = others.range::<[u8], _>((Bound::Unbounded, Bound::Excluded(prefix))).next_back();
    above.filter(|other| other.starts_with(prefix)).or(below.filter(|other| prefix.starts_with(other)))
}

/// CLIENT CACHING YES or NO: of the command that comes.
pub(super) fn caching(context: &mut Context<'_>, word: &[u8], replies: &mut Replies<'_>) -> Result<()> {
    need_loop(context)?;
    let Some(tracking) = context.client.tracking.as_mut() else {
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
            (now.prefixes.is_some(), "bcast"),
            (now.opt_in, "optin"),
            (now.opt_in && now.caching, "caching-yes"),
            (now.opt_out, "optout"),
            (now.opt_out && now.caching, "caching-no"),
            (now.no_loop, "noloop"),
            (client.has_lost_target(), "broken_redirect"),
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
    let prefixes = chosen.and_then(|chosen| chosen.prefixes.as_deref());
    replies.bulk(b"prefixes");
    replies.array(prefixes.map_or(0, BTreeSet::len));
    prefixes.into_iter().flatten().for_each(|prefix| replies.bulk(prefix));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each prefix was compared with each other one: 20,000 of them held the loop for eleven seconds.
    #[test]
    fn overlaps_are_found_by_the_neighbours() {
        let prefix = |number: usize, letters: usize| format!("{number:b}").as_bytes()[..letters].to_vec();
        let letters = |number: usize| 0..=number.ilog2() as usize + 1;
        let of = |number| letters(number).map(move |letters| prefix(number, letters));
        let all: Vec<Vec<u8>> = (1..64).flat_map(of).collect();
        let mut others = BTreeSet::new();
        for prefix in all.iter().rev().chain(&all) {
            let is_found = |other: &&Vec<u8>| other.starts_with(prefix) || prefix.starts_with(other);
            let found = overlapping(&others, prefix);
            assert_eq!(
                found.is_some(),
                others.iter().any(|other| is_found(&other)),
                "{prefix:?} of {others:?}"
            );
            assert!(found.is_none_or(|other| is_found(&other)));
            if found.is_none() {
                others.insert(prefix.clone());
            }
        }
        assert!(others.len() > 20);
    }
}
