//! Agents that are programs, behind the real server: what each dialect becomes, how they live, where they work.

mod bounds;
mod cursor;
mod gemini;
mod generic;
mod goose;
mod life;
mod lines;
mod opencode;
mod places;
mod real;
mod roster;
mod variables;
mod vibe;
