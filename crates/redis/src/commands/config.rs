//! CONFIG: what is set, and changing it for all servers of the database.

use std::sync::atomic::Ordering;

use perilune_resp::{Arguments, Replies};

use crate::commands::acl::with_password;
use crate::context::Context;
use crate::failure::{refuse, refuse_with, Result};
use crate::mailbox::Mailbox;
use crate::numbers::lower;
use crate::pattern;
use crate::refusals::wrong_number;
use crate::server::Server;
use crate::settings::{find, fixed, rewrite, Name, Scope, Setting, FIXED, SETTINGS};
use perilune_net::journal::Level;

const HELP: &[&str] = &[
    "CONFIG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "GET <pattern> [<pattern> ...]",
    "    Return settings whose names match.",
    "SET <name> <value> [<name> <value> ...]",
    "    Set settings, for all servers of the database.",
    "RESETSTAT",
    "    Reset the statistics that INFO tells of this server.",
    "REWRITE",
    "    Write the settings into the file that this server was started with.",
    "HELP",
    "    Print this help.",
];

pub(crate) fn config(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    let rest = arguments.from(2);
    match (&*lower(&arguments[1]), rest.len()) {
        (b"get", 1..) => get(context.server, rest, replies),
        (b"set", 2..) => set(context, rest)?,
        (b"resetstat", 0) => reset(context.server),
        (b"rewrite", 0) => write(context.server)?,
        (b"help", 0) => super::help(HELP, replies),
        (word, _) => {
            return refuse_with(wrong_number(&format!("config|{}", String::from_utf8_lossy(word))));
        }
    }
    if !matches!(&*lower(&arguments[1]), b"get" | b"help") {
        replies.simple("OK");
    }
    Ok(())
}

/// What a setting is, as CONFIG GET tells it.
fn text(server: &Server, setting: &Setting) -> String {
    match setting.scope {
        Scope::Server => server.rules().settings().text(setting.id),
        Scope::Shared if setting.id == Name::RequirePass => {
            server.rules().password_text().unwrap_or_default()
        }
        Scope::Shared => server.rules().live().text(setting.id),
    }
}

fn get(server: &Server, patterns: Arguments<'_>, replies: &mut Replies<'_>) {
    let wanted = |name: &str| patterns.iter().any(|word| pattern::matches(&lower(word), name.as_bytes()));
    let rows = SETTINGS.iter().filter(|row| wanted(row.name)).map(|row| (row.name, text(server, row)));
    let fixed =
        FIXED.iter().filter(|(name, _)| wanted(name)).map(|(name, value)| (*name, (*value).to_owned()));
    // What clients ask for by its older name, they get by that.
    let older = ["io-threads"].into_iter().filter_map(|alias| {
        let asked = patterns.iter().any(|word| lower(word) == alias.as_bytes());
        find(alias).filter(|_| asked).map(|setting| (alias, text(server, setting)))
    });
    let all: Vec<_> = rows.chain(fixed).chain(older).collect();
    replies.map(all.len());
    for (name, value) in all {
        replies.bulk(name.as_bytes());
        replies.bulk(value.as_bytes());
    }
}

/// All of them or none.
fn set(context: &mut Context<'_>, pairs: Arguments<'_>) -> Result<()> {
    if !pairs.len().is_multiple_of(2) {
        return refuse_with(wrong_number("config|set"));
    }
    let mut values: Vec<(Name, String)> = Vec::new();
    let words: Vec<_> = pairs.iter().map(|word| String::from_utf8_lossy(word)).collect();
    for pair in words.chunks(2) {
        let failed = |why: &str| {
            refuse_with(format!(
                "ERR CONFIG SET failed (possibly related to argument '{}') - {why}",
                pair[0].to_ascii_lowercase()
            ))
        };
        let Some(setting) = find(&pair[0]) else {
            match fixed(&pair[0]) {
                Some(value) if value == pair[1] => continue,
                Some(_) => return failed("can't set immutable config"),
                None => {}
            }
            return refuse_with(format!(
                "ERR Unknown option or number of arguments for CONFIG SET - '{}'",
                pair[0]
            ));
        };
        if values.iter().any(|(name, _)| *name == setting.id) {
            return failed("duplicate parameter");
        }
        let parsed = match setting.kind.parse(&pair[1]) {
            Ok(parsed) => parsed,
            Err(why) => return failed(&why),
        };
        if setting.scope == Scope::Server {
            // What is so already may be asked for: programs say `save ""` to any server.
            if text(context.server, setting) == parsed.text {
                continue;
            }
            return failed("can't set immutable config");
        }
        let mut text = parsed.text;
        if setting.id == Name::ClientOutputBufferLimit {
            // Classes that are not named stay as they are.
            let all = format!("{} {}", context.server.rules().live().text(setting.id), pair[1]);
            text = setting.kind.parse(&all).map_or(text, |parsed| parsed.text);
        }
        values.push((setting.id, text));
    }
    context.server.rules().live().change(context.session, &values)?;
    for (name, text) in &values {
        let text = if *name == Name::RequirePass { "(redacted)" } else { text };
        let details = [("setting", name.row().name), ("value", text), ("user", context.client.user_name())];
        context.server.note(Level::Notice, "setting changed", &details);
    }
    if let Some((_, password)) = values.iter().find(|(name, _)| *name == Name::RequirePass) {
        let user = with_password(context.server.rules().acl(), password);
        context.server.rules().acl().change(context.session, &[user], false)?;
    }
    if values.iter().any(|(name, _)| matches!(name, Name::MaxMemory | Name::MaxMemoryClients)) {
        // Each loop looks at what its clients take.
        context.server.crew().mailboxes().iter().for_each(Mailbox::wake);
    }
    if values.iter().any(|(name, _)| *name == Name::MaxMemory) {
        // What is too much begins to go at once, and not with the next write.
        context.make_room(0);
    }
    Ok(())
}

fn reset(server: &Server) {
    let figures = server.measures().figures();
    server.measures().statistics().reset();
    let counters =
        [&figures.connections, &figures.rejected, &figures.swept, &figures.evicted, &figures.evicted_clients];
    for counter in counters {
        counter.store(0, Ordering::Relaxed);
    }
}

fn write(server: &Server) -> Result<()> {
    let Some(path) = &server.rules().settings().file else {
        return refuse("ERR The server is running without a config file");
    };
    let values: Vec<_> = SETTINGS
        .iter()
        .filter(|setting| setting.scope == Scope::Shared || server.rules().settings().is_given(setting.id))
        .map(|setting| match setting.id {
            // What is not known cannot be written, and what was is wrong: the one that holds lies in the database.
            Name::RequirePass => (setting, server.rules().password_text()),
            _ => (setting, Some(text(server, setting))),
        })
        .collect();
    match rewrite(path, &values) {
        Ok(()) => Ok(()),
        Err(error) => refuse_with(format!("ERR Rewriting config file: {}: {error}", path.display())),
    }
}
