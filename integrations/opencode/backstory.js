// Gives opencode a memory that it can search, with Backstory.
// Runs backstory-hook at a session's start, prompts, compaction and end, as other agent
// programs do with their hooks. What it returns goes into the system prompt.
import { spawn } from "node:child_process";

const HOOK = ["backstory-hook"];
const MORE = [];
const TIMEOUT_MS = 10000;

// Never rejects: without a memory, the agent works as it did before.
function runHook(event, payload) {
  return new Promise((resolve) => {
    const [program, ...first] = HOOK;
    const words = [...first, event, "--host", "opencode", ...MORE];
    const child = spawn(program, words, { stdio: ["pipe", "pipe", "ignore"] });
    let out = "";
    const timer = setTimeout(() => child.kill(), TIMEOUT_MS);
    child.on("error", () => resolve(""));
    child.on("close", () => {
      clearTimeout(timer);
      try {
        resolve(JSON.parse(out).additionalContext || "");
      } catch {
        resolve("");
      }
    });
    child.stdout.on("data", (data) => (out += data));
    child.stdin.on("error", () => {});
    child.stdin.end(JSON.stringify(payload));
  });
}

export const Backstory = async ({ directory }) => {
  // What each session was given at its start, and for its last prompt.
  const opening = new Map();
  const reminders = new Map();
  const subagents = new Set();
  // The session that was prompted last. opencode only says that an answer is complete,
  // not that a session has ended.
  let last;
  const payload = (id, more) => ({ session_id: id, cwd: directory, ...more });

  return {
    event: async ({ event }) => {
      const { sessionID, info } = event.properties ?? {};
      if (event.type === "session.created" && info?.parentID) {
        subagents.add(info.id);
      } else if (event.type === "session.compacted") {
        const given = payload(sessionID, { source: "compact" });
        opening.set(sessionID, await runHook("session-start", given));
      } else if (event.type === "session.deleted") {
        for (const known of [opening, reminders, subagents]) known.delete(info?.id);
        if (last === info?.id) last = undefined;
      }
    },
    "chat.message": async ({ sessionID }, { parts }) => {
      if (subagents.has(sessionID)) return;
      // Not waited for: it is about the session that the user has left.
      if (last && last !== sessionID) runHook("session-end", payload(last));
      last = sessionID;
      const said = parts.filter((part) => part.type === "text" && !part.synthetic);
      const prompt = said.map((part) => part.text).join("\n");
      if (!opening.has(sessionID)) {
        const given = payload(sessionID, { source: "startup" });
        opening.set(sessionID, await runHook("session-start", given));
      }
      reminders.set(sessionID, await runHook("prompt", payload(sessionID, { prompt })));
    },
    "experimental.chat.system.transform": async ({ sessionID }, { system }) => {
      for (const known of [opening, reminders]) {
        if (known.get(sessionID)) system.push(known.get(sessionID));
      }
    },
    "experimental.session.compacting": async ({ sessionID }) => {
      await runHook("before-compaction", payload(sessionID));
    },
    dispose: async () => {
      if (last) await runHook("session-end", payload(last));
    },
  };
};
