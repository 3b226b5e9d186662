//! What operators ask of a server: INFO, SLOWLOG, LATENCY, MEMORY, COMMAND, DEBUG, checkpoints.

use crate::peer;

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::peer::{Client, Ours, Place};
use perilune::{Database, Durability};
use perilune_redis::{Running, Settings};
use perilune_resp::{Answer, ArgumentsBuf};

fn settings() -> Settings {
    Settings { threads: 1, ..Settings::default() }
}

fn ok() -> Answer {
    Answer::Simple(b"OK".to_vec())
}

fn text(answer: Answer) -> String {
    match answer {
        Answer::Error(text) | Answer::Bulk(text) | Answer::Simple(text) => String::from_utf8(text).unwrap(),
        other => panic!("{other:?} is no text"),
    }
}

fn array(answer: Answer) -> Vec<Answer> {
    match answer {
        Answer::Array(parts) => parts,
        other => panic!("{other:?} is no array"),
    }
}

/// The fields of INFO.
fn info(client: &mut Client, section: &str) -> HashMap<String, String> {
    let told = text(client.line(&format!("info {section}")));
    let fields = told.lines().filter_map(|line| line.split_once(':'));
    fields.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

#[test]
fn info_counts_what_happened() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let mut client = Client::connect(&ours.socket);
    for number in 0..5 {
        assert_eq!(client.line(&format!("set key{number} x")), ok());
    }
    assert!(client.line("incr key0").is_error());
    assert!(client.line("get").is_error());
    let all = info(&mut client, "everything");
    assert_eq!(all["db0"], "keys=5,expires=0,avg_ttl=0");
    assert_eq!(all["connected_clients"], "1");
    assert_eq!(all["tcp_port"], ours.port.to_string());
    assert_eq!(all["run_id"].len(), 40);
    assert!(all["cmdstat_set"].starts_with("calls=5,") && all["cmdstat_set"].ends_with("failed_calls=0"));
    assert!(all["cmdstat_incr"].starts_with("calls=1,") && all["cmdstat_incr"].ends_with("failed_calls=1"));
    assert!(all["cmdstat_get"].contains("rejected_calls=1"));
    assert_eq!(all["errorstat_ERR"], "count=2");
    // The level that the database was made with, which nobody has named here.
    assert_eq!(all["durability"], "periodic");
    assert_eq!(all["aof_enabled"], "1");
    assert!(all["used_memory"].parse::<u64>().unwrap() > 0);
    let default = info(&mut client, "default");
    assert!(default.contains_key("role") && !default.contains_key("cmdstat_set"));
    assert_eq!(info(&mut client, "persistence").get("role"), None);
    let number = |all: &HashMap<String, String>, name: &str| all[name].parse::<u64>().unwrap();
    assert!(number(&all, "used_memory_peak") >= number(&all, "used_memory"));
    // What is asked and answered in between is counted, to the byte: the answer that tells of it has not left.
    let before = info(&mut client, "stats");
    let reply = client.line("echo 1234567890");
    assert_eq!(reply, Answer::Bulk(b"1234567890".to_vec()));
    client.line("ping");
    let after = info(&mut client, "stats");
    let came = number(&after, "total_net_input_bytes") - number(&before, "total_net_input_bytes");
    assert_eq!(came, request(&["echo", "1234567890"]) + request(&["ping"]) + request(&["info", "stats"]));
    assert!(number(&after, "total_net_output_bytes") - number(&before, "total_net_output_bytes") > 24);
    let histogram = array(client.line("latency histogram set"));
    assert_eq!(histogram[0], Answer::Bulk(b"set".to_vec()));
    assert_eq!(array(histogram[1].clone())[1], Answer::Integer(5));
    assert_eq!(client.line("config resetstat"), ok());
    assert!(!info(&mut client, "commandstats").contains_key("cmdstat_set"));
}

/// Bytes of a request.
fn request(words: &[&str]) -> u64 {
    let mut bytes = Vec::new();
    words.iter().collect::<ArgumentsBuf>().write_request(&mut bytes);
    bytes.len() as u64
}

/// What INFO counts of commands and errors: names with calls, rejected and failed ones, and codes.
fn counted(client: &mut Client) -> Vec<String> {
    let mut told = Vec::new();
    for (name, value) in [info(client, "commandstats"), info(client, "errorstats")].into_iter().flatten() {
        let fields = value.split(',').filter(|field| !field.starts_with("usec"));
        let own = ["info", "config", "config|resetstat"].iter().any(|own| name.ends_with(own));
        if !own {
            told.push(format!("{name} {}", fields.collect::<Vec<_>>().join(",")));
        }
    }
    for figure in ["total_error_replies", "keyspace_hits", "keyspace_misses"] {
        told.push(format!("{figure} {}", info(client, "stats")[figure]));
    }
    told.sort();
    told
}

/// Each step from new counters: what fails in a script or transaction counts once, wherever it is told again.
#[test]
fn info_counts_inside_scripts_and_transactions_as_redis_does() {
    let place = Place::new();
    let (ours, redis) = (Ours::start(&place, settings()), peer::Redis::start(&place));
    let (mut ours, mut theirs) = (Client::connect(&ours.socket), Client::connect(&redis.socket));
    for steps in [
        &[&["eval", "redis.call('set', 'k', 'x') redis.call('get', 'k') return redis.call('get', 'k')", "0"]
            [..]][..],
        &[&["eval", "redis.call('incr', 'k')", "0"]],
        &[&["eval", "return redis.pcall('incr', 'k')", "0"]],
        &[&["eval", "redis.pcall('incr', 'k') redis.pcall('nosuch') return 1", "0"]],
        &[&[
            "eval",
            "redis.call('lpush', 'l', 'a') redis.call('set', 'k', 'y') return redis.call('lpop', 'k')",
            "0",
        ]],
        &[&["eval_ro", "return redis.pcall('set', 'k', 'y')", "0"]],
        &[&["eval", "return redis.error_reply('MINE and more')", "0"]],
        &[&["eval", "return redis.error_reply('')", "0"]],
        &[&["eval", "return {err='OTHER x'}", "0"]],
        &[&["eval", "return redis.status_reply('FINE x')", "0"]],
        &[&["eval", "error('here')", "0"]],
        &[&["eval", "return redis.call('select', 99)", "0"]],
        &[&["evalsha", "no", "0"]],
        &[
            &["multi"],
            &["set", "k", "1"],
            &["lpop", "k"],
            &["eval", "return redis.call('get', 'k')", "0"],
            &["exec"],
        ],
        &[&["multi"], &["nosuch"], &["exec"]],
        &[&["client", "setname", "a b"], &["get"]],
        // What is looked for to be read.
        &[&["get", "none"], &["get", "k"], &["mget", "k", "none", "none"], &["exists", "k", "none", "k"]],
        &[&["hset", "h", "f", "v"], &["hget", "h", "f"], &["hget", "h", "none"], &["hget", "none", "f"]],
        &[&["zadd", "z", "1", "m"], &["zscore", "z", "m"], &["zscore", "none", "m"], &["zcard", "z"]],
        &[&["sadd", "s", "m"], &["sismember", "s", "m"], &["smembers", "none"], &["incr", "count"]],
        &[&["rpush", "list", "a"], &["lrange", "list", "0", "-1"], &["llen", "none"], &["strlen", "k"]],
        &[&["eval", "redis.call('get', 'none') return redis.call('hget', 'h', 'f')", "0"]],
        &[&["multi"], &["get", "k"], &["get", "none"], &["exec"]],
    ] {
        for step in [&[&["config", "resetstat"][..]][..], steps].concat() {
            ours.call(step);
            theirs.call(step);
        }
        assert_eq!(counted(&mut ours), counted(&mut theirs), "{steps:?}");
    }
}

/// INFO adds up what all servers have published; one that ended counts no more.
#[test]
fn info_covers_all_servers() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let socket = place.path().join("second.sock");
    let second =
        Running::start(&ours.database, Settings { port: 0, unix_socket: Some(socket.clone()), ..settings() })
            .expect("a second server");
    let (mut here, mut there) = (Client::connect(&ours.socket), Client::connect(&socket));
    let wait_for = |client: &mut Client, field: &str, value: &str| {
        let start = Instant::now();
        while info(client, "everything")[field] != value {
            assert!(start.elapsed() < Duration::from_secs(20), "{field} is not {value}");
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    wait_for(&mut here, "connected_clients", "2");
    wait_for(&mut there, "connected_clients", "2");
    assert_eq!(info(&mut here, "clients")["connected_clients_of_this_server"], "1");
    assert_eq!(info(&mut here, "servers")["servers"], "2");
    second.stopper().stop();
    second.wait();
    wait_for(&mut here, "servers", "1");
    wait_for(&mut here, "connected_clients", "1");
}

#[test]
fn slow_commands_are_kept_without_secrets() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let mut client = Client::connect(&ours.socket);
    assert_eq!(client.line("slowlog get"), Answer::Array(Vec::new()));
    assert_eq!(client.line("config set slowlog-log-slower-than 0 slowlog-max-len 3"), ok());
    client.line("slowlog reset");
    client.line("acl setuser ada >secret");
    client.line("auth default wrong");
    client.line("client setname tester");
    client.call([b"SET".to_vec(), b"k".to_vec(), vec![b'x'; 200]]);
    let entries = array(client.line("slowlog get -1"));
    assert_eq!(entries.len(), 3);
    let newest = array(entries[0].clone());
    let words: Vec<_> = array(newest[3].clone()).into_iter().map(text).collect();
    assert_eq!(words[..2], ["SET", "k"]);
    assert!(words[2].ends_with("... (72 more bytes)"));
    assert_eq!(text(newest[5].clone()), "tester");
    let oldest: Vec<_> = array(array(entries[2].clone())[3].clone()).into_iter().map(text).collect();
    assert_eq!(oldest, ["acl", "setuser", "(redacted)", "(redacted)"]);
    assert_eq!(client.line("slowlog len"), Answer::Integer(3));
    assert_eq!(client.line("config set slowlog-log-slower-than -1"), ok());
    assert_eq!(client.line("slowlog reset"), ok());
    assert_eq!(client.line("slowlog len"), Answer::Integer(0));
    assert_eq!(text(client.line("slowlog get -2")), "ERR count should be greater than or equal to -1");
}

#[test]
fn delays_are_kept_from_the_threshold_on() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let mut client = Client::connect(&ours.socket);
    assert!(text(client.line("latency doctor")).starts_with("Delays are not kept"));
    assert_eq!(client.line("config set latency-monitor-threshold 1"), ok());
    // Inside MULTI nothing parks: this takes its time.
    client.send(b"multi\r\ndebug sleep 0.005\r\nexec\r\n");
    (0..3).for_each(|_| drop(client.receive()));
    let latest = array(client.line("latency latest"));
    let event = array(latest[0].clone());
    assert_eq!(event[0], Answer::Bulk(b"command".to_vec()));
    assert!(matches!(event[3], Answer::Integer(5..)));
    assert!(!array(client.line("latency history command")).is_empty());
    assert!(text(client.line("latency graph command")).starts_with("command - high"));
    assert!(text(client.line("latency doctor")).contains("command: "));
    assert!(matches!(client.line("latency reset"), Answer::Integer(1..)));
    assert_eq!(text(client.line("latency graph no")), "ERR No samples available for event 'no'");
}

#[test]
fn debug_sleep_keeps_nobody_else_waiting() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let (mut sleeper, mut other) = (Client::connect(&ours.socket), Client::connect(&ours.socket));
    sleeper.send(b"debug sleep 0.2\r\nping\r\n");
    let start = std::time::Instant::now();
    assert_eq!(other.line("set k 1"), ok());
    assert_eq!(sleeper.receive(), Some(ok()));
    assert!(start.elapsed() >= std::time::Duration::from_millis(190));
    assert_eq!(sleeper.receive(), Some(Answer::Simple(b"PONG".to_vec())));
}

#[test]
fn checkpoints_memory_and_the_table_answer() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let mut client = Client::connect(&ours.socket);
    client.line("rpush l a b c");
    assert_eq!(client.line("save"), ok());
    for refused in ["save", "shutdown nosave"] {
        assert_eq!(client.line("multi"), ok());
        assert_eq!(text(client.line(refused)), "ERR Command not allowed inside a transaction");
        assert!(text(client.line("exec")).starts_with("EXECABORT"));
    }
    assert_eq!(text(client.line("bgsave")), "Background saving started");
    assert_eq!(text(client.line("bgrewriteaof")), "Background append only file rewriting started");
    let Answer::Integer(second) = client.line("lastsave") else { panic!("an integer") };
    assert!(second > 1_700_000_000);
    assert!(matches!(client.line("memory usage l"), Answer::Integer(10..)));
    assert_eq!(client.line("memory usage nothing"), Answer::Null);
    assert!(text(client.line("debug object l")).contains("kind:list nodes:3"));
    assert_eq!(array(client.line("role"))[0], Answer::Bulk(b"master".to_vec()));
    assert_eq!(client.line("wait 0 0"), Answer::Integer(0));
    assert!(text(client.line("lolwut")).contains("Perilune ver. "));
    let keys = array(client.line("command getkeysandflags rename a b"));
    let second = array(keys[1].clone());
    assert_eq!(second[0], Answer::Bulk(b"b".to_vec()));
    assert_eq!(array(second[1].clone())[0], Answer::Simple(b"OW".to_vec()));
    let listed = array(client.line("command list filterby pattern ACL*"));
    assert_eq!(listed[..2], [Answer::Bulk(b"acl".to_vec()), Answer::Bulk(b"acl|cat".to_vec())]);
    assert_eq!(
        text(client.line("replicaof no one")).split(':').next().unwrap(),
        "ERR there is no replication"
    );
    assert!(text(client.line("migrate h 1 k 0 1")).starts_with("ERR there is no MIGRATE: "));
    for container in ["acl", "config", "command", "slowlog", "latency", "memory", "debug"] {
        assert!(array(client.line(&format!("{container} help"))).len() > 3, "{container}");
    }
}

/// At level fsync a command waits until it is on disk: those of a pipeline together, and what others are told of
/// them waits as well.
#[test]
fn the_commands_of_a_visit_share_a_sync() {
    let place = Place::new();
    let path = place.path().join("test.db");
    let _level = Database::options().durability(Durability::Fsync).open(path).unwrap();
    let ours = Ours::start(&place, settings());
    let (mut client, mut waiting) = (Client::connect(&ours.socket), Client::connect(&ours.socket));
    let fsyncs = |client: &mut Client| info(client, "persistence")["fsyncs"].parse::<u64>().unwrap();
    let before = fsyncs(&mut client);
    let request = |words: &[&str]| {
        let mut bytes = Vec::new();
        words.iter().collect::<ArgumentsBuf>().write_request(&mut bytes);
        bytes
    };
    let sets: Vec<u8> = (0..500).flat_map(|n| request(&["set", &format!("key{n}"), "x"])).collect();
    client.send(&sets);
    for number in 0..500 {
        assert_eq!(client.receive(), Some(ok()), "set {number}");
    }
    let syncs = fsyncs(&mut client) - before;
    assert!((1..=100).contains(&syncs), "{syncs} syncs for 500 commands in one piece");
    // Replies keep their order whatever they wait for, and who waits is served.
    waiting.send(&request(&["blpop", "queue", "0"]));
    let queue = perilune::node!("^redis", "blocked", 0, "queue").unwrap();
    let (mut session, start) = (ours.database.session().unwrap(), Instant::now());
    while session.count_children(&queue).unwrap() == 0 {
        assert!(start.elapsed() < Duration::from_secs(20), "the client does not wait");
        std::thread::yield_now();
    }
    let mixed: Vec<u8> = [
        &["set", "a", "1"][..],
        &["incr", "a"],
        &["lpush", "a", "x"],
        &["rpush", "queue", "job"],
        &["eval", "return redis.call('incr', KEYS[1])", "1", "a"],
        &["multi"],
        &["incr", "a"],
        &["exec"],
        &["get", "a"],
        &["quit"],
    ]
    .iter()
    .flat_map(|words| request(words))
    .collect();
    client.send(&mixed);
    assert_eq!(client.receive(), Some(ok()));
    assert_eq!(client.receive(), Some(Answer::Integer(2)));
    assert!(client.receive().unwrap().is_error());
    assert_eq!(client.receive(), Some(Answer::Integer(1)));
    assert_eq!(client.receive(), Some(Answer::Integer(3)));
    assert_eq!(client.receive(), Some(ok()));
    assert_eq!(client.receive(), Some(Answer::Simple(b"QUEUED".to_vec())));
    assert_eq!(client.receive(), Some(Answer::Array(vec![Answer::Integer(4)])));
    assert_eq!(client.receive(), Some(Answer::Bulk(b"4".to_vec())));
    assert_eq!(client.receive(), Some(ok()));
    assert_eq!(client.receive(), None, "QUIT ends the connection");
    let served = array(waiting.receive().unwrap());
    assert_eq!(served, [Answer::Bulk(b"queue".to_vec()), Answer::Bulk(b"job".to_vec())]);
}

/// What LATENCY HISTOGRAM answers: names and calls.
fn timed(client: &mut Client, words: &str) -> Vec<(String, i64)> {
    let told = array(client.line(&format!("latency histogram{words}")));
    let calls = |answer: &Answer| match &array(answer.clone())[1] {
        Answer::Integer(calls) => *calls,
        other => panic!("{other:?}"),
    };
    told.chunks(2).map(|pair| (text(pair[0].clone()), calls(&pair[1]))).collect()
}

/// Words of containers count for themselves; their times are told as `latency-tracking` says.
#[test]
fn words_of_containers_are_counted_and_timed() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let mut client = Client::connect(&ours.socket);
    assert_eq!(client.line("config resetstat"), ok());
    assert_eq!(timed(&mut client, ""), [("config|resetstat".to_owned(), 1)]);
    client.line("CLIENT ID");
    client.line("client id");
    client.line("client list");
    assert!(client.line("client nosuch").is_error());
    assert!(client.line("object encoding").is_error());
    client.line("set k v");
    let told = |words: &[(&str, i64)]| -> Vec<(String, i64)> {
        words.iter().map(|(name, calls)| ((*name).to_owned(), *calls)).collect()
    };
    assert_eq!(timed(&mut client, " client"), told(&[("client|id", 2), ("client|list", 1)]));
    assert_eq!(timed(&mut client, " CLIENT|ID set nosuch"), told(&[("client|id", 2), ("set", 1)]));
    let stats = info(&mut client, "commandstats");
    assert!(stats["cmdstat_client|id"].starts_with("calls=2,"));
    assert!(!stats.contains_key("cmdstat_client"), "{stats:?}");
    // Percentiles are those that are asked for.
    let percentiles =
        |client: &mut Client| info(client, "latencystats").remove("latency_percentiles_usec_set");
    assert!(percentiles(&mut client).is_some_and(|told| told.starts_with("p50=") && told.contains(",p99.9=")));
    assert_eq!(client.call(["config", "set", "latency-tracking-info-percentiles", "0.0 50.0 100.0"]), ok());
    assert!(percentiles(&mut client).is_some_and(|told| told.starts_with("p0=") && told.contains(",p100=")));
    for wrong in ["10 a", "101"] {
        assert!(client.call(["config", "set", "latency-tracking-info-percentiles", wrong]).is_error());
    }
    assert_eq!(client.line("config set latency-tracking no"), ok());
    assert_eq!((percentiles(&mut client), timed(&mut client, "")), (None, Vec::new()));
}

/// A command that is ended by CLIENT UNBLOCK with an error has failed.
#[test]
fn who_is_unblocked_with_an_error_has_failed() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let (mut client, mut other) = (Client::connect(&ours.socket), Client::connect(&ours.socket));
    let id = match other.line("client id") {
        Answer::Integer(id) => id,
        answer => panic!("{answer:?}"),
    };
    other.send(b"BLPOP list 0\r\n");
    let start = Instant::now();
    while client.line(&format!("client unblock {id} error")) != Answer::Integer(1) {
        assert!(start.elapsed() < Duration::from_secs(20), "it does not wait");
        std::thread::yield_now();
    }
    assert!(other.receive().expect("an error").is_error());
    assert_eq!(info(&mut client, "errorstats")["errorstat_UNBLOCKED"], "count=1");
    let stats = info(&mut client, "commandstats");
    assert!(
        stats["cmdstat_blpop"].starts_with("calls=1,") && stats["cmdstat_blpop"].ends_with("failed_calls=1")
    );
}
