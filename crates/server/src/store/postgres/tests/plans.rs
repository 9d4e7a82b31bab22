//! No statement of the hot paths looks at more than it needs, however small the tables were when it was planned.

use super::*;
use crate::store::postgres::{append, create as creating, lease, list, read};

/// Every node of a plan that reads a table or an index.
fn scans(plan: &str) -> Vec<&str> {
    plan.lines().map(str::trim).filter(|line| line.contains(" Scan") && !line.contains("Function Scan")).collect()
}

/// Fails if anything of these tables is read in another way than by the start of an index.
fn by_index(what: &str, plan: &str) {
    let mut lines = plan.lines().map(str::trim).peekable();
    while let Some(line) = lines.next() {
        let of_table = ["task", "event", "snapshot", "idempotency", "push"]
            .iter()
            .any(|table| line.contains(&format!(" on {table} ")) || line.ends_with(&format!(" on {table}")));
        if !line.contains(" Scan") || !of_table {
            continue;
        }
        assert!(line.contains("Index"), "{what}: {line}\n{plan}");
        let condition = lines.peek().copied().unwrap_or_default();
        assert!(condition.starts_with("Index Cond"), "{what}: {line} has no condition\n{plan}");
    }
    assert!(!scans(plan).is_empty(), "{what} reads nothing\n{plan}");
}

async fn explain(store: &PostgresStore, sql: &str) -> String {
    let client = store.pool.get().await.unwrap();
    client.batch_execute("DEALLOCATE ALL").await.unwrap();
    client.batch_execute(&format!("PREPARE it AS {sql}")).await.unwrap();
    let count = (1..).take_while(|n| sql.contains(&format!("${n}"))).count();
    let nulls = vec!["NULL"; count].join(", ");
    let call = if count == 0 { "EXECUTE it".to_owned() } else { format!("EXECUTE it({nulls})") };
    let rows = client.query(&format!("EXPLAIN (COSTS OFF) {call}"), &[]).await.unwrap();
    rows.iter().map(|row| row.get::<_, String>(0)).collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn hot_statements_go_by_index() {
    let url = server().database();
    let store = open(&url).await.unwrap();
    for size in ["empty", "small", "large"] {
        let statements = [
            ("create", creating::CREATE.to_owned()),
            ("events of new tasks", creating::EVENTS.to_owned()),
            ("plain", append::PLAIN.to_owned()),
            ("changed", append::CHANGED.to_owned()),
            ("special", append::SPECIAL.to_owned()),
            ("messages", append::MESSAGES.to_owned()),
            ("release", append::RELEASE.to_owned()),
            ("evict", lease::EVICT.to_owned()),
            ("replay", read::EVENTS.to_owned()),
            (
                "get",
                format!("SELECT {} FROM task AS t WHERE t.id = $1 AND t.realm = $2 AND t.scope = $3", read::COLUMNS),
            ),
        ];
        for (what, sql) in statements {
            let plan = explain(&store, &sql).await;
            if what == "create" || plan.contains("Insert") && !plan.contains("Update") && what == "events of new tasks"
            {
                // What is inserted is not read; only what it refers to is.
                assert!(!plan.contains("Seq Scan"), "{what}, {size}\n{plan}");
                continue;
            }
            by_index(&format!("{what}, {size}"), &plan);
        }
        for query in queries() {
            let plan = explain(&store, &list::sql_of(&query)).await;
            by_index(&format!("{query:?}, {size}"), &plan);
            let ordered = query.context_id.is_some() || !plan.contains("Sort Key: t_1.updated");
            assert!(ordered, "{query:?}, {size} is sorted\n{plan}");
        }
        if size == "empty" {
            create(&store, "t").await;
        } else if size == "small" {
            let model =
                NewTask { id: TaskId::fresh(), context_id: ContextId::fresh(), state: State(3), ..new_task("") };
            let Created::New(task) = store.create(model).await.unwrap() else { panic!("known") };
            store.multiply(task, 5_000).await.unwrap();
            // Of few active tasks any index will do.
            let sql = "UPDATE nuncio.task SET state = 2 WHERE key % 4 = 0";
            server().ask(url.rsplit('/').next().unwrap(), sql);
            store.analyze().await.unwrap();
        }
    }
}

fn queries() -> Vec<ListQuery> {
    let after = || Some(crate::store::ListCursor { updated: 1, id: "x".into() });
    let context = || Some(ContextId::from("c"));
    vec![
        all(),
        ListQuery { after: after(), ..all() },
        ListQuery { state: Some(State(3)), ..all() },
        ListQuery { state: Some(State(4)), after: after(), ..all() },
        ListQuery { state: Some(State(2)), ..all() },
        ListQuery { since: Some(5), ..all() },
        ListQuery { context_id: context(), ..all() },
        ListQuery { context_id: context(), state: Some(State(3)), after: after(), ..all() },
    ]
}
