use super::*;
use crate::engine::live::Ties;
use crate::push::guard::{Guard, Openings};
use crate::store::MemoryStore;

fn desk() -> Arc<Desk> {
    let (store, metrics) = (Arc::new(MemoryStore::new()), Metrics::new());
    let ties = Ties { store: store.clone(), events: metrics.events.clone(), bell: Arc::default(), link: None };
    let options = PushOptions::new(Guard::new(Openings::default()).unwrap());
    Desk::new(options, store, Hub::new(ties), metrics, None)
}

#[tokio::test]
async fn looking_for_what_is_due_forgets_nothing_that_is_due_later() {
    let desk = desk();
    let hour = 3_600_000_000;
    let (past, soon, late) = (now() - 1, now() + hour, now() + 2 * hour);
    for at in [late, past, soon] {
        desk.due_at(at);
    }
    assert_eq!(desk.next_due(), past);
    for _ in 0..2 {
        desk.take_due(&TaskTracker::new(), &CancellationToken::new()).await;
        assert_eq!(desk.next_due(), soon);
    }
    assert!(desk.due.lock().contains(&late));
}

#[test]
fn only_the_next_moments_are_known() {
    let desk = desk();
    for at in (0..=MOST_KNOWN).rev() {
        desk.due_at(i64::try_from(at).unwrap());
    }
    assert_eq!((desk.next_due(), desk.due.lock().len()), (0, MOST_KNOWN));
}
