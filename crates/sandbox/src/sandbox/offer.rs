//! What a sandbox gives its scripts besides Lua's own libraries: libraries, each a global, and the format in which
//! the host gets what a script returns.
//!
//! A library is a table of functions that the host answers ([`Library::new`]), or C code that adds what it likes to
//! the globals (`struct library` of sandbox.h; declared in Rust as an extern static). The host makes one [`Offer`]
//! for all of its sandboxes; a question to the host names a library by its place there, from 0.
//!
//! Invariants
//! - Any script may call a function; one that is just defining functions ([`Form::Library`](super::Form::Library)),
//!   only if the function is marked so ([`HostFunction::while_loading`]). Whether this user may call it, the host
//!   decides when asked.
//! - What C reads here lives as long as the program.
#![allow(unsafe_code)]

use std::ffi::{c_char, c_int, CStr};

use super::edge::State;

/// A function that the host answers.
#[repr(C)]
#[derive(Debug)]
pub struct HostFunction {
    name: *const c_char,
    while_loading: c_int,
}

impl HostFunction {
    /// The function `name` of its library; its number is its place there.
    #[must_use]
    pub const fn new(name: &'static CStr) -> HostFunction {
        HostFunction { name: name.as_ptr(), while_loading: 0 }
    }

    /// Runs of [`Form::Library`](super::Form::Library) may call it, too.
    #[must_use]
    pub const fn while_loading(mut self) -> HostFunction {
        self.while_loading = 1;
        self
    }
}

/// A library: `struct library` of sandbox.h.
#[repr(C)]
#[derive(Debug)]
pub struct Library {
    name: *const c_char,
    open: Option<unsafe extern "C" fn(*mut State, c_int, c_int)>,
    functions: *const HostFunction,
    count: usize,
}

impl Library {
    /// The table `name` of functions. They take strings, numbers, truth values and nil, and give one value or raise.
    #[must_use]
    pub const fn new(name: &'static CStr, functions: &'static [HostFunction]) -> Library {
        Library { name: name.as_ptr(), open: None, functions: functions.as_ptr(), count: functions.len() }
    }

    /// The library `perilune`: nodes, and functions that programs send ([`Sandbox::shipped`](super::Sandbox::shipped)). All
    /// that it asks is its function 0, whose first argument names the operation.
    #[must_use]
    pub fn nodes() -> &'static Library {
        // SAFETY: a constant of nodes.c.
        unsafe { &node_library }
    }
}

/// How what a script returns, and the error that ends it, become bytes: `struct format` of sandbox.h.
#[repr(C)]
#[derive(Debug)]
pub struct Format {
    opaque: [usize; 0],
}

impl Format {
    /// As values: [`Parts`](super::Parts) reads them.
    #[must_use]
    pub fn values() -> &'static Format {
        // SAFETY: a constant of values.c.
        unsafe { &values_format }
    }
}

// SAFETY: it points to constants.
unsafe impl Sync for HostFunction {}
// SAFETY: it points to constants.
unsafe impl Sync for Library {}
// SAFETY: it is a constant in C.
unsafe impl Sync for Format {}

extern "C" {
    #[link_name = "perilune_private_node_library"]
    static node_library: Library;
    #[link_name = "perilune_private_values_format"]
    static values_format: Format;
}

/// `struct offer` of sandbox.h.
#[repr(C)]
#[derive(Debug)]
pub(super) struct RawOffer {
    libraries: *const &'static Library,
    count: usize,
    format: &'static Format,
}

/// What the sandboxes of a host give their scripts.
#[derive(Debug)]
pub struct Offer {
    /// Of the libraries below.
    pub(super) raw: RawOffer,
    _libraries: Box<[&'static Library]>,
}

// SAFETY: it points to what it owns, and to constants; nobody changes either.
unsafe impl Send for Offer {}
// SAFETY: it points to what it owns, and to constants; all of it is only read.
unsafe impl Sync for Offer {}

impl Offer {
    /// These libraries, numbered from 0, and this form of results.
    #[must_use]
    pub fn new(libraries: &[&'static Library], format: &'static Format) -> Offer {
        let libraries: Box<[_]> = libraries.into();
        let raw = RawOffer { libraries: libraries.as_ptr(), count: libraries.len(), format };
        Offer { raw, _libraries: libraries }
    }
}
