//! Does the instruction a child stands before write to memory that survives it?
//!
//! Of the instructions of an operation nine in ten change registers or the child's own memory only. A
//! kill after such a one leaves what the kill before it has left, byte for byte, so its outcome is
//! known without a look.
//!
//! Invariants
//! - When in doubt the answer is yes: for unknown addresses, for calls into the kernel, and on
//!   processors whose instructions are not decoded here.
//! - It is audited: after one look in [`AUDITED`] the files are summed up, and again before the next
//!   instruction that is said to write. Both sums must be the same.
//!
//! Deliberately absent: whether the bytes written differ from those before.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use perilune_engine::instrument::data_ranges;

use crate::tracee::{Registers, Tracee};

/// One look in so many is audited.
const AUDITED: u64 = 512;
/// Bytes of the longest instruction.
const INSTRUCTION_MAX: usize = 15;
/// A write whose length the decoder does not know lies this near its address.
const NEAR: u64 = 4096;

/// What instructions do to memory that other processes share.
pub(crate) struct Stores {
    memory: File,
    pid: libc::pid_t,
    /// The files to be audited.
    audited: Option<PathBuf>,
    shared: Vec<Range<u64>>,
    known: HashMap<u64, decode::Kind>,
    /// The instruction enters the kernel.
    calls: bool,
    /// Something may have been written since the last look.
    changed: bool,
    looks: u64,
    sum: Option<u64>,
}

impl Stores {
    /// Prepares to watch `child`. If nobody else changes the files in `audited`, they are audited.
    ///
    /// # Errors
    /// When the child cannot be read.
    pub(crate) fn new(child: &Tracee, audited: Option<&Path>) -> io::Result<Stores> {
        let pid = child.pid();
        let mut stores = Stores {
            memory: File::open(format!("/proc/{pid}/mem"))?,
            pid,
            audited: audited.map(Path::to_path_buf),
            shared: Vec::new(),
            known: HashMap::new(),
            calls: false,
            changed: true,
            looks: 0,
            sum: None,
        };
        stores.find_shared()?;
        Ok(stores)
    }

    /// Where the child's shared writable mappings are.
    fn find_shared(&mut self) -> io::Result<()> {
        self.shared.clear();
        for line in fs::read_to_string(format!("/proc/{}/maps", self.pid))?.lines() {
            let mut words = line.split(' ');
            let (place, access) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
            let (Some((from, to)), true) = (place.split_once('-'), access.ends_with('s')) else { continue };
            if let (Ok(from), Ok(to)) = (u64::from_str_radix(from, 16), u64::from_str_radix(to, 16)) {
                self.shared.push(from..to);
            }
        }
        Ok(())
    }

    /// Takes note of the instruction that the child stands before and will execute next.
    ///
    /// # Errors
    /// When the child cannot be read, or something has been written unnoticed.
    pub(crate) fn before(&mut self, child: &Tracee) -> io::Result<()> {
        let registers = child.registers();
        let at = decode::address(&registers);
        if !self.known.contains_key(&at) {
            let mut bytes = [0; INSTRUCTION_MAX];
            let count = self.memory.read_at(&mut bytes, at)?;
            self.known.insert(at, decode::kind(&bytes[..count], at));
        }
        let kind = &self.known[&at];
        self.calls = kind.is_call();
        if kind.writes(&registers, &self.shared) {
            let sum = self.sum.take();
            if sum.is_some() && sum != self.summed()? {
                return Err(io::Error::other("an instruction has changed the files unnoticed"));
            }
            self.changed = true;
        }
        Ok(())
    }

    /// Whether the instruction of which note was taken last enters the kernel.
    pub(crate) fn enters_kernel(&self) -> bool {
        self.calls
    }

    /// Takes note that the instruction has been executed: a call may have mapped something.
    ///
    /// # Errors
    /// When the child cannot be read.
    pub(crate) fn after(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.calls) {
            self.find_shared()?;
        }
        Ok(())
    }

    /// Whether something may have changed since this was last asked.
    ///
    /// # Errors
    /// When the files cannot be read.
    pub(crate) fn take_changed(&mut self) -> io::Result<bool> {
        let changed = std::mem::take(&mut self.changed);
        if changed {
            self.looks += 1;
            self.sum = if self.looks.is_multiple_of(AUDITED) { self.summed()? } else { None };
        }
        Ok(changed)
    }

    /// A sum over all bytes of all files.
    fn summed(&self) -> io::Result<Option<u64>> {
        let Some(directory) = &self.audited else { return Ok(None) };
        let mut paths: Vec<PathBuf> =
            fs::read_dir(directory)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
        paths.sort();
        let mut sum = paths.len() as u64;
        let mut add = |word: u64| sum = (sum ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        for path in paths {
            let file = File::open(path)?;
            // NB: `-shm` is sparse, with room for all sessions: gigabytes of holes.
            for (start, len) in data_ranges(&file)? {
                let mut bytes = vec![0; len as usize];
                file.read_exact_at(&mut bytes, start)?;
                // A word of zeros counts for nothing: a hole that was filled with them is no change.
                for (index, word) in bytes.chunks(8).enumerate() {
                    let word = word.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
                    if word != 0 {
                        add(start + 8 * index as u64);
                        add(word);
                    }
                }
            }
        }
        Ok(Some(sum))
    }
}

/// Decoding on x86-64.
#[cfg(target_arch = "x86_64")]
mod decode {
    use std::ops::Range;

    use iced_x86::{
        Code, Decoder, DecoderOptions, FlowControl, InstructionInfoFactory, OpAccess, Register, UsedMemory,
    };

    use super::{Registers, NEAR};

    /// What an instruction does to memory.
    pub(super) enum Kind {
        /// It enters the kernel, which may write anywhere; or it is not known.
        Call,
        /// It writes to these places, if any.
        Writes(Vec<UsedMemory>),
    }

    pub(super) fn address(registers: &Registers) -> u64 {
        registers.rip
    }

    pub(super) fn kind(bytes: &[u8], at: u64) -> Kind {
        let instruction = Decoder::with_ip(64, bytes, at, DecoderOptions::NONE).decode();
        let enters = matches!(instruction.flow_control(), FlowControl::Interrupt | FlowControl::Exception);
        if enters || matches!(instruction.code(), Code::Syscall | Code::Sysenter | Code::INVALID) {
            return Kind::Call;
        }
        let mut factory = InstructionInfoFactory::new();
        let info = factory.info(&instruction);
        let is_written = |memory: &&UsedMemory| {
            !matches!(
                memory.access(),
                OpAccess::None | OpAccess::Read | OpAccess::CondRead | OpAccess::NoMemAccess
            )
        };
        Kind::Writes(info.used_memory().iter().filter(is_written).copied().collect())
    }

    impl Kind {
        pub(super) fn is_call(&self) -> bool {
            matches!(self, Kind::Call)
        }

        /// Whether it may write to one of the `shared` ranges.
        pub(super) fn writes(&self, registers: &Registers, shared: &[Range<u64>]) -> bool {
            let Kind::Writes(places) = self else { return true };
            places.iter().any(|place| {
                let address = place.virtual_address(0, |register, _, _| value(registers, register));
                let Some(address) = address else { return true };
                let (before, bytes) = match place.memory_size().size() {
                    0 => (NEAR, NEAR),
                    size => (0, size as u64),
                };
                let (from, to) = (address.saturating_sub(before), address.saturating_add(bytes));
                shared.iter().any(|range| from < range.end && range.start < to)
            })
        }
    }

    /// What a register holds; of a segment register its base.
    fn value(registers: &Registers, register: Register) -> Option<u64> {
        let whole = match register.full_register() {
            Register::RAX => registers.rax,
            Register::RBX => registers.rbx,
            Register::RCX => registers.rcx,
            Register::RDX => registers.rdx,
            Register::RSI => registers.rsi,
            Register::RDI => registers.rdi,
            Register::RBP => registers.rbp,
            Register::RSP => registers.rsp,
            Register::R8 => registers.r8,
            Register::R9 => registers.r9,
            Register::R10 => registers.r10,
            Register::R11 => registers.r11,
            Register::R12 => registers.r12,
            Register::R13 => registers.r13,
            Register::R14 => registers.r14,
            Register::R15 => registers.r15,
            Register::CS | Register::DS | Register::ES | Register::SS => 0,
            Register::FS => registers.fs_base,
            Register::GS => registers.gs_base,
            _ => return None,
        };
        match register.size() {
            4 if !register.is_segment_register() => Some(whole & 0xffff_ffff),
            _ => Some(whole),
        }
    }
}

/// Elsewhere every instruction may write.
#[cfg(not(target_arch = "x86_64"))]
mod decode {
    use std::ops::Range;

    use super::Registers;

    pub(super) struct Kind;

    pub(super) fn address(registers: &Registers) -> u64 {
        registers.pc
    }

    pub(super) fn kind(_: &[u8], _: u64) -> Kind {
        Kind
    }

    impl Kind {
        pub(super) fn is_call(&self) -> bool {
            false
        }

        pub(super) fn writes(&self, _: &Registers, _: &[Range<u64>]) -> bool {
            true
        }
    }
}
