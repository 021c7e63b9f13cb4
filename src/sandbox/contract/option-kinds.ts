import { parseAddressRange } from "../../core/address-range.ts";
import { textsIn, type Kind } from "../../config/kinds.ts";

const MAX_LABELS = 64;
const LABEL = /^([A-Za-z0-9][\w./-]{0,62})=([\w.:/@+-]{1,255})$/;

/** Labels of a node: `name=value` pairs, separated by commas. */
export const labelPairs: Kind<Readonly<Record<string, string>>> = {
  accepts: `up to ${MAX_LABELS} name=value pairs separated by commas, each name once`,
  label: "list of `name=value`",
  parse: (text) => pairsIn(text.split(",")),
  parseNative: (value) => (Array.isArray(value) ? pairsIn(value) : undefined),
  format: (value) =>
    Object.entries(value)
      .map(([name, text]) => `${name}=${text}`)
      .join(","),
};

function pairsIn(items: readonly unknown[]): Readonly<Record<string, string>> | undefined {
  const pairs = new Map<string, string>();
  for (const item of items) {
    const [, name, value] = LABEL.exec(typeof item === "string" ? item.trim() : "") ?? [];
    if (name === undefined || value === undefined || pairs.has(name)) return undefined;
    pairs.set(name, value);
  }
  return pairs.size <= MAX_LABELS ? Object.fromEntries(pairs) : undefined;
}

const MAX_COMMANDS = 64;
const COMMAND = /^([a-z][a-z0-9-]{0,62})=(.{1,4096})$/;

/** Commands by name: `name=program argument`, parted by semicolons. */
export const commandPairs: Kind<Readonly<Record<string, readonly string[]>>> = {
  accepts: `up to ${MAX_COMMANDS} name=program argument, separated by semicolons, each name once`,
  label: "list of `name=command`",
  parse: (text) => commandsIn(text.split(";")),
  parseNative: (value) => commandsIn(textsIn(value) ?? [""]),
  format: (value) =>
    Object.entries(value)
      .map(([name, argv]) => `${name}=${argv.join(" ")}`)
      .join(";"),
};

function commandsIn(items: readonly string[]): Readonly<Record<string, readonly string[]>> | undefined {
  const commands = new Map<string, readonly string[]>();
  for (const item of items) {
    const [, name, line = ""] = COMMAND.exec(item.trim()) ?? [];
    const argv = line.split(" ").filter((word) => word !== "");
    if (name === undefined || argv.length === 0 || commands.has(name)) return undefined;
    commands.set(name, argv);
  }
  return commands.size <= MAX_COMMANDS ? Object.fromEntries(commands) : undefined;
}

const PROVIDER_URL = /^([a-z][a-z0-9-]{0,62})=(https?:\/\/\S{1,2048})$/;

/** Where the APIs of agents are, by agent provider. */
export const PROVIDER_URLS: Readonly<Record<string, string>> = {
  "claude-code": "https://api.anthropic.com",
  codex: "https://api.openai.com",
  "gemini-cli": "https://generativelanguage.googleapis.com",
  opencode: "https://api.anthropic.com",
};

/** The same, in place of these: `name=https://host/path`, separated by commas. */
export const providerUrls: Kind<Readonly<Record<string, string>>> = {
  accepts: "name=https://host or name=https://host/path, separated by commas, each name once",
  label: "list of `name=URL`",
  parse: (text) => urlsIn(text.split(",")),
  parseNative: (value) => urlsIn(textsIn(value) ?? [""]),
  format: (value) =>
    Object.entries(value)
      .map(([name, url]) => `${name}=${url}`)
      .join(","),
};

/** Without a slash at the end. A URL with a user, a query or a fragment is none of an API. Others stay as they are. */
function urlsIn(items: readonly string[]): Readonly<Record<string, string>> | undefined {
  const urls = new Map<string, string>();
  for (const item of items) {
    const [, name, text = ""] = PROVIDER_URL.exec(item.trim()) ?? [];
    const url = URL.parse(text);
    if (name === undefined || url === null || urls.has(name) || /[?#@\\]/.test(text)) return undefined;
    urls.set(name, url.href.replace(/\/+$/, ""));
  }
  return { ...PROVIDER_URLS, ...Object.fromEntries(urls) };
}

/** Addresses, and ranges of them: `10.0.0.0/8`. */
export const addressRanges: Kind<readonly string[]> = {
  accepts: "addresses and ranges like 10.0.0.0/8, separated by commas",
  label: "list of ranges",
  parse: (text) => rangesIn(text.split(",").map((item) => item.trim())),
  parseNative: (value) => rangesIn(textsIn(value) ?? [""]),
  format: (value) => value.join(","),
};

function rangesIn(items: readonly string[]): readonly string[] | undefined {
  return items.every((item) => parseAddressRange(item) !== undefined) ? [...new Set(items)] : undefined;
}

/** An HTTP proxy, with a user where it asks for one. */
export const proxyUrl: Kind<string> = {
  accepts: "http://host:port or http://user:password@host:port",
  label: "URL",
  parse(text) {
    const url = URL.parse(text);
    if (url === null || url.protocol !== "http:" || url.hostname === "") return undefined;
    return url.pathname === "/" && url.search === "" && url.hash === "" ? url.href : undefined;
  },
  format: String,
};

const HOST_RULE = /^(?:\*\.)?(?=[^.])[a-z0-9_.-]{1,253}$/i;

/** Names of hosts, and `*.` before one for those below it. */
export const hostRules: Kind<readonly string[]> = {
  accepts: "names of hosts, and *.example.com, separated by commas; nothing for none",
  label: "list of hosts",
  parse: (text) => rulesIn(text.trim() === "" ? [] : text.split(",").map((item) => item.trim())),
  parseNative: (value) => (Array.isArray(value) && value.length === 0 ? [] : rulesIn(textsIn(value) ?? [""])),
  format: (value) => value.join(","),
};

function rulesIn(items: readonly string[]): readonly string[] | undefined {
  const rules = items.map((item) => item.toLowerCase());
  return rules.every((rule) => HOST_RULE.test(rule)) ? [...new Set(rules)] : undefined;
}
