//! DECIMAL: what is stored and what is calculated, beside integers of Rust and powers of ten; and where doubles would be wrong.

use crate::scratch::{text, Scratch};
use perilune_sql::{Result, SqlState, Value};

/// Numbers that follow from a seed, which is printed.
struct Chance(u64);

impl Chance {
    fn new() -> Chance {
        let given = std::env::var("PERILUNE_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = given
            .unwrap_or_else(|| std::time::UNIX_EPOCH.elapsed().map_or(1, |since| since.as_nanos() as u64));
        println!("PERILUNE_SEED={seed}");
        Chance(seed | 1)
    }

    fn below(&mut self, end: i128) -> i128 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        i128::from(self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 8) % end
    }

    /// A decimal in ten thousandths, of a random length.
    fn decimal(&mut self) -> i128 {
        let length = self.below(12) as u32 + 1;
        let decimal = self.below(10_i128.pow(length));
        if self.below(2) == 0 {
            decimal
        } else {
            -decimal
        }
    }
}

/// A decimal of so many places as it is written, without zeros at its end.
fn written(mantissa: i128, places: usize) -> String {
    let sign = if mantissa < 0 { "-" } else { "" };
    let digits = format!("{:0>width$}", mantissa.unsigned_abs(), width = places + 1);
    let (whole, fraction) = digits.split_at(digits.len() - places);
    let fraction = fraction.trim_end_matches('0');
    if fraction.is_empty() {
        format!("{sign}{whole}")
    } else {
        format!("{sign}{whole}.{fraction}")
    }
}

/// Rows as [`Scratch::rows`] has them, whole doubles as integers.
fn plain(rows: &str) -> String {
    let field = |field: &str| {
        field.strip_suffix(".0").unwrap_or(field).replace("-0", if field == "-0.0" { "0" } else { "-0" })
    };
    let row = |row: &str| row.split('|').map(field).collect::<Vec<_>>().join("|");
    rows.split(' ').map(row).collect::<Vec<_>>().join(" ")
}

#[test]
fn what_is_stored_and_calculated_is_exact() -> Result<()> {
    const PLACES: usize = 4;
    let mut chance = Chance::new();
    let mut s = Scratch::new("decimals");
    s.run("CREATE TABLE t(id INTEGER PRIMARY KEY, a DECIMAL(15,4), b NUMERIC(15, 4), c DECIMAL); CREATE INDEX a ON t(a)")?;
    s.run("CREATE INDEX product ON t(a - b)")?;
    let mut model: Vec<(i128, i128)> = Vec::new();
    for id in 0..300 {
        let (a, b) = (chance.decimal(), chance.decimal());
        model.push((a, b));
        let (a, b) = (written(a, PLACES), written(b, PLACES));
        // As literals, and as texts, as clients of the server give them.
        let insert = match id % 2 {
            0 => s.sql.query(&mut s.session, &format!("INSERT INTO t VALUES ({id}, {a}, {b}, {a})"), &[])?,
            _ => s.sql.query(
                &mut s.session,
                "INSERT INTO t VALUES (?1, ?2, ?3, ?2)",
                &[Value::Integer(id), Value::from(&a[..]), Value::from(&b[..])],
            )?,
        };
        assert!(insert.is_empty());
        let found = s.rows(&format!("SELECT a, b, c FROM t WHERE id = {id}"));
        assert_eq!(found, format!("{a}|{b}|{a}"));
        let sums = "SELECT a + b, a - b, -a + c, a * 3 - b FROM t WHERE id = ";
        let (x, y) = model[id as usize];
        let wanted = [x + y, x - y, 0, x * 3 - y].map(|sum| written(sum, PLACES)).join("|");
        assert_eq!(plain(&s.rows(&format!("{sums}{id}"))), wanted, "{a} {b}");
    }
    for round in 0..200 {
        let (of, to) = (model[chance.below(300) as usize], model[chance.below(300) as usize]);
        let (low, high) = (of.0.min(to.0), of.0.max(to.0));
        // By the index, and without it: by literal, text and double.
        let bounds = format!("{} AND {}", written(low, PLACES), written(high, PLACES));
        let wanted = model.iter().filter(|row| (low..=high).contains(&row.0)).count().to_string();
        for column in ["a", "c", "+a"] {
            assert_eq!(s.rows(&format!("SELECT count(*) FROM t WHERE {column} BETWEEN {bounds}")), wanted);
        }
        let parameter = match round % 2 {
            0 => Value::from(&written(of.0, PLACES)[..]),
            _ => Value::Real(written(of.0, PLACES).parse().expect("a number")),
        };
        let equal = model.iter().filter(|row| row.0 == of.0).count();
        let less = model.iter().filter(|row| row.0 < of.0).count();
        let asked = "SELECT count(*) FROM t WHERE a = ?1 UNION ALL SELECT count(*) FROM t WHERE a < ?1";
        let rows = s.sql.query(&mut s.session, asked, &[parameter])?;
        assert_eq!(text(&rows), format!("{equal} {less}"));
        let difference = of.0 - of.1;
        let equal = model.iter().filter(|row| row.0 - row.1 == difference).count().to_string();
        let by_index = format!("SELECT count(*) FROM t WHERE a - b = {}", written(difference, PLACES));
        assert_eq!(s.rows(&by_index), equal);
        assert!(s.rows(&format!("EXPLAIN QUERY PLAN {by_index}")).contains("product"));
    }
    let sum: i128 = model.iter().map(|row| row.0).sum();
    let (least, most) = (model.iter().map(|row| row.0).min(), model.iter().map(|row| row.0).max());
    let wanted = [sum, least.expect("rows"), most.expect("rows")].map(|it| written(it, PLACES)).join("|");
    assert_eq!(plain(&s.rows("SELECT sum(a), min(a), max(a) FROM t")), wanted);
    let mut other = s.database.session()?;
    let seen = perilune_sql::Connection::open()?.query(&mut other, "SELECT sum(b) - sum(a) FROM t", &[])?;
    let wanted: i128 = model.iter().map(|row| row.1 - row.0).sum();
    assert_eq!(plain(&text(&seen)), written(wanted, PLACES));
    let mut sorted: Vec<i128> = model.iter().map(|row| row.1).collect();
    sorted.sort_unstable();
    sorted.dedup();
    let wanted = sorted.iter().map(|b| written(*b, PLACES)).collect::<Vec<_>>().join(" ");
    for query in ["SELECT DISTINCT b FROM t ORDER BY b", "SELECT b FROM t GROUP BY b ORDER BY b"] {
        assert_eq!(s.rows(query), wanted);
    }
    Ok(())
}

/// An expression over `a`, `b` and literals, and what it is for these two, in hundredths: a mantissa and its places.
fn expression(chance: &mut Chance, row: (i128, i128), depth: usize) -> (String, i128, usize) {
    let kind = chance.below(if depth == 0 { 3 } else { 7 });
    if kind < 3 {
        let literal = chance.below(2_000) - 1_000;
        return match kind {
            0 => ("a".into(), row.0, 2),
            1 => ("b".into(), row.1, 2),
            _ => (format!("({})", written(literal, 2)), literal, 2),
        };
    }
    let (left, x, places) = expression(chance, row, depth - 1);
    let (right, y, others) = expression(chance, row, depth - 1);
    if kind == 6 {
        return (format!("({left}) * ({right})"), x * y, places + others);
    }
    let most = places.max(others);
    let scaled = |number: i128, places: usize| number * 10_i128.pow((most - places) as u32);
    let (x, y) = (scaled(x, places), scaled(y, others));
    match kind {
        3 => (format!("{left} + {right}"), x + y, most),
        4 => (format!("{left} - ({right})"), x - y, most),
        _ => ("CASE WHEN a < b THEN a ELSE b END".into(), row.0.min(row.1), 2),
    }
}

/// Generated expressions, beside integers: what is answered, and what is compared.
#[test]
fn generated_expressions_are_exact() -> Result<()> {
    let mut chance = Chance::new();
    let mut s = Scratch::new("decimal-expressions");
    s.run("CREATE TABLE t(a DECIMAL(6,2), b DECIMAL(6,2)); INSERT INTO t VALUES (0, 0)")?;
    for _ in 0..600 {
        let row = (chance.below(20_000) - 10_000, chance.below(2_000) - 1_000);
        s.run(&format!("UPDATE t SET a = {}, b = {}", written(row.0, 2), written(row.1, 2)))?;
        let (text, mantissa, places) = expression(&mut chance, row, 3);
        let wanted = written(mantissa, places);
        // What has more digits is an error, also on the way.
        let found = s.rows(&format!("SELECT {text} AS x FROM t"));
        if found.starts_with("22003") {
            continue;
        }
        assert_eq!(plain(&found), wanted, "{text} of {row:?}");
        assert_eq!(
            s.rows(&format!("SELECT {text} = {wanted}, {text} < {wanted} FROM t")),
            "1|0",
            "{text} of {row:?}"
        );
    }
    Ok(())
}

#[test]
fn doubles_would_be_wrong() -> Result<()> {
    let mut s = Scratch::new("decimal-traps");
    s.run("CREATE TABLE t(id INTEGER PRIMARY KEY, a DECIMAL(10,2), b DECIMAL(10,2), r REAL, n INT);
        INSERT INTO t VALUES (1, 0.1, 0.2, 0.1, 10), (2, 1000000.1, 1000000, 9.5, 9), (3, 10, 9.5, 10, 3), (4, -10, -9.5, 1, 1)")?;
    assert_eq!(s.rows("SELECT id FROM t WHERE a + b = 0.3"), "1");
    assert_eq!(s.rows("SELECT a - b FROM t WHERE id = 2"), "0.1");
    assert_eq!(s.rows("SELECT id FROM t WHERE 0.1 + 0.2 = 0.3 ORDER BY a"), "4 1 3 2");
    assert_eq!(s.rows("SELECT a / 4, a * b FROM t WHERE id = 3"), "2.5|95.0");
    assert_eq!(
        s.rows("SELECT max(a, b), coalesce(NULL, b) < 10 FROM t WHERE id >= 3 ORDER BY id"),
        "10|1 -9.5|1"
    );
    // Beside integers and doubles.
    assert_eq!(
        s.rows("SELECT x.id, y.id FROM t x JOIN t y ON x.a = y.n OR x.a = y.r ORDER BY 1, 2"),
        "1|1 3|1 3|3"
    );
    assert_eq!(s.rows("SELECT x.id FROM t x JOIN t y ON x.a = y.r WHERE y.id = 1"), "1");
    // Through a view, a subquery, WITH, and names.
    s.run("CREATE VIEW v AS SELECT id, a + b AS total, a FROM t; CREATE VIEW w(k, s) AS SELECT id, total FROM v")?;
    assert_eq!(s.rows("SELECT total, total - 0.2, a - 0.3 FROM v WHERE id = 1"), "0.3|0.1|-0.2");
    assert_eq!(s.rows("SELECT s + 0.1, s - 0.1 - 0.2 FROM w WHERE k = 1"), "0.4|0.0");
    assert_eq!(s.rows("SELECT y + 0.2 FROM (SELECT x.a y FROM t x) LIMIT 1"), "0.3");
    assert_eq!(s.rows("WITH q(z) AS (SELECT a FROM t) SELECT z + 0.2 AS k FROM q LIMIT 1"), "0.3");
    let rows = s.sql.query(&mut s.session, "SELECT a + b, sum(a) FROM t", &[])?;
    assert_eq!(rows.columns(), ["a + b", "sum(a)"]);
    // Groups, halves.
    s.run("CREATE TABLE many(x DECIMAL(12,3)); WITH RECURSIVE c(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM c WHERE i < 1000)
        INSERT INTO many SELECT '0.001' FROM c")?;
    assert_eq!(s.rows("SELECT sum(x), avg(x), total(x), count(x) FROM many"), "1.0|0.001|1.0|1000");
    assert_eq!(s.rows("SELECT sum(x), avg(x), total(x) FROM many WHERE x > 1"), "NULL|NULL|0.0");
    assert_eq!(
        s.rows("SELECT round(x + 1.004, 2), CAST(x * 5 AS DECIMAL(10,2)) FROM many LIMIT 1"),
        "1.01|0.01"
    );
    // What changes rows: SET, ON CONFLICT, RETURNING, generated columns, CHECK, triggers.
    s.run("CREATE TABLE acc(id INTEGER PRIMARY KEY, m DECIMAL(10,2) CHECK (m - 0.3 <> 0.1), twice DECIMAL(10,2) AS (m * 2));
        CREATE TABLE log(what DECIMAL(10,2));
        CREATE TRIGGER up AFTER UPDATE ON acc BEGIN INSERT INTO log VALUES (NEW.m - OLD.m); END;
        INSERT INTO acc(id, m) VALUES (1, 0.1); UPDATE acc SET m = m + 0.2;
        INSERT INTO acc(id, m) VALUES (1, 0.6) ON CONFLICT(id) DO UPDATE SET m = m + excluded.m")?;
    assert_eq!(s.rows("SELECT m, twice FROM acc"), "0.9|1.8");
    assert_eq!(s.rows("SELECT what FROM log"), "0.2 0.6");
    assert_eq!(s.rows("UPDATE acc SET m = m / 3 RETURNING m + 0.1"), "0.4");
    // A trigger that names no table with decimals has those of its rows.
    s.run(
        "CREATE TABLE plain(a, b REAL);
        CREATE TRIGGER of_rows AFTER UPDATE ON acc WHEN NEW.m - OLD.m = 0.1
            BEGIN INSERT INTO plain VALUES (NEW.m * 3 - OLD.m, round(NEW.m + 0.005, 2)); END;
        UPDATE acc SET m = m - 0.1; UPDATE acc SET m = 0.3; INSERT INTO acc(id, m) VALUES (1, 0.125 * 0.8)
            ON CONFLICT(id) DO UPDATE SET m = round(excluded.m * 1.45, 2)",
    )?;
    assert_eq!(s.rows("SELECT a, b FROM plain"), "0.7|0.31");
    assert_eq!(s.rows("SELECT m FROM acc"), "0.15");
    let long = "CREATE TRIGGER no AFTER UPDATE ON acc BEGIN INSERT INTO plain VALUES (NEW.m + 0.1234567890123456, 1); END";
    assert!(s.rows(long).starts_with("22003"), "{}", s.rows(long));
    s.run("UPDATE acc SET m = 0.3; DROP TRIGGER of_rows")?;
    assert_eq!(s.rows("UPDATE acc SET m = m + 0.1"), "23514: CHECK constraint failed: m - 0.3 <> 0.1");
    Ok(())
}

/// Constraints, defaults and indexes take a decimal for what it is, and not for how it is written.
#[test]
fn constraints_compare_decimals() -> Result<()> {
    let mut s = Scratch::new("decimal-constraints");
    s.run("CREATE TABLE t(id INTEGER PRIMARY KEY, a DECIMAL(6,2) UNIQUE, b DECIMAL(6,2) DEFAULT (0.1 + 0.2) CHECK (b + 0.1 <= 0.4),
            c DECIMAL(6,2) DEFAULT '1.50', k TEXT);
        CREATE UNIQUE INDEX pair ON t(b - c, k) WHERE a > 1; CREATE INDEX by_c ON t(c DESC);
        INSERT INTO t(a, k) VALUES (1.10, 'x'), ('2', 'y')")?;
    assert_eq!(s.rows("SELECT a, b, c, b - c FROM t ORDER BY id"), "1.1|0.3|1.5|-1.2 2|0.3|1.5|-1.2");
    for value in ["1.1", "'1.100'", "'11e-1'", "0.6 + 0.5", "CAST(1.1 AS DECIMAL(6,2))"] {
        let insert = format!("INSERT INTO t(a) VALUES ({value})");
        assert_eq!(s.rows(&insert), "23505: UNIQUE constraint failed: t.a", "{value}");
    }
    assert_eq!(s.rows("INSERT INTO t(b) VALUES (0.31)"), "23514: CHECK constraint failed: b + 0.1 <= 0.4");
    assert_eq!(
        s.rows("INSERT INTO t(a, k) VALUES (9, 'y')"),
        "23505: UNIQUE constraint failed: index 'pair'"
    );
    s.run(
        "INSERT INTO t(a, k) VALUES (9, 'y') ON CONFLICT (b - c, k) WHERE a > 1 DO UPDATE SET c = c + 0.2;
        INSERT INTO t(a, b, c) VALUES (NULL, 0.2, 1.7), (NULL, 0.2, '1.70')",
    )?;
    assert_eq!(s.rows("SELECT c, count(*), sum(b) FROM t GROUP BY c ORDER BY c"), "1.5|1|0.3 1.7|3|0.7");
    assert_eq!(s.rows("SELECT id FROM t WHERE c = 1.70 AND b IN (0.3, 0.4)"), "2");
    assert!(s.rows("EXPLAIN QUERY PLAN SELECT id FROM t WHERE c = 1.70").contains("by_c"));
    assert_eq!(s.rows("SELECT a FROM t WHERE b - c = -1.4 AND k = 'y' AND a > 1"), "2");
    assert!(s.database.verify().expect("a look").is_sound());
    Ok(())
}

/// A table made of a query keeps digits, and refuses what they do.
#[test]
fn a_table_of_a_query_keeps_digits() -> Result<()> {
    let mut s = Scratch::new("decimal-as");
    s.run("CREATE TABLE t(a DECIMAL(6,2), n NUMERIC, d DECIMAL); INSERT INTO t VALUES (0.1, 7, 0.125);
        CREATE VIEW v AS SELECT a AS price, d FROM t; CREATE TABLE x AS SELECT price, v.d, n, price * 2 AS twice FROM v, t")?;
    assert_eq!(s.rows("SELECT price + 0.2, d * 3, n FROM x"), "0.3|0.375|7");
    assert!(s.rows("INSERT INTO x(price) VALUES (0.125)").starts_with("22003"));
    Ok(())
}

#[test]
fn what_does_not_fit_is_refused() -> Result<()> {
    let mut s = Scratch::new("decimal-limits");
    s.run("CREATE TABLE t(a DECIMAL(6,2), w DECIMAL(18), any DECIMAL, old NUMERIC)")?;
    let mut state =
        |sql: &str| s.sql.query(&mut s.session, sql, &[]).map(|_| ()).map_err(|error| error.state());
    for fits in ["9999.99, 999999999999999999, 123456789.123456", "'-0.10', '-7', '1e-3'", "NULL, NULL, NULL"]
    {
        assert_eq!(state(&format!("INSERT INTO t(a, w, any) VALUES ({fits})")), Ok(()), "{fits}");
    }
    for (value, error) in [
        ("0.125", SqlState::RANGE),
        ("10000", SqlState::RANGE),
        ("'1.001'", SqlState::RANGE),
        ("'0.30000000000000001'", SqlState::RANGE),
        ("0.30000000000000001", SqlState::RANGE),
        ("1.0 / 3", SqlState::RANGE),
        ("9e999", SqlState::RANGE),
        ("'ten'", SqlState::TYPE),
        ("x'31'", SqlState::TYPE),
    ] {
        assert_eq!(state(&format!("INSERT INTO t(a) VALUES ({value})")), Err(error), "{value}");
    }
    assert_eq!(state("INSERT INTO t(w) VALUES (1000000000000000000)"), Err(SqlState::RANGE));
    assert_eq!(state("INSERT INTO t(any) VALUES ('1234567890123456.5')"), Err(SqlState::RANGE));
    assert_eq!(state("SELECT any * any FROM t"), Err(SqlState::RANGE));
    assert_eq!(state("SELECT CAST(a AS DECIMAL(2,1)) FROM t"), Err(SqlState::RANGE));
    assert_eq!(state("CREATE TABLE u(a DECIMAL(19,2))"), Err(SqlState::DEFINITION));
    assert_eq!(state("CREATE TABLE u(a DECIMAL(4,2) DEFAULT 0.125)"), Err(SqlState::RANGE));
    assert_eq!(state("ALTER TABLE t ADD b DECIMAL(4,2) DEFAULT 0.125"), Err(SqlState::RANGE));
    assert_eq!(state("UPDATE t SET a = a * 2 WHERE a > 1"), Err(SqlState::RANGE));
    // A NUMERIC without digits is SQLite's.
    assert_eq!(state("INSERT INTO t(old) VALUES ('0.30000000000000004'), ('ten')"), Ok(()));
    assert_eq!(
        s.rows("SELECT a, w FROM t WHERE a IS NOT NULL OR w IS NOT NULL"),
        "9999.99|999999999999999999 -0.1|-7"
    );
    Ok(())
}

/// Rows that leave a frame are taken out of its sum without a trace.
#[test]
fn windows_are_exact() -> Result<()> {
    let mut s = Scratch::new("decimals-windows");
    s.run("CREATE TABLE t(id INTEGER PRIMARY KEY, price DECIMAL(15,2))")?;
    for id in 0..200_i64 {
        let price = format!("{}.{:02}", if id % 7 == 0 { 9_999_999_999 } else { id }, id * 31 % 100);
        s.sql.execute(&mut s.session, "INSERT INTO t VALUES (?, ?)", &[id.into(), price.as_str().into()])?;
    }
    let sliding = "SELECT sum(price) OVER (ORDER BY id ROWS 2 PRECEDING) AS s FROM t";
    let joined =
        "SELECT (SELECT sum(price) FROM t AS u WHERE u.id BETWEEN t.id - 2 AND t.id) FROM t ORDER BY id";
    assert_eq!(s.rows(sliding), s.rows(joined));
    // 10.10, 11.41 and 12.72.
    assert_eq!(s.rows(&format!("SELECT s FROM ({sliding}) WHERE s = 34.23")), "34.23");
    Ok(())
}
