"""A bare caller: entries and replies written and read by hand. Usage: client.py PORT REQUESTS RESPONSES"""

import json
import sys
import time
import uuid

import redis

port, requests, responses = int(sys.argv[1]), sys.argv[2], sys.argv[3]
server = redis.Redis(port=port, decode_responses=True)


def ask(method, params, reply_stream=None):
    correlation = uuid.uuid4().hex
    payload = {"jsonrpc": "2.0", "id": correlation, "method": method, "params": params}
    fields = {"correlation_id": correlation, "payload": json.dumps(payload)}
    if reply_stream:
        fields["reply_stream"] = reply_stream
    server.xadd(requests, fields)
    return correlation, reply_stream or responses


def replies(correlation, stream):
    """All replies to one request, from the beginning of a stream that others use as well."""
    last, until, found = "0-0", time.monotonic() + 20, []
    while time.monotonic() < until:
        for _, entries in server.xread({stream: last}, count=10, block=100) or []:
            for last, fields in entries:
                if fields["correlation_id"] != correlation:
                    continue
                found.append(json.loads(fields["payload"]))
                assert found[-1]["id"] == correlation, found[-1]
                if fields["final"] == "true":
                    return found
    raise AssertionError(f"no end of the replies: {found}")


def message(text):
    return {"message": {"messageId": uuid.uuid4().hex, "role": "ROLE_USER", "parts": [{"text": text}]}}


def check(name, is_so):
    assert is_so, name
    print("ok", name)


(answer,) = replies(*ask("SendMessage", message("hello")))
task = answer["result"]["task"]
check("a message", task["status"]["state"] == "TASK_STATE_COMPLETED")

events = replies(*ask("SendStreamingMessage", message("stream 3"), f"{responses}:{uuid.uuid4().hex}"))
check("the end of a stream", set(events[-1]) == {"jsonrpc", "id"})
kinds = [next(iter(event["result"])) for event in events[:-1]]
check("events", kinds == ["task", "statusUpdate"] + ["artifactUpdate"] * 3 + ["statusUpdate"])

(answer,) = replies(*ask("GetTask", {"id": task["id"]}))
check("a task", answer["result"]["id"] == task["id"])
(answer,) = replies(*ask("GetTask", {"id": "none"}))
check("an error", answer["error"]["code"] == -32001)
old = {"kind": "message", "messageId": uuid.uuid4().hex, "role": "user", "parts": [{"kind": "text", "text": "hi"}]}
(answer,) = replies(*ask("message/send", {"message": old}))
check("a message of 0.3", answer["result"]["kind"] == "task")

hold = ask("SendStreamingMessage", message("hold"), f"{responses}:{uuid.uuid4().hex}")
until = time.monotonic() + 20
while not server.xlen(hold[1]) and time.monotonic() < until:
    time.sleep(0.02)
(_, first), = server.xrange(hold[1], count=1)
held = json.loads(first["payload"])["result"]["task"]["id"]
(answer,) = replies(*ask("CancelTask", {"id": held}))
check("cancel while a stream runs", answer["result"]["status"]["state"] == "TASK_STATE_CANCELED")
check("the canceled stream ends", replies(*hold)[-2]["result"]["statusUpdate"]["status"]["state"].endswith("CANCELED"))
print("done")
