"""An echo agent on the A2A SDK for Python, 0.3. Usage: server.py PORT"""

import asyncio
import json
import sys

import uvicorn
from a2a.server.agent_execution import AgentExecutor
from a2a.server.apps import A2ARESTFastAPIApplication, A2AStarletteApplication
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import InMemoryPushNotificationConfigStore, InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCard, Part, TextPart
from a2a.utils import new_task
from a2a.utils.signing import create_agent_card_signer
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Mount, Route

PORT = int(sys.argv[1])
BASE = f"http://127.0.0.1:{PORT}"
SECRET = "a secret of at least thirty-two bytes"

CARD = {
    "name": "Écho \U0001f50a",
    "description": "Says what it hears",
    "version": "1",
    "protocolVersion": "0.3.0",
    "url": f"{BASE}/rpc",
    "preferredTransport": "JSONRPC",
    "additionalInterfaces": [
        {"url": f"{BASE}/rpc", "transport": "JSONRPC"},
        {"url": f"{BASE}/rest", "transport": "HTTP+JSON"},
    ],
    "capabilities": {
        "streaming": True,
        "pushNotifications": True,
        "extensions": [{"uri": "urn:test:tuning", "params": {"depth": 3, "gain": 0.000001, "none": ""}}],
    },
    "supportsAuthenticatedExtendedCard": True,
    "securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "x-key"}},
    "defaultInputModes": ["text/plain"],
    "defaultOutputModes": ["text/plain"],
    "skills": [{"id": "echo", "name": "Echo", "description": "", "tags": ["test"]}],
}


class Echo(AgentExecutor):
    async def execute(self, context, event_queue):
        text = context.get_user_input()
        task = context.current_task
        if task is None:
            task = new_task(context.message)
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await updater.start_work()
        if text.startswith("wait"):
            # Until somebody cancels it, but not for ever.
            await asyncio.sleep(20)
        words = text.split(" ")
        for i, word in enumerate(words):
            piece = word if i == 0 else f" {word}"
            parts = [Part(root=TextPart(text=piece))]
            await updater.add_artifact(parts, artifact_id="echo", append=i > 0, last_chunk=i + 1 == len(words))
            await asyncio.sleep(0.02)
        await updater.complete()

    async def cancel(self, context, event_queue):
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


KEYS = {
    "ES256": (ec.generate_private_key(ec.SECP256R1()), ECAlgorithm),
    "RS256": (rsa.generate_private_key(public_exponent=65537, key_size=2048), RSAAlgorithm),
    "EdDSA": (ed25519.Ed25519PrivateKey.generate(), OKPAlgorithm),
}


def signed(alg, extra=None):
    card = AgentCard.model_validate({**CARD, **(extra or {})})
    key = SECRET if alg == "HS256" else KEYS[alg][0]
    header = {"kid": alg.lower(), "alg": alg, "jku": None, "typ": "JOSE"}
    return create_agent_card_signer(key, header)(card)


async def jwks(_request):
    keys = []
    for alg, (key, algorithm) in KEYS.items():
        jwk = json.loads(algorithm.to_jwk(key.public_key()))
        keys.append({**jwk, "kid": alg.lower(), "use": "sig", "alg": alg})
    return JSONResponse({"keys": keys})


def card_route(alg):
    async def serve(_request):
        return JSONResponse(signed(alg).model_dump(mode="json", exclude_none=True, by_alias=True))

    return Route(f"/cards/{alg}.json", serve)


handler = DefaultRequestHandler(
    agent_executor=Echo(),
    task_store=InMemoryTaskStore(),
    push_config_store=InMemoryPushNotificationConfigStore(),
)
card, extended = signed("ES256"), signed("ES256", {"name": "Echo for friends"})
rpc = A2AStarletteApplication(card, handler, extended_agent_card=extended)
rest = A2ARESTFastAPIApplication(card, handler, extended_agent_card=extended)
routes = [Route("/jwks.json", jwks)]
routes += [card_route(alg) for alg in ("HS256", *KEYS)]
routes += rpc.routes(rpc_url="/rpc")
routes += [Mount("/rest", rest.build())]
uvicorn.run(Starlette(routes=routes), host="127.0.0.1", port=PORT, log_level="warning")
