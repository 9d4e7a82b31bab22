//! The engine as a whole, on real stores, with an agent that does what its message says.

mod fold;
mod kit;
mod naive;
mod schedule;
mod shaky;
mod turns;
