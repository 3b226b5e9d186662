//! What those who watch are not shown: passwords. Every command of the table is called with a secret, in every way that there
//! is to call it, and MONITOR, SLOWLOG and the log are searched for it.

use std::fs;

use crate::peer::{Client, Ours, Place, Text};
use perilune_redis::Settings;
use perilune_resp::Answer;

const SECRET: &str = "SeCrEt";
/// A hash that is a secret as well.
const HASH: &str = "5ec2e70000000000000000000000000000000000000000000000000000000000";

fn settings() -> Settings {
    Settings { threads: 1, ..Settings::default() }
}

fn ok() -> Answer {
    Answer::Simple(b"OK".to_vec())
}

/// What a monitor is shown until `end` is.
fn shown(monitor: &mut Client, end: &str) -> Vec<String> {
    let mut lines = Vec::new();
    loop {
        let line = monitor.receive().expect("the end is shown").to_text();
        if line.contains(end) {
            return lines;
        }
        lines.push(line);
    }
}

fn has_secret(text: &str) -> bool {
    text.contains(SECRET) || text.contains(HASH)
}

/// MONITOR showed the passwords of ACL SETUSER.
#[test]
fn monitors_and_slowlog_see_no_passwords() {
    let place = Place::new();
    let log = place.path().join("server.log");
    let ours =
        Ours::start(&place, settings().with("logfile", log.to_str().expect("a path")).expect("a setting"));
    let (mut monitor, mut client) = (Client::connect(&ours.socket), Client::connect(&ours.socket));
    assert_eq!(monitor.line("monitor"), ok());
    assert_eq!(client.line("config set slowlog-log-slower-than 0 slowlog-max-len 1000"), ok());
    let rule = format!(">{SECRET}");
    let hash = format!("#{HASH}");
    let calls: [&[&str]; 12] = [
        &["acl", "setuser", "ada", "on", &rule],
        &["ACL", "SetUser", "ada", &hash, "~*", "+@all"],
        &["acl", "setuser", "ada", &format!("<{SECRET}")],
        &["acl", "setuser", "ada", "nosuchrule", &rule],
        &["acl", "dryrun", "ada", "auth", SECRET],
        &["acl", "dryrun", "ada", "hello", "3", "auth", "ada", SECRET],
        &["config", "set", "requirepass", SECRET],
        &["config", "set", "nosuch", SECRET],
        &["auth", SECRET],
        &["auth", "ada", SECRET],
        &["hello", "2", "auth", "ada", SECRET],
        &["hello", "3", "setname", "x", "auth", "ada", SECRET, "more"],
    ];
    let mut admin = Client::connect(&ours.socket);
    for call in calls {
        // A wrong one too many would end it.
        let mut client = Client::connect(&ours.socket);
        client.call(call);
        client.line("multi");
        client.call(call);
        client.line("exec");
        admin.call(["eval", "return redis.pcall(unpack(ARGV))", "0"].iter().chain(call));
        assert_eq!(admin.call(["config", "set", "requirepass", ""]), ok());
    }
    assert_eq!(admin.line("echo ended"), Answer::Bulk(b"ended".to_vec()));
    let lines = shown(&mut monitor, "\"ended\"");
    // A script's own arguments are what anybody gives it.
    let lines: Vec<_> = lines.into_iter().filter(|line| !line.contains("\"eval\"")).collect();
    assert!(!lines.is_empty() && !lines.iter().any(|line| has_secret(line)), "{lines:#?}");
    let slow = format!("{:?}", admin.line("slowlog get -1"));
    let entries: Vec<_> =
        slow.split("Array([Integer(").filter(|entry| !entry.contains(&bytes("eval"))).collect();
    assert!(entries.iter().any(|entry| entry.contains(&bytes("(redacted)"))), "{slow}");
    assert!(!entries.iter().any(|entry| entry.contains(&bytes(SECRET)) || entry.contains(&bytes(HASH))));
    assert!(!has_secret(&fs::read_to_string(&log).expect("a log")));
    assert!(!has_secret(&admin.line("client list").to_text()));
}

/// As `Debug` shows bytes.
fn bytes(text: &str) -> String {
    let shown = format!("{:?}", text.as_bytes());
    shown.trim_matches(['[', ']']).to_owned()
}

/// The words of a container, and the categories of each, as COMMAND INFO tells them.
fn rows(answer: &Answer, rows: &mut Vec<(String, String)>) {
    let Answer::Array(all) = answer else { panic!("no infos: {answer:?}") };
    for info in all {
        let Answer::Array(parts) = info else { panic!("no info: {info:?}") };
        rows.push((parts[0].to_text(), format!("{:?} {:?}", parts[2], parts[6])));
        self::rows(&parts[9], rows);
    }
}

/// As in Redis monitors are shown nothing of what is for operators, and nothing that lets clients in: the whole table.
#[test]
fn monitors_see_no_command_of_operators() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let mut client = Client::connect(&ours.socket);
    let mut table = Vec::new();
    rows(&client.line("command"), &mut table);
    let listed = |client: &mut Client, category: &str| -> Vec<String> {
        let Answer::Array(names) = client.call(["acl", "cat", category]) else { panic!("names") };
        names.iter().map(Text::to_text).collect()
    };
    let admin = listed(&mut client, "admin");
    let (mut count, mut private) = (0, 0);
    for (name, told) in table {
        // What ends the server, or the connection, or says more than one reply.
        if matches!(
            &*name,
            "shutdown" | "quit" | "monitor" | "reset" | "debug|panic" | "subscribe" | "psubscribe"
        ) || matches!(
            &*name,
            "ssubscribe" | "unsubscribe" | "punsubscribe" | "sunsubscribe" | "client|kill"
        ) || matches!(
            &*name,
            "debug|sleep" | "client|pause" | "client|reply" | "exec" | "multi" | "discard"
        ) {
            continue;
        }
        let is_private = admin.contains(&name) || told.contains(&bytes("no_auth"));
        let mut monitor = Client::connect(&ours.socket);
        assert_eq!(monitor.line("monitor"), ok());
        let mut client = Client::connect(&ours.socket);
        let words: Vec<&str> = name.split('|').collect();
        // With as many arguments as it takes: what is refused is shown to nobody.
        for more in 0..6 {
            let secrets = std::iter::repeat_n(SECRET, more);
            client.call(words.iter().copied().chain(secrets));
        }
        client = Client::connect(&ours.socket);
        client.line("echo ended");
        let lines = shown(&mut monitor, "\"ended\"");
        assert!(!is_private || lines.is_empty(), "{name}: {lines:#?}");
        count += 1;
        private += usize::from(is_private);
    }
    assert!(count > 200 && private > 30, "{count} commands, {private} of them private");
}
