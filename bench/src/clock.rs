//! Clocks that all processes of the machine share, and the CPU time of this one.

use rustix::time::{clock_gettime, ClockId};

/// Nanoseconds of the machine's monotonic clock: comparable between processes.
pub(crate) fn now() -> u64 {
    nanoseconds(ClockId::Monotonic)
}

/// Nanoseconds of CPU time that all threads of this process have used, in the kernel too.
pub(crate) fn cpu() -> u64 {
    nanoseconds(ClockId::ProcessCPUTime)
}

fn nanoseconds(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    // Both clocks begin at 0 and never go back.
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_shows_on_both_clocks() {
        let (wall, busy) = (now(), cpu());
        let mut random = crate::data::Random::new(1);
        while now() - wall < 2_000_000 {
            std::hint::black_box(random.next());
        }
        let used = cpu() - busy;
        assert!(used > 0 && used < 10 * (now() - wall), "{used} ns");
    }
}
