"""Drives an A2A server with the official Python client, a2a-sdk 0.3.

Usage: client.py BASE_URL
"""

import asyncio
import base64
import os
import re
import sys
import time
import uuid

import grpc
import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.client.errors import A2AClientHTTPError, A2AClientJSONRPCError
from a2a.types import (
    DataPart,
    FilePart,
    FileWithBytes,
    Message,
    MessageSendConfiguration,
    Part,
    Role,
    Task,
    TaskArtifactUpdateEvent,
    TaskIdParams,
    TaskNotFoundError,
    TaskQueryParams,
    TaskState,
    TaskStatusUpdateEvent,
    TextPart,
)

LIMIT = 10  # seconds for one check
TOTAL = 50  # seconds for all of them
TERMINAL = {TaskState.completed, TaskState.failed, TaskState.canceled, TaskState.rejected}


# Where the text comes in status messages, and a finished turn waits for the next message.
TALKS = os.environ.get("NUNCIO_TEST_PROFILE") == "iac-code"
DONE = TaskState.input_required if TALKS else TaskState.completed
# Where something comes beside the pieces of the text: the whole of it once more, or a summary.
SUMS_UP = os.environ.get("NUNCIO_TEST_PROFILE") in ("proto-agent", "coding-agent")


class Skip(Exception):
    """This SDK has no way to do it."""


def text_of(parts):
    return "".join(part.root.text for part in parts if isinstance(part.root, TextPart))


def output_of(task):
    if TALKS:
        said = [message for message in task.history or [] if message.role == Role.agent]
        return "".join(text_of(message.parts) for message in [*said, task.status.message] if message)
    return "".join(text_of(artifact.parts) for artifact in task.artifacts or [])


def expect(condition, why):
    if not condition:
        raise AssertionError(why)


def expect_state(task, state):
    expect(task.status.state == state, f"state is {task.status.state}, not {state}")


def expect_numbers(text, count):
    """The chunks carry consecutive numbers, so a lost or doubled one shows."""
    numbers = [int(number) for number in re.findall(r"\d+", text)]
    expect(
        numbers and numbers == list(range(numbers[0], numbers[0] + count)) and numbers[0] in (0, 1),
        f"chunks are not {count} in order: {text!r}",
    )


class Checks:
    """All checks over one transport."""

    def __init__(self, card, http, transport):
        offered = [card.preferred_transport or "JSONRPC"]
        offered += [interface.transport for interface in card.additional_interfaces or []]
        expect(transport in offered, f"the card offers only {offered}")
        self.transport = transport

        def client(streaming):
            config = ClientConfig(
                streaming=streaming,
                httpx_client=http,
                supported_transports=[transport],
                # This SDK hands over the URL of the card, and channels want no scheme.
                grpc_channel_factory=lambda url: grpc.aio.insecure_channel(url.removeprefix("http://")),
            )
            return ClientFactory(config).create(card)

        self.plain = client(streaming=False)
        self.streaming = client(streaming=True)

    def message(self, *parts, **ids):
        parts = [TextPart(text=part) if isinstance(part, str) else part for part in parts]
        parts = [Part(root=part) for part in parts]
        return Message(message_id=str(uuid.uuid4()), role=Role.user, parts=parts, **ids)

    async def send(self, *parts, wait=True, **ids):
        """Returns the one answer, a task or a message."""
        events = self.plain.send_message(
            self.message(*parts, **ids), configuration=MessageSendConfiguration(blocking=wait)
        )
        answers = [event async for event in events]
        expect(len(answers) == 1, f"{len(answers)} answers")
        return answers[0] if isinstance(answers[0], Message) else answers[0][0]

    async def task(self, *parts, wait=True, **ids):
        answer = await self.send(*parts, wait=wait, **ids)
        expect(isinstance(answer, Task), f"answer is a {type(answer).__name__}")
        return answer

    async def get(self, task_id, **options):
        return await self.plain.get_task(TaskQueryParams(id=task_id, **options))

    async def finished(self, task_id):
        while True:  # bounded by the limit of the check
            task = await self.get(task_id)
            if task.status.state in TERMINAL or task.status.state == DONE:
                return task
            await asyncio.sleep(0.05)

    async def follow(self, events):
        """Follows a stream to its end; returns the number of chunks and all their text.

        This SDK assembles the task from the events and hands it out with each of them. It forgets the message of
        a status that another one replaces, so status messages are put together here.
        """
        chunks, first, task, update, said = 0, True, None, None, ""
        async for task, update in events:
            expect(not first or update is None, f"first event is a {type(update).__name__}")
            if update is None:
                said = output_of(task)
            elif TALKS and isinstance(update, TaskStatusUpdateEvent) and update.status.message:
                text = text_of(update.status.message.parts)
                chunks, said = chunks + bool(text), said + text
            elif isinstance(update, TaskArtifactUpdateEvent):
                text = text_of(update.artifact.parts)
                chunks += not SUMS_UP or bool(text and text != said)
                said += text
            first = False
        expect_state(task, DONE)
        expect(getattr(update, "final", False), "the last event is not final")
        count = len(task.artifacts or [])
        expect(SUMS_UP or count == (0 if TALKS else 1), f"artifacts: {task.artifacts}")
        return chunks, said if TALKS else output_of(task)

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
        chunks, text = await self.follow(self.streaming.send_message(self.message("stream 5 10")))
        expect(chunks == 5, f"{chunks} chunks")
        expect_numbers(text, 5)

    async def check_subscribe(self):
        task = await self.task("stream 50 20", wait=False)
        await asyncio.sleep(0.3)
        chunks, seen = await self.follow(self.streaming.resubscribe(TaskIdParams(id=task.id)))
        expect(chunks > 0, "nothing came after the snapshot")
        expect_numbers(seen, 50)
        expect(output_of(await self.get(task.id)) == seen, "the task differs from its stream")

    async def check_follow_up(self):
        task = await self.task("ask What?")
        expect_state(task, TaskState.input_required)
        expect("What?" in text_of(task.status.message.parts), "the question is missing")
        done = await self.task("because", task_id=task.id, context_id=task.context_id)
        expect_state(done, DONE)
        expect(done.id == task.id and done.context_id == task.context_id, "another task answered")
        expect("because" in output_of(done), f"echo is {output_of(done)!r}")

    async def check_history_length(self):
        task = await self.task("ask What?")
        await self.task("because", task_id=task.id, context_id=task.context_id)
        whole = (await self.get(task.id)).history
        expect(whole and len(whole) >= 2, f"history is {whole}")
        none = (await self.get(task.id, history_length=0)).history
        expect(not none or none == whole, f"0 gave {none}")  # 0.3 leaves open which of them
        one = (await self.get(task.id, history_length=1)).history
        expect(one == whole[-1:], "1 did not give the newest message")

    async def check_list(self):
        raise Skip("this SDK cannot list tasks")

    async def check_cancel(self):
        task = await self.task("hold", wait=False)
        expect_state(await self.plain.cancel_task(TaskIdParams(id=task.id)), TaskState.canceled)
        expect_state(await self.get(task.id), TaskState.canceled)

    async def check_unknown_task(self):
        try:
            await self.get(str(uuid.uuid4()))
        except A2AClientJSONRPCError as error:
            expect(error.error.code == TaskNotFoundError().code, f"error is {error.error!r}")
        except A2AClientHTTPError as error:  # all that this SDK tells over REST
            expect(self.transport == "HTTP+JSON" and error.status_code == 404, repr(error))
        except grpc.aio.AioRpcError as error:  # which this SDK passes on
            expect(error.code() == grpc.StatusCode.NOT_FOUND, repr(error))
            expect(error.details().startswith("TaskNotFoundError"), repr(error))
        else:
            raise AssertionError("no error")

    async def check_subscribe_unknown_task(self):
        try:
            async for _ in self.streaming.resubscribe(TaskIdParams(id=str(uuid.uuid4()))):
                pass
        except A2AClientJSONRPCError as error:  # which this SDK reads only from a stream
            expect(error.error.code == TaskNotFoundError().code, f"error is {error.error!r}")
        except A2AClientHTTPError as error:  # over REST this SDK does not look at the status
            expect(self.transport == "HTTP+JSON", repr(error))
        except grpc.aio.AioRpcError as error:
            expect(error.code() == grpc.StatusCode.NOT_FOUND, repr(error))
        else:
            raise AssertionError("no error")

    async def check_direct_message(self):
        answer = await self.send("message hi")
        expect(isinstance(answer, Message), f"answer is a {type(answer).__name__}")
        expect(answer.role == Role.agent, "the role is not agent")
        expect(text_of(answer.parts) == "hi", f"text is {text_of(answer.parts)!r}")

    async def check_direct_message_stream(self):
        events = [e async for e in self.streaming.send_message(self.message("message hi"))]
        expect(len(events) == 1 and isinstance(events[0], Message), f"events: {events}")

    async def check_failure(self):
        task = await self.task("fail boom")
        expect_state(task, TaskState.failed)
        expect("boom" in text_of(task.status.message.parts), "the text is missing")

    async def check_file_and_data(self):
        content = base64.b64encode(b"\x00\xff\xfe").decode()
        file = FileWithBytes(bytes=content, name="a.bin", mime_type="application/octet-stream")
        data = {"a": {"b": "x"}, "n": 1}
        task = await self.task("echo me", FilePart(file=file), DataPart(data=data))
        expect_state(task, DONE)
        expect("echo me" in output_of(task), f"echo is {output_of(task)!r}")
        sent = [part.root for part in (await self.get(task.id)).history[0].parts]
        expect(sent[1].file == file and sent[2].data == data, f"history holds {sent}")


async def main(base_url):
    started = time.monotonic()
    passed = failed = skipped = 0

    async def run(name, work):
        nonlocal passed, failed, skipped
        left = TOTAL - (time.monotonic() - started)
        try:
            result = await asyncio.wait_for(work, max(0.01, min(LIMIT, left)))
        except Skip as reason:
            skipped += 1
            print(f"SKIP {name}: {reason}", flush=True)
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

    async def connect(transport):
        return Checks(card, http, transport)

    async with httpx.AsyncClient(timeout=LIMIT) as http:
        card = await run("card", A2ACardResolver(http, base_url).get_agent_card())
        for transport, label in ("JSONRPC", "jsonrpc"), ("HTTP+JSON", "rest"), ("GRPC", "grpc"):
            checks = card and await run(f"{label} connect", connect(transport))
            for name in [n for n in dir(Checks) if n.startswith("check_")] if checks else []:
                title = name.removeprefix("check_").replace("_", "-")
                await run(f"{label} {title}", getattr(checks, name)())

    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(asyncio.run(main(sys.argv[1])))
