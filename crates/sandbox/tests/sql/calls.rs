//! Calls of functions one behind the other: what each is given and answers, and that none is called for another.

use std::time::{Duration, Instant};

use perilune_sandbox::sql::Limits;
use perilune_sql::Value;

use super::{on_a_large_stack, Place};

/// A call pushes numbers as they are and takes a short answer from the stack: what else there is goes other ways.
#[test]
fn calls_of_all_kinds_follow_each_other() {
    on_a_large_stack(|| {
        let place = Place::new();
        let mut s = place.open();
        s.run(
            "CREATE FUNCTION same(x) AS 'return x'; CREATE FUNCTION many(a, b, c, d, e, f, g, h, i, j) AS
                 'return a .. b .. c .. d .. e .. f .. g .. h .. i .. tostring(j)';
             CREATE FUNCTION long(n) AS 'return (\"x\"):rep(n)';
             CREATE FUNCTION list(n) AS 'return {n, math.floor(n)}';
             CREATE FUNCTION chance() AS 'return math.random(1000000000)'; CREATE FUNCTION wrong(n) AS 'return n.x.y';
             CREATE FUNCTION kept() AS 'seen = 1'; CREATE FUNCTION changed() AS 'local m = math m.x = 1';",
        );
        let all = "SELECT same(column1) FROM (VALUES (1), ('a'), (NULL), (2.5), (9223372036854775807), (''),
                       (-9007199254740992), (-0.0))";
        for _ in 0..2 {
            assert_eq!(s.told(all), "1 a NULL 2.5 9223372036854775807  -9007199254740992 0");
            assert_eq!(s.told("SELECT many(1, 'b', 3, 4, 5, 6, 7, 8, 9, NULL)"), "1b3456789nil");
            assert_eq!(
                s.told("SELECT length(long(65536)), length(long(65537)), length(long(1000000))"),
                "65536|65537|1000000"
            );
            assert_eq!(s.told("SELECT list(2.5), same(3)"), "[2.5,2]|3");
            assert!(s
                .told("SELECT wrong(1)")
                .starts_with("38000: function wrong: wrong:1: attempt to index"));
            assert!(s.told("SELECT kept()").contains("readonly table"), "{}", s.told("SELECT kept()"));
            assert!(s.told("SELECT changed()").contains("readonly table"), "{}", s.told("SELECT changed()"));
        }
        let many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50)";
        assert_eq!(s.told(&format!("{many} SELECT count(DISTINCT chance()) > 40 FROM n")), "1");
    });
}

/// A sandbox knows functions called lately by their place in memory alone.
#[test]
fn a_function_that_was_replaced_is_not_called_again() {
    on_a_large_stack(|| {
        let place = Place::new();
        let mut s = place.open();
        for round in 0..20 {
            for number in 0..12 {
                s.run(&format!("CREATE OR REPLACE FUNCTION f{number}(x) AS 'return x + {number} + {round}'"));
            }
            let all: Vec<_> = (0..12).map(|number| format!("f{number}(100)")).collect();
            let wanted: Vec<_> = (0..12).map(|number| (100 + number + round).to_string()).collect();
            assert_eq!(s.told(&format!("SELECT {}", all.join(", "))), wanted.join("|"));
            s.run("DROP FUNCTION f3; CREATE FUNCTION f3(x) AS 'return -x'");
            assert_eq!(s.told("SELECT f3(1), f4(1)"), format!("-1|{}", 5 + round));
        }
    });
}

/// What is called with numbers alone runs outside of the protected function that others run in.
#[test]
fn calls_with_numbers_end_in_time_and_memory() {
    on_a_large_stack(|| {
        let place = Place::new();
        let limits = Limits { memory: 8 << 20, time: Some(Duration::from_millis(500)), ..Limits::default() };
        let mut s = place.open_within(limits);
        s.run(
            "CREATE FUNCTION spin(n) AS 'if n > 2 then while true do pcall(error) end end return n';
             CREATE FUNCTION grow(n) AS 'if n > 2 then local t = {} for i = 1, 1e9 do t[i] = {} end end return n';
             CREATE FUNCTION text(n, s) AS 'if n > 2 then return s:rep(1e8) end return s';",
        );
        let rows = "FROM (VALUES (1), (2), (3))";
        for _ in 0..3 {
            let begun = Instant::now();
            assert!(s.told(&format!("SELECT spin(column1) {rows}")).starts_with("57014"));
            assert!(begun.elapsed() < Duration::from_secs(10));
            let told = s.told(&format!("SELECT grow(column1) {rows}"));
            assert!(told.contains("memory"), "{told}");
            let told = s.told(&format!("SELECT text(column1, 'ab') {rows}"));
            assert!(told.contains("memory"), "{told}");
            let told = s.told("SELECT text(1, hex(zeroblob(9000000)))");
            assert!(told.contains("memory"), "{told}");
            assert_eq!(s.told("SELECT spin(1), grow(2), text(1, 'x')"), "1|2|x");
        }
    });
}

/// SQLite, which had known `f` with one argument, refused that number when the program gave one for any number.
#[test]
fn a_function_of_the_program_stands_before_one_that_was_called() {
    on_a_large_stack(|| {
        let place = Place::new();
        let mut s = place.open();
        s.run("CREATE FUNCTION f(x) AS 'return x'");
        for _ in 0..2 {
            assert_eq!(s.told("SELECT f(1)"), "1");
            let count = |arguments: &[Value]| Ok(Value::from(arguments.len() as i64 * 10));
            s.sql.set_function("f", None, false, count).expect("a function");
            assert_eq!(s.told("SELECT f(), f(1), f(1, 2)"), "0|10|20");
            s.sql.set_function("f", Some(2), false, |_| Ok(Value::Null)).expect("another");
            assert_eq!(s.told("SELECT f(1, 2)"), "NULL");
            assert!(s.told("SELECT f(1)").contains("wrong number of arguments"));
            s.sql.set_function("f", None, false, count).expect("the first again");
            assert_eq!(s.told("SELECT f(1), f(1, 2)"), "10|20");
            s.sql.remove_function("f").expect("taken back");
        }
        s.run("DROP FUNCTION f");
        s.sql.set_function("f", None, false, |_| Ok(Value::from(7))).expect("a function");
        assert_eq!(s.told("SELECT f(1)"), "7");
    });
}
