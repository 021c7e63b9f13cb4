import "../src/core/reports.ts";
import { systemClock } from "../src/core/clock.ts";
import { answerHook, WITHIN_MS } from "../src/knowledge/mcp/hooks/answer-hook.ts";

/**
 * `engine plugin-hook`, without the rest of the program: `bin/engine.js` starts this for hooks that an agent waits for. Words
 * are those of the command (`src/knowledge/mcp/commands/plugin-hook.ts`); those that it does not know block nothing.
 */
const words = process.argv.slice(3);
const within = words.findIndex((word) => /^--within(?:=|$)/.test(word));
const given = within === -1 ? String(WITHIN_MS) : (words[within]?.split("=")[1] ?? words[within + 1]);
const { env, stdin, stdout } = process;
// The agent may be gone.
stdout.on("error", () => undefined);
process.exitCode = await answerHook({ env, stdin, stdout, clock: systemClock }, words[0], Number(given));
