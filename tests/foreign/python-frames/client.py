"""Frames written by hand: a WebSocket library, a plain socket and pipes, and nothing of A2A.

Usage: client.py WS_URL SOCKET_PATH COMMAND...
"""

import asyncio
import json
import socket
import subprocess
import sys

import websockets


def request(number, method, text):
    message = {"messageId": f"m-{number}", "role": "ROLE_USER", "parts": [{"text": text}]}
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": {"message": message}}


def check_stream(events, end, payload):
    """The events of `stream 2`: the task, working, two pieces, completed; then an end."""
    assert len(events) == 5, events
    assert "task" in payload(events[0])["result"], events[0]
    last = payload(events[-1])["result"]["statusUpdate"]["status"]["state"]
    assert last == "TASK_STATE_COMPLETED", events[-1]
    assert [event["eventId"] for event in events] == [1, 2, 3, 4, 5], events
    assert "result" not in payload(end) and "error" not in payload(end), end


async def over_websocket(url):
    async with websockets.connect(url, max_size=None) as socket:
        await socket.send(json.dumps(request(1, "SendMessage", "hello")))
        answer = json.loads(await socket.recv())
        assert answer["id"] == 1 and answer["final"] is True, answer
        assert answer["payload"]["result"]["task"]["status"]["state"] == "TASK_STATE_COMPLETED", answer
        await socket.send(json.dumps(request("s", "SendStreamingMessage", "stream 2")))
        events = []
        while not (frame := json.loads(await socket.recv()))["final"]:
            events.append(frame)
        check_stream(events, frame, lambda frame: frame["payload"])
        assert frame == {"id": "s", "payload": {"jsonrpc": "2.0", "id": "s"}, "final": True}, frame
        await socket.send("{")
        answer = json.loads(await socket.recv())
        assert answer["payload"]["error"]["code"] == -32700 and answer["id"] is None, answer
        for number in range(100, 150):
            await socket.send(json.dumps(request(number, "SendMessage", f"number {number}")))
        ids = {json.loads(await socket.recv())["id"] for _ in range(50)}
        assert ids == set(range(100, 150)), ids
        # Cancel in the middle of a stream, which the frames always could say and servers could not hear.
        await socket.send(json.dumps(request("hold", "SendStreamingMessage", "hold")))
        task = json.loads(await socket.recv())["payload"]["result"]["task"]["id"]
        cancel = {"jsonrpc": "2.0", "id": "c", "method": "CancelTask", "params": {"id": task}}
        await socket.send(json.dumps(cancel))
        seen = set()
        while seen != {"hold", "c"}:
            frame = json.loads(await socket.recv())
            if frame["final"]:
                seen.add(frame["id"])


def over_lines(reader, writer):
    def send(frame):
        writer.write(json.dumps(frame).encode() + b"\n")
        writer.flush()

    send(request(1, "SendMessage", "hello"))
    answer = json.loads(reader.readline())
    assert answer["id"] == 1 and "final" not in answer, answer
    assert answer["result"]["task"]["status"]["state"] == "TASK_STATE_COMPLETED", answer
    send(request("s", "SendStreamingMessage", "stream 2"))
    events = []
    while "final" not in (frame := json.loads(reader.readline())):
        events.append(frame)
    check_stream(events, frame, lambda frame: frame)
    assert frame == {"jsonrpc": "2.0", "id": "s", "final": True}, frame
    send(request("big", "SendMessage", "x" * (1 << 20)))
    answer = json.loads(reader.readline())
    assert len(answer["result"]["task"]["artifacts"][0]["parts"][0]["text"]) == 1 << 20


def over_socket(path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(30)
        connection.connect(path)
        over_lines(connection.makefile("rb"), connection.makefile("wb"))


def over_pipes(command):
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        over_lines(server.stdout, server.stdin)
        server.stdin.close()
        assert server.stdout.read() == b"", "nothing follows"
        assert server.wait(30) == 0, server.returncode


asyncio.run(asyncio.wait_for(over_websocket(sys.argv[1]), 60))
over_socket(sys.argv[2])
over_pipes(sys.argv[3:])
print("done")
