//! The golden scripts, each letter a process of its own.

mod party;

use perilune_engine::Database;
use perilune_harness::script::{check_dir_with, run_script_with, scripts};

#[test]
fn party_process() {
    if let Some((_, path)) = party::role() {
        party::serve(&path);
    }
}

#[test]
fn golden_scripts_with_a_process_for_each_letter() {
    check_dir_with(scripts(), |text| {
        let scratch = party::Scratch::new("script");
        let path = scratch.database();
        // Stays attached, so that the database is not closed between two letters.
        let database = Database::open(&path, &party::options()).unwrap();
        let output = run_script_with(&mut |_| party::command(&[], "steps", &path).spawn(), text);
        database.verify().unwrap();
        output
    });
}
