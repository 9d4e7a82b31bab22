//! Agents that are programs, behind the real server: what each dialect becomes, how they live, where they work.

mod acp;
mod life;
mod places;
mod roster;
