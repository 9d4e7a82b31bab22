//! Agents that are programs, behind the real server: what each dialect becomes, how they live, where they work.

mod cursor;
mod gemini;
mod goose;
mod life;
mod lines;
mod opencode;
mod places;
mod roster;
mod vibe;
