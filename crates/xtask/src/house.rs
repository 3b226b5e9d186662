//! The tables of the house: which room may use which, and what no room may contain.
//!
//! ARCHITECTURE.md explains these tables; a change here needs a note in docs/design. The rules
//! that read them are in `tidy/`.

/// What a crate may do with `unsafe`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unsafety {
    /// `#![forbid(unsafe_code)]` in every crate root of `src`.
    Forbidden,
    /// Anywhere in the crate, each block with its proof.
    Proved,
    /// Only in files whose path from the root starts with one of these.
    Named(&'static [&'static str]),
}

/// One crate and what it may use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    /// Directory from the root of the workspace.
    pub(crate) dir: &'static str,
    /// Packages it may depend on, ours and others'.
    pub(crate) uses: &'static [&'static str],
    /// Packages its tests, examples and build script may use besides.
    pub(crate) tests_use: &'static [&'static str],
    pub(crate) unsafety: Unsafety,
    /// A library prints nothing: its caller owns the terminal.
    pub(crate) prints: bool,
}

/// Every crate of the workspace, lowest first.
pub(crate) const ROOMS: &[Room] = &[
    Room {
        dir: "crates/key",
        uses: &[],
        tests_use: &["proptest"],
        unsafety: Unsafety::Forbidden,
        prints: false,
    },
    Room {
        dir: "crates/shm",
        uses: &["libc", "loom"],
        tests_use: &["proptest"],
        unsafety: Unsafety::Proved,
        prints: false,
    },
    Room {
        dir: "crates/sqlite",
        uses: &["libsqlite3-sys"],
        tests_use: &[],
        unsafety: Unsafety::Proved,
        prints: false,
    },
    Room {
        dir: "crates/resp",
        uses: &[],
        tests_use: &["proptest"],
        unsafety: Unsafety::Forbidden,
        prints: false,
    },
    Room {
        dir: "crates/chart",
        uses: &["plotters", "resvg"],
        tests_use: &[],
        unsafety: Unsafety::Forbidden,
        prints: false,
    },
    Room {
        dir: "crates/disk",
        uses: &["libc"],
        tests_use: &[],
        unsafety: Unsafety::Forbidden,
        prints: false,
    },
    Room {
        dir: "crates/store",
        uses: &[],
        tests_use: &["proptest"],
        unsafety: Unsafety::Forbidden,
        prints: false,
    },
    Room {
        dir: "crates/memory",
        uses: &["perilune-store"],
        tests_use: &[],
        unsafety: Unsafety::Forbidden,
        prints: false,
    },
    Room {
        dir: "crates/engine",
        uses: &["perilune-shm", "perilune-disk", "perilune-store", "crc32c", "loom"],
        tests_use: &["perilune-key", "perilune-harness", "proptest", "libc"],
        unsafety: Unsafety::Forbidden,
        prints: false,
    },
    Room {
        dir: "crates/remote",
        uses: &["perilune-key", "perilune-resp", "perilune-shm", "perilune-store", "rustix", "rustls"],
        tests_use: &[],
        unsafety: Unsafety::Forbidden,
        prints: false,
    },
    Room {
        dir: "crates/perilune",
        uses: &[
            "perilune-key",
            "perilune-resp",
            "perilune-store",
            "perilune-engine",
            "perilune-memory",
            "perilune-remote",
        ],
        tests_use: &["perilune-harness", "proptest", "libc"],
        unsafety: Unsafety::Forbidden,
        prints: false,
    },
    Room {
        dir: "crates/graph",
        uses: &["perilune", "serde_json"],
        tests_use: &["petgraph"],
        unsafety: Unsafety::Forbidden,
        prints: false,
    },
    Room {
        dir: "crates/sql",
        uses: &["perilune", "perilune-graph", "perilune-sqlite"],
        tests_use: &["md-5"],
        unsafety: Unsafety::Forbidden,
        prints: false,
    },
    Room {
        dir: "crates/dom",
        uses: &["perilune", "quick-xml", "serde", "serde_json"],
        tests_use: &["roxmltree"],
        unsafety: Unsafety::Forbidden,
        prints: false,
    },
    Room {
        dir: "crates/models",
        uses: &["perilune", "serde_json"],
        tests_use: &["proptest"],
        unsafety: Unsafety::Forbidden,
        prints: false,
    },
    Room {
        dir: "crates/sandbox",
        uses: &["perilune", "perilune-graph", "perilune-shm", "perilune-sql"],
        tests_use: &["cc", "luajit-src"],
        // Calls into C.
        unsafety: Unsafety::Named(&[
            "crates/sandbox/src/sandbox/calling.rs",
            "crates/sandbox/src/sandbox/edge.rs",
            "crates/sandbox/src/sandbox/offer.rs",
        ]),
        prints: false,
    },
    Room {
        dir: "crates/capi",
        uses: &[
            "perilune",
            "perilune-dom",
            "perilune-graph",
            "perilune-models",
            "perilune-sandbox",
            "perilune-sql",
        ],
        tests_use: &[],
        unsafety: Unsafety::Proved,
        prints: false,
    },
    Room {
        dir: "crates/net",
        uses: &["mio", "rustix", "rustls", "sha2", "socket2"],
        tests_use: &[],
        unsafety: Unsafety::Forbidden,
        prints: false,
    },
    Room {
        dir: "crates/luahost",
        uses: &["perilune-capi", "perilune-sandbox", "mlua", "mlua-sys", "signal-hook"],
        tests_use: &["cc"],
        // A Lua state that loads C modules has no safe form.
        unsafety: Unsafety::Named(&["crates/luahost/src/interrupt.rs", "crates/luahost/src/registration.rs"]),
        prints: false,
    },
    Room {
        dir: "crates/redis",
        uses: &[
            "perilune",
            "perilune-resp",
            "perilune-net",
            "perilune-sandbox",
            "perilune-sql",
            "mio",
            "rustls",
            "sha1",
            "sha2",
        ],
        tests_use: &[
            "cc",
            "proptest",
            "perilune-harness",
            "perilune-luahost",
            "perilune-remote",
            "perilune-store",
        ],
        // Redis's library for scripts is C, which sandboxes are given a pointer to.
        unsafety: Unsafety::Named(&["crates/redis/src/scripts/redis/mod.rs"]),
        prints: false,
    },
    Room {
        dir: "crates/cli",
        uses: &[
            "perilune",
            "perilune-luahost",
            "perilune-redis",
            "perilune-sandbox",
            "perilune-sql",
            "perilune-dom",
            "perilune-graph",
            "clap",
            "clap_complete",
            "clap_mangen",
            "perilune-chart",
            "indicatif",
            "reedline",
            "serde_json",
            "signal-hook",
        ],
        tests_use: &[],
        unsafety: Unsafety::Forbidden,
        prints: true,
    },
    Room {
        dir: "crates/harness",
        uses: &[
            "perilune-key",
            "perilune-store",
            "perilune-memory",
            "perilune-disk",
            "perilune-engine",
            "perilune-shm",
            "perilune",
            "iced-x86",
            "libc",
            "proptest",
        ],
        tests_use: &[],
        // ptrace, fork and kill have no safe form.
        unsafety: Unsafety::Named(&[
            "crates/harness/src/bin/kill_step/tracee.rs",
            "crates/harness/src/bin/kill_storm/signal.rs",
        ]),
        prints: true,
    },
    Room {
        dir: "bench",
        uses: &[
            "perilune",
            "clap",
            "flate2",
            "perilune-chart",
            "indicatif",
            "libloading",
            "pulldown-cmark",
            "redb",
            "rustix",
            "serde",
            "serde_json",
            "sha2",
        ],
        tests_use: &[],
        // Calls into the C libraries of the peers.
        unsafety: Unsafety::Named(&["bench/src/peers/"]),
        prints: true,
    },
    Room {
        dir: "crates/interpreters",
        uses: &["cc", "lua-src"],
        tests_use: &[],
        unsafety: Unsafety::Forbidden,
        prints: true,
    },
    Room { dir: "crates/xtask", uses: &[], tests_use: &[], unsafety: Unsafety::Forbidden, prints: true },
];

/// Test files of a crate that forbids unsafe code which need a call without a safe form.
pub(crate) const UNSAFE_TESTS: &[&str] = &["crates/engine/tests/fork.rs"];

/// The modules of a crate in import order: a module uses only those above it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Order {
    /// The directory of its sources, with a slash.
    pub(crate) src: &'static str,
    /// Name of each module, and what it holds; nothing where the head of the module is all that says it.
    pub(crate) modules: &'static [(&'static str, &'static str)],
}

macro_rules! order {
    ($src:literal: $($module:literal)*) => {
        Order { src: $src, modules: &[$(($module, "")),*] }
    };
}

/// Every crate whose modules have an order.
pub(crate) const ORDERS: &[Order] = &[
    order!("crates/key/src/":
        "append" "decimal" "number" "numeral" "double" "error" "name" "encode" "quoted" "subscript" "decode"
        "key" "plain" "range" "text" "value" "increment" "record" "literal" "zwr"
    ),
    order!("crates/shm/src/":
        "sync" "words" "latch" "futex" "lockbyte" "slices" "stopped" "sigbus" "descriptor" "event" "files" "platform" "region"
        "fork" "anchor"
    ),
    order!("crates/sqlite/src/": "error" "value" "inner" "statement" "index" "table" "function" "connection"),
    order!("crates/sql/src/":
        "limits" "error" "terms" "token" "value" "decimal" "wide" "answer" "function" "document" "rewrite" "alchemy" "schema"
        "elements" "exact" "definition" "indexed" "row" "over" "ghost" "used" "stage" "computed" "conflict" "catalog" "plan" "scan" "write"
        "tables" "graphs" "engine" "define" "widen" "dump" "evict" "kept" "verify" "sizes" "show" "return_size" "connection"
        "own"
    ),
    order!("crates/graph/src/":
        "limits" "vertex" "edge" "error" "graph" "adjacency" "scan" "edges" "index" "vertices" "check"
        "budget" "view" "cost" "path" "traversal" "request" "algorithm" "ask" "bulk" "import" "export" "statistics"
    ),
    order!("crates/resp/src/": "limits" "decimal" "answer" "reply" "arguments" "inline" "request"),
    order!("crates/chart/src/":
        "axis" "style" "head" "bars" "lines" "surface" "layout" "names" "picture"
        "network"
    ),
    order!("crates/disk/src/": "identity" "real" "faulty"),
    order!("crates/store/src/":
        "error" "limits" "lock" "message" "watch" "options" "hook" "update" "page" "entries" "granularity" "programs" "read_set"
        "deferral" "bounds" "report" "optimistic" "transaction" "session" "bulk" "facets" "store" "absent" "runner"
    ),
    order!("crates/memory/src/":
        "fault" "channels" "lock_table" "watch_table" "state" "overlay" "query" "transaction" "hook" "session" "bulk"
        "levels" "probed" "locks" "watches" "messages" "facets" "store"
    ),
    order!("crates/remote/src/":
        "limits" "wire" "codes" "address" "tls" "stream" "input" "link" "bell" "search" "ahead" "overlay" "reads" "running" "shared"
        "session" "questions" "seen" "transactions" "bulk" "granular" "facilities" "database"
    ),
    order!("crates/perilune/src/":
        "limits" "error" "subscript" "value" "node" "options" "backend" "local" "session" "cursor" "subtree" "transaction"
        "levels" "hook" "lock" "watch" "channel" "remote" "database" "report" "verify" "maintenance" "sigbus"
    ),
    order!("crates/capi/src/":
        "status" "edge" "options" "value" "number" "node" "database" "session" "channel" "cursor" "data"
        "health" "lock" "rows" "sql" "graph" "dom" "models" "transaction" "walk" "watch"
    ),
    order!("crates/sandbox/src/": "sandbox" "nodes" "graphs" "sql"),
    order!("crates/luahost/src/": "error" "interrupt" "registration" "host"),
    order!("crates/dom/src/":
        "kind" "error" "characters" "layout" "record" "whole" "references" "parse" "store" "serialize" "create" "attributes"
        "change" "json" "copy" "data" "user_data" "namespaces" "check" "xpath" "order" "call"
    ),
    order!("crates/models/src/":
        "error" "leaf" "fields" "document" "list" "keyvalue" "set" "records" "columns" "relations" "network" "call"
    ),
    order!("crates/net/src/":
        "limits" "clock" "elsewhere" "files" "settings" "passwords" "journal" "processor" "awake" "away" "seat" "timers"
        "weights" "mailbox" "crew" "tls" "stream" "listener" "figures" "page" "protocol" "buffers" "connection" "event_loop"
        "aside"
    ),
    Order { src: "crates/redis/src/", modules: REDIS_MODULES },
    order!("crates/cli/src/":
        "failure" "which_database" "chart" "dom" "inspect" "exchange" "import" "keep" "module_paths" "scratch" "graph" "serve" "maintenance"
        "arguments" "manual" "script" "collatz" "typed" "repl" "sql" "workloads"
    ),
    order!("crates/harness/src/":
        "model" "number" "bank" "appends" "conformance" "counters" "script"
    ),
    order!("crates/xtask/src/":
        "finding" "house" "lexer" "sources" "samples" "arrows" "stages" "storeys" "tidy" "totals" "lanes" "runner"
    ),
    order!("bench/src/":
        "data" "clock" "statistics" "subject" "globals" "machine" "peers" "player" "scratch" "workload"
        "worker_processes" "plan" "row" "disk" "engine" "verdict" "markup" "targets" "report" "page" "run_directory"
        "durability" "memory" "server" "comparison"
    ),
    Order { src: "crates/engine/src/", modules: ENGINE_MODULES },
];

/// The modules of the server for Redis's clients.
pub(crate) const REDIS_MODULES: &[(&str, &str)] = &[
    ("limits", "every bound of the server"),
    ("random", "chance, not for secrets"),
    ("pattern", "names with `*` and `?`, as KEYS and ACL have them"),
    ("stopwatch", "how long each call of a script takes, mostly without asking the clock"),
    ("start_error", "why a server could not start"),
    ("password", "what a start says of who may enter"),
    ("settings", "the settings: their table, their kinds, the file, what all servers share"),
    ("sockets", "what the settings say of sockets and of TLS"),
    ("redis", "the name under which higher modules lend types to lower ones"),
    ("failure", "why a command answers an error"),
    ("numbers", "numbers in arguments"),
    ("name", "names of nodes, and names of any length as subscripts"),
    ("cursors", "where scans are"),
    ("patience", "how long a command may take where it runs"),
    ("pause", "CLIENT PAUSE: until when commands are held back"),
    ("notify", "classes of events of keys"),
    ("topic", "what is subscribed to and published"),
    ("subscriptions", "what the clients of a loop are subscribed to"),
    ("leftovers", "what a command leaves to be done in slices"),
    ("invalidation", "what clients choose with CLIENT TRACKING, and what they are told"),
    ("question", "a question to all loops, and their answers"),
    ("command", "commands as everybody sees them who does not run them; finding one by its name"),
    ("refusals", "what is said to commands that do not run"),
    ("acl", "users, their rules, what was refused"),
    ("secrets", "which commands nobody is shown"),
    ("statistics", "what commands have done: how often, how long, with which errors"),
    ("figures", "counters of a server"),
    ("memory", "what the database takes, and how its keys are used"),
    ("rules", "what the operator has set: settings and users"),
    ("measures", "what is counted and measured"),
    ("monitors", "who sees all commands"),
    ("mailbox", "what is said to a loop, and the duty to answer a parked connection"),
    ("inquiry", "questions that are not answered yet"),
    ("nodes", "what a connection has of PERILUNE.*, and the threads that wait for it"),
    ("commons", "what clients of a server have to do with each other"),
    ("server", "what all threads of a server share"),
    ("peers", "the servers of a database: their numbers, which of them live, how one is told"),
    ("published", "figures of all servers, in the tree"),
    ("metrics", "what GET /metrics answers"),
    ("follower", "the thread that follows changes of settings and users"),
    ("effects", "what a command does besides its reply and its nodes"),
    ("keyspace", "Redis's keys as nodes"),
    ("rdb", "files of Redis, read into a database"),
    ("waits", "keys that clients of a loop wait for, watched"),
    ("watched", "keys that must not have changed before EXEC"),
    ("queue", "clients that wait for keys, over all servers"),
    ("subscribers", "who is subscribed, over all servers"),
    ("client", "what is remembered of a client between its commands"),
    ("slowlog", "slow commands, in the tree"),
    ("client_list", "what CLIENT LIST says, and whom KILL means"),
    ("tracking", "which keys clients keep, and who is told that they have changed"),
    ("commit", "what belongs into a transaction at its end"),
    ("context", "what a command works with"),
    ("handler", "what runs when a command is called, and how its row is written"),
    ("monitoring", "how MONITOR is shown a command"),
    ("busy_pages", "commands that meet a page which another process holds"),
    ("permits", "whether a client's user may run a command"),
    ("fence", "what servers keep in the tree, and who reaches it by node"),
    ("eviction", "`maxmemory`: room for what wants to be written"),
    ("transact", "the one loop that runs something again, as a one-shot transaction or a whole one"),
    ("execution", "the one way to run a command, whoever asks for it"),
    ("gate", "looks every request's command up, checks it and has it queued or run"),
    ("asking", "how all loops of all servers are asked"),
    ("dispatch", "what other servers tell this one, handed to whom it concerns"),
    ("expiry", "the thread that removes expired keys"),
    ("scripts", "sandboxes, what is compiled, who looks after what runs"),
    ("loop_state", "what a loop lends to the connection that it serves"),
    ("together", "requests that have arrived together, run as one operation"),
    ("connection", "Redis's protocol, as connections know one: requests from bytes, and what they answer"),
    ("commands", "what each command does"),
    ("table", "the rows of all commands"),
    ("worker", "what an event loop is asked: whom it lets in, what letters mean, what each round does"),
    ("aside", "commands that take long, run while another thread has the loop"),
    ("cron", "the thread that runs `luacronfunc`"),
    ("running", "how a server starts and ends"),
    ("lib", "the public face"),
];

/// The modules of the engine.
pub(crate) const ENGINE_MODULES: &[(&str, &str)] = &[
    ("limits", "every bound, and layouts asserted at compile time"),
    ("planted", "bugs that instruments plant, to prove that they would find them"),
    ("notice", "what $PERILUNE_LOG asks the library to say"),
    ("error", "how an attempt on shared pages ends early"),
    ("page", "the bytes of one page"),
    ("image", "mapping, page table, control words, growth, taking of pages, bells"),
    ("meta", "meta and info pages: what a checkpoint names"),
    ("proof", "pages compared with their sums when they are first touched"),
    ("session", "a thread's undo area, redo ring, records, long values"),
    ("tree", "descend, read, count, write, apply, split, merge, copy"),
    ("repair", "the half-done work of a dead process; waiting for the living"),
    ("duty", "what one thread at a time does for everybody: checkpoint, log, cut"),
    ("control", "control words, the publication handshake, generations, lease"),
    ("idle", "long sleep that no write is missed by"),
    ("log", "records from the rings, in batches, on disk"),
    ("pin", "generations kept as they were, and the cut that makes one"),
    ("snapshot", "reading a generation that is kept"),
    ("access", "attempts repeated until they succeed"),
    ("txn", "transactions: overlay, read set, commit"),
    ("lock", "the user's locks in the volatile tree"),
    ("watch", "waiting for a commit"),
    ("message", "post and receive"),
    ("checkpoint", "shadow checkpoints, while others write"),
    ("recover", "the tree from the last checkpoint; what recovery reports"),
    ("open", "create, open, recover, attach, detach, close"),
    ("background", "a thread that looks after something as long as it is held"),
    ("warden", "the sweep for dead processes"),
    ("maintenance", "flushes and checkpoints in time"),
    ("verify", "is every invariant true"),
    ("offline", "a file that nobody changes, read by system calls"),
    ("bulk", "a new file, written from ascending nodes"),
    ("salvage", "what can be read of a damaged file, into a new one"),
    ("compact", "a file written anew, without what nothing uses"),
    ("backup", "a copy of what others are using"),
    ("handle", "databases and sessions as users hold them"),
    ("instrument", "the door for instruments"),
    ("fuzz", "hostile bytes for all that reads them; tests only"),
    ("lib", "the public face"),
];

/// The C files of a directory in include order: a file includes only headers of those before it, and its own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct COrder {
    /// The directory, with a slash.
    pub(crate) dir: &'static str,
    /// Names without suffix.
    pub(crate) files: &'static [&'static str],
}

/// Every directory whose C files have an order.
pub(crate) const C_ORDERS: &[COrder] = &[
    COrder {
        dir: "crates/sandbox/c/",
        files: &[
            "ticks",
            "sandbox",
            "stop",
            "memory",
            "buffer",
            "number",
            "ask",
            "failure",
            "source",
            "proxy",
            "random",
            "sorting",
            "patterns",
            "json",
            "msgpack",
            "structs",
            "values",
            "functions",
            "node_parts",
            "shipped",
            "nodes",
            "script_globals",
            "environment",
            "run",
            "call",
            "state",
        ],
    },
    COrder {
        dir: "bindings/lua/src/",
        files: &[
            "compat",
            "state",
            "errors",
            "values",
            "light",
            "cache",
            "handles",
            "stored",
            "nodes",
            "walk",
            "database",
            "tree",
            "gettree",
            "json",
            "jsonread",
            "locks",
            "ship",
            "transactions",
            "pieces",
            "sql",
            "dom",
            "models",
            "methods",
            "jit",
            "yottadb",
            "yottadb_errors",
            "yottadb_address",
            "yottadb_data",
            "yottadb_nodes",
            "yottadb_walk",
            "yottadb_iterate",
            "yottadb_locks",
            "yottadb_transactions",
            "yottadb_module",
            "graphask",
            "graph",
            "graphwalk",
            "module",
        ],
    },
    COrder {
        dir: "bindings/node/src/",
        files: &[
            "state",
            "text",
            "values",
            "places",
            "databases",
            "data",
            "documents",
            "models",
            "batches",
            "graphs",
            "graphwalks",
            "walk",
            "cursors",
            "transactions",
            "locks",
            "channels",
            "waiting",
            "addon",
        ],
    },
    COrder { dir: "crates/redis/src/scripts/redis/", files: &["redis", "replies", "calls"] },
];

/// Words that name no concept: not allowed as a part of a file, directory or module name.
pub(crate) const BANNED_NAMES: &[&str] =
    &["util", "utils", "common", "helper", "helpers", "misc", "core", "base", "types", "manager"];

/// Macros and attributes that mean "not finished" or "not run".
pub(crate) const BANNED_CODE: &[&str] = &["todo!", "unimplemented!", "dbg!", "#[ignore", ", ignore)]"];

/// Notes to oneself: the work is done now or stands in an issue.
pub(crate) const BANNED_NOTES: &[&str] = &["TODO", "FIXME", "XXX"];

/// Most lines of a file without its tests, unless it has a reason.
pub(crate) const CONCEPT_LINES_MAX: usize = 400;
/// Longest source file, in lines.
pub(crate) const FILE_LINES_MAX: usize = 800;
/// Files that may be longer, because what they are about is one list.
pub(crate) const LONG_FILES: &[&str] = &["include/perilune.h"];
/// Longest function, in lines from `fn` to its closing brace.
pub(crate) const FUNCTION_LINES_MAX: usize = 70;
/// Longest line of a source file, in characters.
pub(crate) const COLUMNS_MAX: usize = 140;
/// Bytes of all recorded runs together.
pub(crate) const RUNS_BYTES_MAX: u64 = 2_000_000;
/// Bytes of all pictures that documents show.
pub(crate) const PICTURES_BYTES_MAX: u64 = 400_000;

/// The room a path stands in.
pub(crate) fn room_of(path: &str) -> Option<&'static Room> {
    ROOMS.iter().find(|room| path.strip_prefix(room.dir).is_some_and(|rest| rest.starts_with('/')))
}
