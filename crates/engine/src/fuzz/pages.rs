//! Every function that reads a page, on any bytes.

use super::{any_page, run, NUMBER};
use crate::limits::{KEY_MAX, PAGE};
use crate::page::{
    append_value, check, child, compacted, contains, content_bytes, copy_records, find, find_child, find_far,
    find_near, flags, has_hi_fence, has_lo_fence, hi_fence, inner_count, is_gap, key_into, kind, leads,
    leaf_count, leaf_free, leaf_key, level, lines_near, lo_fence, next_is, place_near, prefetch_near,
    prefix_len, previous_is, self_number, split, value_place, InnerSlots, LeafSlots, Page, INNER,
};

/// Calls everything that reads a page. Answers whether `check` is content.
fn read_everything(page: &Page, key: &[u8]) -> bool {
    let mut out = Vec::new();
    let slots = leaf_count(page);
    let found = find(page, key);
    assert!(found.index <= slots);
    let (index, number) = find_child(page, key);
    assert!(index <= inner_count(page) && number == child(page, index));
    let _ = (contains(page, key), has_hi_fence(page), has_lo_fence(page), self_number(page), flags(page));
    let _ = (find_far(page, key), is_gap(page, key.len(), key));
    let _ = (kind(page), level(page), prefix_len(page));
    assert!(content_bytes(page) <= PAGE && leaf_free(page) <= 2 * 0xffff);
    lo_fence(page, &mut out);
    assert!(out.len() <= PAGE);
    hi_fence(page, &mut out);
    assert!(out.len() <= PAGE);
    for index in [0, 1, found.index, slots / 2, slots, slots + 1, PAGE, usize::from(u16::MAX)] {
        leaf_key(page, index, &mut out);
        assert!(out.len() <= 3 * PAGE + 4);
        for inclusive in [false, true] {
            assert!(next_is(page, index, &out, inclusive).is_none_or(|next| next < slots));
            next_is(page, index, key, inclusive);
        }
        assert!(previous_is(page, index, &out).is_none_or(|previous| previous < slots));
        previous_is(page, index, key);
        let _ = (is_gap(page, index, key), is_gap(page, index, &out));
        let _ = (leads(page, index, key), leads(page, index, &out));
        assert!(find_near(page, key, index).is_none_or(|found| found.index <= slots));
        assert!(place_near(page, key, index).is_none_or(|found| found.index <= slots));
        prefetch_near(page, index, lines_near(page, index));
        key_into::<LeafSlots>(page, index, &mut out);
        key_into::<InnerSlots>(page, index, &mut out);
        assert!(out.len() <= 2 * PAGE + 8);
        out.clear();
        append_value(page, index, &mut out);
        assert!(out.len() <= PAGE && value_place(page, index).1 <= PAGE);
        child(page, index);
    }
    for (values, most) in [(false, slots), (true, slots), (true, PAGE)] {
        copy_all(page, most, values);
    }
    check(page, NUMBER).is_ok()
}

/// Copies the first records, forwards and backwards. As many bytes as the ends say are there, and not many more than may be.
fn copy_all(page: &Page, most: usize, values: bool) {
    let (mut bytes, mut ends) = (Vec::new(), Vec::new());
    let copied = copy_records(page, 0..most, values, &mut bytes, &mut ends);
    assert!(copied <= most && ends.len() == copied);
    let more = copy_records(page, (0..most).rev(), values, &mut bytes, &mut ends);
    assert_eq!(ends.len(), copied + more);
    let (mut end, most) = (0, 2 * (32 << 10) + 8 * PAGE);
    for ends in ends {
        assert!(end <= ends.key && ends.key <= ends.value);
        end = ends.value;
    }
    assert!(end as usize <= bytes.len() && end as usize <= most);
}

#[test]
fn readers_take_any_bytes() {
    run("readers", 1_000, |random| {
        let page = any_page(random, 50);
        let keys = [random.key(), random.bytes(3), random.bytes(KEY_MAX), Vec::new(), vec![0xff]];
        keys.iter().filter(|key| read_everything(&page, key)).count() as u64
    });
}

/// What `check` lets pass can be read, compacted and split without panic: `verify` means something.
#[test]
fn checked_pages_can_be_worked_with() {
    run("checked pages", 2_500, |random| {
        let page = any_page(random, 50);
        if check(&page, NUMBER).is_err() {
            return 0;
        }
        let key = random.key();
        let _ = compacted(&page, None);
        let slots = if kind(&page) == INNER { inner_count(&page) } else { leaf_count(&page) };
        if slots >= 2 && contains(&page, &key) {
            let index =
                if kind(&page) == INNER { find_child(&page, &key).0 } else { find(&page, &key).index };
            let _ = split(&page, &key, index, None);
        }
        1
    });
}
