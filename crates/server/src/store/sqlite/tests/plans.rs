//! No query may walk a whole table, however it is filtered.

use super::super::{list, migrate};
use super::*;
use crate::store::ListCursor;

#[test]
fn every_listing_walks_its_indexes_in_order() {
    let mut db = rusqlite::Connection::open_in_memory().unwrap();
    migrate::migrate(&mut db).unwrap();
    let states = [None, Some(State(1)), Some(State(3)), Some(State(6))];
    let contexts = [None, Some(ContextId::from("c"))];
    let sinces = [None, Some(7)];
    let afters = [None, Some(ListCursor { updated: 9, id: TaskId::from("t") })];
    for state in states {
        for context_id in contexts.clone() {
            for since in sinces {
                for after in afters.clone() {
                    let (context_id, limit) = (context_id.clone(), 10);
                    let query = ListQuery {
                        scope: Scope::default(),
                        context_id,
                        state,
                        since,
                        after,
                        limit,
                        bytes: usize::MAX,
                    };
                    for (sql, values) in list::page_sql(&query) {
                        let plan = plan(&db, &sql, values);
                        let place = if query.after.is_some() { "(updated,id)<(?,?)" } else { "" };
                        assert!(plan.contains("SEARCH t USING") && plan.contains(place), "{sql}\n{plan}");
                        assert!(!plan.contains("SCAN") && !plan.contains("B-TREE"), "{sql}\n{plan}");
                    }
                }
            }
        }
    }
}

fn plan(db: &rusqlite::Connection, sql: &str, values: Vec<rusqlite::types::Value>) -> String {
    let mut explain = db.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    let rows = explain.query_map(rusqlite::params_from_iter(values), |row| row.get::<_, String>(3));
    rows.unwrap().map(Result::unwrap).collect::<Vec<_>>().join("\n")
}
