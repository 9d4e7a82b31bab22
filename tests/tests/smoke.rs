//! The first minute of a newcomer.

use nuncio_tests::Server;

#[tokio::test]
async fn a_message_is_answered_and_the_task_is_kept() {
    let mut server = Server::start(&[]);
    let task = server.send("hello").await;
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(task["artifacts"][0]["parts"][0]["text"], "hello");
    assert_eq!(server.terminate(), Some(0));
    server.restart();
    let kept = server.rpc("GetTask", nuncio_tests::json!({ "id": task["id"] })).await;
    assert_eq!(kept["result"], task);
}
