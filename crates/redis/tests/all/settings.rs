//! perilune.conf, CONFIG, and what servers of one database share of it.

use std::fs;
use std::time::{Duration, Instant};

use crate::peer::{Client, Ours, Place, Text};
use perilune_redis::{find, Running, Settings};
use perilune_resp::Answer;

fn settings() -> Settings {
    Settings { threads: 1, ..Settings::default() }
}

fn ok() -> Answer {
    Answer::Simple(b"OK".to_vec())
}

fn error(text: &str) -> Answer {
    Answer::Error(text.as_bytes().to_vec())
}

/// What CONFIG GET answers for one name.
fn get(client: &mut Client, name: &str) -> String {
    match client.line(&format!("config get {name}")) {
        Answer::Array(pair) => match &pair[..] {
            [_, Answer::Bulk(text)] => String::from_utf8(text.clone()).unwrap(),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_one_server_sets_all_have() -> perilune::Result<()> {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let socket = place.path().join("second.sock");
    let start = |settings: Settings| {
        Running::start(&ours.database, Settings { port: 0, unix_socket: Some(socket.clone()), ..settings })
            .expect("a second server")
    };
    let second = start(settings());
    let (mut here, mut there) = (Client::connect(&ours.socket), Client::connect(&socket));
    assert_eq!(get(&mut there, "maxmemory"), "0");
    assert_eq!(here.line("config set maxmemory 1mb maxmemory-policy allkeys-lru"), ok());
    assert_eq!(get(&mut here, "maxmemory"), "1048576");
    let wait_for = |client: &mut Client, name: &str, value: &str| {
        let start = Instant::now();
        while get(client, name) != value {
            assert!(start.elapsed() < Duration::from_secs(20), "the other server does not follow");
            std::thread::yield_now();
        }
    };
    wait_for(&mut there, "maxmemory", "1048576");
    assert_eq!(get(&mut there, "maxmemory-policy"), "allkeys-lru");
    // A program sets one by node; nonsense changes nothing.
    let mut session = ours.database.session()?;
    session.set(&perilune::node!("^redis", "config", "maxmemory")?, "many")?;
    session.set(&perilune::node!("^redis", "config", "timeout")?, 60)?;
    wait_for(&mut here, "timeout", "60");
    assert_eq!(get(&mut here, "maxmemory"), "1048576");

    second.stopper().stop();
    second.wait();
    // What is given at the start is set for all; what is not is as it was.
    let second = start(settings().with("timeout", "7").unwrap());
    wait_for(&mut here, "timeout", "7");
    assert_eq!(get(&mut Client::connect(&socket), "maxmemory-policy"), "allkeys-lru");
    second.stopper().stop();
    second.wait();
    Ok(())
}

/// `timeout` ends who is idle, and nobody who waits for messages.
#[test]
fn idle_clients_are_disconnected() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let (mut idle, mut subscriber) = (Client::connect(&ours.socket), Client::connect(&ours.socket));
    subscriber.line("subscribe news");
    assert_eq!(idle.line("config set timeout 1"), ok());
    assert_eq!(idle.receive(), None);
    let mut client = Client::connect(&ours.socket);
    assert_eq!(client.line("publish news hi"), Answer::Integer(1));
    assert!(subscriber.receive().is_some());
}

#[test]
fn wrong_settings_are_refused_as_redis_refuses_them() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let mut client = Client::connect(&ours.socket);
    let failed = |name: &str, why: &str| {
        error(&format!("ERR CONFIG SET failed (possibly related to argument '{name}') - {why}"))
    };
    let cases = [
        ("maxmemory lots", failed("maxmemory", "argument must be a memory value")),
        ("maxclients 0", failed("maxclients", "argument must be between 1 and 4294967296 inclusive")),
        ("maxclients x", failed("maxclients", "argument couldn't be parsed into an integer")),
        ("protected-mode maybe", failed("protected-mode", "argument must be 'yes' or 'no'")),
        ("port 7", failed("port", "can't set immutable config")),
        (
            "maxmemory 5mb maxmemory-clients 200%",
            failed("maxmemory-clients", "percentage argument must be less or equal to 100"),
        ),
        ("timeout 1 TIMEOUT 2", failed("timeout", "duplicate parameter")),
        (
            "timeout 9 replica-priority 1",
            error("ERR Unknown option or number of arguments for CONFIG SET - 'replica-priority'"),
        ),
        ("timeout 9 Daemonize yes", failed("daemonize", "can't set immutable config")),
    ];
    for (words, answer) in cases {
        assert_eq!(client.line(&format!("config set {words}")), answer);
    }
    assert_eq!(
        client.line("config set timeout"),
        error("ERR wrong number of arguments for 'config|set' command")
    );
    assert_eq!(client.line("config rewrite"), error("ERR The server is running without a config file"));
    assert_eq!(client.line("config resetstat"), ok());
    assert_eq!(client.line("config set daemonize no maxmemory-clients 0"), ok());
    let Answer::Array(told) = client.line("config get maxmemory maxmemory* *of maxmemory") else {
        panic!("an array")
    };
    let names: Vec<_> = told.iter().step_by(2).map(Text::to_text).collect();
    let wanted =
        ["maxmemory", "maxmemory-clients", "maxmemory-policy", "maxmemory-samples", "replicaof", "slaveof"];
    assert_eq!(names, wanted);
    // All or none.
    assert_eq!(get(&mut client, "timeout"), "0");
    assert_eq!(client.call(["CONFIG", "SET", "save", ""]), ok());
}

#[test]
fn a_file_is_read_and_written_again() {
    let place = Place::new();
    let path = place.path().join("perilune.conf");
    fs::write(place.path().join("more.conf"), "slowlog-max-len 7\n").unwrap();
    let text = "# Ours\nthreads 1\nthreads-awake as-needed\ninclude more.conf\nMaxMemory 1gb   \nrequirepass \"a b\"\n";
    fs::write(&path, text).unwrap();
    let mut settings = Settings::default();
    settings.read_file(&path).unwrap();
    assert_eq!(settings.threads, 1);
    let ours = Ours::start(&place, settings);
    let mut client = Client::connect(&ours.socket);
    assert_eq!(client.call(["AUTH", "a b"]), ok());
    assert_eq!(get(&mut client, "maxmemory"), "1073741824");
    assert_eq!(get(&mut client, "slowlog-max-len"), "7");
    assert_eq!(client.line("config set maxmemory 5 timeout 9"), ok());
    for _ in 0..2 {
        assert_eq!(client.line("config rewrite"), ok());
        let text = fs::read_to_string(&path).unwrap();
        let expected = "# Ours\nthreads 1\nthreads-awake as-needed\ninclude more.conf\nmaxmemory 5\nrequirepass \"a b\"\n\
                        # Generated by CONFIG REWRITE\nslowlog-max-len 7\ntimeout 9\n";
        assert_eq!(text, expected);
    }
}

#[test]
fn errors_of_a_file_name_the_line_and_the_nearest_name() {
    let place = Place::new();
    let path = place.path().join("wrong.conf");
    let cases = [
        ("port 1\nmaxmemroy 1gb", "wrong.conf:2: there is no setting `maxmemroy`; is `maxmemory` meant?"),
        ("timeout", "wrong.conf:1: `timeout`: takes one value"),
        ("timeout \"1", "wrong.conf:1: a quote is not closed"),
        ("timeout x", "wrong.conf:1: `timeout`: argument couldn't be parsed"),
        ("include wrong.conf", "wrong.conf:1: files include one another more than 16 deep"),
        ("include nowhere.conf", "nowhere.conf"),
        ("hz 10\nreplicaof a 1", "wrong.conf:2: `replicaof`: is always \"\" here: there is no replication"),
        ("cluster-enabled yes", "wrong.conf:1: `cluster-enabled`: is always no here: there is no cluster"),
        ("rename-command FLUSHALL \"\"", "wrong.conf:1: `rename-command`: take commands away by rules"),
    ];
    for (text, expected) in cases {
        fs::write(&path, text).unwrap();
        let error = Settings::default().read_file(&path).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

/// `appendfsync everysec` behind `appendonly no`, as every redis.conf has them, took that back; `appendonly yes` by a flag
/// did not.
#[test]
fn the_level_is_what_the_words_of_redis_mean_together() {
    let level = |words: &[(&str, &str)]| {
        let mut settings = Settings::default();
        words.iter().for_each(|(name, value)| settings.set(name, value).unwrap());
        settings.text(find("durability").unwrap().id)
    };
    let (only, sync, durability) = ("appendonly", "appendfsync", "durability");
    let cases: [(&[(&str, &str)], &str); 9] = [
        (&[], ""),
        (&[(only, "yes")], ""),
        (&[(only, "no"), (sync, "everysec")], "none"),
        (&[(sync, "always"), (only, "no")], "none"),
        (&[(only, "no"), (sync, "always"), (only, "yes")], "fsync"),
        (&[(only, "yes"), (sync, "no")], "none"),
        (&[(sync, "no"), (durability, "periodic")], "periodic"),
        (&[(only, "no"), (durability, "fsync")], "fsync"),
        (&[(durability, "fsync"), (only, "no")], "none"),
    ];
    for (words, is) in cases {
        assert_eq!(level(words), is, "{words:?}");
    }
}

/// A redis.conf stopped the start at its first line about snapshots, replicas or the layout of memory, and again at the
/// next one.
#[test]
fn a_file_of_redis_is_taken() {
    let place = Place::new();
    let path = place.path().join("redis.conf");
    let text = "bind 127.0.0.1 -::1\nprotected-mode yes\ntimeout 3\ndaemonize yes\nsupervised systemd\n\
                always-show-logo no\nproc-title-template \"{title} {listen-addr} {server-mode}\"\n\
                save 3600 1 300 100\nsave 60 10000\nSave \"\"\nrdbcompression yes\nreplica-priority 100\n\
                oom-score-adj-values 0 200 800\nappendonly no\nappendfsync everysec\n\
                hash-max-listpack-entries 512\nhash-max-listpack-entries 128\n\
                client-output-buffer-limit replica 256mb 64mb 60\nhz 10\n";
    fs::write(&path, text).unwrap();
    let mut settings = Settings { threads: 1, ..Settings::default() };
    settings.read_file(&path).unwrap();
    let passed_over = [
        "daemonize",
        "always-show-logo",
        "proc-title-template",
        "save",
        "rdbcompression",
        "replica-priority",
        "oom-score-adj-values",
        "hash-max-listpack-entries",
        "hz",
    ];
    assert_eq!(settings.passed_over, passed_over);
    let ours = Ours::start(&place, settings);
    let mut client = Client::connect(&ours.socket);
    assert_eq!(get(&mut client, "timeout"), "3");
    assert_eq!(get(&mut client, "save"), "");
    assert_eq!(client.line("config set timeout 4"), ok());
    assert_eq!(client.line("config rewrite"), ok());
    let written = fs::read_to_string(&path).unwrap();
    assert!(written.contains("timeout 4\n") && written.contains("rdbcompression yes\n"), "{written}");
}

/// docs/reference/settings.md has a row for each setting, as the table has it.
#[test]
fn the_reference_names_every_setting() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/settings.md");
    let text = fs::read_to_string(path).unwrap();
    let mut rows = Vec::new();
    for setting in perilune_redis::SETTINGS {
        let whose = match setting.scope {
            perilune_redis::Scope::Server => "server",
            perilune_redis::Scope::Shared => "all",
        };
        let default =
            if setting.default.is_empty() { String::new() } else { format!("`{}`", setting.default) };
        rows.push(format!("| `{}` | {whose} | {default} | {} |", setting.name, setting.summary));
    }
    let told: Vec<_> = text.lines().filter(|line| line.starts_with("| `")).collect();
    assert!(told == rows, "docs/reference/settings.md should have these rows:\n{}", rows.join("\n"));
}
