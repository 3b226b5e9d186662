//! Test instruments that every back end of Perilune is held against.
//!
//! - [`memory`]: a second, trivial implementation of the contract, against which the instruments
//!   themselves are tested.
//!
//! Deliberately absent: any knowledge of the engine. Back ends bring their own stores.

#![forbid(unsafe_code)]

pub mod memory;
