"""An agent made with the Python SDK of the Agent Client Protocol. The first word of a prompt chooses what it does."""

import asyncio
import json
import pathlib
from uuid import uuid4

from acp import (
    InitializeResponse,
    LoadSessionResponse,
    NewSessionResponse,
    PromptResponse,
    RequestError,
    run_agent,
    start_tool_call,
    text_block,
    tool_content,
    tool_diff_content,
    update_agent_message_text,
    update_agent_thought_text,
    update_tool_call,
)
from acp.helpers import plan_entry, update_plan
from acp.interfaces import Agent
from acp.schema import AgentCapabilities, AuthMethodAgent, PermissionOption, PromptCapabilities, ToolCallUpdate

HOME = pathlib.Path(".sdk-agent")


class Example(Agent):
    def on_connect(self, conn):
        self.client = conn
        self.stopped = asyncio.Event()

    async def initialize(self, protocol_version, client_capabilities=None, client_info=None, **kwargs):
        self.can = client_capabilities
        return InitializeResponse(
            protocol_version=1,
            agent_capabilities=AgentCapabilities(load_session=True, prompt_capabilities=PromptCapabilities(image=True)),
            auth_methods=[AuthMethodAgent(id="none", name="Sign in")],
        )

    async def new_session(self, cwd, additional_directories=None, mcp_servers=None, **kwargs):
        session = uuid4().hex
        HOME.mkdir(exist_ok=True)
        (HOME / session).write_text("[]")
        return NewSessionResponse(session_id=session)

    async def load_session(self, cwd, session_id, mcp_servers=None, additional_directories=None, **kwargs):
        if not (HOME / session_id).exists():
            raise RequestError.resource_not_found(session_id)
        for text in json.loads((HOME / session_id).read_text()):
            await self.client.session_update(session_id, update_agent_message_text(f"again: {text}"))
        return LoadSessionResponse()

    async def cancel(self, session_id, **kwargs):
        self.stopped.set()

    async def prompt(self, session_id, prompt, **kwargs):
        self.stopped.clear()
        text = " ".join(block.text for block in prompt if block.type == "text")
        said = json.loads((HOME / session_id).read_text()) + [text]
        (HOME / session_id).write_text(json.dumps(said))

        async def tell(update):
            await self.client.session_update(session_id, update)

        match text.split()[0]:
            case "wait":
                await tell(update_agent_message_text("waiting"))
                await self.stopped.wait()
                return PromptResponse(stop_reason="cancelled")
            case "login":
                raise RequestError.auth_required()
            case "history":
                await tell(update_agent_message_text(" | ".join(said)))
            case "work":
                await self.work(session_id, tell)
            case _:
                await tell(update_agent_thought_text("An echo will do"))
                for word in text.split():
                    await tell(update_agent_message_text(f"{word} "))
        return PromptResponse(stop_reason="end_turn")

    async def work(self, session, tell):
        """Everything that a coding agent does in a turn."""
        path = str(pathlib.Path.cwd() / "made.txt")
        await tell(update_plan([plan_entry("write", status="in_progress"), plan_entry("run")]))
        await tell(start_tool_call("edit", "Write made.txt", kind="edit", status="pending", raw_input={"path": path}))
        call = ToolCallUpdate(tool_call_id="edit", title="Write made.txt", kind="edit")
        options = [
            PermissionOption(option_id="reject", name="No", kind="reject_once"),
            PermissionOption(option_id="allow", name="Yes", kind="allow_once"),
        ]
        answer = await self.client.request_permission(session, call, options)
        if answer.outcome.outcome != "selected" or answer.outcome.option_id != "allow":
            await tell(update_tool_call("edit", status="failed"))
            return
        await self.client.write_text_file(session, path, "hello\n")
        read = await self.client.read_text_file(session, path)
        await tell(update_tool_call("edit", status="completed", content=[tool_diff_content(path, read.content)]))
        made = await self.client.create_terminal(session, "cat", args=["made.txt"])
        at = made.terminal_id
        done = await self.client.wait_for_terminal_exit(session, at)
        output = await self.client.terminal_output(session, at)
        await self.client.release_terminal(session, at)
        await tell(start_tool_call("run", "cat made.txt", kind="execute", status="in_progress"))
        await tell(update_tool_call("run", status="completed", content=[tool_content(text_block(output.output))]))
        try:
            await self.client.read_text_file(session, "/etc/passwd")
        except RequestError as error:
            await tell(update_agent_message_text(f"exit {done.exit_code}, refused {error.code}"))


asyncio.run(run_agent(Example()))
