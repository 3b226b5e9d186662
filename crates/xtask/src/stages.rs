//! The stages of `make test`, in order. Add a row when a new kind of test exists.
//!
//! The benchmarks compile peers of their own, so they are no default member; stage `bench` compiles them.
//!
//! Invariants: every stage has a time limit, and all together may take at most
//! [`TOTAL_SECONDS_MAX`]; stages share one target directory unless their flags would throw the
//! others' build away.

/// What a stage is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Passes or fails as a whole.
    Check,
    /// Runs `cargo test`: its tests are counted.
    Tests,
}

/// One stage: commands run one after the other until one fails.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stage {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
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

/// The command that runs a program of the harness, by its feature and name, with arguments.
macro_rules! instrument {
    ($feature:literal, $program:literal $(, $argument:literal)*) => {
        &[
            "cargo", "run", "--quiet", "--release", "-p", "perilune-harness", "--features", $feature, "--bin",
            $program, "--" $(, $argument)*
        ]
    };
}

/// Every stage.
pub(crate) const STAGES: &[Stage] = &[
    Stage {
        name: "fmt",
        kind: Kind::Check,
        seconds_max: 120,
        variables: &[],
        commands: &[&["cargo", "fmt", "--all", "--check"]],
    },
    Stage {
        name: "tidy",
        kind: Kind::Check,
        seconds_max: 120,
        variables: &[],
        commands: &[&["cargo", "xtask", "tidy"]],
    },
    Stage {
        name: "clippy",
        kind: Kind::Check,
        seconds_max: 800,
        variables: &[],
        commands: &[&["cargo", "clippy", "--all-targets", "--", "-D", "warnings"]],
    },
    Stage {
        name: "tests",
        kind: Kind::Tests,
        seconds_max: 1800,
        variables: &[],
        commands: &[&["cargo", "test", "--no-fail-fast"]],
    },
    Stage {
        name: "doc",
        kind: Kind::Check,
        seconds_max: 600,
        // Private items are documented too, so links to them are good.
        variables: &[("RUSTDOCFLAGS", "-D warnings -A rustdoc::private-intra-doc-links")],
        commands: &[&["cargo", "doc", "--no-deps", "--document-private-items"]],
    },
    Stage {
        name: "loom",
        kind: Kind::Tests,
        seconds_max: 600,
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
            "loom",
            "--target-dir",
            "target/loom",
        ]],
    },
    Stage {
        name: "loom-canary",
        kind: Kind::Tests,
        seconds_max: 600,
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
            "loom",
            "--target-dir",
            "target/loom-canary",
        ]],
    },
    Stage {
        name: "page-4k",
        kind: Kind::Tests,
        seconds_max: 800,
        variables: &[],
        commands: &[&[
            "cargo",
            "test",
            "-p",
            "perilune-engine",
            "--features",
            "page-4k,tiny",
            "--no-fail-fast",
        ]],
    },
    Stage {
        name: "kill-step",
        kind: Kind::Check,
        seconds_max: 1000,
        variables: &[],
        // One instruction in seven; `make kill-step` tries them all. Then a bug that must be found.
        commands: &[
            instrument!("kill-step", "kill_step", "--quick"),
            instrument!("canary-undo", "kill_step", "--quick", "--case", "set-new", "--canary"),
        ],
    },
    Stage {
        name: "kill-storm",
        kind: Kind::Check,
        seconds_max: 600,
        variables: &[],
        // Both with a checkpoint every 50 ms. `make kill-storm` goes on for longer.
        commands: &[
            instrument!("kill-storm", "kill_storm", "--seconds", "8", "--level", "fsync"),
            instrument!("kill-storm", "kill_storm", "--seconds", "8", "--level", "changing"),
        ],
    },
    Stage {
        name: "replace-storm",
        kind: Kind::Check,
        seconds_max: 600,
        variables: &[],
        // `make replace-storm` goes on for longer. Then a bug that must be found.
        commands: &[
            instrument!("replace-storm", "replace_storm", "--seconds", "6"),
            instrument!("canary-home", "replace_storm", "--seconds", "6", "--canary", "yes"),
        ],
    },
    Stage {
        name: "stop-storm",
        kind: Kind::Check,
        seconds_max: 600,
        variables: &[],
        // Then workers that wait without a limit, which must be found. `make stop-storm` goes on for longer.
        commands: &[
            instrument!("stop-storm", "stop_storm", "--seconds", "10"),
            instrument!("stop-storm", "stop_storm", "--seconds", "60", "--canary", "yes"),
        ],
    },
    Stage {
        name: "promises",
        kind: Kind::Tests,
        seconds_max: 600,
        variables: &[],
        // Each cell of the README's table of promises.
        commands: &[&[
            "cargo",
            "test",
            "--release",
            "-p",
            "perilune-harness",
            "--features",
            "crash-sim",
            "--bin",
            "crash_sim",
        ]],
    },
    Stage {
        name: "crash-sim",
        kind: Kind::Check,
        seconds_max: 600,
        variables: &[],
        // `make crash-sim` runs thousands. The second has a bug that must be found.
        commands: &[
            instrument!("crash-sim", "crash_sim", "--runs", "200"),
            instrument!("crash-sim", "crash_sim", "--runs", "50", "--canary", "lost-batch"),
        ],
    },
    Stage {
        name: "bench",
        kind: Kind::Tests,
        seconds_max: 400,
        variables: &[],
        // All peers of Debian, small; the page of a run in a browser; canaries; our server beside Redis.
        commands: &[
            &["cargo", "build", "--quiet", "-p", "perilune-cli"],
            &[
                "cargo",
                "test",
                "-p",
                "perilune-bench",
                "--bin",
                "perilune-bench",
                "--test",
                "run",
                "--test",
                "server",
            ],
        ],
    },
    Stage {
        name: "lua",
        kind: Kind::Check,
        seconds_max: 900,
        variables: &[],
        commands: &[
            &["cargo", "build", "--quiet", "--release", "-p", "perilune-capi"],
            &["make", "--silent", "--jobs=2", "--output-sync=target", "-C", "bindings/lua", "test-all"],
            &["make", "--silent", "--jobs=2", "--output-sync=target", "-C", "bindings/lua", "test-asan"],
            &["make", "--silent", "-C", "bindings/lua", "test-install"],
        ],
    },
    Stage {
        name: "package",
        kind: Kind::Check,
        seconds_max: 300,
        variables: &[],
        // As it would be released, of what stage `tests` built.
        commands: &[
            &["make", "--silent", "deb", "PROFILE=dev", "DEB=target/deb/check.deb"],
            &["packaging/check", "target/deb/check.deb"],
        ],
    },
    Stage {
        name: "clients",
        kind: Kind::Check,
        seconds_max: 300,
        variables: &[],
        // What others have written for Redis: redis-py, ioredis, node-redis, redis-lua, redis-cli, redis-benchmark.
        commands: &[
            &["cargo", "build", "--quiet", "-p", "perilune-cli"],
            &["crates/server/clients/check", "target/debug/perilune"],
            // The module, of stage `lua`, is such a client, too.
            &["make", "--silent", "-C", "bindings/lua", "test-remote"],
        ],
    },
    Stage {
        name: "header",
        kind: Kind::Check,
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
