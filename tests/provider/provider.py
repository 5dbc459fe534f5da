#!/usr/bin/env python3
"""Scripted stand-in for the Anthropic Messages API (standard library only).

Usage:  provider.py --script S.json --record R.jsonl [--port 8080] [--tls CERT KEY]
                    [--proxy-port N [--proxy-mode 403|tunnel]] [--bodies DIR] [--ready FILE] [--until-eof]

Script (JSON): {"main": [TURN, ...],                       # the session's own conversation
                "agents": [{"match": "text in 1st user message", "turns": [TURN, ...]}],
                "model": "claude-haiku-4-5-20251001"}      # served message.model (default: echo of request)
A turn is picked by the number of assistant messages already in the request (so a retry replays it);
the last turn repeats.  A request without tools (title, probe, small model) gets SIDE (default text "ok").
"{workspace}" stands for the working directory that the request states.
TURN = {"blocks": [BLOCK, ...], "stop_reason": opt, "model": opt, "usage": opt, "delay": s}
     | {"status": 529, "headers": {...}, "body": {...}, "times": n}    # HTTP error (n times, then next turn)
     | {"blocks": [...], "cut": k}        # close the connection after k SSE events
     | {"blocks": [...], "sse_error": {"type": "overloaded_error", "message": "x"}, "after": k}
       (any TURN may have "ev_delay": s, a pause after each SSE event, and "headers": {...})
     | {"hang": seconds, "after": k}      # stop sending after k events for so long
BLOCK = {"text": "..."} | {"thinking": "...", "signature": opt} | {"redacted_thinking": "data"}
      | {"tool": "Read", "input": {...}, "id": opt}
Each request is appended to R.jsonl: method, path, header names, auth scheme, body framing and size,
model, stream, tool names and types, betas, number of messages; never a credential's value
(only its first 12 characters, since all are invented).
Bind is 127.0.0.1 only.  Every HTTP answer to HEAD/GET is 404 and is recorded.
"""
import argparse, gzip, http.server, json, os, re, socket, ssl, sys, threading, time, itertools

def chunks(s, n):
    return [s[i:i + n] for i in range(0, len(s), n)] or [""]

class State:
    lock = threading.Lock()
    n = itertools.count(1)
    errs = {}

def sse_events(turn, model, mid, nin):
    usage = {"input_tokens": nin, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 1,
             "service_tier": "standard"}
    usage.update(turn.get("usage", {}))
    yield "message_start", {"type": "message_start", "message": {
        "id": mid, "type": "message", "role": "assistant", "model": model, "content": [], "stop_reason": None,
        "stop_sequence": None, "usage": usage}}
    yield "ping", {"type": "ping"}
    blocks = turn.get("blocks", [])
    out = 0
    for i, b in enumerate(blocks):
        if "text" in b:
            yield "content_block_start", {"type": "content_block_start", "index": i, "content_block": {"type": "text", "text": ""}}
            for c in chunks(b["text"], 400):
                yield "content_block_delta", {"type": "content_block_delta", "index": i, "delta": {"type": "text_delta", "text": c}}
            out += len(b["text"]) // 4
        elif "thinking" in b:
            yield "content_block_start", {"type": "content_block_start", "index": i, "content_block": {"type": "thinking", "thinking": "", "signature": ""}}
            for c in chunks(b["thinking"], 400):
                yield "content_block_delta", {"type": "content_block_delta", "index": i, "delta": {"type": "thinking_delta", "thinking": c}}
            yield "content_block_delta", {"type": "content_block_delta", "index": i, "delta": {"type": "signature_delta", "signature": b.get("signature", "RmFrZVNpZ25hdHVyZQ==")}}
            out += len(b["thinking"]) // 4
        elif "redacted_thinking" in b:
            yield "content_block_start", {"type": "content_block_start", "index": i, "content_block": {"type": "redacted_thinking", "data": b["redacted_thinking"]}}
        elif "tool" in b:
            tid = b.get("id") or "toolu_%s_%d" % (mid[4:], i)
            yield "content_block_start", {"type": "content_block_start", "index": i, "content_block": {"type": "tool_use", "id": tid, "name": b["tool"], "input": {}}}
            raw = b["raw"] if "raw" in b else json.dumps(b["input"], ensure_ascii=False)
            for c in chunks(raw, 600):
                yield "content_block_delta", {"type": "content_block_delta", "index": i, "delta": {"type": "input_json_delta", "partial_json": c}}
            out += len(raw) // 4
        yield "content_block_stop", {"type": "content_block_stop", "index": i}
    stop = turn.get("stop_reason") or ("tool_use" if any("tool" in b for b in blocks) else "end_turn")
    d = {"stop_reason": stop, "stop_sequence": None}
    d.update(turn.get("delta_extra", {}))
    yield "message_delta", {"type": "message_delta", "delta": d, "usage": {"output_tokens": max(out, 5)}}
    yield "message_stop", {"type": "message_stop"}

class H(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *a): pass

    def record(self, body, j, extra=None):
        h = {k.lower(): v for k, v in self.headers.items()}
        auth = h.get("authorization")
        r = {"t": round(time.time(), 3), "port": self.server.server_port, "tls": getattr(self.server, "tls_info", None) and self.connection.version(),
             "alpn": getattr(self.server, "tls_info", None) and self.connection.selected_alpn_protocol(),
             "method": self.command, "path": self.path, "http": self.request_version, "host": h.get("host"),
             "headers": [k for k, _ in self.headers.items()],
             "auth": (auth.split(" ")[0] + " " + auth.split(" ", 1)[-1][:12]) if auth else None,
             "x-api-key": (h.get("x-api-key") or "")[:12] or None,
             "content-length": h.get("content-length"), "transfer-encoding": h.get("transfer-encoding"), "content-encoding": h.get("content-encoding"),
             "user-agent": h.get("user-agent"), "anthropic-beta": h.get("anthropic-beta"), "bytes": len(body)}
        for k in h:
            if k.startswith("x-") and k != "x-api-key": r.setdefault("x", {})[k] = h[k][:80]
        if isinstance(j, dict):
            r.update(model=j.get("model"), stream=j.get("stream"), max_tokens=j.get("max_tokens"),
                     keys=sorted(j), thinking=j.get("thinking"), messages=len(j.get("messages", [])),
                     tools=[(t.get("name"), t.get("type", "custom")) for t in j.get("tools", [])],
                     extra={k: j[k] for k in ("output_config", "context_management", "metadata", "tool_choice", "betas", "temperature") if k in j})
        r.update(extra or {})
        with State.lock:
            with open(A.record, "a") as f: f.write(json.dumps(r) + "\n")

    def body(self):
        if "chunked" in (self.headers.get("transfer-encoding") or "").lower():
            b = b""
            while True:
                n = int(self.rfile.readline().split(b";")[0], 16)
                b += self.rfile.read(n); self.rfile.readline()
                if n == 0: return b
        return self.rfile.read(int(self.headers.get("content-length") or 0))

    def plain(self, code, obj, headers=None):
        out = obj if isinstance(obj, bytes) else json.dumps(obj).encode()
        self.send_response(code); self.send_header("content-type", "application/json")
        self.send_header("request-id", "req_fake")
        for k, v in (headers or {}).items(): self.send_header(k, v)
        self.send_header("content-length", str(len(out))); self.end_headers(); self.wfile.write(out)

    def do_GET(self):
        self.record(b"", None); self.plain(404, {"type": "error", "error": {"type": "not_found_error", "message": "none"}})
    do_DELETE = do_GET
    def do_HEAD(self):
        self.record(b"", None); self.send_response(404); self.send_header("content-length", "0"); self.end_headers()

    def do_POST(self):
        b = self.body()
        if "gzip" in (self.headers.get("content-encoding") or ""): b = gzip.decompress(b)
        try: j = json.loads(b)
        except Exception: j = None
        if A.bodies:
            open(os.path.join(A.bodies, "%03d_%s.json" % (next(State.n), self.path.split("?")[0].strip("/").replace("/", "_"))), "wb").write(b)
        if j is None or "messages" not in j:
            self.record(b, j); return self.plain(404, {"type": "error", "error": {"type": "not_found_error", "message": "none"}})
        if "count_tokens" in self.path:
            self.record(b, j); return self.plain(200, {"input_tokens": 10})
        cwd = re.search(rb"working directory: ([^\\\n\"]+)", b)
        S = json.loads(open(A.script).read().replace("{workspace}", cwd.group(1).decode() if cwd else "{workspace}"))
        first = j["messages"][0]["content"]
        first = first if isinstance(first, str) else json.dumps(first, ensure_ascii=False)
        who, turns = "main", S.get("main", [])
        if not j.get("tools"): who, turns = "side", S.get("side") or [{"blocks": [{"text": "ok"}]}]
        for a in S.get("agents", []):
            if a["match"] in first: who, turns = "agent:" + a["match"], a["turns"]; break
        n = sum(m["role"] == "assistant" for m in j["messages"])
        key = (who, n)
        seq = list(turns)
        # an "error" turn with times=k is played k times and then skipped
        i = 0; k = n
        while True:
            t = seq[min(i, len(seq) - 1)]
            if "status" in t and "times" in t:
                c = State.errs.get((who, i), 0)
                if k == 0 and c < t["times"]:
                    State.errs[(who, i)] = c + 1; break
                i += 1; continue
            if k == 0 or i >= len(seq) - 1: break
            i += 1; k -= 1
        self.record(b, j, {"who": who, "turn": i})
        if t.get("delay"): time.sleep(t["delay"])
        if "status" in t:
            return self.plain(t["status"], t.get("body") or {"type": "error", "error": {"type": t.get("etype", "api_error"), "message": t.get("message", "scripted error")}, "request_id": "req_fake"}, t.get("headers"))
        model = t.get("model") or S.get("model") or j.get("model")
        mid = "msg_%s%02d" % ("".join(c for c in who if c.isalnum())[:8], next(State.n))
        ev = list(sse_events(t, model, mid, max(1, len(b) // 4)))
        if not j.get("stream"):
            cont = []
            for x in t.get("blocks", []):
                if "text" in x: cont.append({"type": "text", "text": x["text"]})
            return self.plain(200, {"id": mid, "type": "message", "role": "assistant", "model": model, "content": cont, "stop_reason": "end_turn", "stop_sequence": None, "usage": {"input_tokens": 10, "output_tokens": 5}})
        self.send_response(200); self.send_header("content-type", "text/event-stream"); self.send_header("request-id", "req_fake")
        for k2, v in (t.get("headers") or {}).items(): self.send_header(k2, v)
        self.send_header("transfer-encoding", "chunked"); self.end_headers()
        def w(s):
            d = s.encode(); self.wfile.write(b"%x\r\n%s\r\n" % (len(d), d)); self.wfile.flush()
        for q, (name, data) in enumerate(ev):
            if "cut" in t and q >= t["cut"]:
                self.close_connection = True
                try: self.connection.shutdown(socket.SHUT_RDWR)
                except OSError: pass
                return
            if "sse_error" in t and q >= t.get("after", 1):
                w("event: error\ndata: %s\n\n" % json.dumps({"type": "error", "error": t["sse_error"]})); break
            if "hang" in t and q >= t.get("after", 1):
                time.sleep(t["hang"]); return
            w("event: %s\ndata: %s\n\n" % (name, json.dumps(data, ensure_ascii=False)))
            if t.get("ev_delay"): time.sleep(t["ev_delay"])
        self.wfile.write(b"0\r\n\r\n"); self.wfile.flush()

class P(http.server.BaseHTTPRequestHandler):
    """CONNECT proxy: records host:port, then 403 or a tunnel to this provider's TLS port."""
    protocol_version = "HTTP/1.1"
    def log_message(self, *a): pass
    def do_any(self):
        with State.lock:
            with open(A.record, "a") as f:
                f.write(json.dumps({"t": round(time.time(), 3), "proxy": self.command, "target": self.path, "headers": [k for k, _ in self.headers.items()]}) + "\n")
        if self.command == "CONNECT" and A.proxy_mode == "tunnel":
            up = socket.create_connection(("127.0.0.1", A.tls_port)); self.send_response(200); self.end_headers()
            def pump(a, b):
                try:
                    while True:
                        d = a.recv(65536)
                        if not d: break
                        b.sendall(d)
                except OSError: pass
                try: b.shutdown(socket.SHUT_WR)
                except OSError: pass
            th = threading.Thread(target=pump, args=(self.connection, up), daemon=True); th.start()
            pump(up, self.connection); self.close_connection = True; return
        self.send_response(403); self.send_header("content-length", "0"); self.end_headers(); self.close_connection = True
    do_CONNECT = do_GET = do_POST = do_HEAD = do_any

if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--script", required=True); ap.add_argument("--record", required=True)
    ap.add_argument("--port", type=int, default=8080); ap.add_argument("--bodies"); ap.add_argument("--ready")
    ap.add_argument("--tls", nargs=2); ap.add_argument("--tls-port", type=int, default=443); ap.add_argument("--alpn", default="h2,http/1.1")
    ap.add_argument("--until-eof", action="store_true", help="end when standard input does")
    ap.add_argument("--proxy-port", type=int); ap.add_argument("--proxy-mode", default="403")
    A = ap.parse_args()
    srv = []
    class TS(http.server.ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 64
    if A.port: srv.append(TS(("127.0.0.1", A.port), H))
    if A.tls:
        c = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER); c.load_cert_chain(*A.tls); c.set_alpn_protocols(A.alpn.split(","))
        class TLS(TS):
            tls_info = True
            def get_request(self):
                s, a = self.socket.accept()
                return s, a
            def finish_request(self, request, client_address):
                hello = {}
                try:
                    request = c.wrap_socket(request, server_side=True)
                except Exception as e:
                    with State.lock:
                        with open(A.record, "a") as f: f.write(json.dumps({"t": round(time.time(), 3), "tls_error": str(e)}) + "\n")
                    return
                if request.selected_alpn_protocol() == "h2":
                    with State.lock:
                        with open(A.record, "a") as f: f.write(json.dumps({"tls": "client chose h2"}) + "\n")
                self.RequestHandlerClass(request, client_address, self)
        s = TLS(("127.0.0.1", A.tls_port), H); srv.append(s)
    if A.proxy_port: srv.append(TS(("127.0.0.1", A.proxy_port), P))
    for s in srv: threading.Thread(target=s.serve_forever, daemon=True).start()
    if A.ready: open(A.ready, "w").write("ok")
    if A.until_eof:
        sys.stdin.buffer.read(); os._exit(0)
    while True: time.sleep(3600)
