//! The one table of settings: name, scope, kind, default, what it is for.
//!
//! Invariant: names are in ascending order. What is not here is no setting; none is here that does nothing.

use perilune_net::settings::{Id, Kind, Scope, Table};

use super::kind::{EVENTS_OF_KEYS, LIMITS, PERCENTILES};
use super::policy;
use crate::limits::DATABASES_MOST;

/// One of its rows.
pub type Setting = perilune_net::settings::Setting<Name>;

macro_rules! settings {
    ($($name:literal $id:ident, $scope:ident, $kind:expr, $default:literal, $summary:literal;)*) => {
        /// A setting.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Name {
            $(#[doc = $summary] $id,)*
        }

        /// Every setting, by name.
        pub static SETTINGS: &[Setting] = &[
            $(Setting {
                name: $name, id: Name::$id, scope: Scope::$scope, kind: $kind, default: $default, summary: $summary,
            },)*
        ];
    };
}

const COUNT: Kind = Kind::Integer { least: 0, most: i64::MAX };
const PORT: Kind = Kind::Integer { least: 0, most: 65_535 };
/// The words of maxmemory-policy.
const POLICIES: &[&str] = &{
    let (mut words, mut place) = ([""; policy::POLICIES.len()], 0);
    while place < words.len() {
        words[place] = policy::POLICIES[place].0;
        place += 1;
    }
    words
};

#[rustfmt::skip]
settings! {
    "acl-pubsub-default" AclPubsubDefault, Shared, Kind::Choice(&["resetchannels", "allchannels"]), "resetchannels",
        "Which channels new users may use, until their rules say it";
    "aclfile" AclFile, Server, Kind::Text, "",
        "File of users that is read at the start and by ACL LOAD, and written by ACL SAVE";
    "acllog-max-len" AclLogMaxLen, Shared, COUNT, "128", "Refusals that ACL LOG keeps";
    "appendfsync" AppendFsync, Server, Kind::Choice(&["", "always", "everysec", "no"]), "",
        "Durability by the words of Redis: fsync, periodic, none";
    "appendonly" AppendOnly, Server, Kind::Choice(&["yes", "no"]), "yes",
        "Whether there is a log on disk; no: durability none";
    "bind" Bind, Server, Kind::Words, "127.0.0.1 -::1",
        "Addresses to listen at; one that begins with - may be missing";
    "client-output-buffer-limit" ClientOutputBufferLimit, Shared, LIMITS,
        "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60",
        "Unread bytes that end a connection, by class: at once, or when there were so many for so many seconds";
    "client-query-buffer-limit" ClientQueryBufferLimit, Shared, Kind::Bytes { least: 1 << 20, most: i64::MAX },
        "1073741824", "Bytes of a request that is not whole yet, or of some that wait, that end a connection";
    "client-subscriptions-limit" ClientSubscriptionsLimit, Shared, Kind::Integer { least: 1, most: i64::MAX }, "1000000",
        "Channels and patterns that a client may be subscribed to; each takes about 300 bytes";
    "databases" Databases, Server, Kind::Integer { least: 1, most: DATABASES_MOST }, "16",
        "Databases to SELECT; what lies in higher ones stays";
    "db" Database, Server, Kind::Text, "", "The file of the database";
    "dir" Dir, Server, Kind::Text, "", "Directory where relative names of files in the settings lead from";
    "durability" Durability, Server, Kind::Choice(&["", "none", "periodic", "fsync"]), "",
        "What commits wait for; empty: as the database has it";
    "latency-monitor-threshold" LatencyMonitorThreshold, Shared, COUNT, "0",
        "Milliseconds from which LATENCY keeps a delay; 0: none";
    "latency-tracking" LatencyTracking, Shared, Kind::Yes, "yes",
        "Whether INFO latencystats and LATENCY HISTOGRAM tell how long commands take";
    "latency-tracking-info-percentiles" LatencyTrackingInfoPercentiles, Shared, PERCENTILES, "50 99 99.9",
        "Percentiles that INFO latencystats tells";
    "lfu-decay-time" LfuDecayTime, Shared, COUNT, "1",
        "Minutes without use after which a key counts as used less often; 0: never";
    "lfu-log-factor" LfuLogFactor, Shared, COUNT, "10",
        "How much more often a key must be used to count as used more often";
    "log-format" LogFormat, Server, Kind::Choice(&["logfmt", "json"]), "logfmt", "How a line of the log is written";
    "logfile" LogFile, Server, Kind::Text, "", "Where the log goes; empty: standard error";
    "loglevel" LogLevel, Shared, Kind::Choice(&["debug", "verbose", "notice", "warning"]), "notice",
        "What is logged: this and all behind it";
    "luacronfunc" LuaCronFunc, Shared, Kind::Text, "",
        "Function of a library that runs at intervals on one server of the database, with all rights; empty: none";
    "luacronfunc-interval" LuaCronFuncInterval, Shared, Kind::Integer { least: 1, most: 1 << 40 }, "1000",
        "Milliseconds between two runs of luacronfunc";
    "maxclients" MaxClients, Shared, Kind::Integer { least: 1, most: 1 << 32 }, "10000",
        "Clients of one server at most";
    "maxmemory" MaxMemory, Shared, Kind::Bytes { least: 0, most: i64::MAX }, "0",
        "Bytes of the database in use from which keys are evicted or writes refused; 0: no limit";
    "maxmemory-clients" MaxMemoryClients, Shared, Kind::Share, "0",
        "Bytes that all clients of one server may take, or percent of maxmemory, before the largest are cut off; 0: any";
    "maxmemory-policy" MaxMemoryPolicy, Shared, Kind::Choice(POLICIES), "noeviction",
        "Which keys are evicted: none, any, or those with an expiry, by last use, frequency, chance or expiry";
    "maxmemory-samples" MaxMemorySamples, Shared, Kind::Integer { least: 1, most: 64 }, "5",
        "Keys that are compared to evict one";
    "metrics-bind" MetricsBind, Server, Kind::Words, "127.0.0.1", "Addresses that answer GET /metrics";
    "metrics-port" MetricsPort, Server, PORT, "0", "Port of GET /metrics, for Prometheus; 0: none";
    "notify-keyspace-events" NotifyKeyspaceEvents, Shared, EVENTS_OF_KEYS, "",
        "Events of keys that are published: letters of K E g $ l s h z x e t d m n A";
    "pidfile" PidFile, Server, Kind::Text, "", "File that holds the number of the process while it serves";
    "port" Port, Server, Kind::Port, "6379", "TCP port; 0: none; any: a free one, which the start tells";
    "protected-mode" ProtectedMode, Shared, Kind::Yes, "yes",
        "Whether clients of other machines are refused while there is no password";
    "proto-max-bulk-len" ProtoMaxBulkLen, Server, Kind::Bytes { least: 1 << 20, most: 512 << 20 }, "536870912",
        "Bytes of an argument at most";
    "requirepass" RequirePass, Shared, Kind::Text, "",
        "Password of the user default; better in the environment, as $PERILUNE_PASSWORD";
    "save" Save, Server, Kind::Choice(&[""]), "", "Always empty: what is written is kept without snapshots";
    "script-directory" ScriptDirectory, Server, Kind::Text, "", "Directory of the modules that scripts may require";
    "script-memory-limit" ScriptMemoryLimit, Shared, Kind::Bytes { least: 1 << 20, most: i64::MAX }, "134217728",
        "Bytes of memory of a script at most, with what its calls are given and answer and what it has written";
    "script-memory-total" ScriptMemoryTotal, Shared, Kind::Bytes { least: 16 << 20, most: i64::MAX }, "1073741824",
        "Bytes of memory of all scripts of one server at most";
    "script-time-limit" ScriptTimeLimit, Shared, COUNT, "60000",
        "Milliseconds after which a script is stopped; 0: never";
    "slowlog-log-slower-than" SlowlogLogSlowerThan, Shared, Kind::Integer { least: -1, most: i64::MAX }, "10000",
        "Microseconds from which SLOWLOG keeps a command; -1: none";
    "slowlog-max-len" SlowlogMaxLen, Shared, COUNT, "128", "Commands that SLOWLOG keeps";
    "tcp-backlog" TcpBacklog, Server, Kind::Integer { least: 1, most: 65_535 }, "511",
        "Connections that the kernel keeps until they are accepted";
    "tcp-keepalive" TcpKeepalive, Shared, Kind::Integer { least: 0, most: 32_767 }, "300",
        "Seconds after which a silent client is asked whether it is there; 0: never";
    "threads" Threads, Server, Kind::Integer { least: 0, most: 1_024 }, "0",
        "Threads that serve clients; 0: one for each core";
    "threads-awake" ThreadsAwake, Server, Kind::Choice(&["as-needed", "all"]), "as-needed",
        "Whether one thread serves all clients until it is busy and a processor idle, or all threads share them always";
    "timeout" Timeout, Shared, Kind::Integer { least: 0, most: 1 << 31 }, "0",
        "Seconds after which an idle client is disconnected; 0: never";
    "tls-auth-clients" TlsAuthClients, Server, Kind::Choice(&["no", "optional", "yes"]), "yes",
        "Whether clients must show a certificate";
    "tls-ca-cert-dir" TlsCaCertDir, Server, Kind::Text, "",
        "Directory of certificates that clients' ones are signed by, PEM";
    "tls-ca-cert-file" TlsCaCertFile, Server, Kind::Text, "", "Certificates that clients' ones are signed by, PEM";
    "tls-cert-file" TlsCertFile, Server, Kind::Text, "", "The server's certificate and those that sign it, PEM";
    "tls-key-file" TlsKeyFile, Server, Kind::Text, "", "The key of the certificate, PEM";
    "tls-port" TlsPort, Server, PORT, "0", "Port for TLS; 0: none";
    "tls-protocols" TlsProtocols, Server, Kind::Words, "TLSv1.2 TLSv1.3", "Versions of TLS that are spoken";
    "unixsocket" UnixSocket, Server, Kind::Text, "", "Unix socket to listen at, too";
    "unixsocketperm" UnixSocketPerm, Server, Kind::Octal, "700", "Permissions of the Unix socket, octal";
}

/// All that is known of them.
pub(super) static TABLE: Table<Name> =
    Table { rows: SETTINGS, aliases: &[("io-threads", "threads")], listed_in: "docs/reference/settings.md" };

/// The setting called `name`, in any case.
#[must_use]
pub fn find(name: &str) -> Option<&'static Setting> {
    TABLE.find(name)
}

impl Id for Name {
    #[inline]
    fn place(self) -> usize {
        self as usize
    }
}

impl Name {
    /// Its row.
    #[must_use]
    pub fn row(self) -> &'static Setting {
        TABLE.row(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order_and_its_defaults_are_valid() {
        assert_eq!(TABLE.is_in_order(), Ok(()));
    }

    #[test]
    fn the_nearest_name_is_told() {
        assert_eq!(TABLE.nearest("maxmemroy"), Some("maxmemory"));
        assert_eq!(TABLE.nearest("Max-Clients"), Some("maxclients"));
        assert_eq!(TABLE.nearest("replicaof"), None);
    }
}
