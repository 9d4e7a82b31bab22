"""Reads bodies of webhooks from stdin as a receiver of A2A 1.0 does, strictly."""

import sys

from a2a.types import StreamResponse
from google.protobuf import json_format

count = 0
for line in sys.stdin:
    event = json_format.Parse(line, StreamResponse(), ignore_unknown_fields=False)
    kind = event.WhichOneof("payload")
    assert kind in ("task", "status_update", "artifact_update"), line
    inner = getattr(event, kind)
    assert inner.id if kind == "task" else inner.task_id, line
    count += 1
print(f"{count} bodies read")
