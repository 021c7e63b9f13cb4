import { harmless, visible } from "./visible.ts";

/** Lines of the log as people read them, for terminals: `12:00:00.123 info  listening url=http://127.0.0.1:7777`. */

const LEVELS: Readonly<Record<number, string>> = {
  10: "trace",
  20: "debug",
  30: "info",
  40: "warn",
  50: "error",
  60: "fatal",
};
/** Those that stand out, by their codes for a terminal. */
const COLOURS: Readonly<Record<string, number>> = { warn: 33, error: 31, fatal: 31 };
const LEVEL_WIDTH = 6;

type Fields = Readonly<Record<string, unknown>>;

/** What pino has written as one line of JSON. */
export function logText(json: string, { colours }: { colours: boolean }): string {
  const { level, time, msg, err, ...fields } = JSON.parse(json) as Fields;
  const name = LEVELS[Number(level)] ?? String(level);
  const colour = colours ? COLOURS[name] : undefined;
  const padded = name.padEnd(LEVEL_WIDTH);
  const shownLevel = colour === undefined ? padded : `\u001b[${colour}m${padded}\u001b[39m`;
  const about = [
    visible(textOf(msg)),
    ...Object.entries(fields).map(([key, value]) => `${visible(key)}=${shown(value)}`),
  ];
  // The date stands in the JSON; whoever sits at a terminal knows it.
  const clock = textOf(time).slice("2026-01-01T".length, -1);
  return `${clock} ${shownLevel}${about.filter((part) => part !== "").join(" ")}\n${isObject(err) ? errorText(err) : ""}`;
}

/** An error below its line, with where it was thrown. */
function errorText({ stack, message, type }: Fields): string {
  const text = typeof stack === "string" ? stack : `${textOf(type)}: ${textOf(message)}`;
  return `${harmless(text).replace(/^/gm, "    ")}\n`;
}

function shown(value: unknown): string {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return visible(/^[^\s"]+$/.test(text) || typeof value !== "string" ? text : JSON.stringify(text));
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : value === undefined ? "" : JSON.stringify(value);
}

function isObject(value: unknown): value is Fields {
  return typeof value === "object" && value !== null;
}
