//! The tasks of one caller in listing order, so that a page costs its length and not the shelf's.

use crate::map::{ById, Map};
use std::collections::BTreeSet;
use std::ops::{Bound, RangeBounds};

use nuncio_protocol::{ContextId, TaskId};

use super::super::{ListQuery, Micros, State, TaskKey, TaskRow};

/// Where a task stands: by its last state change, then by id. The key is only carried along.
type Place = (Micros, TaskId, TaskKey);

/// Tasks in order. One alone, as most conversations have, takes no room of its own.
enum Places {
    One(Place),
    Many(BTreeSet<Place>),
}

impl Default for Places {
    fn default() -> Self {
        Self::Many(BTreeSet::new())
    }
}

impl Places {
    fn insert(&mut self, place: Place) {
        match self {
            Self::One(one) => *self = Self::Many([one.clone(), place].into()),
            Self::Many(places) => _ = places.insert(place),
        }
    }

    fn remove(&mut self, place: &Place) {
        match self {
            Self::One(one) if one == place => *self = Self::default(),
            Self::One(_) => {}
            Self::Many(places) => _ = places.remove(place),
        }
    }

    /// Removes a task. Whether none is left.
    fn is_empty_without(&mut self, place: &Place) -> bool {
        self.remove(place);
        self.is_empty()
    }

    fn len(&self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Many(places) => places.len(),
        }
    }

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn range(&self, bounds: (Bound<Place>, Bound<Place>)) -> Box<dyn DoubleEndedIterator<Item = &Place> + '_> {
        match self {
            Self::One(one) => Box::new(bounds.contains(one).then_some(one).into_iter()),
            Self::Many(places) => Box::new(places.range(bounds)),
        }
    }
}

/// What nearly every task becomes: looked for among all, and counted by what is not.
const COMPLETED: State = State(3);

/// One caller's tasks: those that are worked on, which are few and change, and the others several times in
/// order: all, by conversation, and those in other states than the usual one by state.
#[derive(Default)]
pub(super) struct Shelf {
    active: Places,
    settled: Places,
    contexts: ById<Places>,
    states: Map<State, Places>,
}

impl Shelf {
    pub(super) fn insert(&mut self, row: &TaskRow) {
        let place = (row.updated, row.id.clone(), row.key);
        if row.state.is_active() {
            self.active.insert(place);
            return;
        }
        if let Some(others) = self.contexts.add(row.context_id.as_str(), Places::One(place.clone())) {
            others.insert(place.clone());
        }
        if row.state != COMPLETED {
            self.states.entry(row.state).or_default().insert(place.clone());
        }
        self.settled.insert(place);
    }

    pub(super) fn remove(&mut self, row: &TaskRow) {
        let place = (row.updated, row.id.clone(), row.key);
        if row.state.is_active() {
            self.active.remove(&place);
            return;
        }
        self.settled.remove(&place);
        if self.contexts.get_mut(row.context_id.as_str()).is_some_and(|places| places.is_empty_without(&place)) {
            self.contexts.remove(row.context_id.as_str());
        }
        if self.states.get_mut(&row.state).is_some_and(|places| places.is_empty_without(&place)) {
            self.states.remove(&row.state);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.active.is_empty() && self.settled.is_empty()
    }

    /// Whether a conversation has a task.
    pub(super) fn has<'a>(&self, context: &ContextId, row: impl Fn(TaskKey) -> Option<&'a TaskRow>) -> bool {
        let mut active = self.active.range((Bound::Unbounded, Bound::Unbounded));
        self.contexts.get(context.as_str()).is_some()
            || active.any(|place| row(place.2).is_some_and(|row| row.context_id == *context))
    }

    /// The keys of all settled tasks whose state changed before this moment.
    pub(super) fn before(&self, before: Micros) -> impl Iterator<Item = TaskKey> {
        let all = self.settled.range((Bound::Unbounded, Bound::Unbounded));
        all.take_while(move |place| place.0 < before).map(|place| place.2)
    }

    /// The keys of a page and of the task behind it, if there is one, and the total of all pages.
    /// `row` finds a task where an order holds more than the query asks for.
    pub(super) fn page<'a>(
        &self,
        query: &ListQuery,
        row: impl Fn(TaskKey) -> Option<&'a TaskRow>,
    ) -> (Vec<TaskKey>, u64) {
        let matches = |place: &Place| row(place.2).is_some_and(|row| asked_for(query, row));
        let by_state = query.state.filter(|_| query.context_id.is_none());
        let of_usual = by_state == Some(COMPLETED);
        // A settled task needs no second look unless it was looked for among others.
        let sure = query.state.is_none() || by_state.is_some() && !of_usual;
        let settled = self.view(query);
        let count = |places: &Places, sure: bool| match query.since {
            None if sure => places.len(),
            since => places.range(bounds(since, None)).filter(|place| sure || matches(place)).count(),
        };
        let total = count(&self.active, false)
            + match settled {
                None => 0,
                Some(all) if of_usual && query.since.is_none() => {
                    all.len() - self.states.values().map(Places::len).sum::<usize>()
                }
                Some(places) => count(places, sure),
            };
        let after = query.after.as_ref().map(|after| (after.updated, after.id.clone()));
        // Ids are unique inside a tenant, so the smallest key makes the bound exclusive.
        let end = after.map(|(updated, id)| (updated, id, TaskKey(i64::MIN)));
        if let (Some(since), Some(end)) = (query.since, &end)
            && end.0 < since
        {
            return (Vec::new(), total as u64);
        }
        let most = query.limit.saturating_add(1);
        let page = |places: &Places, sure: bool| {
            let range = places.range(bounds(query.since, end.clone())).rev();
            range.filter(|place| sure || matches(place)).take(most).cloned().collect::<Vec<_>>()
        };
        let mut places = page(&self.active, false);
        places.extend(settled.map(|settled| page(settled, sure)).unwrap_or_default());
        places.sort_by(|a, b| b.cmp(a));
        (places.into_iter().take(most).map(|place| place.2).collect(), total as u64)
    }

    fn view(&self, query: &ListQuery) -> Option<&Places> {
        match (&query.context_id, query.state) {
            (Some(context), _) => self.contexts.get(context.as_str()),
            (None, Some(state)) if state != COMPLETED => self.states.get(&state),
            (None, _) => Some(&self.settled),
        }
    }
}

fn asked_for(query: &ListQuery, row: &TaskRow) -> bool {
    query.state.is_none_or(|state| row.state == state)
        && query.context_id.as_ref().is_none_or(|context| row.context_id == *context)
}

fn bounds(since: Option<Micros>, end: Option<Place>) -> (Bound<Place>, Bound<Place>) {
    let first = |at| (at, TaskId::from(""), TaskKey(i64::MIN));
    (since.map_or(Bound::Unbounded, |at| Bound::Included(first(at))), end.map_or(Bound::Unbounded, Bound::Excluded))
}
