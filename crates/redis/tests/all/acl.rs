//! Users: what is refused, and that all servers of a database have the same ones.

use std::fs;
use std::time::{Duration, Instant};

use crate::peer::{Client, Ours, Place, Redis, Text};
use perilune_redis::{Running, Settings};
use perilune_resp::Answer;

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

const KEY: &str = "NOPERM this user has no permissions to access one of the keys used as arguments";

#[test]
fn a_user_may_do_what_the_rules_say() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let mut root = Client::connect(&ours.socket);
    assert_eq!(text(root.line("acl whoami")), "default");
    assert_eq!(root.line("acl setuser ada on >secret ~a* +get +set +multi +exec +client|id"), ok());
    let mut ada = Client::connect(&ours.socket);
    assert!(text(ada.line("auth ada wrong")).starts_with("WRONGPASS"));
    assert_eq!(ada.line("auth ada secret"), ok());
    assert_eq!(ada.line("set a1 x"), ok());
    assert_eq!(text(ada.line("get b")), KEY);
    assert_eq!(text(ada.line("del a1")), "NOPERM this user has no permissions to run the 'del' command");
    assert_eq!(
        text(ada.line("client setname x")),
        "NOPERM this user has no permissions to run the 'client|setname' command"
    );
    assert!(matches!(ada.line("client id"), Answer::Integer(_)));
    // Behind MULTI the refusal aborts; what is taken away between QUEUED and EXEC is refused there.
    ada.line("multi");
    assert_eq!(text(ada.line("get b")), KEY);
    assert!(text(ada.line("exec")).starts_with("EXECABORT"));
    ada.line("multi");
    ada.line("set a1 y");
    ada.line("get a1");
    assert_eq!(root.line("acl setuser ada -set"), ok());
    let Answer::Array(replies) = ada.line("exec") else { panic!("an array") };
    assert!(text(replies[0].clone()).starts_with("NOPERM ACLs rules changed between"));
    assert_eq!(replies[1], Answer::Bulk(b"x".to_vec()));
    // Entering again is always allowed.
    assert_eq!(ada.line("auth default anything"), ok());
    assert_eq!(ada.line("set b 1"), ok());
    let Answer::Array(log) = root.line("acl log") else { panic!("an array") };
    assert!(log.len() >= 5, "{log:?}");
    assert_eq!(root.line("acl log reset"), ok());
    assert_eq!(root.line("acl log"), Answer::Array(Vec::new()));
    // Who is deleted is out.
    assert_eq!(ada.line("auth ada secret"), ok());
    assert_eq!(root.line("acl deluser ada nobody"), Answer::Integer(1));
    assert_eq!(ada.receive(), None);
    assert_eq!(text(root.line("acl deluser default")), "ERR The 'default' user cannot be removed");
}

#[test]
fn watch_and_words_obey_rules() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let mut root = Client::connect(&ours.socket);
    assert_eq!(root.line("acl setuser ben on >b ~a* +@all -@dangerous -@write"), ok());
    let mut ben = Client::connect(&ours.socket);
    assert_eq!(ben.line("auth ben b"), ok());
    assert_eq!(ben.line("watch a1 a2"), ok());
    // Whether a key changes is something that is told of it.
    assert!(text(ben.line("watch a1 b1")).starts_with("NOPERM"));
    assert_eq!(ben.line("client getname"), Answer::Null);
    for refused in ["client unblock 1", "client kill id 1", "function flush", "function load x"] {
        assert!(text(ben.line(refused)).starts_with("NOPERM"), "{refused}");
    }
    assert_eq!(ben.line("function list"), Answer::Array(Vec::new()));
}

/// Who loses channels loses its subscriptions, whichever server it is connected to; who deletes itself is told so first.
#[test]
fn rules_that_change_end_connections() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let socket = place.path().join("second.sock");
    let second =
        Running::start(&ours.database, Settings { port: 0, unix_socket: Some(socket.clone()), ..settings() })
            .expect("a second server");
    let mut root = Client::connect(&ours.socket);
    for (subscription, channel) in [("subscribe", "a"), ("psubscribe", "b*"), ("ssubscribe", "c")] {
        assert_eq!(root.line("acl setuser sam on >s resetchannels &a &b* &c +@all"), ok());
        let mut clients = [Client::connect(&ours.socket), Client::connect(&socket)];
        for (client, socket) in clients.iter_mut().zip([&ours.socket, &socket]) {
            let start = Instant::now();
            // The other server may not know the user yet, or know the rules of before.
            let subscribe = format!("{subscription} {channel}");
            while client.line("auth sam s") != ok() || client.line(&subscribe).is_error() {
                assert!(start.elapsed() < Duration::from_secs(20), "the other server does not follow");
                // Whoever goes on trying waits longer and longer.
                *client = Client::connect(socket);
            }
        }
        assert_eq!(root.line("acl setuser sam &more"), ok());
        assert!(clients.iter_mut().all(|client| !client.line("ping").is_error()));
        assert_eq!(root.line("acl setuser sam resetchannels &other"), ok());
        assert!(clients.iter_mut().all(|client| client.receive().is_none()), "{subscription}");
    }
    let mut sam = Client::connect(&ours.socket);
    assert_eq!(sam.line("auth sam s"), ok());
    assert_eq!(sam.line("acl deluser sam"), Answer::Integer(1));
    assert_eq!(sam.receive(), None);
    second.stopper().stop();
    second.wait();
}

/// What a command reads besides the keys that it names, and what stands in the place of keys.
#[test]
fn keys_and_channels_are_told_apart() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let mut root = Client::connect(&ours.socket);
    root.line("rpush list 1 2");
    root.line("set secret_1 x");
    for (rules, command, expected) in [
        ("~none &c +@all", "spublish c x", "0"),
        (
            "~none &c +@all",
            "spublish d x",
            "NOPERM this user has no permissions to access one of the channels used as arguments",
        ),
        ("~list +sort", "sort list by nosort", "1 2"),
        ("~list +sort", "sort list get #", "1 2"),
        (
            "~list +sort",
            "sort list by secret_*",
            "ERR BY option of SORT denied due to insufficient ACL permissions.",
        ),
        (
            "~list %W~* +sort",
            "sort list get secret_*",
            "ERR GET option of SORT denied due to insufficient ACL permissions.",
        ),
        ("~list %R~* +sort", "sort list by none limit 0 1 get secret_*", "x"),
        ("%W~k +set", "set k get", "OK"),
        ("%W~k +set", "set k 1 get", KEY),
        ("%R~k +bitfield", "bitfield k get u4 0", "Integer(6)"),
        ("%R~k +bitfield", "bitfield k set u4 0 1", KEY),
        ("%R~k %W~k +incr +set", "set k 1 get", "get"),
    ] {
        assert_eq!(root.line(&format!("acl setuser kim reset on nopass {rules}")), ok());
        let mut kim = Client::connect(&ours.socket);
        assert_eq!(kim.line("auth kim x"), ok());
        let told = match kim.line(command) {
            Answer::Integer(number) => number.to_string(),
            Answer::Array(all) => all.iter().map(Text::to_text).collect::<Vec<_>>().join(" "),
            other => text(other),
        };
        assert_eq!(told, expected, "{rules}: {command}");
    }
    // Scripts are held to the same.
    root.line("acl setuser kim reset on nopass ~list +sort +eval");
    let mut kim = Client::connect(&ours.socket);
    assert_eq!(kim.line("auth kim x"), ok());
    let script = "return redis.call('sort', 'list', 'get', 'secret_*')";
    assert!(kim.call(["EVAL", script, "0"]).is_error());
}

#[test]
fn auth_is_queued_behind_multi() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let mut client = Client::connect(&ours.socket);
    assert_eq!(client.line("acl setuser ann on >a +acl|whoami"), ok());
    client.line("multi");
    for line in ["auth ann a", "acl whoami", "set k v", "auth ann wrong"] {
        assert_eq!(text(client.line(line)), "QUEUED", "{line}");
    }
    let Answer::Array(replies) = client.line("exec") else { panic!("an array") };
    let told: Vec<_> = replies.into_iter().map(text).collect();
    assert_eq!(told[..2], ["OK", "ann"]);
    assert!(told[2].starts_with("NOPERM") && told[3].starts_with("WRONGPASS"), "{told:?}");
    assert_eq!(text(client.line("acl whoami")), "ann");
}

#[test]
fn acl_tells_users_as_redis_does() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let mut client = Client::connect(&ours.socket);
    assert_eq!(client.line("acl setuser u on nopass %R~b* &c* +@all -@dangerous (~z* +set)"), ok());
    let Answer::Array(users) = client.line("acl list") else { panic!("an array") };
    let told: Vec<_> = users.into_iter().map(text).collect();
    assert_eq!(
        told,
        [
            "user default on nopass ~* &* +@all",
            "user u on nopass %R~b* resetchannels &c* +@all -@dangerous (~z* resetchannels -@all +set)"
        ]
    );
    let cases = [
        ("setuser u xx", "ERR Error in ACL SETUSER modifier 'xx': Syntax error"),
        ("setuser u +no", "ERR Error in ACL SETUSER modifier '+no': Unknown command or category name in ACL"),
        ("cat NoSuch", "ERR Unknown category 'NoSuch'"),
        ("cat a b", "ERR unknown subcommand or wrong number of arguments for 'cat'. Try ACL HELP."),
        (
            "setuser u +config|get|x",
            "ERR Error in ACL SETUSER modifier '+config|get|x': Allowing first-arg of a subcommand is not supported",
        ),
        (
            "setuser u +get|a|b",
            "ERR Error in ACL SETUSER modifier '+get|a|b': Unknown command or category name in ACL",
        ),
        ("dryrun no get a", "ERR User 'no' not found"),
        ("dryrun u set z1 1", "OK"),
        ("dryrun u set q 1", "This user has no permissions to access the 'q' key"),
        ("dryrun u flushall", "This user has no permissions to run the 'flushall' command"),
        (
            "genpass 4097",
            "ERR ACL GENPASS argument must be the number of bits for the output password, a positive \
                          number up to 4096",
        ),
    ];
    for (line, expected) in cases {
        assert_eq!(text(client.line(&format!("acl {line}"))), expected, "{line}");
    }
    assert_eq!(text(client.line("acl genpass 5")).len(), 2);
    let Answer::Array(user) = client.line("acl getuser u") else { panic!("pairs") };
    assert_eq!(user.len(), 12);
    assert!(matches!(client.line("acl getuser nobody"), Answer::Null));
    let Answer::Array(names) = client.line("acl cat dangerous") else { panic!("an array") };
    assert!(names.contains(&Answer::Bulk(b"flushall".to_vec())));
    assert!(names.contains(&Answer::Bulk(b"acl|setuser".to_vec())));
    let Answer::Array(names) = client.line("acl cat scripting") else { panic!("an array") };
    assert!(names.contains(&Answer::Bulk(b"function|list".to_vec())));
    // What is allowed already makes the rules no longer; two halves of a key's rules are one.
    client.line("acl setuser u reset +@all +client|id %R~k %W~k");
    let Answer::Array(user) = client.line("acl getuser u") else { panic!("pairs") };
    assert_eq!((text(user[5].clone()), text(user[7].clone())), ("+@all".to_owned(), "~k".to_owned()));
    assert!(text(Client::connect(&ours.socket).line("AUTH nobody x")).starts_with("WRONGPASS"));
    let Answer::Array(log) = client.line("acl log") else { panic!("an array") };
    let Answer::Array(entry) = &log[0] else { panic!("pairs") };
    assert!(entry.contains(&Answer::Bulk(b"AUTH".to_vec())), "{entry:?}");
}

#[test]
fn all_servers_have_the_same_users() {
    let place = Place::new();
    let path = place.path().join("users.acl");
    fs::write(&path, "# Ours\nuser default on >first ~* &* +@all\nuser bob on >b ~* +get\n").unwrap();
    let ours = Ours::start(&place, settings().with("aclfile", path.to_str().unwrap()).unwrap());
    let socket = place.path().join("second.sock");
    let second =
        Running::start(&ours.database, Settings { port: 0, unix_socket: Some(socket.clone()), ..settings() })
            .expect("a second server");
    let (mut here, mut there) = (Client::connect(&ours.socket), Client::connect(&socket));
    assert!(text(there.line("get k")).starts_with("NOAUTH"));
    for client in [&mut here, &mut there] {
        assert_eq!(client.line("auth first"), ok());
    }
    assert_eq!(there.line("config set requirepass second"), ok());
    let start = Instant::now();
    while Client::connect(&ours.socket).line("auth second") != ok() {
        assert!(start.elapsed() < Duration::from_secs(20), "the other server does not follow");
        std::thread::yield_now();
    }
    assert!(text(Client::connect(&ours.socket).line("auth first")).starts_with("WRONGPASS"));
    assert_eq!(here.line("acl save"), ok());
    let saved = fs::read_to_string(&path).unwrap();
    assert!(saved.starts_with("user bob on #") && saved.contains("\nuser default on #"), "{saved}");
    // A file with an error changes nothing.
    fs::write(&path, "user default on nopass +@all\nuser x +nosuch\n").unwrap();
    assert!(text(here.line("acl load")).contains("users.acl:2: Error in ACL SETUSER modifier '+nosuch'"));
    assert!(text(Client::connect(&ours.socket).line("get k")).starts_with("NOAUTH"));
    fs::write(&path, saved).unwrap();
    assert_eq!(here.line("acl load"), ok());
    assert!(text(there.line("acl save")).starts_with("ERR This server is not configured"));
    second.stopper().stop();
    second.wait();
}

/// With `acl-pubsub-default allchannels` users and selectors begin with all channels, as in Redis; who is there stays.
#[test]
fn new_users_begin_with_the_channels_of_the_setting() {
    let place = Place::new();
    let (ours, redis) = (Ours::start(&place, settings()), Redis::start(&place));
    let mut clients = [&ours.socket, &redis.socket].map(|socket| Client::connect(socket));
    let channels = |client: &mut Client, name: &str| {
        let Answer::Array(told) = client.line(&format!("acl getuser {name}")) else { panic!("no {name}") };
        told[told.iter().position(|word| *word == Answer::Bulk(b"channels".to_vec())).expect("channels") + 1]
            .clone()
    };
    let told = clients.each_mut().map(|client| {
        assert_eq!(client.line("acl setuser old on"), ok());
        assert_eq!(client.line("config set acl-pubsub-default allchannels"), ok());
        let mut told = vec![client.line("config get acl-pubsub-default"), channels(client, "old")];
        for rules in
            ["new on", "old reset", "new resetchannels &a", "new (~x +get)", "other (resetchannels &b +get)"]
        {
            told.push(client.line(&format!("acl setuser {rules}")));
            told.push(channels(client, rules.split(' ').next().expect("a name")));
        }
        let Answer::Array(users) = client.line("acl list") else { panic!("an array") };
        // Payloads are always looked at here, which nothing says.
        let plain = |user: &Answer| user.to_text().replace("sanitize-payload ", "").into_bytes();
        told.extend(users.iter().map(|user| Answer::Simple(plain(user))));
        assert!(client.line("acl setuser wrong &a").is_error());
        assert_eq!(client.line("config set acl-pubsub-default resetchannels"), ok());
        told.extend([channels(client, "new"), client.line("acl setuser later"), channels(client, "later")]);
        told
    });
    assert_eq!(told[0], told[1]);
}
