"""Reads bodies of webhooks from stdin as a receiver of A2A 0.3 does."""

import json
import sys

from a2a.types import Task, TaskArtifactUpdateEvent, TaskStatusUpdateEvent

KINDS = {"task": Task, "status-update": TaskStatusUpdateEvent, "artifact-update": TaskArtifactUpdateEvent}

count = 0
for line in sys.stdin:
    body = json.loads(line)
    event = KINDS[body["kind"]].model_validate(body)
    # Nothing is lost on the way into the types, so all of it was understood.
    assert json.loads(event.model_dump_json(by_alias=True, exclude_none=True)).keys() >= body.keys(), line
    count += 1
print(f"{count} bodies read")
