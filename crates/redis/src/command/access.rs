//! What commands do with each of their keys, as ACL rules tell reading from writing, where that is not what the flags of their
//! rows say, as Redis 7 has it: INCR answers what it writes, so it reads as well; EXISTS tells nothing of a value.

use perilune_resp::Arguments;

/// Bits.
pub(crate) type Access = u8;
/// Something of the value is answered or copied.
pub(crate) const READS: Access = 1;
/// The value is changed.
pub(crate) const WRITES: Access = 2;

/// What a command with these arguments does with the key that is number `index` of its keys.
pub(crate) type Accesses = fn(arguments: Arguments<'_>, index: usize) -> Access;

/// Of one that tells nothing of a value.
pub(crate) fn nothing(_: Arguments<'_>, _: usize) -> Access {
    0
}

/// Of one that reads whatever its flags say.
pub(crate) fn reads(_: Arguments<'_>, _: usize) -> Access {
    READS
}

/// Of one that answers what it writes.
pub(crate) fn both(_: Arguments<'_>, _: usize) -> Access {
    READS | WRITES
}

/// Of one that reads its first key and writes the other one.
pub(crate) fn copies(_: Arguments<'_>, index: usize) -> Access {
    if index == 0 {
        READS
    } else {
        WRITES
    }
}

/// Of one that takes something from its first key to another one.
pub(crate) fn moves(_: Arguments<'_>, index: usize) -> Access {
    if index == 0 {
        READS | WRITES
    } else {
        WRITES
    }
}

/// Of one that writes its first key, from what the others hold.
pub(crate) fn stores(_: Arguments<'_>, index: usize) -> Access {
    if index == 0 {
        WRITES
    } else {
        READS
    }
}

fn has(arguments: Arguments<'_>, option: &[u8], from: usize) -> bool {
    arguments.from(from).iter().any(|word| word.eq_ignore_ascii_case(option))
}

/// SET reads with its option GET.
pub(crate) fn of_set(arguments: Arguments<'_>, _: usize) -> Access {
    if has(arguments, b"get", 3) {
        READS | WRITES
    } else {
        WRITES
    }
}

/// BITFIELD that only gets writes nothing.
pub(crate) fn of_bitfield(arguments: Arguments<'_>, _: usize) -> Access {
    if has(arguments, b"set", 2) || has(arguments, b"incrby", 2) {
        READS | WRITES
    } else {
        READS
    }
}

/// The place of the first pattern by which SORT reads keys that it does not name, if it does.
pub(crate) fn sort_patterns(arguments: Arguments<'_>) -> Option<usize> {
    let mut place = 2;
    while let Some(word) = arguments.get(place) {
        let pattern = arguments.get(place + 1).unwrap_or_default();
        let step = match &*word.to_ascii_lowercase() {
            b"by" if pattern.contains(&b'*') => return Some(place + 1),
            b"get" if pattern != b"#" => return Some(place + 1),
            b"by" | b"get" | b"store" => 2,
            b"limit" => 3,
            _ => 1,
        };
        place += step;
    }
    None
}
