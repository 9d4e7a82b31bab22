"""Conversations that outlive a process, in a file of the folder that the agent works in."""

import json
import os
import uuid

PATH = ".fake-sessions.json"


def _load():
    try:
        with open(PATH, encoding="utf-8") as file:
            return json.load(file)
    except FileNotFoundError:
        return {}


def create():
    """A new conversation; returns its id."""
    session = str(uuid.uuid4())
    put(session, {})
    return session


def get(session):
    """What is known of a conversation; None if there is none."""
    return _load().get(session)


def put(session, data):
    """Keeps what is known, also if the process is killed right after."""
    every = _load()
    every[session] = data
    with open(PATH + ".new", "w", encoding="utf-8") as file:
        json.dump(every, file)
    os.replace(PATH + ".new", PATH)


def talk(session, prompt):
    """The answer to the prompts that every fake agent knows, and None for others."""
    data = get(session)
    words = prompt.split()
    if words[:3] == ["remember", "the", "number"]:
        data["number"] = words[3]
        put(session, data)
        return f"I will remember the number {words[3]}."
    if words[:1] == ["recall"]:
        return f"You told me the number {data['number']}." if "number" in data else "I know of no number."
    if prompt.startswith("Continue where you were interrupted"):
        return "Here is the rest." if data.get("slow") else "There was nothing to continue."
    return None
