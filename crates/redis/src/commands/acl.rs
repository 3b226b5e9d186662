//! ACL: users and what they may do.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use perilune_resp::{parse_integer, Arguments, ArgumentsBuf, Replies};

use crate::acl::{reply_log, Acl, Change, Denied, Selector, User, CATEGORIES, NAME_BYTES};
use crate::asking;
use crate::command::{commands, statements};
use crate::context::Context;
use crate::failure::{refuse, refuse_with, Result};
use crate::inquiry::Form;
use crate::numbers::lower;
use crate::refusals::{full_name, pattern_denied, wrong_number};
use crate::settings::Name;
use perilune_net::files::replace;

const NO_FILE: &str =
    "ERR This server is not configured to use an ACL file: start it with `aclfile`. Users are kept in \
                       the database without one";

const HELP: &[&str] = &[
    "ACL <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "CAT [<category>]",
    "    List all commands that belong to <category>, or all command categories",
    "    when no category is specified.",
    "DELUSER <username> [<username> ...]",
    "    Delete a list of users.",
    "DRYRUN <username> <command> [<arg> ...]",
    "    Returns whether the user can execute the given command without executing the command.",
    "GETUSER <username>",
    "    Get the user's details.",
    "GENPASS [<bits>]",
    "    Generate a secure 256-bit user password. The optional `bits` argument can",
    "    be used to specify a different size.",
    "LIST",
    "    Show users details in config file format.",
    "LOAD",
    "    Reload users from the ACL file.",
    "LOG [<count> | RESET]",
    "    Show the ACL log entries of all servers.",
    "SAVE",
    "    Save the current config to the ACL file.",
    "SETUSER <username> <attribute> [<attribute> ...]",
    "    Create or modify a user with the specified attributes.",
    "USERS",
    "    List all the registered usernames.",
    "WHOAMI",
    "    Return the current connection username.",
    "HELP",
    "    Print this help.",
];

pub(crate) fn acl(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    let rest = arguments.from(2);
    match (&*lower(&arguments[1]), rest.len()) {
        (b"whoami", 0) => replies.bulk(context.client.user_name().as_bytes()),
        (b"users", 0) => {
            let users = context.server.rules().acl().users();
            replies.array(users.len());
            users.iter().for_each(|user| replies.bulk(user.name.as_bytes()));
        }
        (b"list", 0) => {
            let users = context.server.rules().acl().users();
            replies.array(users.len());
            users.iter().for_each(|user| replies.bulk(line(user).as_bytes()));
        }
        (b"getuser", 1) => get_user(context, &rest[0], replies),
        (b"setuser", 1..) => {
            set_user(context, rest)?;
            replies.simple("OK");
        }
        (b"deluser", 1..) => delete_users(context, rest, replies)?,
        (b"cat", 0..=1) => categories(rest, replies)?,
        (b"genpass", 0..=1) => generate(rest, replies)?,
        (b"dryrun", 2..) => dry_run(context, rest, replies)?,
        (b"log", 0..=1) => log(context, arguments, replies)?,
        (b"load", 0) => {
            let path = context.server.rules().settings().path(Name::AclFile);
            let Some(path) = path else { return refuse(NO_FILE) };
            match read_file(&path, context.server.rules().live().gives_channels()) {
                Ok(users) => context.server.rules().acl().change(context.session, &users, true)?,
                Err(why) => return refuse_with(format!("ERR {why}")),
            }
            replies.simple("OK");
        }
        (b"save", 0) => {
            save(context)?;
            replies.simple("OK");
        }
        (b"help", 0) => super::help(HELP, replies),
        (b"cat" | b"genpass" | b"log", _) => {
            return refuse_with(format!(
                "ERR unknown subcommand or wrong number of arguments for '{}'. Try ACL HELP.",
                String::from_utf8_lossy(&arguments[1])
            ));
        }
        (word, _) => return refuse_with(wrong_number(&format!("acl|{}", String::from_utf8_lossy(word)))),
    }
    Ok(())
}

/// A user as a line of an ACL file.
fn line(user: &User) -> String {
    format!("user {} {}", user.name, user.rules())
}

fn get_user(context: &Context<'_>, name: &[u8], replies: &mut Replies<'_>) {
    let user = std::str::from_utf8(name).ok().and_then(|name| context.server.rules().acl().user(name));
    let Some(user) = user else { return replies.null_array() };
    let Some((own, others)) = user.selectors.split_first() else { return replies.null_array() };
    let mut flags = vec![if user.is_on { "on" } else { "off" }];
    let all = [
        (own.allows_all_keys(), "allkeys"),
        (own.allows_all_channels(), "allchannels"),
        (own.allows_all_commands(), "allcommands"),
        (user.passwords.are_needless(), "nopass"),
    ];
    flags.extend(all.iter().filter(|(is_so, _)| *is_so).map(|(_, flag)| *flag));
    replies.map(6);
    replies.bulk(b"flags");
    replies.set(flags.len());
    flags.iter().for_each(|flag| replies.simple(flag));
    replies.bulk(b"passwords");
    replies.array(user.passwords.hashes().len());
    user.passwords.hashes().iter().for_each(|hash| replies.bulk(hash.as_bytes()));
    tell_selector(own, replies);
    replies.bulk(b"selectors");
    replies.array(others.len());
    for selector in others {
        replies.map(3);
        tell_selector(selector, replies);
    }
}

fn tell_selector(selector: &Selector, replies: &mut Replies<'_>) {
    let parts = [
        ("commands", selector.command_rules()),
        ("keys", selector.key_rules()),
        ("channels", selector.channel_rules()),
    ];
    for (name, rules) in parts {
        replies.bulk(name.as_bytes());
        replies.bulk(rules.as_bytes());
    }
}

/// Rules as they are meant where users and selectors begin with all channels: by acl-pubsub-default.
fn with_channels(rules: &[&str], is_new: bool) -> Vec<String> {
    let begun = if is_new { Some("allchannels".to_owned()) } else { None };
    let meant = rules.iter().map(|rule| match rule.strip_prefix('(') {
        Some(inside) => format!("(allchannels {inside}"),
        None => (*rule).to_owned(),
    });
    let meant = meant.flat_map(|rule| {
        let again = rule.eq_ignore_ascii_case("reset").then(|| "allchannels".to_owned());
        std::iter::once(rule).chain(again)
    });
    begun.into_iter().chain(meant).collect()
}

/// The user `name` with rules applied, in the words of ACL SETUSER; who is new begins with all channels or none.
fn modified<'r>(
    (acl, gives_channels): (&Acl, bool),
    name: &str,
    rules: impl IntoIterator<Item = &'r str>,
) -> std::result::Result<Change, String> {
    if name.is_empty() || name.len() > NAME_BYTES || name.contains([' ', '\0']) {
        return Err(format!(
            "Usernames can't contain spaces or null characters, and have at most {NAME_BYTES} bytes"
        ));
    }
    let known = acl.user(name);
    let mut rules: Vec<_> = rules.into_iter().collect();
    let meant = if gives_channels { with_channels(&rules, known.is_none()) } else { Vec::new() };
    if gives_channels {
        rules = meant.iter().map(String::as_str).collect();
    }
    let mut user = known.map_or_else(|| User::new(name), |user| (*user).clone());
    match user.apply_all(&rules) {
        Ok(()) => Ok((name.to_owned(), Some(user))),
        Err((rule, why)) => Err(format!("Error in ACL SETUSER modifier '{rule}': {why}")),
    }
}

fn set_user(context: &mut Context<'_>, words: Arguments<'_>) -> Result<()> {
    let mut texts = Vec::new();
    for word in words.iter() {
        match std::str::from_utf8(word) {
            Ok(text) => texts.push(text),
            Err(_) => return refuse("ERR names and rules of users are UTF-8"),
        }
    }
    let begin = (context.server.rules().acl(), context.server.rules().live().gives_channels());
    match modified(begin, texts[0], texts[1..].iter().copied()) {
        Ok(change) => Ok(context.server.rules().acl().change(context.session, &[change], false)?),
        Err(why) => refuse_with(format!("ERR {why}")),
    }
}

fn delete_users(context: &mut Context<'_>, names: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    if names.iter().any(|name| name == b"default") {
        return refuse("ERR The 'default' user cannot be removed");
    }
    let mut changes: Vec<Change> = Vec::new();
    for name in names.iter().filter_map(|name| std::str::from_utf8(name).ok()) {
        if context.server.rules().acl().user(name).is_some()
            && !changes.iter().any(|(known, _)| known == name)
        {
            changes.push((name.to_owned(), None));
        }
    }
    context.server.rules().acl().change(context.session, &changes, false)?;
    replies.count(changes.len());
    Ok(())
}

fn categories(rest: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let Some(wanted) = rest.get(0) else {
        replies.array(CATEGORIES.len());
        CATEGORIES.iter().for_each(|category| replies.bulk(category.as_bytes()));
        return Ok(());
    };
    let given = wanted;
    let wanted = String::from_utf8_lossy(&lower(given)).into_owned();
    if !CATEGORIES.contains(&&*wanted) {
        return refuse_with(format!("ERR Unknown category '{}'", String::from_utf8_lossy(given)));
    }
    let mut names = Vec::new();
    for command in commands() {
        if command.categories().contains(&&*wanted) {
            names.push(command.name.to_owned());
            names.extend(command.words.iter().map(|word| format!("{}|{word}", command.name)));
            continue;
        }
        let (special, words) = (command.special_categories, command.special_words);
        if special.contains(&&*wanted) {
            names.extend(words.iter().map(|word| format!("{}|{word}", command.name)));
        }
    }
    replies.array(names.len());
    names.iter().for_each(|name| replies.bulk(name.as_bytes()));
    Ok(())
}

fn generate(rest: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let bits = match rest.get(0).map(parse_integer) {
        None => 256,
        Some(Some(bits @ 1..=4096)) => bits,
        _ => {
            return refuse(
                "ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up \
                 to 4096",
            );
        }
    };
    let digits = (bits as usize).div_ceil(4);
    let mut bytes = vec![0; digits.div_ceil(2)];
    if let Err(error) = File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes)) {
        return refuse_with(format!("ERR /dev/urandom: {error}"));
    }
    let mut text = String::new();
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    replies.bulk(&text.as_bytes()[..digits]);
    Ok(())
}

fn dry_run(context: &Context<'_>, rest: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let name = String::from_utf8_lossy(&rest[0]);
    let Some(user) = context.server.rules().acl().user(&name) else {
        return refuse_with(format!("ERR User '{name}' not found"));
    };
    let line: ArgumentsBuf = rest.from(1).iter().collect();
    let line = line.as_arguments();
    let Some(command) = statements::of(line) else {
        return refuse_with(format!("ERR Command '{}' not found", String::from_utf8_lossy(&line[0])));
    };
    if !command.takes(line.len()) {
        return refuse_with(wrong_number(command.name));
    }
    let shown = |place: usize| String::from_utf8_lossy(line.get(place).unwrap_or_default()).into_owned();
    match user.check(command, line) {
        Ok(()) => replies.simple("OK"),
        Err(denied) => {
            let what = match denied {
                Denied::Command => format!("run the '{}' command", full_name(command, line)),
                Denied::Key(place) => format!("access the '{}' key", shown(place)),
                Denied::Channel(place) => format!("access the '{}' channel", shown(place)),
                Denied::Pattern(place) => {
                    replies.bulk(pattern_denied(line, place).as_bytes());
                    return Ok(());
                }
            };
            replies.bulk(format!("This user has no permissions to {what}").as_bytes());
        }
    }
    Ok(())
}

/// ACL LOG: asks all servers; inside MULTI, where nothing may wait, this one.
fn log(context: &mut Context<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let form = match arguments.get(2) {
        Some(word) if word.eq_ignore_ascii_case(b"reset") => Form::Done,
        Some(word) => Form::Refusals(crate::numbers::positive(word, crate::failure::NOT_INTEGER)?),
        None => Form::Refusals(10),
    };
    if asking::ask(context, arguments, form)? {
        return Ok(());
    }
    let own = context.server.rules().acl().log.asked(arguments);
    match form {
        Form::Refusals(most) => reply_log(&own.lines, most, replies),
        _ => replies.simple("OK"),
    }
    Ok(())
}

fn save(context: &Context<'_>) -> Result<()> {
    let Some(path) = context.server.rules().settings().path(Name::AclFile) else { return refuse(NO_FILE) };
    let mut text = String::new();
    for user in context.server.rules().acl().users() {
        let _ = writeln!(text, "{}", line(&user));
    }
    match replace(&path, 0o600, text.as_bytes()) {
        Ok(()) => Ok(()),
        Err(error) => refuse_with(format!(
            "ERR There was an error trying to save the ACLs: {}: {error}",
            path.display()
        )),
    }
}

/// The users of an ACL file, or why none are taken.
pub(crate) fn read_file(path: &Path, gives_channels: bool) -> std::result::Result<Vec<Change>, String> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("Error loading ACLs, opening file '{}': {error}", path.display()))?;
    let mut users: Vec<Change> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let wrong = |why: &str| {
            format!(
                "{}:{}: {why}. WARNING: ACL errors detected, no change to the previously active ACL rules was \
                 performed",
                path.display(),
                index + 1
            )
        };
        let words: Vec<_> = line.split_whitespace().collect();
        match &words[..] {
            [] => {}
            [first, ..] if first.starts_with('#') => {}
            ["user", name, rules @ ..] => {
                if users.iter().any(|(known, _)| known == name) {
                    return Err(wrong(&format!("WARNING: Duplicate user '{name}' found")));
                }
                let begin = (&Acl::empty(), gives_channels);
                users.push(modified(begin, name, rules.iter().copied()).map_err(|why| wrong(&why))?);
            }
            _ => return Err(wrong("line should start with user keyword")),
        }
    }
    Ok(users)
}

/// The users that lines of `perilune.conf` name.
pub(crate) fn of_lines(
    acl: &Acl,
    gives_channels: bool,
    lines: &[Vec<String>],
) -> std::result::Result<Vec<Change>, String> {
    let (begin, mut users) = ((acl, gives_channels), Vec::new());
    for words in lines {
        if let Some((name, rules)) = words.split_first() {
            let rules = ["reset"].into_iter().chain(rules.iter().map(String::as_str));
            users.push(modified(begin, name, rules).map_err(|why| format!("user {name}: {why}"))?);
        }
    }
    Ok(users)
}

/// The user `default` with one password, or with none needed if it is empty: what `requirepass` means.
pub(crate) fn with_password(acl: &Acl, password: &str) -> Change {
    let mut user = acl.user("default").map_or_else(User::standard, |user| (*user).clone());
    user.passwords.set(password);
    ("default".to_owned(), Some(user))
}
