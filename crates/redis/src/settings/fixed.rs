//! Settings of Redis that are none here: what is always so, what stops a start because it would be so no longer, and
//! what means nothing here, which a redis.conf may say all the same.
//!
//! Invariant: a file that asks for something that would matter and is not to be had is refused, with a reason.

/// What is always so: CONFIG GET tells it, CONFIG SET changes nothing of it, and a file may say it.
pub(crate) const FIXED: &[(&str, &str)] = &[
    ("activedefrag", "no"),
    ("bind-source-addr", ""),
    ("cluster-enabled", "no"),
    ("daemonize", "no"),
    ("enable-debug-command", "yes"),
    ("enable-module-command", "no"),
    ("masterauth", ""),
    ("masteruser", ""),
    ("min-replicas-to-write", "0"),
    ("min-slaves-to-write", "0"),
    ("replicaof", ""),
    ("shutdown-on-sigint", "default"),
    ("shutdown-on-sigterm", "default"),
    ("slaveof", ""),
    ("socket-mark-id", "0"),
    ("supervised", "no"),
    ("syslog-enabled", "no"),
    ("tls-cluster", "no"),
    ("tls-replication", "no"),
];

const REPLICATION: &str = "there is no replication: all servers of a database are one, start another on it";

/// Why a file is refused that says anything else, and what to do.
const REASONS: &[(&str, &str)] = &[
    ("cluster-enabled", "there is no cluster: all servers of a database are one, start another on it"),
    ("daemonize", "it stays in the foreground: run it by systemd (perilune.service), or with `&`"),
    ("enable-debug-command", "take DEBUG away by rules of users: `-debug`"),
    ("loadmodule", "there are no modules: write functions in Lua, or a program that opens the database"),
    ("masterauth", REPLICATION),
    ("masteruser", REPLICATION),
    ("min-replicas-to-write", REPLICATION),
    ("min-slaves-to-write", REPLICATION),
    ("rename-command", "take commands away by rules of users: `user default on ... -flushall`"),
    ("replicaof", REPLICATION),
    ("slaveof", REPLICATION),
    ("syslog-enabled", "lines go to standard error, which systemd's journal keeps, or to `logfile`"),
    ("tls-ciphers", "ciphers are chosen among safe ones by themselves: `tls-protocols` bounds the versions"),
    (
        "tls-ciphersuites",
        "ciphers are chosen among safe ones by themselves: `tls-protocols` bounds the versions",
    ),
    ("tls-key-file-pass", "the key must lie there without a password: `openssl pkey -in KEY -out PLAIN`"),
];

/// What a file may say in vain: it is about how Redis lays out and frees memory, writes snapshots and its log of
/// commands, copies data to replicas, and the like.
#[rustfmt::skip]
const VAIN: &[&str] = &[
    "active-defrag-cycle-max", "active-defrag-cycle-min", "active-defrag-ignore-bytes", "active-defrag-max-scan-fields",
    "active-defrag-threshold-lower", "active-defrag-threshold-upper", "active-expire-effort", "activerehashing",
    "always-show-logo", "aof-disable-auto-gc", "aof-load-truncated", "aof-rewrite-incremental-fsync",
    "aof-timestamp-enabled", "aof-use-rdb-preamble", "aof_rewrite_cpulist", "appenddirname", "appendfilename",
    "auto-aof-rewrite-min-size", "auto-aof-rewrite-percentage", "bgsave_cpulist", "bio_cpulist",
    "busy-reply-threshold", "cluster-allow-pubsubshard-when-down", "cluster-allow-reads-when-down",
    "cluster-allow-replica-migration", "cluster-announce-bus-port", "cluster-announce-hostname",
    "cluster-announce-ip", "cluster-announce-port", "cluster-announce-tls-port", "cluster-config-file",
    "cluster-link-sendbuf-limit", "cluster-migration-barrier", "cluster-node-timeout", "cluster-port",
    "cluster-preferred-endpoint-type", "cluster-replica-no-failover", "cluster-replica-validity-factor",
    "cluster-require-full-coverage", "cluster-slave-no-failover", "cluster-slave-validity-factor",
    "crash-log-enabled", "crash-memcheck-enabled", "dbfilename", "disable-thp", "dynamic-hz",
    "enable-protected-configs", "hash-max-listpack-entries", "hash-max-listpack-value", "hash-max-ziplist-entries",
    "hash-max-ziplist-value", "hll-sparse-max-bytes", "hz", "ignore-warnings", "io-threads-do-reads",
    "jemalloc-bg-thread", "lazyfree-lazy-eviction", "lazyfree-lazy-expire", "lazyfree-lazy-server-del",
    "lazyfree-lazy-user-del", "lazyfree-lazy-user-flush", "list-compress-depth", "list-max-listpack-size",
    "list-max-ziplist-entries", "list-max-ziplist-size", "list-max-ziplist-value", "lua-time-limit",
    "maxmemory-eviction-tenacity", "min-replicas-max-lag", "min-slaves-max-lag", "no-appendfsync-on-rewrite",
    "oom-score-adj", "oom-score-adj-values", "proc-title-template", "propagation-error-behavior",
    "rdb-del-sync-files", "rdb-save-incremental-fsync", "rdbchecksum", "rdbcompression", "repl-backlog-size",
    "repl-backlog-ttl", "repl-disable-tcp-nodelay", "repl-diskless-load", "repl-diskless-sync",
    "repl-diskless-sync-delay", "repl-diskless-sync-max-replicas", "repl-ping-replica-period",
    "repl-ping-slave-period", "repl-timeout", "replica-announce-ip", "replica-announce-port", "replica-announced",
    "replica-ignore-disk-write-errors", "replica-ignore-maxmemory", "replica-lazy-flush", "replica-priority",
    "replica-read-only", "replica-serve-stale-data", "sanitize-dump-payload", "save", "server_cpulist",
    "set-max-intset-entries", "set-max-listpack-entries", "set-max-listpack-value", "set-proc-title",
    "shutdown-timeout", "slave-announce-ip", "slave-announce-port", "slave-ignore-maxmemory", "slave-lazy-flush",
    "slave-priority", "slave-read-only", "slave-serve-stale-data", "stop-writes-on-bgsave-error",
    "stream-node-max-bytes", "stream-node-max-entries", "syslog-facility", "syslog-ident", "tls-client-cert-file",
    "tls-client-key-file", "tls-client-key-file-pass", "tls-dh-params-file", "tls-prefer-server-ciphers",
    "tls-session-cache-size", "tls-session-cache-timeout", "tls-session-caching", "tracking-table-max-keys",
    "zset-max-listpack-entries", "zset-max-listpack-value", "zset-max-ziplist-entries", "zset-max-ziplist-value",
];

/// The value of the one called `name`, in any case.
pub(crate) fn fixed(name: &str) -> Option<&'static str> {
    FIXED.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| *value)
}

/// What to do instead of a setting that was passed over; None: nothing, it is about what there is not here.
#[must_use]
pub fn why_in_vain(name: &str) -> Option<&'static str> {
    REASONS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, why)| *why)
}

/// What becomes of a line of a file that says something of no setting of ours.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Foreign {
    /// It is so.
    So,
    /// It means nothing here.
    Vain(&'static str),
    /// It is not to be had, and why.
    Refused(String),
}

/// What becomes of `name` with `value`, if Redis has such a setting.
pub(super) fn foreign(name: &str, value: &str) -> Option<Foreign> {
    if let Some(vain) = VAIN.iter().find(|vain| vain.eq_ignore_ascii_case(name)) {
        return Some(Foreign::Vain(vain));
    }
    let reason = why_in_vain(name);
    match fixed(name) {
        Some(is) if is.eq_ignore_ascii_case(value) => Some(Foreign::So),
        // Debian's redis.conf says so: whoever starts the server himself sees why it stays.
        Some(_) if name.eq_ignore_ascii_case("daemonize") => Some(Foreign::Vain("daemonize")),
        // It tells the systemd that has started it, and nobody else.
        Some(_) if name.eq_ignore_ascii_case("supervised") && matches!(value, "auto" | "systemd") => {
            Some(Foreign::So)
        }
        Some(is) => {
            let is = if is.is_empty() { "\"\"" } else { is };
            let why = reason.map_or_else(String::new, |why| format!(": {why}"));
            Some(Foreign::Refused(format!("is always {is} here{why}")))
        }
        None => reason.map(|why| Foreign::Refused(why.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::find;

    #[test]
    fn what_is_no_setting_here_stands_in_one_list() {
        for list in [VAIN.to_vec(), FIXED.iter().map(|(name, _)| *name).collect()] {
            assert!(list.windows(2).all(|pair| pair[0] < pair[1]));
            assert!(list.iter().all(|name| find(name).is_none() || *name == "save"));
        }
        assert!(VAIN.iter().all(|name| fixed(name).is_none()));
        assert!(REASONS.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }

    #[test]
    fn a_file_of_redis_is_told_what_becomes_of_it() {
        assert_eq!(foreign("Daemonize", "NO"), Some(Foreign::So));
        assert_eq!(foreign("supervised", "systemd"), Some(Foreign::So));
        assert_eq!(foreign("HZ", "10"), Some(Foreign::Vain("hz")));
        assert_eq!(foreign("daemonize", "yes"), Some(Foreign::Vain("daemonize")));
        assert!(why_in_vain("daemonize").is_some_and(|why| why.contains("foreground")));
        assert_eq!(why_in_vain("hz"), None);
        assert_eq!(foreign("maxmemroy", "1"), None);
        for (name, value) in
            [("cluster-enabled", "yes"), ("supervised", "upstart"), ("rename-command", "FLUSHALL x")]
        {
            assert!(matches!(foreign(name, value), Some(Foreign::Refused(_))), "{name}");
        }
    }
}
