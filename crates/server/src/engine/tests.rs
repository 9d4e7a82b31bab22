//! The engine as a whole, on real stores, with an agent that does what its message says.

mod cancel;
mod cluster;
mod fold;
mod kit;
mod line;
mod model;
mod naive;
mod recover;
mod schedule;
mod shaky;
mod turns;
