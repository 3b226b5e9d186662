//! All tests of the program: one program, linked once.

mod collatz;
mod cron;
mod damage;
mod documents;
mod dom;
mod examples;
mod exchange;
mod full_disk;
mod graph;
mod gtm;
mod interrupted;
mod keep;
mod maintenance;
mod operations;
mod program;
mod remote;
mod repl;
mod replaced;
mod scripts;
mod serve;
mod signals;
mod sql;
mod words;
mod workloads;
