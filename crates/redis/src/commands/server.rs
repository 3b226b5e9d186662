//! What concerns the server.

use std::thread;

use perilune_resp::{Arguments, Replies};

use crate::context::Context;
use crate::failure::{refuse, refuse_with, Result, SYNTAX};
use crate::numbers::lower;
use crate::refusals::wrong_number;
use perilune_net::clock::clock;

pub(crate) fn time(_: &mut Context<'_>, _: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    replies.array(2);
    replies.bulk_integer(since.as_secs() as i64);
    replies.bulk_integer(i64::from(since.subsec_micros()));
    Ok(())
}

/// SHUTDOWN: as SIGTERM does; what is written is kept, since there is nothing to save.
pub(crate) fn shutdown(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
    _: &mut Replies<'_>,
) -> Result<()> {
    for word in arguments.from(1).iter() {
        match &*lower(word) {
            b"nosave" | b"save" | b"now" | b"force" => {}
            b"abort" if arguments.len() == 2 => return refuse("ERR No shutdown in progress."),
            _ => return refuse(SYNTAX),
        }
    }
    context.client.closing = true;
    context.server.stop();
    Ok(())
}

/// SAVE: answers when a checkpoint has been taken. It takes as long as the disk does, on a thread of its own.
pub(crate) fn save(context: &mut Context<'_>, _: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let database = context.server.database().clone();
    match context.park_for_later() {
        None => {
            database.checkpoint()?;
            replies.simple("OK");
        }
        Some(later) => {
            // If there is no thread to be had, the reply is the one of a promise that nobody kept.
            let _ = thread::Builder::new().name("save".to_owned()).spawn(move || {
                let mut bytes = Vec::new();
                match database.checkpoint() {
                    Ok(_) => bytes.extend_from_slice(b"+OK\r\n"),
                    Err(error) => bytes.extend(format!("-MISCONF {error}\r\n").bytes()),
                }
                later.reply(bytes);
            });
        }
    }
    Ok(())
}

/// BGSAVE and BGREWRITEAOF: a checkpoint, without waiting for it. BGSAVE SCHEDULE is the same.
pub(crate) fn save_behind(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    let rewrites = arguments[0].eq_ignore_ascii_case(b"bgrewriteaof");
    match (arguments.len(), arguments.get(1)) {
        (1, _) => {}
        (2, Some(word)) if !rewrites && word.eq_ignore_ascii_case(b"schedule") => {}
        _ if rewrites => return refuse_with(wrong_number("bgrewriteaof")),
        _ => return refuse(SYNTAX),
    }
    let database = context.server.database().clone();
    let spawned = thread::Builder::new().name("bgsave".to_owned()).spawn(move || database.checkpoint());
    if let Err(error) = spawned {
        return refuse_with(format!("ERR no thread for it: {error}"));
    }
    replies.simple(match rewrites {
        true => "Background append only file rewriting started",
        false => "Background saving started",
    });
    Ok(())
}

/// When the last checkpoint was taken, in seconds since 1970.
pub(crate) fn last_save(context: &Context<'_>) -> Result<i64> {
    let figures = context.server.database().stat()?;
    let age =
        figures.iter().find(|figure| figure.name == "checkpoint_age_ms").map_or(0, |figure| figure.value);
    Ok((clock() - age as i64) / 1_000)
}

pub(crate) fn lastsave(context: &mut Context<'_>, _: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    replies.integer(last_save(context)?);
    Ok(())
}

/// ROLE: every server is a master, and none has replicas.
pub(crate) fn role(_: &mut Context<'_>, _: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    replies.array(3);
    replies.bulk(b"master");
    replies.integer(0);
    replies.array(0);
    Ok(())
}

/// LOLWUT: the moon at perilune, and the version.
pub(crate) fn lolwut(_: &mut Context<'_>, _: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let (wide, high) = (40_i32, 15_i32);
    let mut text = String::new();
    for row in 0..high {
        for column in 0..wide {
            // The disc, and the planet's shadow on it.
            let (x, y) = (column - wide / 2, (row - high / 2) * 2);
            let (lit, dark) = (x * x + y * y < 196, (x - 9) * (x - 9) + y * y < 170);
            text.push(match (lit, dark) {
                (true, false) => '#',
                (true, true) => '.',
                _ => ' ',
            });
        }
        text.push('\n');
    }
    text.push_str(concat!("\nPerilune ver. ", env!("CARGO_PKG_VERSION"), "\n"));
    replies.verbatim(text.as_bytes());
    Ok(())
}
