//! What idle connections take of a server's memory: plain ones, and with TLS.

use std::path::Path;
use std::process::Command;

use crate::subject::Result;

use super::client_processes::ClientProcesses;
use super::requests::Job;
use super::row::Row;
use super::sides::{free_port, Serving, Side, ONE};
use super::Run;

/// The name of the section, and its workloads.
pub(super) const SECTION: &str = "idle";
pub(super) const PLAIN: &str = "memory of a plain connection";
pub(super) const TLS: &str = "memory of a TLS connection";

/// Connections made before the first measurement, so that memory which a server takes only once is not counted as
/// theirs.
const BEFORE: usize = 100;
/// A connection of these has no limit that its measuring program would enforce.
const NO_LIMIT: &str = "100000";

/// Measures both kinds at both servers.
pub(super) fn run(run: &mut Run<'_>) -> Result<()> {
    let count = run.wish.quick(500, 10_000);
    let sides = [Side::Redis, ONE];
    for (index, side) in sides.into_iter().enumerate() {
        run.announce(2 * index, 2 * sides.len(), format!("{SECTION} {}", side.name()));
        plain(run, side, count)?;
        run.announce(2 * index + 1, 2 * sides.len(), format!("{SECTION} {} TLS", side.name()));
        let value = with_tls(run, side)?;
        run.push(Row { connections: 500, ..Row::figure(SECTION, TLS, side, "KiB", value) });
    }
    Ok(())
}

fn plain(run: &mut Run<'_>, side: Side, count: usize) -> Result<()> {
    let serving = run.start(side)?;
    let mut clients = ClientProcesses::start(1, serving.port)?;
    clients.connect(BEFORE)?;
    clients.load(Job::Fill, 1)?;
    clients.work(Job::Fill.whole())?;
    clients.load(Job::Get, 1)?;
    clients.work(10 * BEFORE as u64)?;
    let memory = |fields: &[&str]| serving.memory(fields);
    let (own, all) = (memory(&["RssAnon"])?, memory(&["RssAnon", "RssFile", "RssShmem"])?);
    clients.connect(BEFORE + count)?;
    // Each has had an answer before it is idle.
    clients.work(2 * (BEFORE + count) as u64)?;
    let each = |before: u64, after: u64| after.saturating_sub(before) as f64 / count as f64;
    let found = each(all, memory(&["RssAnon", "RssFile", "RssShmem"])?);
    let own = each(own, memory(&["RssAnon"])?);
    let row = |workload: &str, value| Row {
        connections: count,
        ..Row::figure(SECTION, workload, side, "KiB", value)
    };
    run.push(row(PLAIN, found));
    run.push(row("of that, not in files and shared memory", own));
    Ok(())
}

/// KiB, as the program says that CI checks it with: 500 connections after 50, memory that is in no file.
fn with_tls(run: &Run<'_>, side: Side) -> Result<f64> {
    let port = free_port()?;
    let path = |name: &str| run.scratch.path().join(name).display().to_string();
    let (certificate, key) = (path("server.pem"), path("server.key"));
    if !Path::new(&certificate).exists() {
        let words =
            "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost";
        let mut command = Command::new("openssl");
        command.args(words.split(' ')).args(["-keyout", &key, "-out", &certificate]);
        let output = command.output().map_err(|error| format!("install openssl: {error}"))?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
        }
    }
    let mut more: Vec<String> = ["--tls-auth-clients", "no", "--tls-port"].map(str::to_owned).to_vec();
    more.extend([port.to_string(), "--tls-cert-file".to_owned(), certificate.clone()]);
    more.extend(["--tls-key-file".to_owned(), key, "--tls-ca-cert-file".to_owned(), certificate]);
    let serving = Serving::start(side, 1, &more, run.scratch.path())?;
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/redis/clients/idle_tls.py");
    let numbers = [port.to_string(), serving.process().to_string(), NO_LIMIT.to_owned()];
    let output = Command::new("python3").arg(program).args(numbers).output();
    let output = output.map_err(|error| format!("install python3: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let value = text.split_whitespace().find_map(|word| word.parse().ok());
    Ok(value.ok_or_else(|| format!("{text}{}", String::from_utf8_lossy(&output.stderr)))?)
}
