//! What the server keeps below `^redis` - users, settings, functions, scripts, figures, the servers themselves - is out of
//! reach of scripts, and of the node commands of users who may not run ACL and CONFIG.
//!
//! A user with `+@all -@admin` wrote itself all rights by one line of Lua: a node is data, and data was all that the
//! check of nodes knew of. Here such users try, by name and then by generated requests.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::peer::{Client, Ours, Place, Text};
use perilune::{node, Node, Session, Value};
use perilune_redis::Settings;
use perilune_resp::Answer;

fn settings() -> Settings {
    Settings { threads: 1, ..Settings::default() }
}

fn ok() -> Answer {
    Answer::Simple(b"OK".to_vec())
}

fn enter(ours: &Ours, name: &str) -> Client {
    let mut client = Client::connect(&ours.socket);
    assert_eq!(client.line(&format!("auth {name} p")), ok());
    client
}

/// A server with users, a setting, a function, a script, a key of each kind that matters here, and a node beside.
fn furnished(place: &Place) -> (Ours, Client) {
    let ours = Ours::start(place, settings());
    let mut root = Client::connect(&ours.socket);
    for line in [
        "acl setuser mallory on >p ~* &* +@all -@admin",
        "acl setuser sneak on >p ~* &* +@all -config",
        "acl setuser half on >p ~* &* +@all -acl|setuser",
        "acl setuser limited on >p ~a:* &* +@all",
        "acl setuser oper on >p ~* &* +@all -flushall",
        "config set slowlog-max-len 77",
        "set a:1 x",
        "set b y",
    ] {
        assert_eq!(root.line(line), ok(), "{line}");
    }
    let library = "#!lua name=lib\nredis.register_function('f', function() return 1 end)";
    assert_eq!(root.call(["FUNCTION", "LOAD", library]).to_text(), "lib");
    assert!(!root.call(["SCRIPT", "LOAD", "return 1"]).is_error());
    let mut session = ours.database.session().unwrap();
    session.set(&node!("^person", 1).unwrap(), "Ada").unwrap();
    (ours, root)
}

/// All that the server keeps and does not itself change all the time: scripts that ran are kept, too.
fn kept(session: &mut Session) -> Vec<(String, Value)> {
    let mut all = Vec::new();
    for part in ["acl", "config", "function", "secret"] {
        let nodes = session.get_tree(&node!("^redis", part).unwrap()).unwrap();
        all.extend(nodes.into_iter().map(|(node, value)| (node.to_string(), value)));
    }
    all
}

fn key(node: &Node) -> Vec<u8> {
    node.encoded().to_vec()
}

/// The input of the issue: it made mallory an operator.
#[test]
fn no_script_writes_itself_rights() {
    let place = Place::new();
    let (ours, mut root) = furnished(&place);
    let mut mallory = enter(&ours, "mallory");
    let write = "perilune.node('^redis', 'acl', 'mallory').__ = 'on nopass ~* &* +@all' return 1";
    for client in [&mut mallory, &mut root] {
        let told = client.call(["EVAL", write, "0"]).to_text();
        assert!(told.contains("NOPERM"), "{told}");
        for words in [&["LUA", write][..], &["EVAL", &format!("#!lua flags=non-atomic\n{write}"), "0"]] {
            let told = client.call(words).to_text();
            assert!(told.contains("NOPERM"), "{words:?}: {told}");
        }
    }
    assert!(mallory.line("config get maxclients").to_text().starts_with("NOPERM"));
    // What is data stays in reach.
    assert_eq!(mallory.call(["EVAL", "return perilune.node('^redis', 0, 'b').__", "0"]).to_text(), "y");
    let walk = "local all = {} for name in perilune.node('^redis'):subscripts() do all[#all + 1] = name end return all";
    assert_eq!(mallory.call(["EVAL", walk, "0"]), Answer::Array(vec![Answer::Integer(0)]));
    assert_eq!(mallory.call(["EVAL", "return perilune.node('^person', 1).__", "0"]).to_text(), "Ada");
}

/// Every operation of nodes.lua, at every kind of place that the server keeps.
#[test]
fn no_operation_of_a_script_reaches_what_is_kept() {
    let place = Place::new();
    let (ours, mut root) = furnished(&place);
    let mut session = ours.database.session().unwrap();
    let before = kept(&mut session);
    let mut mallory = enter(&ours, "mallory");
    let places = [
        "'^redis'",
        "'^redis', 'acl'",
        "'^redis', 'acl', 'mallory'",
        "'^redis', 'config', 'requirepass'",
        "'^redis', -1",
        "'^redis', 16384",
        "'^redis', '16384'",
        "'^redis', 1e9",
        "'^redis', ''",
        "'^redis', 'function'",
    ];
    let operations = [
        "n.__ = 1",
        "return n.__",
        "n:set(1)",
        "n.__ = nil",
        "n:delete()",
        "n:kill()",
        "n:incr()",
        "return n:data()",
        "return n:has_tree()",
        "return n:get()",
        "n:settree({mallory = 'x'})",
        "return cjson.encode(n:gettree())",
        "n:fromjson('{\"x\":1}')",
        "return n:tojson()",
        "n:copy(perilune.node('^mine'))",
        "perilune.node('^person'):copy(n)",
        "n:merge(perilune.node('^mine'))",
        "perilune.node('^person'):merge(n)",
        "n:grab(0)",
        "n:lock(0)",
        "n:release()",
        "return n:lock_count()",
    ];
    for at in places {
        for operation in operations {
            for client in [&mut mallory, &mut root] {
                let source = format!("local n = perilune.node({at}) {operation}");
                let told = client.call(["EVAL", &source, "0"]).to_text();
                assert!(told.contains("NOPERM"), "{source}: {told}");
            }
        }
        if at != "'^redis'" {
            for walk in
                ["return n:next()", "return n:previous()", "for _ in n:pairs() do end", "return n:count()"]
            {
                let told =
                    mallory.call(["EVAL", &format!("local n = perilune.node({at}) {walk}"), "0"]).to_text();
                assert!(told.contains("NOPERM"), "{at}: {walk}: {told}");
            }
        }
    }
    assert_eq!(kept(&mut session), before);
    assert!(session.get_tree(&node!("^mine").unwrap()).unwrap().is_empty());
}

/// Walks of scripts pass over what is kept, in either direction and from any place.
#[test]
fn walks_of_scripts_pass_over_what_is_kept() {
    let place = Place::new();
    let (ours, _root) = furnished(&place);
    let mut mallory = enter(&ours, "mallory");
    for (walk, expected) in [
        ("next()", "0"),
        ("previous()", "0"),
        ("next('acl')", "Null"),
        ("previous('acl')", "0"),
        ("next(-5)", "0"),
        ("previous('zzz')", "0"),
        ("next(0)", "Null"),
        ("previous(0)", "Null"),
        ("count()", "1"),
    ] {
        let source = format!("local at = perilune.node('^redis'):{walk} return at and tostring(at)");
        assert_eq!(mallory.call(["EVAL", &source, "0"]).to_text(), expected, "{walk}");
    }
}

/// Every request of the wire that names a node, of this one.
fn requests_of(place: &[u8]) -> Vec<Vec<Vec<u8>>> {
    let (place, value) = (place.to_vec(), [&b"\x07"[..], b"on nopass ~* &* +@all"].concat());
    let text = |text: &str| text.as_bytes().to_vec();
    vec![
        vec![text("GET"), place.clone()],
        vec![text("DATA"), place.clone()],
        vec![text("SET"), place.clone(), value.clone()],
        vec![text("INCR"), place.clone(), vec![0x11, 1], text("0")],
        vec![text("CAS"), place.clone(), text("0"), text(""), text("1"), value.clone()],
        vec![text("DEL"), place.clone()],
        vec![text("KILL"), place.clone()],
        vec![text("COMMIT"), text("1"), text("0"), text("1000"), text("s"), place.clone(), value.clone()],
        vec![text("COMMIT"), text("1"), text("0"), text("1000"), text("k"), place.clone()],
        vec![text("COMMIT"), text("1"), text("0"), text("1000"), text("d"), place.clone()],
        vec![text("COMMIT"), text("0"), text("0"), text("1000"), text("="), place.clone(), value.clone()],
        vec![text("COMMIT"), text("0"), text("0"), text("1000"), text("!"), place.clone()],
        vec![text("COMMIT"), text("0"), text("0"), text("1000"), text("+"), place.clone()],
        vec![text("LOCK"), text("1"), text("0"), text("x"), place.clone()],
        vec![text("LOCK"), text("1"), text("0"), text("s"), place.clone()],
        vec![text("WATCH"), text("t"), place.clone()],
        vec![text("WATCH"), text("n"), place.clone()],
    ]
}

/// Walks by the wire from `^redis` on meet nothing of it but its databases.
fn walks_pass_over(client: &mut Client, all: &[u8]) {
    let (mut from, mut seen) = (all.to_vec(), 0);
    loop {
        let answer = client.call([&b"PERILUNE.NEXT"[..], &from, b"0", b"", b"1"]);
        let Answer::Array(found) = answer else { break };
        let Answer::Bulk(found) = &found[0] else { panic!("a key") };
        let node = Node::from_encoded(found, false).unwrap();
        let text = node.to_string();
        assert!(!text.starts_with("^redis") || text.starts_with("^redis(0,"), "{text}");
        (from, seen) = (found.clone(), seen + 1);
    }
    assert!(seen >= 2, "{seen}");
    let answer = client.call([&b"PERILUNE.WALK"[..], b"1", all, b"0", b"", b"1", b"", b"4096"]);
    let text = format!("{answer:?}");
    assert!(text.contains("b\"y\"") || text.contains("121"), "{text}");
    let Answer::Array(steps) = answer else { panic!("a page") };
    for step in steps[1..].iter().step_by(2) {
        let Answer::Bulk(found) = step else { panic!("a key") };
        let text = Node::from_encoded(found, false).unwrap().to_string();
        assert!(!text.starts_with("^redis") || text.starts_with("^redis(0,"), "{text}");
    }
}

/// The commands of the wire, of users who may run neither ACL nor CONFIG, or only one of them, or not all of it.
#[test]
fn no_node_command_reaches_what_is_kept() {
    let place = Place::new();
    let (ours, _root) = furnished(&place);
    let mut session = ours.database.session().unwrap();
    let before = kept(&mut session);
    let acl = key(&node!("^redis", "acl", "mallory").unwrap());
    let all = key(&node!("^redis").unwrap());
    let number =
        ours.database.session().unwrap().get_int(&node!("^redis", "server").unwrap()).unwrap().unwrap();
    let channel = format!("redis server {number}").into_bytes();
    let text = |text: &str| text.as_bytes().to_vec();
    for name in ["mallory", "sneak", "half"] {
        let mut client = enter(&ours, name);
        for place in [&acl, &all] {
            let requests = requests_of(place);
            for request in requests {
                let mut words = request.clone();
                words[0] = [&b"PERILUNE."[..], &words[0]].concat();
                let told = client.call(&words).to_text();
                assert!(
                    told.starts_with("REFUSED"),
                    "{name}: {:?}: {told}",
                    words[0].escape_ascii().to_string()
                );
            }
        }
        for words in [
            vec![text("PERILUNE.POST"), channel.clone(), text("\0x")],
            vec![text("PERILUNE.RECEIVE"), channel.clone(), text("0")],
            vec![text("PERILUNE.FOLLOW"), channel.clone(), text("0"), text("0")],
            vec![text("PERILUNE.UNCHANNEL"), channel.clone()],
            vec![text("PERILUNE.CHANNEL"), channel.clone(), text("1"), text("1"), text("drop")],
            vec![
                text("PERILUNE.COMMIT"),
                text("1"),
                text("0"),
                text("9"),
                text("p"),
                channel.clone(),
                text("x"),
            ],
        ] {
            let told = client.call(&words).to_text();
            assert!(told.starts_with("REFUSED"), "{name}: {:?}: {told}", words[0].escape_ascii().to_string());
        }
        walks_pass_over(&mut client, &all);
    }
    assert_eq!(kept(&mut session), before);
    // Who may run both reaches it.
    let mut oper = enter(&ours, "oper");
    assert!(!oper.call([&b"PERILUNE.GET"[..], &acl]).is_error());
    // Key rules leave no nodes at all.
    let mut limited = enter(&ours, "limited");
    let data = key(&node!("^redis", 0, "a:1").unwrap());
    assert!(limited.call([&b"PERILUNE.GET"[..], &data]).to_text().starts_with("NOPERM"));
    let told = limited.call(["EVAL", "return perilune.node('^redis', 0, 'b').__", "0"]).to_text();
    assert!(told.contains("NOPERM"), "{told}");
}

/// A chance that gives the same again for a seed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

const PARTS: [&str; 9] =
    ["acl", "config", "function", "script", "secret", "slowlog", "server", "client", "expiry"];

/// A node near what is kept, of whatever kind.
fn node_near(chance: &mut Chance) -> Node {
    let mut node = Node::new(chance.one_of(&["^redis", "^redis", "^redis", "^mine", "^redit"])).unwrap();
    if chance.below(8) > 0 {
        node = match chance.below(6) {
            0 => node.child(chance.one_of(&[-1i64, 0, 1, 15, 16_383, 16_384, i64::MAX])),
            1 => node.child(""),
            _ => node.child(chance.one_of(&PARTS)),
        }
        .unwrap();
    }
    if chance.below(3) > 0 {
        node = node.child(chance.one_of(&["mallory", "default", "maxclients", "lib", "x"])).unwrap();
    }
    node
}

fn lua_of(node: &Node) -> String {
    let mut text = format!("perilune.node('^{}'", node.name());
    for subscript in node.subscripts().unwrap() {
        text += &match subscript.to_string().strip_prefix('"') {
            Some(_) => format!(", {subscript}").replace("\"\"", "\"\""),
            None => format!(", {subscript}"),
        };
    }
    text + ")"
}

/// A request of the wire about such nodes.
fn request(chance: &mut Chance) -> Vec<Vec<u8>> {
    let text = |text: &str| text.as_bytes().to_vec();
    let mut near = || key(&node_near(chance));
    let (one, other) = (near(), near());
    let value = [&b"\x07"[..], b"on nopass ~* &* +@all"].concat();
    let flag = text(chance.one_of(&["0", "1"]));
    let parent = if chance.below(2) == 0 { text("") } else { one.len().to_string().into_bytes() };
    let parts = match chance.below(8) {
        0 => vec![text("s"), one.clone(), value.clone()],
        1 => vec![text("k"), one.clone()],
        2 => vec![text("d"), one.clone()],
        3 => vec![text("="), one.clone(), value.clone()],
        4 => vec![text("+"), one.clone()],
        5 => vec![text(">"), one.clone(), flag.clone(), text(""), other.clone()],
        6 => vec![text("<"), one.clone(), text(""), other.clone()],
        _ => vec![text("p"), text("redis server 1"), text("x")],
    };
    let words = match chance.below(14) {
        0 => vec![text("GET"), one],
        1 => vec![text("DATA"), one[..one.len() - chance.below(2)].to_vec()],
        2 => vec![text("SET"), one, value],
        3 => vec![text("DEL"), one],
        4 => vec![text("KILL"), one],
        5 => vec![text("INCR"), one, vec![0x11, 1], flag],
        6 => vec![text("CAS"), one, text("0"), text(""), text("1"), value],
        7 => vec![text("NEXT"), one, flag, if chance.below(2) == 0 { text("") } else { other }, text("1")],
        8 => vec![text("PREV"), one, if chance.below(2) == 0 { text("") } else { other }, text("1")],
        9 => vec![text("WALK"), flag, one, text("1"), text(""), text("1"), parent, text("100")],
        10 => vec![text("WALK"), text("0"), one, text("0"), text(""), text("1"), parent, text("100")],
        11 => vec![text("LOCK"), text("1"), text("0"), text("x"), one],
        12 => vec![text("WATCH"), text(chance.one_of(&["n", "t"])), one],
        _ => [vec![text("COMMIT"), text("1"), text("0"), text("1000")], parts].concat(),
    };
    let name = [&b"PERILUNE."[..], &words[0]].concat();
    [vec![name], words[1..].to_vec()].concat()
}

/// A line of Lua about such nodes.
fn script(chance: &mut Chance) -> String {
    let (one, other) = (lua_of(&node_near(chance)), lua_of(&node_near(chance)));
    let operation = chance.one_of(&[
        "n.__ = 'on nopass ~* &* +@all'",
        "return n.__",
        "n:kill()",
        "n:delete()",
        "n:incr()",
        "return n:data()",
        "n:settree({mallory = 'on', acl = {mallory = 'on'}})",
        "return cjson.encode(n:gettree() or {})",
        "n:fromjson('{\"mallory\":\"on\"}')",
        "return n:tojson()",
        "n:copy(o)",
        "n:merge(o)",
        "o:copy(n)",
        "o:merge(n)",
        "return n:grab(0)",
        "return n:next()",
        "return n:previous()",
        "local s = '' for k, v in n:pairs() do s = s .. \
        tostring(k) .. tostring(v) end return s",
        "local s = '' for c, v in n:children(true) do s = s .. tostring(c) .. \
        tostring(v) end return s",
    ]);
    format!("local n, o = {one}, {other} {operation}")
}

/// Generated requests and scripts of users with various rules: none changes what is kept, and none tells of it.
#[test]
fn an_attack_on_what_is_kept_gets_nothing() {
    let place = Place::new();
    let (ours, mut root) = furnished(&place);
    let mut session = ours.database.session().unwrap();
    // Something to find, in each part.
    for part in PARTS {
        session.set(&node!("^redis", part, "secret").unwrap(), "S3CRET").unwrap();
    }
    session.set(&node!("^redis", "secret").unwrap(), "S3CRET").unwrap();
    let before = kept(&mut session);
    let clock = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |time| time.as_nanos() as u64 | 1);
    let seed = std::env::var("PERILUNE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(clock);
    let rounds =
        std::env::var("PERILUNE_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(4_000);
    println!("PERILUNE_SEED={seed}");
    let mut chance = Chance(seed);
    let mut clients: Vec<_> =
        ["mallory", "sneak", "half", "limited"].iter().map(|name| enter(&ours, name)).collect();
    let mut answered = 0;
    for round in 0..rounds {
        let client = &mut clients[chance.below(4)];
        let (answer, told) = if chance.below(2) == 0 {
            let source = script(&mut chance);
            let form = chance.one_of(&["", "#!lua flags=non-atomic\n", "#!lua flags=no-writes\n"]);
            (client.call(["EVAL", &format!("{form}{source}"), "0"]), source)
        } else {
            let words = request(&mut chance);
            (client.call(&words), format!("{words:?}"))
        };
        answered += usize::from(!answer.is_error());
        let text = format!("{answer:?} {}", answer.to_text());
        // The bytes of the secret, however they are shown.
        let bytes = format!("{:?}", b"S3CRET").trim_matches(['[', ']']).to_owned();
        assert!(
            !text.contains("S3CRET") && !text.contains(&bytes),
            "seed {seed}, round {round}: {told}: {text}"
        );
        if round % 64 == 0 || round + 1 == rounds {
            assert_eq!(kept(&mut session), before, "seed {seed}, before round {round}: {told}");
        }
    }
    assert!(answered > rounds / 8, "{answered} of {rounds} were answered: they try nothing");
    assert!(text_of(root.line("acl getuser mallory")).contains("+@all -@admin"));
    println!("{rounds} tries, {answered} answered, nothing changed or told");
}

fn text_of(answer: Answer) -> String {
    match answer {
        Answer::Array(all) => all.into_iter().map(text_of).collect::<Vec<_>>().join(" "),
        other => other.to_text(),
    }
}
