//! Prints what building, walking and decoding keys and values costs, in ns per operation: the best
//! of several rounds. Run with `cargo run --release -p perilune-key --example codec_cost`.

use std::hint::black_box;
use std::time::Instant;

use perilune_key::{code_len, encode_int, encode_int_value, increment, subscripts, KeyBuf, Number, ValueRef};

fn measure(name: &str, mut operation: impl FnMut(i64)) {
    const COUNT: i64 = 1_000_000;
    let best = (0..5)
        .map(|_| {
            let start = Instant::now();
            for index in 0..COUNT {
                operation(black_box(index));
            }
            start.elapsed().as_secs_f64() * 1e9 / COUNT as f64
        })
        .fold(f64::INFINITY, f64::min);
    println!("{best:8.2} ns  {name}");
}

fn main() {
    measure("encode_int", |int| {
        let mut code = [0; 16];
        black_box(encode_int(int, &mut code));
        black_box(&code);
    });
    let base = KeyBuf::global("person").unwrap();
    measure("name + push_int, new KeyBuf", |int| {
        let mut key = KeyBuf::global(black_box("person")).unwrap();
        key.push_int(int).unwrap();
        black_box(key.as_bytes());
    });
    let mut key = base.clone();
    measure("set_name + push_int", |int| {
        key.set_name(black_box(b"person")).unwrap();
        key.push_int(int).unwrap();
        black_box(key.as_bytes());
    });
    key.set_name(b"person").unwrap();
    let mark = key.mark();
    measure("truncate + push_int", |int| {
        key.truncate(mark);
        key.push_int(int).unwrap();
        black_box(key.as_bytes());
    });
    measure("truncate + push_bytes(12 letters)", |_| {
        key.truncate(mark);
        key.push_bytes(black_box(b"abcdefghijkl")).unwrap();
        black_box(key.as_bytes());
    });
    measure("truncate + push_bytes(7 digits)", |_| {
        key.truncate(mark);
        key.push_bytes(black_box(b"1234567")).unwrap();
        black_box(key.as_bytes());
    });
    measure("truncate + push_number(12.34)", |_| {
        key.truncate(mark);
        key.push_number(black_box(Number::new(1234, -2).unwrap())).unwrap();
        black_box(key.as_bytes());
    });
    key.truncate(mark);
    key.push_int(123_456).unwrap();
    key.push_bytes(b"abcdefghijkl").unwrap();
    measure("decode ^person(int,\"12 letters\")", |_| {
        for subscript in subscripts(black_box(key.as_bytes())).unwrap() {
            black_box(subscript.unwrap());
        }
    });
    let code = &key.as_bytes()[7..];
    measure("code_len of an integer", |_| {
        black_box(code_len(black_box(code)).unwrap());
    });
    measure("value: encode and decode an integer", |int| {
        let mut code = [0; 16];
        let length = encode_int_value(int, &mut code);
        black_box(ValueRef::decode(black_box(&code[..length])).unwrap());
    });
    measure("increment of an integer", |int| {
        let mut code = [0; 16];
        let length = encode_int_value(int, &mut code);
        let mut out = [0; 64];
        black_box(increment(Some(&code[..length]), &Number::Int(1), &mut out).unwrap());
    });
}
