"""model.py - a model that is a script: it has bash of ours run one command, and says what came back.

It speaks as the services do that agents ask: Anthropic's messages, OpenAI's responses, Google's generateContent.
"""
import http.server
import json
import threading

TOOL, COMMAND, SAID = "bash", "echo from-inside; pwd", "the tool said: "


def text_of(value):
    """All texts in it, one after the other."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        value = list(value.values())
    return " ".join(text_of(v) for v in value) if isinstance(value, list) else ""


def name_of(tools):
    """The one of ours, whatever the agent calls it."""
    def names(value):
        if isinstance(value, dict):
            yield from [value["name"]] if isinstance(value.get("name"), str) else []
            value = list(value.values())
        for v in value if isinstance(value, list) else []:
            yield from names(v)
    return next((n for n in names(tools) if "caisson" in n and n.endswith(TOOL)), None)


# ---- Anthropic -------------------------------------------------------------------------------

def anthropic(_path, ask):
    content = ask["messages"][-1]["content"]
    results = [c for c in content if isinstance(c, dict) and c.get("type") == "tool_result"] if isinstance(content, list) else []
    name = name_of(ask.get("tools"))
    if results or not name:
        block, delta, stop = {"type": "text", "text": ""}, {"type": "text_delta", "text": SAID + text_of(results)}, "end_turn"
    else:
        block, stop = {"type": "tool_use", "id": "toolu_1", "name": name, "input": {}}, "tool_use"
        delta = {"type": "input_json_delta", "partial_json": json.dumps({"command": COMMAND})}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": ask["model"], "content": [], "stop_reason": None, "stop_sequence": None,
               "usage": {"input_tokens": 1, "output_tokens": 1}}
    return [{"type": "message_start", "message": message}, {"type": "content_block_start", "index": 0, "content_block": block},
            {"type": "content_block_delta", "index": 0, "delta": delta}, {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": {"output_tokens": 1}}, {"type": "message_stop"}]


# ---- OpenAI ----------------------------------------------------------------------------------

def openai(_path, ask):
    last = ask["input"][-1]
    tools = [t for t in ask.get("tools", []) if t.get("type") == "namespace" and "caisson" in t["name"]]
    name = name_of(ask.get("tools"))
    if last.get("type") == "function_call_output" or not (name or tools):
        item = {"type": "message", "id": "m1", "role": "assistant", "content": [{"type": "output_text", "text": SAID + text_of(last.get("output"))}]}
    else:
        item = {"type": "function_call", "id": "f1", "call_id": "c1", "name": name or TOOL, "arguments": json.dumps({"command": COMMAND})}
        if tools:
            item.update(name=TOOL, namespace=tools[0]["name"])
    usage = {"input_tokens": 1, "input_tokens_details": None, "output_tokens": 1, "output_tokens_details": None, "total_tokens": 2}
    return [{"type": "response.created", "response": {"id": "r1"}}, {"type": "response.output_item.done", "item": item},
            {"type": "response.completed", "response": {"id": "r1", "usage": usage}}]


# ---- Google ----------------------------------------------------------------------------------

def google(_path, ask):
    parts = ask["contents"][-1]["parts"]
    results = [p["functionResponse"]["response"] for p in parts if "functionResponse" in p]
    name = name_of(ask.get("tools"))
    part = {"text": SAID + text_of(results)} if results or not name else {"functionCall": {"name": name, "args": {"command": COMMAND}}}
    return [{"candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}],
             "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}}]


# ---- all of them -----------------------------------------------------------------------------

PATHS = {"/v1/messages": anthropic, "/v1/responses": openai, ":streamGenerateContent": google, ":generateContent": google}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def send(self, status, kind, data):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def do_GET(self):
        self.send(404, "application/json", b"{}")

    do_HEAD = do_GET

    def do_POST(self):
        ask = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
        path = self.path.partition("?")[0]
        say = next((f for end, f in PATHS.items() if path.endswith(end)), None)
        self.server.seen.append((path, ask))
        if not say:
            self.send(404, "application/json", b"{}")
            return
        events = say(path, ask)
        if path.endswith(":generateContent"):
            self.send(200, "application/json", json.dumps(events[0]).encode())
            return
        lines = [(f"event: {e['type']}\n" if "type" in e else "") + f"data: {json.dumps(e)}\n\n" for e in events]
        self.send(200, "text/event-stream", "".join(lines).encode())


def start():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.seen = []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server
