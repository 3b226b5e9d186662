//! The words of a block, beside plain byte slices.

use super::*;

/// Every offset and length against plain byte slices.
#[test]
fn reads_writes_and_compares_like_byte_slices() {
    let block = zeroed::<16>();
    let mut plain = [0u8; 128];
    for offset in 0..64 {
        for len in 0..40 {
            let bytes: Vec<u8> = (0..len).map(|i| (offset * 7 + i * 13 + len) as u8).collect();
            write(&block, offset, &bytes);
            plain[offset..offset + len].copy_from_slice(&bytes);
            let mut whole = [0; 128];
            read(&block, 0, &mut whole);
            assert_eq!(whole, plain, "offset {offset} length {len}");
            let mut out = vec![9];
            append(&block, offset, len, &mut out);
            assert_eq!(out[1..], bytes[..]);
            for cut in 0..=len {
                let other = &bytes[..cut];
                assert_eq!(compare(&block, offset, len, other), bytes.as_slice().cmp(other));
                let mut bent = bytes.clone();
                if cut < len {
                    bent[cut] ^= 0x80;
                    assert_eq!(compare(&block, offset, len, &bent), bytes.cmp(&bent));
                }
            }
        }
    }
}

#[test]
fn parts_lie_behind_each_other_and_change_nothing_else() {
    let bytes: Vec<u8> = (1..=100).collect();
    for offset in [0, 4, 248, 252] {
        for first in 0..40 {
            for second in 0..40 {
                let block = zeroed_box::<64>();
                (0..64).for_each(|word| put_u64(&block, word * 8, u64::MAX));
                write_parts(&block, offset, 0x0605_0403, &bytes[..first], &bytes[first..first + second]);
                let mut expected = vec![0xff; 512];
                expected[offset..offset + 4].copy_from_slice(&[3, 4, 5, 6]);
                let end = offset + 4 + first + second;
                expected[offset + 4..end].copy_from_slice(&bytes[..first + second]);
                if first + second <= 56 {
                    expected[end..end.next_multiple_of(4)].fill(0);
                }
                let mut found = vec![0; 512];
                read(&block, 0, &mut found);
                assert_eq!(found, expected, "{first} and {second} bytes at {offset}");
            }
        }
    }
}

#[test]
fn pairs_lie_behind_each_other_and_end_in_zeros() {
    let bytes: Vec<u8> = (1..=100).collect();
    for first in 0..40 {
        for second in 0..60 {
            let block = zeroed_box::<32>();
            (0..32).for_each(|word| put_u64(&block, word * 8, u64::MAX));
            write_pair(&block, 16, &bytes[..first], &bytes[first..first + second]);
            let mut out = [0; 256];
            read(&block, 0, &mut out);
            let end = 16 + first + second;
            assert_eq!(out[16..end], bytes[..first + second], "{first} and {second}");
            if first + second <= SHORT {
                let padded = end.next_multiple_of(8);
                assert!(out[end..padded].iter().all(|byte| *byte == 0), "{first} and {second}");
            }
            let beyond = end.next_multiple_of(8);
            assert!(out[..16].iter().chain(&out[beyond..]).all(|byte| *byte == 0xff));
        }
    }
}

#[test]
fn small_fields_leave_their_neighbours_alone() {
    let block = zeroed::<2>();
    put_u64(&block, 0, u64::MAX);
    put_u16(&block, 2, 0x1234);
    put_u8(&block, 5, 0);
    assert_eq!(u64_at(&block, 0), 0xffff_00ff_1234_ffff);
    assert_eq!(u16_at(&block, 2), 0x1234);
    assert_eq!(u8_at(&block, 5), 0);
    put_u32(&block, 4, 7);
    assert_eq!(u32_at(&block, 4), 7);
    assert_eq!(u32_at(&block, 0), 0x1234_ffff);
}

#[test]
fn offsets_wrap_instead_of_leaving_the_block() {
    let block = zeroed::<2>();
    put_u8(&block, 16, 5);
    assert_eq!(u8_at(&block, 0), 5);
    let mut out = [0; 8];
    read(&block, 12, &mut out);
    assert_eq!(out, [0, 0, 0, 0, 5, 0, 0, 0]);
}

#[test]
fn parts_are_copied_and_wrap_at_the_ends_of_blocks() {
    let (source, target) = (zeroed::<4>(), zeroed::<2>());
    for index in 0..4 {
        put_u64(&source, index * 8, index as u64 + 1);
    }
    copy_part(&source, 8, &target, 0, 16);
    assert_eq!((u64_at(&target, 0), u64_at(&target, 8)), (2, 3));
    copy_part(&source, 24, &target, 8, 16);
    assert_eq!((u64_at(&target, 0), u64_at(&target, 8)), (1, 4));
    shift(&target, 8, 16, 8);
    assert_eq!((u64_at(&target, 0), u64_at(&target, 8)), (4, 4));
}

#[test]
fn a_block_is_made_of_bytes() {
    let bytes: [[u8; 8]; 8] = std::array::from_fn(|word| std::array::from_fn(|at| (word * 8 + at) as u8));
    let (block, mut whole) = (boxed(&bytes), [[0; 8]; 8]);
    read_words(&block, 0, &mut whole);
    assert_eq!(whole, bytes);
    assert!((0..64).all(|at| usize::from(u8_at(&block, at)) == at));
    read_words(&block, 48, &mut whole);
    assert_eq!([whole[0], whole[1], whole[2]], [bytes[6], bytes[7], bytes[0]], "it wraps");
}

#[test]
fn shift_moves_overlapping_words_both_ways() {
    let block = zeroed::<8>();
    for index in 0..8 {
        put_u64(&block, index * 8, index as u64);
    }
    shift(&block, 8, 16, 32);
    assert_eq!((0..8).map(|i| u64_at(&block, i * 8)).collect::<Vec<_>>(), [0, 1, 1, 2, 3, 4, 6, 7]);
    shift(&block, 16, 8, 32);
    assert_eq!((0..8).map(|i| u64_at(&block, i * 8)).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 4, 6, 7]);
}
