//! Agents that are programs or other servers, behind the real server: what each dialect becomes, how they live,

#![allow(clippy::unwrap_used, reason = "a panic is how a test reports")]

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
mod real;
mod roster;
mod stream_json;
mod told;
mod upstream;
mod variables;
mod vibe;
