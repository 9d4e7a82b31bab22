"""Drives an A2A server with the official Python client, a2a-sdk 1.3.

Usage: client.py BASE_URL
"""

import asyncio
import os
import re
import sys
import time
import uuid

import grpc
import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.client.transports import jsonrpc, rest
from a2a.types import (
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    Message,
    Part,
    Role,
    SendMessageRequest,
    SubscribeToTaskRequest,
    TaskState,
)
from a2a.utils.errors import TaskNotFoundError
from google.protobuf.json_format import Parse, ParseDict
from google.protobuf.struct_pb2 import Value

LIMIT = 10  # seconds for one check
TOTAL = 50  # seconds for all of them
TERMINAL = {
    TaskState.TASK_STATE_COMPLETED,
    TaskState.TASK_STATE_FAILED,
    TaskState.TASK_STATE_CANCELED,
    TaskState.TASK_STATE_REJECTED,
}


# Where the text comes in status messages, and a finished turn waits for the next message.
TALKS = os.environ.get("NUNCIO_TEST_PROFILE") == "iac-code"
DONE = "INPUT_REQUIRED" if TALKS else "COMPLETED"
# Where something comes beside the pieces of the text: the whole of it once more, or a summary.
SUMS_UP = os.environ.get("NUNCIO_TEST_PROFILE") in ("proto-agent", "coding-agent")


def parse_strictly(data, message):
    """Earlier 1.x releases of this SDK refuse members that they do not know."""
    return Parse(data, message) if isinstance(data, str | bytes) else ParseDict(data, message)


jsonrpc.parse_lenient = rest.parse_lenient = parse_strictly


def text_of(parts):
    return "".join(part.text for part in parts)


def output_of(task):
    if TALKS:
        said = [message for message in task.history if message.role == Role.ROLE_AGENT]
        return "".join(text_of(message.parts) for message in [*said, task.status.message])
    return "".join(text_of(artifact.parts) for artifact in task.artifacts)


def numbers_in(text):
    return [int(number) for number in re.findall(r"\d+", text)]


def expect(condition, why):
    if not condition:
        raise AssertionError(why)


def expect_state(task, name):
    got = TaskState.Name(task.status.state)
    expect(got == f"TASK_STATE_{name}", f"state is {got}, not {name}")


def expect_numbers(text, count):
    """The chunks carry consecutive numbers, so a lost or doubled one shows."""
    numbers = numbers_in(text)
    expect(
        numbers and numbers == list(range(numbers[0], numbers[0] + count)) and numbers[0] in (0, 1),
        f"chunks are not {count} in order: {text!r}",
    )


class Checks:
    """All checks over one transport."""

    def __init__(self, card, http, binding):
        offered = [(i.protocol_binding, i.protocol_version) for i in card.supported_interfaces]
        expect((binding, "1.0") in offered, f"the card offers only {offered}")

        def client(streaming):
            config = ClientConfig(
                streaming=streaming,
                httpx_client=http,
                supported_protocol_bindings=[binding],
                grpc_channel_factory=grpc.aio.insecure_channel,
            )
            return ClientFactory(config).create(card)

        self.plain = client(streaming=False)
        self.streaming = client(streaming=True)

    def request(self, *parts, wait=True, **ids):
        parts = [Part(text=part) if isinstance(part, str) else part for part in parts]
        message = Message(message_id=str(uuid.uuid4()), role=Role.ROLE_USER, parts=parts, **ids)
        request = SendMessageRequest(message=message)
        request.configuration.return_immediately = not wait
        return request

    async def send(self, *parts, wait=True, **ids):
        """Returns the one answer, a StreamResponse with a task or a message."""
        answers = [a async for a in self.plain.send_message(self.request(*parts, wait=wait, **ids))]
        expect(len(answers) == 1, f"{len(answers)} answers")
        return answers[0]

    async def task(self, *parts, wait=True, **ids):
        answer = await self.send(*parts, wait=wait, **ids)
        expect(answer.HasField("task"), f"answer is a {answer.WhichOneof('payload')}")
        return answer.task

    async def get(self, task_id, **options):
        return await self.plain.get_task(GetTaskRequest(id=task_id, **options))

    async def finished(self, task_id):
        while True:  # bounded by the limit of the check
            task = await self.get(task_id)
            if task.status.state in TERMINAL or TaskState.Name(task.status.state) == f"TASK_STATE_{DONE}":
                return task
            await asyncio.sleep(0.05)

    async def follow(self, events):
        """Follows a stream to its end; returns the text of each chunk and the last state."""
        chunks, ids, state, first = [], set(), None, True
        async for event in events:
            kind = event.WhichOneof("payload")
            expect(not first or kind == "task", f"first event is a {kind}")
            if kind == "task":
                state = event.task.status.state
                chunks = [output_of(event.task)] if output_of(event.task) else []
                ids = {artifact.artifact_id for artifact in event.task.artifacts}
            elif kind == "status_update":
                state = event.status_update.status.state
                if TALKS and event.status_update.status.HasField("message"):
                    chunks.append(text_of(event.status_update.status.message.parts))
            elif kind == "artifact_update":
                update = event.artifact_update
                text = text_of(update.artifact.parts)
                if SUMS_UP and (not text or text == "".join(chunks)):
                    continue
                expect(SUMS_UP or update.append == bool(chunks), f"append is {update.append} on a chunk")
                chunks.append(text)
                ids.add(update.artifact.artifact_id)
            first = False
        expect(TaskState.Name(state) == f"TASK_STATE_{DONE}", f"the stream ended in state {state}")
        expect(len(ids) == (0 if TALKS else 1), f"artifacts: {ids}")
        return chunks

    async def check_send(self):
        task = await self.task("hello there")
        expect_state(task, DONE)
        expect(output_of(task) == "hello there", f"echo is {output_of(task)!r}")

    async def check_send_without_waiting(self):
        task = await self.task("stream 5 50", wait=False)
        expect(task.status.state not in TERMINAL, "the answer came after the work")
        done = await self.finished(task.id)
        expect_state(done, DONE)
        expect_numbers(output_of(done), 5)

    async def check_stream(self):
        chunks = await self.follow(self.streaming.send_message(self.request("stream 5 10")))
        expect(len(chunks) == 5, f"{len(chunks)} chunks")
        expect_numbers("".join(chunks), 5)

    async def check_subscribe(self):
        task = await self.task("stream 50 20", wait=False)
        await asyncio.sleep(0.3)
        events = self.streaming.subscribe(SubscribeToTaskRequest(id=task.id))
        chunks = await self.follow(events)
        expect(len(chunks) > 1, "nothing came after the snapshot")
        expect_numbers("".join(chunks), 50)
        expect(output_of(await self.get(task.id)) == "".join(chunks), "the task differs from its stream")

    async def check_follow_up(self):
        task = await self.task("ask What?")
        expect_state(task, "INPUT_REQUIRED")
        expect("What?" in text_of(task.status.message.parts), "the question is missing")
        done = await self.task("because", task_id=task.id)
        expect_state(done, DONE)
        expect(done.id == task.id and done.context_id == task.context_id, "another task answered")
        expect("because" in output_of(done), f"echo is {output_of(done)!r}")

    async def check_history_length(self):
        task = await self.task("ask What?")
        await self.task("because", task_id=task.id)
        whole = (await self.get(task.id)).history
        expect(len(whole) >= 2, f"history has {len(whole)} messages")
        none = (await self.get(task.id, history_length=0)).history
        expect(not none, f"0 gave {len(none)} messages")
        one = (await self.get(task.id, history_length=1)).history
        expect(len(one) == 1 and one[0] == whole[-1], "1 did not give the newest message")

    async def check_list_pages(self):
        first = await self.task("one")
        context = first.context_id
        created = {first.id} | {(await self.task(t, context_id=context)).id for t in ("two", "three")}
        expect(len(created) == 3, "a task id came twice")
        token, seen, times = "", [], []
        for page in (1, 2, 3):
            answer = await self.plain.list_tasks(
                ListTasksRequest(context_id=context, page_size=1, page_token=token)
            )
            expect(len(answer.tasks) == 1, f"page {page} has {len(answer.tasks)} tasks")
            expect(answer.total_size == 3 and answer.page_size == 1, f"sizes on page {page}: {answer}")
            expect(not answer.tasks[0].artifacts, "artifacts without being asked for")
            token = answer.next_page_token
            expect(bool(token) == (page < 3), f"token after page {page} is {token!r}")
            seen.append(answer.tasks[0].id)
            times.append(answer.tasks[0].status.timestamp.ToNanoseconds())
        expect(set(seen) == created, "the pages do not hold the three tasks")
        expect(times == sorted(times, reverse=True), "not newest first")

    async def check_list_by_context(self):
        mine, other = await self.task("mine"), await self.task("other")
        answer = await self.plain.list_tasks(
            ListTasksRequest(context_id=mine.context_id, include_artifacts=True)
        )
        expect([task.id for task in answer.tasks] == [mine.id], "the context holds other tasks")
        expect(TALKS or output_of(answer.tasks[0]) == "mine", "asked for artifacts, got none")
        every = await self.plain.list_tasks(ListTasksRequest(page_size=100))
        expect({mine.id, other.id} <= {task.id for task in every.tasks}, "a task is not listed")

    async def check_cancel(self):
        task = await self.task("hold", wait=False)
        expect_state(await self.plain.cancel_task(CancelTaskRequest(id=task.id)), "CANCELED")
        expect_state(await self.get(task.id), "CANCELED")

    async def check_unknown_task(self):
        try:
            await self.get(str(uuid.uuid4()))
        except TaskNotFoundError:
            return
        raise AssertionError("no error")

    async def check_subscribe_unknown_task(self):
        try:
            async for _ in self.streaming.subscribe(SubscribeToTaskRequest(id=str(uuid.uuid4()))):
                pass
        except TaskNotFoundError:
            return
        raise AssertionError("no error")

    async def check_direct_message(self):
        answer = await self.send("message hi")
        expect(answer.HasField("message"), f"answer is a {answer.WhichOneof('payload')}")
        expect(answer.message.role == Role.ROLE_AGENT, "the role is not agent")
        expect(text_of(answer.message.parts) == "hi", f"text is {text_of(answer.message.parts)!r}")

    async def check_direct_message_stream(self):
        request = self.request("message hi")
        kinds = [e.WhichOneof("payload") async for e in self.streaming.send_message(request)]
        expect(kinds == ["message"], f"events: {kinds}")

    async def check_failure(self):
        task = await self.task("fail boom")
        expect_state(task, "FAILED")
        expect("boom" in text_of(task.status.message.parts), "the text is missing")

    async def check_file_and_data(self):
        data = ParseDict({"a": [1, None, "x"]}, Value())
        file = Part(raw=b"\x00\xff\xfe", filename="a.bin", media_type="application/octet-stream")
        task = await self.task("echo me", file, Part(data=data))
        expect_state(task, DONE)
        expect("echo me" in output_of(task), f"echo is {output_of(task)!r}")
        sent = (await self.get(task.id)).history[0].parts
        expect(sent[1] == file and sent[2].data == data, f"history holds {sent}")


async def main(base_url):
    started = time.monotonic()
    passed = failed = 0

    async def run(name, work):
        nonlocal passed, failed
        left = TOTAL - (time.monotonic() - started)
        try:
            result = await asyncio.wait_for(work, max(0.01, min(LIMIT, left)))
        except TimeoutError:
            failed += 1
            print(f"FAIL {name}: no result in time", flush=True)
        except Exception as error:
            failed += 1
            print(f"FAIL {name}: {type(error).__name__}: {error}".replace("\n", " "), flush=True)
        else:
            passed += 1
            print(f"ok {name}", flush=True)
            return result

    async def connect(binding):
        return Checks(card, http, binding)

    async with httpx.AsyncClient(timeout=LIMIT) as http:
        card = await run("card", A2ACardResolver(http, base_url).get_agent_card())
        for binding, label in ("JSONRPC", "jsonrpc"), ("HTTP+JSON", "rest"), ("GRPC", "grpc"):
            checks = card and await run(f"{label} connect", connect(binding))
            for name in [n for n in dir(Checks) if n.startswith("check_")] if checks else []:
                title = name.removeprefix("check_").replace("_", "-")
                await run(f"{label} {title}", getattr(checks, name)())

    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(asyncio.run(main(sys.argv[1])))
