//! Agents that are programs or other servers, behind the real server: what each dialect becomes, how they live,

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
mod upstream;
mod variables;
mod vibe;
