#!/bin/sh
# Appends one line of JSON for each event of a watched session. In every other session it does nothing and says nothing.

[ -n "${HEADWATER_SHADOW_LOG_DIR:-}" ] && [ -n "${HEADWATER_PROBE_SESSION:-}" ] || exit 0
[ -d "$HEADWATER_SHADOW_LOG_DIR" ] || exit 0

# A name that would need escaping is not written at all.
case "$HEADWATER_PROBE_SESSION" in
  *[!A-Za-z0-9._:@/+-]*) exit 0 ;;
esac
case "${1:-}" in
  SessionStart | PreToolUse) event=$1 ;;
  *) event=unknown ;;
esac

printf '{"probe_session":"%s","event":"%s"}\n' "$HEADWATER_PROBE_SESSION" "$event" \
  2>/dev/null >>"$HEADWATER_SHADOW_LOG_DIR/intent.jsonl" || exit 0
