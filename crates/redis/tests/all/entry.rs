//! How a server may be entered, as its settings say: its ports and its password, also when the next start says something else.

use std::fs;

use crate::peer::{Client, Ours, Place, Text};
use perilune_redis::{Password, Running, Settings};
use perilune_resp::Answer;

fn settings() -> Settings {
    Settings { threads: 1, ..Settings::default() }
}

fn ok() -> Answer {
    Answer::Simple(b"OK".to_vec())
}

fn start(ours: &Ours, settings: Settings) -> Result<Running, String> {
    Running::start(&ours.database, settings).map_err(|error| error.to_string())
}

fn end(running: Running) {
    running.stopper().stop();
    running.wait();
}

/// `port 0` was any free port, so that a server that was to have none had one that nobody knew of.
#[test]
fn port_0_is_none() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let with = |words: &[(&str, &str)]| {
        words
            .iter()
            .fold(settings(), |settings, (name, value)| settings.with(name, value).expect("a setting"))
    };
    let socket = place.path().join("none.sock");
    let socket = socket.to_str().expect("a path");
    let running =
        start(&ours, with(&[("port", "0"), ("unixsocket", socket)])).expect("it listens at its socket");
    assert!(running.addresses().is_empty(), "{:?}", running.addresses());
    let mut client = Client::connect(socket.as_ref());
    let port = Answer::Array(vec![Answer::Bulk(b"port".to_vec()), Answer::Bulk(b"0".to_vec())]);
    assert_eq!(client.line("config get port"), port);
    assert!(client.line("info server").to_text().contains("tcp_port:0\r\n"));
    drop(client);
    end(running);
    for words in [&[("port", "0")][..], &[("bind", "")], &[("bind", ""), ("port", "any")]] {
        let why = start(&ours, with(words)).expect_err("nobody could reach it");
        assert!(why.starts_with("there is nothing to listen at: set `port`"), "{why}");
    }
    let running =
        start(&ours, with(&[("port", "any"), ("bind", "127.0.0.1")])).expect("there are free ports");
    assert!(running.addresses()[0].port() > 0);
    end(running);
    assert!(settings().with("port", "70000").is_err() && settings().with("port", "some").is_err());
}

/// A password of an earlier start stayed in the database whatever the next one said, and none said that there was one.
#[test]
fn the_password_is_what_the_last_start_says() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let socket = place.path().join("beside.sock");
    let begin = |password: Option<&str>| {
        let settings = Settings { port: 0, unix_socket: Some(socket.clone()), ..settings() };
        let settings = match password {
            Some(password) => settings.with("requirepass", password).expect("a setting"),
            None => settings,
        };
        start(&ours, settings).expect("it starts")
    };
    let is_needed = || Client::connect(&socket).line("ping").is_error();
    for (password, needed, told) in [
        (None, false, Password::NoneHere),
        (Some(""), false, Password::NoneHere),
        (Some("first"), true, Password::Given),
        (None, true, Password::Kept),
        (Some("second"), true, Password::Given),
        (Some(""), false, Password::NoneHere),
        (None, false, Password::NoneHere),
    ] {
        let running = begin(password);
        assert_eq!((is_needed(), running.password()), (needed, told), "{password:?}");
        if let Some(password) = password.filter(|password| !password.is_empty()) {
            assert_eq!(Client::connect(&socket).line(&format!("auth {password}")), ok());
        }
        end(running);
    }
    assert!(Password::Kept.to_string().contains("`requirepass \"\"` clears it"));
}

/// CONFIG REWRITE wrote the password that this server had been told, also when another one held by then: the next start
/// brought it back.
#[test]
fn the_file_never_brings_back_an_old_password() {
    let place = Place::new();
    let path = place.path().join("perilune.conf");
    fs::write(&path, "threads 1\nrequirepass first\n").expect("a file");
    let mut from_file = Settings::default();
    from_file.read_file(&path).expect("settings");
    let ours = Ours::start(&place, from_file);
    let mut client = Client::connect(&ours.socket);
    let written = |client: &mut Client| {
        assert_eq!(client.line("config rewrite"), ok());
        let text = fs::read_to_string(&path).expect("a file");
        text.lines().find(|line| line.starts_with("requirepass")).map(str::to_owned)
    };
    let told = |client: &mut Client| client.line("config get requirepass");
    let is =
        |text: &str| Answer::Array(vec![Answer::Bulk(b"requirepass".to_vec()), Answer::Bulk(text.into())]);
    assert_eq!(client.line("auth first"), ok());
    assert_eq!(
        (written(&mut client), told(&mut client)),
        (Some("requirepass first".to_owned()), is("first"))
    );
    assert_eq!(client.line("config set requirepass second"), ok());
    assert_eq!(
        (written(&mut client), told(&mut client)),
        (Some("requirepass second".to_owned()), is("second"))
    );
    assert_eq!(client.line("acl setuser default resetpass >third"), ok());
    assert_eq!((written(&mut client), told(&mut client)), (None, is("")));
    assert_eq!(client.line("config set requirepass fourth"), ok());
    assert_eq!(written(&mut client), Some("requirepass fourth".to_owned()));
    assert_eq!(client.line("acl setuser default nopass"), ok());
    assert_eq!((written(&mut client), told(&mut client)), (Some("requirepass \"\"".to_owned()), is("")));
}
