//! Events of keys: what subscribers of a redis-server are told, ours are told, in the same order.

mod peer;

use peer::{Client, Ours, Place, Redis};
use perilune_resp::Answer;
use perilune_server::Settings;

const LINES: &[&str] = &[
    "set s 1",
    "set s 2 ex 100",
    "set s 3 xx get",
    "set s 4 nx",
    "setnx n 1",
    "setnx n 2",
    "setex e 100 v",
    "getset s 5",
    "getex s ex 50",
    "getex s persist",
    "getex s persist",
    "getex e exat 1",
    "getdel n",
    "mset a 1 b 2",
    "msetnx a 1 c 2",
    "msetnx c 1 d 2",
    "incr a",
    "decrby a 3",
    "incrbyfloat a 1.5",
    "append a x",
    "setrange a 1 yy",
    "setrange a 1 ",
    "setbit bits 3 1",
    "bitop not bits2 bits",
    "bitop and bits2 nosuch",
    "bitfield bits set u8 0 7 get u8 0",
    "bitfield bits get u8 0",
    "expire s 100",
    "persist s",
    "persist s",
    "expire s -1",
    "rename b b2",
    "renamenx b2 a",
    "rename b2 b",
    "copy b b3",
    "copy b b3",
    "copy b b3 replace",
    "move b 1",
    "del nosuch b3 c",
    "hset h f 1 g 2",
    "hsetnx h f 3",
    "hsetnx h i 3",
    "hincrby h f 2",
    "hincrbyfloat h f 1.5",
    "hdel h nosuch",
    "hdel h f",
    "hdel h g i",
    "rpush l a b c d a",
    "lpush l z",
    "lpushx nosuch z",
    "rpushx l y",
    "lset l 0 x",
    "linsert l before c q",
    "linsert l before nosuch q",
    "lrem l 0 a",
    "lrem l 0 nosuch",
    "ltrim l 0 3",
    "lpop l",
    "rpop l 1",
    "rpop nosuch",
    "lmove l m left right",
    "lmove m m left right",
    "rpoplpush l m",
    "rpoplpush m k",
    "lmpop 2 nosuch k left count 5",
    "blpop nosuch m 0",
    "ltrim l 5 9",
    "sort h store nothing",
    "rpush t 3 1 2",
    "sort t store u",
    "sort nosuch store u",
    "sadd x a b c",
    "sadd x a",
    "sadd y c d",
    "srem x nosuch",
    "srem x a",
    "smove x y b",
    "smove x y c",
    "smove x y c",
    "sadd x q",
    "sinterstore x x y",
    "sunionstore x y",
    "sdiffstore w x nosuch",
    "sinterstore w nosuch x",
    "sadd single a",
    "spop single",
    "spop y 10",
    "spop nosuch",
    "zadd z 1 a 2 b 3 c",
    "zadd z 1 a",
    "zadd z incr 2 a",
    "zadd z xx 5 nosuch",
    "zincrby z 2 b",
    "zrem z nosuch",
    "zrem z a",
    "zadd z 1 a 5 e 6 f 7 g",
    "zpopmin z",
    "zpopmax z 2",
    "zpopmin nosuch",
    "zrangestore r z 0 -1",
    "zrangestore r nosuch 0 -1",
    "zunionstore r 1 z",
    "zinterstore r 2 z nosuch",
    "zdiffstore r 1 z",
    "zremrangebyrank r 0 0",
    "zremrangebyscore z 100 200",
    "zremrangebyscore z 4 4",
    "zremrangebylex z - +",
    "zmpop 1 r min count 1",
    "bzpopmin nosuch r 0",
    "get nosuch",
    "exists nosuch",
    "multi",
    "set in 1",
    "lpush in 1",
    "rpush out 1",
    "exec",
    "blpop nosuch out 0",
    "set gone x px 20",
];

fn texts(answer: &Answer) -> Vec<String> {
    let Answer::Array(parts) = answer else { panic!("{answer:?} is no message") };
    parts
        .iter()
        .map(
            |part| {
                if let Answer::Bulk(text) = part {
                    String::from_utf8_lossy(text).into()
                } else {
                    String::new()
                }
            },
        )
        .collect()
}

#[test]
fn events_are_those_of_redis() {
    let place = Place::new();
    let ours = Ours::start(&place, Settings { threads: 2, ..Settings::default() });
    let redis = Redis::start(&place);
    for classes in ["KEA", "Kg$", "Elshz", "Kx", "KEn", "KEm", ""] {
        let mut told = Vec::new();
        for server in [&ours.socket, &redis.socket] {
            let (mut client, mut subscriber) = (Client::connect(server), Client::connect(server));
            assert!(!client.call(["config", "set", "notify-keyspace-events", classes]).is_error());
            client.line("flushall");
            subscriber.line("psubscribe __key* end");
            subscriber.receive();
            for line in LINES {
                if classes == "KEm" && !matches!(*line, "get nosuch" | "exists nosuch") {
                    continue;
                }
                client.line(line);
                if line.starts_with("set gone") {
                    while client.line("exists gone") == Answer::Integer(1) {}
                    // Ours is swept a little later than it is gone.
                    std::thread::yield_now();
                }
            }
            let mut events: Vec<String> = Vec::new();
            let expires = classes.contains('A') || classes.contains('x');
            let wanted = if expires { classes.matches(['K', 'E']).count() } else { 0 };
            loop {
                // Those of the key that expires come by themselves.
                let come = events.iter().filter(|event| event.contains("gone") && event.contains("expired"));
                if come.count() >= wanted {
                    client.line("publish end -");
                }
                let message = subscriber.receive().expect("a message");
                let parts = texts(&message);
                if parts[2] == "end" {
                    break;
                }
                events.push(parts[2..].join(" "));
            }
            told.push(events);
        }
        assert_eq!(told[0], told[1], "{classes}");
        assert_eq!(told[0].is_empty(), classes.is_empty());
    }
}
