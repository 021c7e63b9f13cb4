import { SESSION_TRANSITIONS } from "./session-states.ts";
import { SANDBOX_ACTIONS, SANDBOX_TRANSITIONS } from "./states.ts";

const OF_SANDBOXES = "<!-- Printed from `src/sandbox/contract/states.ts` by `npm run docs`. -->";
const OF_SESSIONS = "<!-- Printed from `src/sandbox/contract/session-states.ts` by `npm run docs`. -->";
const END = "<!-- The end of what is printed. -->";

/** The text of `docs/sandboxes.md` with the tables of states as they are. Throws where it has no place for them. */
export function withSandboxStates(text: string): string {
  return withPrinted(withPrinted(text, OF_SANDBOXES, sandboxTables()), OF_SESSIONS, sessionTable());
}

function withPrinted(text: string, begin: string, printed: string): string {
  const [before, rest, ...more] = text.split(begin);
  const end = rest?.indexOf(END) ?? -1;
  if (before === undefined || rest === undefined || end < 0 || more.length > 0) {
    throw new Error(`the text has no place for the states: ${begin} … ${END}`);
  }
  return `${before}${begin}\n\n${printed}\n\n${rest.slice(end)}`;
}

function sessionTable(): string {
  const rows = SESSION_TRANSITIONS.map(({ from, to, when }) => [states(from), `\`${to}\``, when]);
  return table(["from", "to", "when"], rows);
}

function sandboxTables(): string {
  const actions = Object.entries(SANDBOX_ACTIONS).map(([action, { from, to, rests }]) => [
    `\`${action}\``,
    action === "delete" ? "every state" : states(from),
    `\`${to}\``,
    action === "delete" ? "gone" : `\`${rests}\``,
  ]);
  const transitions = SANDBOX_TRANSITIONS.map(({ from, to, by, when }) => [states(from), `\`${to}\``, by, when]);
  return [
    table(["asked for", "in", "at once", "in the end"], actions),
    table(["from", "to", "by", "when"], transitions),
  ].join("\n\n");
}

function states(all: readonly string[]): string {
  return all.map((state) => `\`${state}\``).join(", ");
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((title, i) => Math.max(title.length, ...rows.map((row) => row[i]?.length ?? 0)));
  const line = (cells: readonly string[]) => `| ${cells.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join(" | ")} |`;
  return [line(head), line(widths.map((width) => "-".repeat(width))), ...rows.map(line)].join("\n");
}
