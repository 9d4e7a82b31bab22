//! Agents that are programs, behind the real server: what each dialect becomes, how they live, where they work.

mod claude;
mod codex;
mod life;
mod places;
mod qwen;
mod roster;
mod stream_json;
mod told;
