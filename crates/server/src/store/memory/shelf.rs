//! The tasks of one caller in listing order, so that a page costs its length and not the shelf's.

use crate::map::Map;
use std::collections::BTreeSet;
use std::ops::Bound;

use nuncio_protocol::{ContextId, TaskId};

use super::super::{ListQuery, Micros, State, TaskKey, TaskRow};

/// Where a task stands: by its last state change, then by id. The key is only carried along.
type Place = (Micros, TaskId, TaskKey);

/// One caller's tasks, three times in order: all, by conversation and by state.
#[derive(Default)]
pub(super) struct Shelf {
    all: BTreeSet<Place>,
    contexts: Map<ContextId, BTreeSet<Place>>,
    states: Map<State, BTreeSet<Place>>,
}

impl Shelf {
    pub(super) fn insert(&mut self, row: &TaskRow) {
        let place = (row.updated, row.id.clone(), row.key);
        self.contexts.entry(row.context_id.clone()).or_default().insert(place.clone());
        self.states.entry(row.state).or_default().insert(place.clone());
        self.all.insert(place);
    }

    pub(super) fn remove(&mut self, row: &TaskRow) {
        let place = (row.updated, row.id.clone(), row.key);
        self.all.remove(&place);
        take(&mut self.contexts, &row.context_id, &place);
        take(&mut self.states, &row.state, &place);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The keys of all tasks whose state changed before this moment.
    pub(super) fn before(&self, before: Micros) -> impl Iterator<Item = TaskKey> {
        self.all.iter().take_while(move |place| place.0 < before).map(|place| place.2)
    }

    /// The keys of a page and of the task behind it, if there is one, and the total of all pages.
    /// `state` tells a task's state where the order of a conversation is filtered by it.
    pub(super) fn page(&self, query: &ListQuery, state: impl Fn(TaskKey) -> Option<State>) -> (Vec<TaskKey>, u64) {
        let filter = query.state.filter(|_| query.context_id.is_some());
        let Some(places) = self.view(query) else {
            return (Vec::new(), 0);
        };
        let matches = |place: &&Place| filter.is_none_or(|want| state(place.2) == Some(want));

        let total = if query.since.is_none() && filter.is_none() {
            places.len()
        } else {
            places.range(bounds(query.since, None)).filter(matches).count()
        };
        let after = query.after.as_ref().map(|after| (after.updated, after.id.clone()));
        // Ids are unique inside a tenant, so the smallest key makes the bound exclusive.
        let end = after.map(|(updated, id)| (updated, id, TaskKey(i64::MIN)));
        if let (Some(since), Some(end)) = (query.since, &end)
            && end.0 < since
        {
            return (Vec::new(), total as u64);
        }
        let page = places.range(bounds(query.since, end)).rev().filter(matches).map(|place| place.2);
        (page.take(query.limit.saturating_add(1)).collect(), total as u64)
    }

    fn view(&self, query: &ListQuery) -> Option<&BTreeSet<Place>> {
        match (&query.context_id, query.state) {
            (Some(context), _) => self.contexts.get(context),
            (None, Some(state)) => self.states.get(&state),
            (None, None) => Some(&self.all),
        }
    }
}

fn bounds(since: Option<Micros>, end: Option<Place>) -> (Bound<Place>, Bound<Place>) {
    let first = |at| (at, TaskId::from(""), TaskKey(i64::MIN));
    (since.map_or(Bound::Unbounded, |at| Bound::Included(first(at))), end.map_or(Bound::Unbounded, Bound::Excluded))
}

fn take<K: std::hash::Hash + Eq>(places: &mut Map<K, BTreeSet<Place>>, under: &K, place: &Place) {
    if let Some(set) = places.get_mut(under) {
        set.remove(place);
        if set.is_empty() {
            places.remove(under);
        }
    }
}
