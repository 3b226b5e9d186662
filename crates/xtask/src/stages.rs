//! The stages of `make test`, in order: long ones first where two run at a time. Add a row when a new kind of test exists.
//!
//! The benchmarks are no default member, but tests are built of the whole workspace: what is chosen decides which features
//! libraries have, so that another choice would build them once more.
//!
//! Libraries and tests are built once, without optimization where that takes longer than it saves (`Cargo.toml`); what
//! kills and models the engine at its own speed is built by the profile `checks`.
//!
//! Invariants: every stage has a time limit, and all together may take at most
//! [`TOTAL_SECONDS_MAX`]; stages share one target directory unless their flags would throw the
//! others' build away. Two stages run at a time (`lanes`) unless one needs the machine for itself.

/// What a stage is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Passes or fails as a whole.
    Check,
    /// Runs `cargo test`: its tests are counted.
    Tests,
}

/// When a stage may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// While no other does: it keeps all cores busy, or others use what it builds.
    Alone,
    /// Beside one other.
    Beside,
    /// Beside one other, once the stage of that name has ended.
    After(&'static str),
}

/// One stage: commands run one after the other until one fails.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stage {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// What it needs of the others.
    pub(crate) place: Place,
    /// Limit for all its commands together.
    pub(crate) seconds_max: u64,
    /// Environment variables set besides.
    pub(crate) variables: &'static [(&'static str, &'static str)],
    /// Program and arguments of each command.
    pub(crate) commands: &'static [&'static [&'static str]],
}

/// What all stages together may take before they are stopped. They are meant to stay under 25 minutes on
/// two idle cores; the limits are for machines that are slow or busy, and for what hangs.
pub(crate) const TOTAL_SECONDS_MAX: u64 = 75 * 60;

/// Stages whose temporary files lie in memory, where the machine has it. Thousands of small databases wait for the disk
/// most of their time otherwise, and for whatever else keeps the disk busy. The library of the engine is tested on the disk
/// as well, by stage `page-4k`; so are the storms.
pub(crate) const IN_MEMORY: &[&str] = &["tests", "lua", "node"];

/// More tests at a time than there are cores: many wait, for a limit, a server that ends, or the disk.
const MORE_THREADS: &[(&str, &str)] = &[("RUST_TEST_THREADS", "4")];

/// For make: what stage `build` has built is taken, instead of a library built for release, which is four minutes' work.
const PROFILE: &str = "PROFILE=dev";
const PACKAGES: &str = "PACKAGES=--workspace";

/// For cargo: all of the engine as other workspace code is built.
const UNOPTIMIZED_ENGINE: &str = "profile.dev.package.perilune-engine.opt-level=0";

/// The command that runs a program of the harness, by its name, with arguments.
macro_rules! instrument {
    ($program:literal $(, $argument:literal)*) => {
        &[
            "cargo", "run", "--quiet", "--profile", "checks", "-p", "perilune-harness", "--features", "instruments", "--bin",
            $program, "--" $(, $argument)*
        ]
    };
}

/// Every stage.
pub(crate) const STAGES: &[Stage] = &[
    Stage {
        name: "fmt",
        kind: Kind::Check,
        place: Place::Alone,
        seconds_max: 120,
        variables: &[],
        commands: &[&["cargo", "fmt", "--all", "--check"]],
    },
    Stage {
        name: "tidy",
        kind: Kind::Check,
        place: Place::Alone,
        seconds_max: 120,
        variables: &[],
        commands: &[&["cargo", "xtask", "tidy"]],
    },
    Stage {
        name: "clippy",
        kind: Kind::Check,
        place: Place::Alone,
        seconds_max: 800,
        // Its build scripts are others than those of stage `build`: they would compile C of which clippy sees nothing.
        variables: &[("PERILUNE_WITHOUT_C", "1")],
        commands: &[&["cargo", "clippy", "--all-targets", "--", "-D", "warnings"]],
    },
    Stage {
        name: "build",
        kind: Kind::Check,
        place: Place::Alone,
        seconds_max: 1800,
        variables: &[],
        // What the stages below run: tests, programs, and the library for Lua and Node.
        commands: &[
            &["cargo", "test", "--quiet", "--workspace", "--no-run"],
            &["cargo", "build", "--quiet", "--workspace"],
        ],
    },
    Stage {
        name: "tests",
        kind: Kind::Tests,
        place: Place::Beside,
        seconds_max: 1800,
        variables: MORE_THREADS,
        commands: &[&["cargo", "test", "--workspace", "--no-fail-fast"]],
    },
    Stage {
        name: "kill-step",
        kind: Kind::Check,
        place: Place::Beside,
        seconds_max: 1200,
        variables: &[],
        // One instruction in sixty-one, others each time; `make kill-step` tries them all. Then a bug that must be found.
        commands: &[
            instrument!("kill_step", "--quick"),
            instrument!("kill_step", "--quick", "--case", "set-new", "--canary"),
        ],
    },
    Stage {
        name: "page-4k",
        kind: Kind::Tests,
        place: Place::Beside,
        seconds_max: 1200,
        variables: MORE_THREADS,
        // Built without optimization: compiling takes a tenth of the time, running six times as long, together the half.
        // What depends on how large a page is. How calls to the disk fail, one after the other, does not: stage `tests`.
        commands: &[
            &[
                "cargo",
                "test",
                "-p",
                "perilune-engine",
                "--config",
                UNOPTIMIZED_ENGINE,
                "--features",
                "page-4k,tiny",
                "--no-fail-fast",
                "--lib",
                "--test",
                "checkpoints",
                "--test",
                "conformance",
                "--test",
                "entries",
                "--test",
                "killed",
                "--test",
                "pieces",
                "--test",
                "scripts",
                "--",
                "--skip",
                "failing_disks",
                "--skip",
                "the_disk_fails",
                "--skip",
                "call_fails",
                "--skip",
                "at_any_call",
            ],
            &[
                "cargo",
                "test",
                "-p",
                "perilune",
                "--config",
                UNOPTIMIZED_ENGINE,
                "--features",
                "perilune-engine/page-4k,perilune-engine/tiny",
                "--no-fail-fast",
                "--test",
                "all",
                "--",
                "checkpointed::",
                "cursor_modes::",
                "cursor_races::",
            ],
        ],
    },
    Stage {
        name: "loom",
        kind: Kind::Tests,
        place: Place::Beside,
        seconds_max: 900,
        variables: &[("RUSTFLAGS", "--cfg loom")],
        // Its flags change every crate: a target directory of its own keeps the others' build.
        commands: &[&[
            "cargo",
            "test",
            "-p",
            "perilune-shm",
            "-p",
            "perilune-engine",
            "--test",
            "loom_*",
            "--profile",
            "checks",
            "--target-dir",
            "target/loom",
        ]],
    },
    Stage {
        name: "loom-canary",
        kind: Kind::Tests,
        place: Place::Beside,
        seconds_max: 900,
        variables: &[("RUSTFLAGS", "--cfg loom --cfg canary")],
        // The latch without its fence: passes if loom finds that.
        commands: &[&[
            "cargo",
            "test",
            "-p",
            "perilune-shm",
            "--test",
            "loom_*",
            "--profile",
            "checks",
            "--target-dir",
            "target/loom-canary",
        ]],
    },
    Stage {
        name: "lua",
        kind: Kind::Check,
        place: Place::Beside,
        seconds_max: 1200,
        variables: &[],
        commands: &[
            &[
                "make",
                "--silent",
                "--jobs=2",
                "--output-sync=target",
                "-C",
                "bindings/lua",
                "test-all",
                PROFILE,
            ],
            &[
                "make",
                "--silent",
                "--jobs=2",
                "--output-sync=target",
                "-C",
                "bindings/lua",
                "test-asan",
                PROFILE,
            ],
            &["make", "--silent", "-C", "bindings/lua", "test-install", PROFILE, PACKAGES],
        ],
    },
    Stage {
        name: "bench",
        kind: Kind::Tests,
        place: Place::Beside,
        seconds_max: 1200,
        variables: &[],
        // All peers of Debian, small; the page of a run in a browser; canaries; our server beside Redis.
        commands: &[&[
            "cargo",
            "test",
            "--workspace",
            "--no-fail-fast",
            "--test",
            "dockerfile",
            "--test",
            "engine",
            "--test",
            "resp",
            "--test",
            "run",
            "--test",
            "server",
        ]],
    },
    Stage {
        name: "sqllogictest",
        kind: Kind::Check,
        place: Place::Beside,
        seconds_max: 900,
        variables: &[],
        // Files of the public corpus, if they lie there: each 16th query, by what stage `build` built. `make sqllogictest` runs all.
        commands: &[&[
            "target/debug/examples/sqllogictest",
            "--if-there",
            "--every",
            "16",
            "../shared/data/sqllogictest",
        ]],
    },
    Stage {
        name: "doc",
        kind: Kind::Check,
        place: Place::Beside,
        seconds_max: 900,
        // Private items are documented too, so links to them are good.
        variables: &[("RUSTDOCFLAGS", "-D warnings -A rustdoc::private-intra-doc-links")],
        commands: &[&["cargo", "doc", "--no-deps", "--document-private-items"]],
    },
    Stage {
        name: "clients",
        kind: Kind::Check,
        place: Place::After("lua"),
        seconds_max: 900,
        variables: &[],
        // What others have written for Redis: redis-py, ioredis, node-redis, redis-lua, redis-cli, redis-benchmark.
        commands: &[
            &["crates/redis/clients/check", "target/debug/perilune"],
            // The module, of stage `lua`, is such a client, too.
            &["make", "--silent", "-C", "bindings/lua", "test-remote", PROFILE],
        ],
    },
    Stage {
        name: "promises",
        kind: Kind::Tests,
        place: Place::Beside,
        seconds_max: 900,
        variables: &[],
        // Each cell of the README's table of promises.
        commands: &[&[
            "cargo",
            "test",
            "--profile",
            "checks",
            "-p",
            "perilune-harness",
            "--features",
            "instruments",
            "--bin",
            "crash_sim",
        ]],
    },
    Stage {
        name: "crash-sim",
        kind: Kind::Check,
        place: Place::Beside,
        seconds_max: 900,
        variables: &[],
        // `make crash-sim` runs thousands. The second has a bug that must be found.
        commands: &[
            instrument!("crash_sim", "--runs", "200"),
            instrument!("crash_sim", "--runs", "50", "--canary", "lost-batch"),
        ],
    },
    Stage {
        name: "kill-storm",
        kind: Kind::Check,
        place: Place::Beside,
        seconds_max: 900,
        variables: &[],
        // Both with a checkpoint every 50 ms. `make kill-storm` goes on for longer.
        commands: &[
            instrument!("kill_storm", "--seconds", "8", "--level", "fsync"),
            instrument!("kill_storm", "--seconds", "8", "--level", "changing"),
        ],
    },
    Stage {
        name: "replace-storm",
        kind: Kind::Check,
        place: Place::Beside,
        seconds_max: 900,
        variables: &[],
        // `make replace-storm` goes on for longer. Then a bug that must be found.
        commands: &[
            instrument!("replace_storm", "--seconds", "6"),
            instrument!("replace_storm", "--seconds", "6", "--canary", "yes"),
        ],
    },
    Stage {
        name: "stop-storm",
        kind: Kind::Check,
        place: Place::Beside,
        seconds_max: 900,
        variables: &[],
        // Then workers that wait without a limit, which must be found. `make stop-storm` goes on for longer.
        commands: &[
            instrument!("stop_storm", "--seconds", "10"),
            instrument!("stop_storm", "--seconds", "60", "--canary", "yes"),
        ],
    },
    Stage {
        name: "node",
        kind: Kind::Check,
        place: Place::Beside,
        seconds_max: 900,
        variables: &[],
        // Over the library of stage `build`: the module's own tests; an order of Lua that Node, redis-cli and SQL read, too; then
        // what others have written for mg-dbx, unmodified from npm; what `make install-node` installs.
        commands: &[
            &["make", "--silent", "-C", "bindings/node", "test", PROFILE],
            &["make", "--silent", "-C", "bindings/node", "test-order", PROFILE],
            &["make", "--silent", "-C", "bindings/node", "test-packages", PROFILE],
            &["make", "--silent", "-C", "bindings/node", "test-install", PROFILE, PACKAGES],
        ],
    },
    Stage {
        name: "package",
        kind: Kind::Check,
        place: Place::Beside,
        seconds_max: 900,
        variables: &[],
        // As it would be released, of what stage `build` has built; then the guides' first steps with it.
        commands: &[
            &["make", "--silent", "dist", PROFILE, PACKAGES, "DEB=target/deb/check.deb"],
            &["packaging/check", "target/deb/check.deb"],
            &["packaging/check-dist", "target/dist"],
            &[
                "packaging/newcomers",
                "target/debug",
                "target/debug/libperilune_capi.a",
                "target/deb/check.deb",
            ],
        ],
    },
    Stage {
        name: "header",
        kind: Kind::Check,
        place: Place::Beside,
        seconds_max: 30,
        variables: &[],
        commands: &[
            &[
                "gcc",
                "-std=c99",
                "-Wall",
                "-Wextra",
                "-Werror",
                "-pedantic",
                "-fsyntax-only",
                "-Iinclude",
                "-x",
                "c",
                "-include",
                "perilune.h",
                "/dev/null",
            ],
            &[
                "g++",
                "-std=c++17",
                "-Wall",
                "-Wextra",
                "-Werror",
                "-pedantic",
                "-fsyntax-only",
                "-Iinclude",
                "-x",
                "c++",
                "-include",
                "perilune.h",
                "/dev/null",
            ],
        ],
    },
];
