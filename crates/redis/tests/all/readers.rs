//! No command that only reads writes the tree: all of the table are run, on keys of every kind, and watched.
//!
//! SCAN kept its cursors in the tree, so that a read waited for the disk, and scripts that may not write could not scan. Here
//! every commit that touches a node of the server is seen, by a watch of all of them, and what they hold is compared; what
//! the server writes on its own meanwhile (its figures, once a second) is told apart by running a command again.
//!
//! What lies in the tree because other servers must know it, though no key changes, stands in `LEFT_OUT`. Two more are kept
//! there, on purpose: the text of a script, once, by whoever runs it first, so that EVALSHA finds it everywhere; and a command
//! that was slow, in the slow log, by a commit that waits for no disk.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use crate::peer::{Client, Ours, Place, Text};
use perilune::{node, Session, WatchScope};
use perilune_redis::Settings;
use perilune_resp::Answer;

/// Commands that write no keys, as they are called. `K` is a key, `L` another one; each is run with keys of every kind.
#[rustfmt::skip]
const READERS: &[&str] = &[
    "acl cat", "acl cat read", "acl dryrun default get K", "acl genpass", "acl getuser default", "acl help", "acl list",
    "acl log", "acl log reset", "acl users", "acl whoami", "bitcount K", "bitcount K 0 -1", "bitfield_ro K get u8 0",
    "bitpos K 1", "client caching yes", "client getname", "client getredir", "client help", "client id", "client info",
    "client kill id 0", "client list", "client no-evict off", "client no-touch off", "client reply on",
    "client setinfo lib-name x", "client setname x", "client tracking off", "client trackinginfo", "client unblock 0",
    "client unpause", "command", "command count", "command docs get", "command getkeys get K", "command getkeysandflags get K",
    "command help", "command info get", "command list", "config get *", "config help", "config resetstat", "dbsize",
    "debug help", "debug loops", "debug object K", "debug set-active-expire 0", "debug sleep 0", "debug protocol string",
    "debug change-repl-id", "debug error x", "debug jmap", "debug listpack K", "debug loadaof",
    "debug quicklist-packed-threshold 1", "debug reload", "debug replicate x", "debug set-disable-deny-scripts 0",
    "debug stringmatch-len 1 x", "reset", "discard", "dump K", "echo K", "exists K L K", "expiretime K", "get K", "getbit K 3",
    "getrange K 0 3", "hello 2", "hexists K a", "hget K a", "hgetall K", "hkeys K", "hlen K", "hmget K a b", "hrandfield K",
    "hrandfield K 3 withvalues", "hrandfield K -3", "hscan K 0 count 1", "hscan K 1000", "hscan K 0 match a* count 100",
    "hstrlen K a", "hvals K", "info", "info keyspace", "info everything", "keys *", "keys K", "lastsave", "latency doctor",
    "latency graph command", "latency help", "latency histogram", "latency history command", "latency latest", "latency reset",
    "lcs K L", "lcs K L len", "lindex K 0", "llen K", "lolwut", "lpos K a", "lrange K 0 -1", "memory doctor", "memory help",
    "memory malloc-stats", "memory purge", "memory stats", "memory usage K", "memory usage K samples 0", "mget K L",
    "object encoding K", "object freq K", "object help", "object idletime K", "object refcount K", "pexpiretime K", "ping",
    "psubscribe", "pttl K", "publish K x", "pubsub channels", "pubsub help", "pubsub numpat", "pubsub numsub K",
    "pubsub shardchannels", "pubsub shardnumsub K", "punsubscribe", "randomkey", "role", "scan 0", "scan 0 count 1",
    "scan 1000", "scan 0 match K type hash count 100", "scard K", "script debug no", "script exists x", "script help",
    "sdiff K L", "select 0", "sinter K L", "sintercard 2 K L", "sismember K a", "slowlog get", "slowlog help", "slowlog len",
    "smembers K", "smismember K a b", "sort_ro K", "sort_ro K by nosort get *", "sort_ro K alpha", "spublish K x", "sql_ro SELECT/**/1",
    "srandmember K", "srandmember K -3", "sscan K 0 count 1", "sscan K 1000", "strlen K", "substr K 0 1", "sunion K L",
    "sunsubscribe", "time", "touch K L", "ttl K", "type K", "unsubscribe", "unwatch", "wait 0 1", "watch K L", "zcard K",
    "zcount K -inf +inf", "zdiff 2 K L withscores", "zinter 2 K L", "zintercard 2 K L", "zlexcount K - +", "zmscore K a b",
    "zrandmember K", "zrandmember K -3 withscores", "zrange K 0 -1", "zrange K 0 -1 rev withscores",
    "zrange K (1 +inf byscore limit 0 1", "zrangebylex K - +", "zrangebyscore K -inf +inf", "zrank K a", "zrevrange K 0 -1",
    "zrevrangebylex K + -", "zrevrangebyscore K +inf -inf", "zrevrank K a", "zscan K 0 count 1", "zscan K 1000", "zscore K a",
    "zunion 2 K L", "function dump", "function help", "function list", "function list withcode", "function stats",
    "function kill", "script kill", "luafunc nothing", "fcall nothing 0", "fcall_ro nothing 0", "fcall_ro reads 1 K",
    "fcall reads 1 K", "eval_ro return(redis.call('get',KEYS[1])) 1 K", "eval return(redis.pcall('hgetall',KEYS[1])) 1 K",
    "eval_ro return(redis.pcall('scan','0','count','1')) 0", "evalsha nothing 0", "evalsha_ro nothing 0", "lua return(1)",
    "perilune.hello 1", "perilune.get N", "perilune.data N", "perilune.next N 1 \u{a0} 1", "perilune.prev N \u{a0} 1",
    "perilune.walk 1 N 1 \u{a0} 1 \u{a0} 5", "perilune.commit 0 0 1000 + N", "perilune.follow channel 0 0",
    "perilune.receive channel 0", "perilune.lockcount 1 N", "perilune.lock 1 0 s N", "perilune.unlock 1 N",
    "perilune.unlockall 1", "perilune.wait 1 0", "perilune.watch n N", "perilune.unwatch 1",
    "perilune.channel channel 5 100 drop", "perilune.post channel x", "perilune.pieces N 0 5",
    "perilune.see 0 0 get N", "perilune.peek channel 0",
    // Writers that were given nothing to write: of keys that are there, or have never been. (Those that wait are noted
    // in the tree, so that whoever has something for them finds them at any server.)
    "bitfield L get u8 0", "sort L", "sort L alpha", "getex L", "del absent", "persist L", "hdel L nothing", "srem L nothing",
    "zrem L nothing", "expire absent 10", "rename absent L", "move absent 1", "spop absent", "lpop absent", "ltrim absent 0 1",
    "getdel absent", "zadd absent xx 1 a", "lpushx absent a", "set absent x xx", "setnx L x", "msetnx L x",
];

/// What is not run, and why: mostly it writes the tree though it writes no keys.
const LEFT_OUT: &[(&str, &str)] = &[
    ("acl deluser", "users are those of all servers, and stay"),
    ("acl load", "the same"),
    ("acl save", "a file"),
    ("acl setuser", "users are those of all servers, and stay"),
    ("auth", "needs a password here; what it refuses, ACL LOG keeps in memory"),
    ("bgrewriteaof", "a checkpoint, which changes no node"),
    ("bgsave", "the same"),
    ("client pause", "a message to the other servers; holds back what follows here"),
    ("config rewrite", "a file"),
    ("config set", "settings are those of all servers, and stay"),
    ("debug panic", "ends the server"),
    ("exec", "what MULTI has queued: below"),
    ("function delete", "libraries are those of all servers, and stay"),
    ("function flush", "the same"),
    ("function load", "the same"),
    ("function restore", "the same"),
    ("monitor", "answers for ever"),
    ("multi", "below"),
    ("perilune.cas", "writes nodes"),
    ("perilune.del", "writes nodes"),
    ("perilune.incr", "writes nodes"),
    ("perilune.kill", "writes nodes"),
    ("perilune.run", "writes nodes"),
    ("perilune.set", "writes nodes"),
    (
        "perilune.unchannel",
        "removes messages, which lie in no log and on no disk; but whoever watches anything is woken",
    ),
    ("quit", "ends the connection"),
    ("save", "a checkpoint, which changes no node"),
    ("script flush", "scripts are those of all servers, and stay"),
    ("script load", "the same"),
    ("shutdown", "ends the server"),
    ("slowlog reset", "the slow commands of all servers, which stay"),
    ("ssubscribe", "who publishes at another server finds subscribers in the tree"),
    ("subscribe", "the same"),
];

/// What all nodes hold but those that servers keep of themselves.
fn contents(session: &mut Session) -> BTreeMap<Vec<u8>, String> {
    let own = node!("^redis", "server").unwrap();
    let all = session.get_tree(&node!("^redis").unwrap()).unwrap();
    all.into_iter()
        .filter(|(node, _)| !node.encoded().starts_with(own.encoded()))
        .map(|(node, value)| (node.encoded().to_vec(), format!("{value:?}")))
        .collect()
}

/// Watches all nodes under `^redis`.
struct Watch {
    session: Session,
    id: perilune::WatchId,
}

impl Watch {
    fn new(ours: &Ours) -> Watch {
        let mut session = ours.database.session().unwrap();
        let id = session.watch([(&node!("^redis").unwrap(), WatchScope::Subtree)]).unwrap();
        Watch { session, id }
    }

    /// Whether `run` commits anything each time that it is run.
    fn writes(&mut self, mut run: impl FnMut()) -> bool {
        (0..5).all(|_| {
            while self.session.wait(self.id, Some(Duration::ZERO)).unwrap() {}
            run();
            self.session.wait(self.id, Some(Duration::ZERO)).unwrap()
        })
    }
}

/// The kinds of keys, by their names; what ends in `-expired` has expired, and is still there.
fn keys() -> Vec<String> {
    let kinds = ["string", "integer", "hash", "list", "set", "zset", "uncounted", "cut"];
    let mut keys: Vec<String> = kinds.iter().map(|kind| (*kind).to_owned()).collect();
    keys.extend(kinds.iter().filter(|kind| **kind != "uncounted").map(|kind| format!("{kind}-expired")));
    keys.push("missing".to_owned());
    keys
}

/// A name that is cut is long.
fn name(key: &str) -> String {
    match key.strip_prefix("cut") {
        Some(rest) => "c".repeat(700) + rest,
        None => key.to_owned(),
    }
}

fn make_keys(client: &mut Client, ours: &Ours) {
    client.line("debug set-active-expire 0");
    for suffix in ["", "-expired"] {
        for line in [
            "set K string",
            "set K 17",
            "hset K a 1 b 2 c 3",
            "rpush K a b c",
            "sadd K a b c",
            "zadd K 1 a 2 b 3 c",
            "set K x",
        ]
        .iter()
        .zip(["string", "integer", "hash", "list", "set", "zset", "cut"])
        .map(|(line, kind)| line.replace('K', &name(&format!("{kind}{suffix}"))))
        {
            assert!(!client.line(&line).is_error(), "{line}");
        }
    }
    // As a program may leave them: without a count.
    let mut session = ours.database.session().unwrap();
    for field in ["a", "b", "c"] {
        session.set(&node!("^redis", 0, "uncounted", "hash", field).unwrap(), "x").unwrap();
    }
    let start = Instant::now();
    for key in keys().iter().filter(|key| key.ends_with("-expired")) {
        client.line(&format!("pexpire {} 1", name(key)));
        while client.line(&format!("pttl {}", name(key))) != Answer::Integer(-2) {
            assert!(start.elapsed() < Duration::from_secs(20), "{key} does not expire");
        }
    }
    client.call([
        "function",
        "load",
        "#!lua name=r\nredis.register_function{function_name='reads',flags={'no-writes'},callback=function(keys)\n\
         return {redis.pcall('type',keys[1]), redis.pcall('hscan',keys[1],'0','count','1')} end}",
    ]);
}

/// The words of a line, about `key`; a blank that does not break is an empty word.
fn words(line: &str, key: &str) -> Vec<Vec<u8>> {
    let place = node!("^redis", 0, name(key).as_str());
    let word = |word: &str| match word {
        "K" => name(key).into_bytes(),
        // One that is there, of any kind.
        "L" => b"list".to_vec(),
        "N" => place
            .as_ref()
            .map_or_else(|_| node!("^redis", 0), |node| Ok(node.clone()))
            .unwrap()
            .encoded()
            .to_vec(),
        "\u{a0}" => Vec::new(),
        word => word.as_bytes().to_vec(),
    };
    line.split(' ').map(word).collect()
}

fn settings() -> Settings {
    // A read that is slow is noted in the slow log, which is in the tree: not here.
    Settings { threads: 1, ..Settings::default() }.with("slowlog-log-slower-than", "-1").unwrap()
}

#[test]
fn every_command_of_the_table_is_here() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let mut client = Client::connect(&ours.socket);
    let Answer::Array(infos) = client.line("command") else { panic!("no table") };
    let mut missing = BTreeSet::new();
    for info in &infos {
        let Answer::Array(parts) = info else { panic!("no row: {info:?}") };
        let (name, Answer::Array(flags)) = (parts[0].to_text(), &parts[2]) else {
            panic!("no row: {info:?}")
        };
        if flags.iter().any(|flag| flag.to_text() == "write") {
            continue;
        }
        let Answer::Array(inner) = &parts[9] else { panic!("no words: {info:?}") };
        let inner: Vec<String> = inner
            .iter()
            .map(|word| match word {
                Answer::Array(parts) => parts[0].to_text().replace('|', " "),
                other => panic!("no word: {other:?}"),
            })
            .collect();
        let all = if inner.is_empty() { vec![name] } else { inner };
        for called in all {
            let is_called = |line: &&str| **line == *called || line.starts_with(&format!("{called} "));
            if !READERS.iter().any(is_called) && !LEFT_OUT.iter().any(|(line, _)| *line == called) {
                missing.insert(called);
            }
        }
    }
    assert!(missing.is_empty(), "say in READERS how they are called, or in LEFT_OUT why not: {missing:?}");
    assert!(READERS.iter().all(|line| LEFT_OUT.iter().all(|(writer, _)| line != writer)));
}

/// The instrument finds what writes.
#[test]
fn what_writes_is_found() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let mut client = Client::connect(&ours.socket);
    let mut watch = Watch::new(&ours);
    for line in [
        "set k x",
        "incr n",
        "lpush l a",
        "subscribe x",
        "perilune.kill N",
        "config set timeout 0",
        "script flush",
    ] {
        let before = contents(&mut watch.session);
        let is_seen = watch.writes(|| {
            let mut client = Client::connect(&ours.socket);
            // The connection itself has a number, which is written.
            let answer = client.call(words(line, "missing"));
            assert!(!answer.is_error(), "{line}: {answer:?}");
        });
        assert!(is_seen, "{line}: {} nodes before", before.len());
    }
    assert!(watch.writes(|| _ = client.line("sadd s a b c") == client.line("srem s b")));
    assert!(!watch.writes(|| _ = client.line("ping")), "it is not always seen");
}

#[test]
fn no_command_that_only_reads_writes_the_tree() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let mut client = Client::connect(&ours.socket);
    make_keys(&mut client, &ours);
    let mut watch = Watch::new(&ours);
    let mut runs = 0;
    for policy in ["noeviction", "allkeys-lru", "allkeys-lfu"] {
        client
            .line(&format!("config set maxmemory-policy {policy} maxmemory 1gb notify-keyspace-events KEA"));
        // A script is kept once, by whoever has it first.
        READERS
            .iter()
            .filter(|line| line.starts_with("eval"))
            .for_each(|line| _ = client.call(words(line, "string")));
        let before = contents(&mut watch.session);
        for line in READERS {
            let keys =
                if line.contains(" K") || line.contains(" N") { keys() } else { vec!["string".to_owned()] };
            for key in keys {
                let words = words(line, &key);
                assert!(!watch.writes(|| _ = client.call(&words)), "{policy}: `{line}` of `{key}` writes");
                let may_queue = !["watch", "unwatch", "wait", "client", "hello", "discard"]
                    .contains(&line.split(' ').next().unwrap());
                if may_queue && !line.starts_with("perilune") && !line.contains("subscribe") {
                    let writes = watch.writes(|| {
                        client.line("multi");
                        client.call(&words);
                        client.line("exec");
                    });
                    assert!(!writes, "{policy}: `{line}` of `{key}` writes behind MULTI");
                }
                client.line("unwatch");
                runs += 1;
            }
        }
        let after = contents(&mut watch.session);
        let changed: Vec<_> = after
            .iter()
            .filter(|(node, value)| before.get(*node) != Some(*value))
            .map(|(node, _)| node)
            .collect();
        assert!(changed.is_empty() && before.len() == after.len(), "{policy}: {changed:?}");
    }
    assert!(runs > 5_000, "only {runs}");
}
