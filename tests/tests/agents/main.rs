//! Agents that are programs, behind the real server: what each dialect becomes, how they live, where they work.

mod acp;
mod bounds;
mod claude;
mod codex;
mod cursor;
mod gemini;
mod generic;
mod goose;
mod life;
mod lines;
mod opencode;
mod places;
mod qwen;
mod roster;
mod stream_json;
mod told;
mod variables;
mod vibe;
