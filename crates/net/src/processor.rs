//! What processors have been used for: by the calling thread, and by nobody.

use std::fs;
use std::time::Duration;

use rustix::time::{clock_gettime, ClockId};

/// The processor's time that the calling thread has taken; the clock takes a system call.
pub fn thread_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// How long processors of the machine have been idle since it was started, all together, to ten milliseconds; none
/// where the system does not tell.
pub fn idle_time() -> Option<Duration> {
    idle_of(&fs::read_to_string("/proc/stat").ok()?)
}

/// proc(5): the fourth and fifth number of the first line, in hundredths of a second (USER_HZ, which is 100 on all
/// machines that Perilune runs on).
fn idle_of(text: &str) -> Option<Duration> {
    let mut words = text.lines().next()?.strip_prefix("cpu ")?.split_whitespace().skip(3);
    let (idle, waiting): (u64, u64) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    Some(Duration::from_millis((idle + waiting) * 10))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_and_waiting_for_disks_are_both_idle() {
        let text = "cpu  100 2 30 4000 50 6 7 8 9 10\ncpu0 1 2 3 4 5 6 7 8 9 10\n";
        assert_eq!(idle_of(text), Some(Duration::from_millis(40_500)));
        assert_eq!(idle_of("cpu0 1 2 3 4 5"), None);
        assert_eq!(idle_of("cpu  1 2 3 4"), None);
        assert_eq!(idle_of(""), None);
        assert!(idle_time().is_some());
    }
}
