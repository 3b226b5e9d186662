//! What surrounds a server: TLS, the log, GET /metrics.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use crate::peer::{Client, Ours, Place};
use perilune_redis::Settings;

fn settings() -> Settings {
    Settings { threads: 1, ..Settings::default() }
}

/// A port that nobody has.
fn free_port() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string()
}

/// Runs a program in the directory of a test.
fn run(place: &Place, program: &str, words: &str) -> Output {
    let mut command = Command::new(program);
    command.args(words.split(' ')).current_dir(place.path());
    command.output().unwrap_or_else(|error| panic!("{program} is needed (.ci/packages.txt): {error}"))
}

/// Certificates: the server's own, that of an authority, of a client signed by it, and of somebody else.
fn certificates(place: &Place) {
    const KEY: &str = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
    let make = |words: String| {
        let made = run(place, "openssl", &words);
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    };
    let names = "-addext subjectAltName=DNS:localhost,IP:127.0.0.1";
    for name in ["server", "authority", "stranger"] {
        make(format!("req -x509 {KEY} -days 2 -subj /CN={name} {names} -keyout {name}.key -out {name}.pem"));
    }
    make(format!("req -new {KEY} -subj /CN=client -keyout client.key -out client.csr"));
    fs::write(place.path().join("client.ext"), "basicConstraints=CA:FALSE\n").unwrap();
    make(
        "x509 -req -in client.csr -CA authority.pem -CAkey authority.key -CAcreateserial -days 2 -extfile client.ext \
         -out client.pem"
            .to_owned(),
    );
}

fn with_tls(place: &Place, port: &str, auth: &str) -> Settings {
    let path = |name: &str| place.path().join(name).display().to_string();
    settings()
        .with("tls-port", port)
        .and_then(|settings| settings.with("tls-cert-file", &path("server.pem")))
        .and_then(|settings| settings.with("tls-key-file", &path("server.key")))
        .and_then(|settings| settings.with("tls-ca-cert-file", &path("authority.pem")))
        .and_then(|settings| settings.with("tls-auth-clients", auth))
        .unwrap()
}

#[test]
fn clients_speak_tls() {
    let place = Place::new();
    certificates(&place);
    let port = free_port();
    let ours = Ours::start(&place, with_tls(&place, &port, "no"));
    let cli = |more: &str| {
        let out =
            run(&place, "redis-cli", &format!("--tls --cacert server.pem -h localhost -p {port} {more}"));
        String::from_utf8_lossy(&out.stdout).trim().to_owned()
    };
    assert_eq!(cli("set k over-tls"), "OK");
    assert_eq!(
        Client::connect(&ours.socket).line("get k"),
        perilune_resp::Answer::Bulk(b"over-tls".to_vec())
    );
    // Much in each direction: several records, and replies that the socket does not take at once.
    let mut lines = Vec::new();
    for number in 0..200 {
        writeln!(lines, "SET key{number} {}", "x".repeat(20_000)).unwrap();
        writeln!(lines, "GET key{number}").unwrap();
    }
    fs::write(place.path().join("lines"), lines).unwrap();
    let piped = Command::new("sh")
        .arg("-c")
        .arg(format!("redis-cli --tls --cacert server.pem -h localhost -p {port} <lines | wc -c"))
        .current_dir(place.path())
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&piped.stdout).trim(), (200 * (3 + 20_001)).to_string());
    // A script that takes so long that another thread takes the loop over, which sends what there is first.
    assert_eq!(cli("eval for\ti=1,5e7\tdo\tend\treturn\t7 0"), "7");
    // Bytes that are no TLS end their connection only.
    let mut plain = TcpStream::connect(("127.0.0.1", port.parse::<u16>().unwrap())).unwrap();
    plain.write_all(b"*1\r\n$4\r\nPING\r\n").unwrap();
    plain.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut answer = Vec::new();
    plain.read_to_end(&mut answer).unwrap();
    assert!(!answer.starts_with(b"+PONG"));
    assert_eq!(cli("get k"), "over-tls");
}

#[test]
fn certificates_of_clients_are_asked_for() {
    let place = Place::new();
    certificates(&place);
    let port = free_port();
    let ours = Ours::start(&place, with_tls(&place, &port, "yes"));
    let cli = |more: &str| {
        let out =
            run(&place, "redis-cli", &format!("--tls --cacert server.pem {more}-h localhost -p {port} ping"));
        String::from_utf8_lossy(&out.stdout).trim().to_owned()
    };
    assert_eq!(cli("--cert client.pem --key client.key "), "PONG");
    assert_ne!(cli(""), "PONG");
    assert_ne!(cli("--cert stranger.pem --key stranger.key "), "PONG");
    drop(ours);
    // Authorities by a directory, and one version only.
    fs::create_dir(place.path().join("authorities")).unwrap();
    fs::copy(place.path().join("authority.pem"), place.path().join("authorities/a.pem")).unwrap();
    let directory = place.path().join("authorities").display().to_string();
    let settings = with_tls(&place, &port, "yes")
        .with("tls-ca-cert-file", "")
        .and_then(|settings| settings.with("tls-ca-cert-dir", &directory))
        .and_then(|settings| settings.with("tls-protocols", "TLSv1.3"))
        .unwrap();
    let _ours = Ours::start(&place, settings);
    assert_eq!(cli("--cert client.pem --key client.key "), "PONG");
    assert_ne!(cli("--cert stranger.pem --key stranger.key "), "PONG");
    let version = |version: &str| {
        let words = format!("s_client {version} -cert client.pem -key client.key -connect 127.0.0.1:{port}");
        run(&place, "openssl", &words).status.success()
    };
    assert!(version("-tls1_3") && !version("-tls1_2"));
}

#[test]
fn what_tls_lacks_is_named() {
    let place = Place::new();
    certificates(&place);
    fs::write(place.path().join("empty.pem"), "").unwrap();
    let port = free_port();
    let start = |settings: Settings| {
        let database = perilune::Database::open(place.path().join("test.db")).unwrap();
        let settings = Settings { port: 0, ..settings };
        perilune_redis::Running::start(&database, settings).map(|_| ()).unwrap_err().to_string()
    };
    let bare = settings().with("tls-port", &port).unwrap();
    assert!(start(bare).starts_with("`tls-port` needs `tls-cert-file`"));
    let path = |name: &str| place.path().join(name).display().to_string();
    let no_ca = with_tls(&place, &port, "yes").with("tls-ca-cert-file", "").unwrap();
    assert!(start(no_ca).contains("or set `tls-auth-clients no`"));
    let old = with_tls(&place, &port, "no").with("tls-protocols", "TLSv1.1 TLSv1.2").unwrap();
    assert!(start(old).contains("TLSv1.2 and TLSv1.3 are spoken, not TLSv1.1"));
    let nowhere = with_tls(&place, &port, "yes").with("tls-ca-cert-dir", &path("nowhere")).unwrap();
    assert!(start(nowhere).starts_with("`tls-ca-cert-dir`: "));
    let empty = with_tls(&place, &port, "no").with("tls-cert-file", &path("empty.pem")).unwrap();
    assert!(start(empty).contains("no certificate in it"));
    let foreign = with_tls(&place, &port, "no").with("tls-key-file", &path("client.key")).unwrap();
    assert!(start(foreign).starts_with("`tls-cert-file` and `tls-key-file`:"));
}

fn wait_for_line(path: &Path, text: &str) {
    let start = Instant::now();
    while !fs::read_to_string(path).unwrap_or_default().contains(text) {
        assert!(start.elapsed() < Duration::from_secs(20), "no {text} in {}", path.display());
        std::thread::yield_now();
    }
}

#[test]
fn events_are_logged() {
    let place = Place::new();
    let log = place.path().join("server.log");
    let with_log = settings()
        .with("logfile", log.to_str().unwrap())
        .and_then(|settings| settings.with("requirepass", "secret"))
        .unwrap();
    let ours = Ours::start(&place, with_log);
    wait_for_line(&log, " event=started database=");
    let mut client = Client::connect(&ours.socket);
    client.call(["AUTH", "ev\"il", "wrong"]);
    client.line("auth secret");
    wait_for_line(&log, " level=warning ");
    wait_for_line(&log, "event=\"authentication failed\" user=\"ev\\\"il\"");
    client.line("config set timeout 100 requirepass other");
    wait_for_line(&log, " event=\"setting changed\" setting=timeout value=100 user=default\n");
    assert!(!fs::read_to_string(&log).unwrap().contains("event=\"client connected\""));
    client.line("config set loglevel verbose");
    Client::connect(&ours.socket).line("ping");
    wait_for_line(&log, "event=\"client connected\"");
    drop(ours);
    let text = fs::read_to_string(&log).unwrap();
    assert!(text.ends_with(" event=stopped\n") && !text.contains("other") && !text.contains("secret"));
    assert!(text.lines().all(|line| line.starts_with("time=2") && line.contains("Z level=")));
}

/// The answer to a request, whole.
fn ask(port: &str, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port.parse::<u16>().unwrap())).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all(request).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap_or_default();
    answer
}

#[test]
fn metrics_are_told_and_hostile_requests_bounded() {
    let place = Place::new();
    let port = free_port();
    let ours = Ours::start(&place, settings().with("metrics-port", &port).unwrap());
    let mut client = Client::connect(&ours.socket);
    (0..3).for_each(|_| drop(client.line("set k 1")));
    let answer = ask(&port, b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"));
    assert!(head.contains(&format!("Content-Length: {}", body.len())));
    for line in [
        "perilune_server_connected_clients 1",
        "perilune_server_command_seconds_count{command=\"set\"} 3",
        "perilune_server_command_seconds_bucket{command=\"set\",le=\"+Inf\"} 3",
        "# TYPE perilune_commits_total counter",
        "# TYPE perilune_file_bytes gauge",
    ] {
        assert!(body.lines().any(|told| told == line), "no `{line}` in:\n{body}");
    }
    assert!(ask(&port, b"GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
    assert!(ask(&port, b"POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405"));
    assert_eq!(ask(&port, &[b'x'; 9_000]), "");
    assert!(ask(&port, b"GET /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 200"));
}
