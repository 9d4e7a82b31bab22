//! What every store must do, as one suite: `suite::run_all(factory)`.
//!
//! Each behaviour is one function over a fresh, empty store. A factory makes such stores; all of
//! them may be alive at once.

// Panics are how a test reports.
#![allow(clippy::unwrap_used, clippy::panic, clippy::missing_panics_doc)]

mod kit;
mod lease;
mod listing;
mod log;
mod push;
mod session;
mod trim;

pub use lease::*;
pub use listing::*;
pub use log::*;
pub use push::*;
pub use session::*;
pub use trim::*;

use std::sync::Arc;

use super::Store;

/// Runs every behaviour on a store of its own.
pub async fn run_all<F, Fut>(factory: F)
where
    F: Fn() -> Fut,
    Fut: Future<Output = Arc<dyn Store>>,
{
    macro_rules! each {
        ($($behaviour:ident)*) => {$(
            eprintln!("store: {}", stringify!($behaviour));
            Box::pin($behaviour(factory().await)).await;
        )*};
    }
    each! {
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
        trim_removes_only_what_is_finished_and_old
        trim_forgets_keys_and_webhooks
        trim_is_bounded
        a_healthy_store_says_so
        close_keeps_the_old_and_refuses_the_new
    }
}
