#!/usr/bin/env python3
"""Records what Jinja2 makes of conversations with tools:

    python3 tools.py ORACLE/chat/*.json > tools.json

The templates stay where they are; tools.json names them, and of what they make it holds
the hash.
"""
import datetime
import hashlib
import json
import os
import sys

import jinja

environment = jinja.env
environment.globals["strftime_now"] = datetime.datetime(2024, 7, 26).strftime

tools = [
    {"type": "function", "function": {"name": "get_weather", "description": "Weather of a city", "parameters": {
        "type": "object", "properties": {
            "city": {"type": "string", "description": "Städte & <b>\"quoted\"</b>"},
            "unit": {"type": "string", "enum": ["C", "F"], "default": "C"},
            "days": {"type": ["integer", "null"], "minimum": 1},
            "items": {"type": "array", "items": {"type": "string"}}},
        "required": ["city"]}}},
    {"type": "function", "function": {"name": "now", "description": "", "parameters": {"type": "object", "properties": {}}}},
]


def call(arguments, identity="abcdefghi"):
    return {"id": identity, "type": "function", "function": {"name": "get_weather", "arguments": arguments}}


def result(content, identity="abcdefghi"):
    return {"role": "tool", "name": "get_weather", "tool_call_id": identity, "content": content}


user, system = {"role": "user", "content": "Weather in Köln?"}, {"role": "system", "content": "Be brief."}
conversations = [
    [user],
    [system, user, {"role": "assistant", "content": "", "tool_calls": [call({"city": "Köln", "days": 2, "unit": None, "x": 1.5})]}],
    [user, {"role": "assistant", "content": "", "tool_calls": [call({"city": "Köln", "tags": ["a", {"b": True}]})]}, result("{\"t\": 3}"),
     {"role": "assistant", "content": "3 degrees."}, {"role": "user", "content": "And there?"}],
    [user, {"role": "assistant", "content": "Let me see.", "tool_calls": [call({"city": "a"}), call({"city": "b"}, "123456789")]},
     result("1"), result("2", "123456789")],
]

results = []
for path in sys.argv[1:]:
    with open(path) as f:
        recorded = json.load(f)
    template = environment.from_string(recorded["template"])
    for i, messages in enumerate(conversations):
        result = {"template": os.path.basename(path), "conversation": i}
        try:
            text = template.render(messages=messages, tools=tools, add_generation_prompt=True, date_string=recorded["date_string"],
                                   bos_token=recorded["bos_token"], eos_token=recorded["eos_token"])
            result["sha256"] = hashlib.sha256(text.encode()).hexdigest()
        except Exception as e:
            result["fails"] = f"{type(e).__name__}: {e}"
        results.append(result)
print(json.dumps({"tools": tools, "conversations": conversations, "results": results}, ensure_ascii=False, indent=1))
