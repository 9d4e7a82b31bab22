//! Agents that are programs or other servers, behind the real server: what each dialect becomes, how they live,
//! where they work.

mod life;
mod places;
mod roster;
mod upstream;
