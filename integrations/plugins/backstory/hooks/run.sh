# Runs backstory-hook for the program whose hook this is; each sets its own variables.
command -v backstory-hook >/dev/null || exit 0
host=claude-code
[ -n "$PLUGIN_ROOT" ] && host=codex
[ -n "$COPILOT_PLUGIN_ROOT" ] && host=copilot
exec backstory-hook "$1" --host "$host"
