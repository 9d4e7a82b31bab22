//! What every store must do, as one suite: `suite::run_all(factory)`.
//!
//! Each behaviour is one function over a fresh, empty store. A factory makes such stores; all of
//! them may be alive at once.

// Panics are how a test reports.
#![allow(clippy::unwrap_used, clippy::panic, clippy::missing_panics_doc)]

mod errand;
mod kit;
mod lease;
mod listing;
mod log;
mod push;
mod session;
mod shared;
mod trim;

pub use errand::*;
pub use lease::*;
pub use listing::*;
pub use log::*;
pub use push::*;
pub use session::*;
pub use shared::*;
pub use trim::*;

use std::sync::Arc;

use super::Store;

/// Runs each behaviour on a store of its own.
macro_rules! each {
    ($factory:ident: $($behaviour:ident)*) => {$(
        eprintln!("store: {}", stringify!($behaviour));
        Box::pin($behaviour($factory().await)).await;
    )*};
}

/// Runs every behaviour: those of all stores and, where servers share it, those of a shared one.
pub async fn run_all<F, Fut>(factory: F)
where
    F: Fn() -> Fut,
    Fut: Future<Output = Arc<dyn Store>>,
{
    if factory().await.shared().is_some() {
        run_shared(&factory).await;
    }
    each! { factory:
        numbers_have_no_gaps
        a_task_can_come_with_its_next_events
        bodies_and_names_keep_every_byte
        replay_has_bounds
        messages_keep_their_events
        snapshots_replace_each_other
        concurrent_appends_are_all_kept_in_order
        an_old_epoch_changes_nothing
        a_number_that_is_not_next_is_refused_with_all_behind_it
        one_of_many_claims_wins
        claims_count_attempts
        tasks_of_a_living_writer_are_not_abandoned
        a_repeated_create_finds_the_first_task
        concurrent_creates_with_one_key_make_one_task
        an_old_key_is_forgotten
        a_used_key_refuses_an_append
        pages_are_in_order_and_complete
        pages_are_bounded_in_bytes
        ties_are_ordered_by_id
        filters_combine_and_totals_agree
        a_page_boundary_survives_changes
        other_scopes_see_nothing
        webhooks_are_stored_replaced_and_deleted
        webhooks_fall_due_in_order
        a_webhook_cursor_never_moves_back
        a_webhook_can_come_with_the_task
        a_replaced_webhook_takes_no_old_reports
        webhooks_that_wait_can_be_woken
        a_replay_moves_back_to_what_was_given_up
        sessions_are_kept_apart_and_replaced
        trim_forgets_old_sessions
        trim_keeps_sessions_of_conversations_with_tasks
        trim_removes_only_what_is_finished_and_old
        trim_forgets_keys_and_webhooks
        trim_takes_what_rests_where_that_is_an_end
        trim_keeps_keys_for_their_own_time
        trim_is_bounded
        a_healthy_store_says_so
        close_keeps_the_old_and_refuses_the_new
    }
}

/// Runs the behaviours of stores that several servers share.
pub async fn run_shared<F, Fut>(factory: F)
where
    F: Fn() -> Fut,
    Fut: Future<Output = Arc<dyn Store>>,
{
    each! { factory:
        a_node_is_alive_while_it_beats
        the_writer_of_a_task_is_known
        a_context_has_one_turn_at_a_time
        one_of_many_gets_the_context
        a_living_writer_keeps_its_task
        waiting_tasks_are_startable_one_per_context
        what_rests_gives_its_context_back_when_its_node_is_gone
        a_release_comes_after_what_was_written
        the_load_of_a_caller_is_known
        what_is_used_up_is_lent_again_with_time
        a_letter_is_taken_with_its_event
        a_letter_can_be_recalled_until_it_is_taken
        a_cancellation_is_told_until_the_task_is_over
        webhooks_are_in_the_hand_of_one_node
        one_webhook_can_be_taken_in_hand
        no_webhook_is_taken_twice
    }
}
