import { isIP } from "node:net";
import { resolve } from "node:path";

/** Where relative paths of a source start: the working directory for variables and flags, the folder of a file. */
export type ReadContext = { baseDir: string; userHome: string };

/**
 * The type of an option: how its values are read from text (variables, flags) and from TOML, and printed.
 * `parse` and `parseNative` give undefined for what is not accepted; `accepts` says what is.
 */
export interface Kind<T> {
  /** Completes "expected …". */
  readonly accepts: string;
  /** The same in a word or two, for the reference. */
  readonly label: string;
  parse(text: string, context: ReadContext): T | undefined;
  /** Reads a TOML value that is not a string (strings go through `parse`). */
  parseNative?(value: unknown): T | undefined;
  /** Text that `parse` reads back to the same value, but for what `hide` takes out. */
  format(value: T): string;
  /** The raw text with everything secret in it taken out; it may be text that does not parse. */
  hide?(text: string): string;
}

export const HIDDEN = "********";

const UNITS: Readonly<Record<string, number>> = { kib: 2 ** 10, mib: 2 ** 20, gib: 2 ** 30, tib: 2 ** 40 };

type Range = { min: number; max: number };

function inRange(value: number, range: Range): number | undefined {
  return Number.isSafeInteger(value) && value >= range.min && value <= range.max ? value : undefined;
}

function nativeInteger(value: unknown, range: Range): number | undefined {
  return typeof value === "number" ? inRange(value, range) : undefined;
}

export function integer(range: Range): Kind<number> {
  return {
    accepts: `an integer from ${range.min} to ${range.max}`,
    label: `integer, ${range.min} to ${range.max}`,
    parse: (text) => (/^\d+$/.test(text) ? inRange(Number(text), range) : undefined),
    parseNative: (value) => nativeInteger(value, range),
    format: String,
  };
}

/** A number of bytes: an integer, or one followed by KiB, MiB, GiB or TiB. */
export function bytes(range: Range): Kind<number> {
  return {
    accepts: `bytes from ${range.min} to ${range.max}, as an integer or with a unit (64MiB, 1GiB)`,
    label: `bytes, ${range.min} to ${range.max}`,
    parse(text) {
      const match = /^(\d+) ?([kmgt]ib)?$/i.exec(text);
      if (match === null) return undefined;
      const unit = match[2] === undefined ? 1 : (UNITS[match[2].toLowerCase()] ?? 1);
      return inRange(Number(match[1]) * unit, range);
    },
    parseNative: (value) => nativeInteger(value, range),
    format: String,
  };
}

const TRUE = new Set(["1", "true", "yes", "on"]);
const FALSE = new Set(["0", "false", "no", "off"]);

export const bool: Kind<boolean> = {
  accepts: "1, true, yes, on, 0, false, no or off",
  label: "bool",
  parse(text) {
    const folded = text.toLowerCase();
    if (TRUE.has(folded)) return true;
    return FALSE.has(folded) ? false : undefined;
  },
  parseNative: (value) => (typeof value === "boolean" ? value : undefined),
  format: String,
};

export function oneOf<const V extends string>(values: readonly V[]): Kind<V> {
  return {
    accepts: `one of ${values.join(", ")}`,
    label: values.map((value) => `\`${value}\``).join(", "),
    parse: (text) => values.find((value) => value === text.toLowerCase()),
    format: String,
  };
}

/** A file or folder; `~` is the user's home, relative paths become absolute. */
export const path: Kind<string> = {
  accepts: "a path",
  label: "path",
  parse(text, context) {
    if (text === "" || text.includes("\0")) return undefined;
    if (text === "~" || text.startsWith("~/")) return resolve(context.userHome, text.slice(2));
    return resolve(context.baseDir, text);
  },
  format: String,
};

const KEY_PREFIX = /^[A-Za-z0-9][A-Za-z0-9._-]*(\/[A-Za-z0-9][A-Za-z0-9._-]*)*$/;
const KEY_PREFIX_CHARS = 256;

/** What object keys start with. A leading `_` is the engine's own; segments that start with a dot leave the root. */
export const keyPrefix: Kind<string> = {
  accepts: `up to ${KEY_PREFIX_CHARS} letters, digits, '.', '_', '-', in segments that start with a letter or digit, joined by '/'`,
  label: "key prefix",
  parse: (text) => (text.length <= KEY_PREFIX_CHARS && KEY_PREFIX.test(text) ? text : undefined),
  format: String,
};

/** Where a server listens. Port 0 lets the system choose. */
export type Address = { readonly host: string; readonly port: number };

const HOST = /^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$/;

export const address: Kind<Address> = {
  accepts: "HOST:PORT or [IPV6]:PORT, with a port from 0 to 65535",
  label: "host:port",
  parse(text) {
    const match = /^(?:\[([^\]]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(text);
    if (match === null) return undefined;
    const [, v6, host = v6] = match;
    const port = Number(match[3]);
    if (host === undefined || port > 65_535) return undefined;
    return (v6 === undefined ? HOST.test(host) : isIP(host) === 6) ? { host, port } : undefined;
  },
  format: (value) => formatAddress(value),
};

export function formatAddress({ host, port }: Address): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

/** The base address of a server: scheme, host, and a path where it sits behind a proxy; no trailing slash. */
export const baseUrl: Kind<string> = {
  accepts: "an http:// or https:// address without user, query or fragment",
  label: "URL",
  parse(text) {
    const url = URL.parse(text);
    if (url === null || !/^https?:\/\/[^/]/i.test(text)) return undefined;
    if (url.username !== "" || url.password !== "" || url.search !== "" || url.hash !== "") return undefined;
    return `${url.origin}${url.pathname.replace(/\/+$/, "")}`;
  },
  format: String,
  hide: hidePassword,
};

const TOKEN_CHARS = 8_192;

/** A bearer token: what an HTTP header carries unchanged. */
export const bearerToken: Kind<string> = {
  accepts: `1 to ${TOKEN_CHARS} visible ASCII characters`,
  label: "token",
  parse: (text) => (text.length <= TOKEN_CHARS && /^[\x21-\x7e]+$/.test(text) ? text : undefined),
  format: String,
  hide: () => HIDDEN,
};

/** Origins allowed by CORS, separated by commas; `*` alone allows all. */
export const origins: Kind<readonly string[]> = {
  accepts: "origins separated by commas (https://app.example.com, or * for all)",
  label: "list of origins",
  parse: (text) => checkOrigins(text.split(",").map((item) => item.trim())),
  parseNative(value) {
    const texts = Array.isArray(value) ? value.filter((item) => typeof item === "string") : undefined;
    return texts !== undefined && texts.length === (value as unknown[]).length ? checkOrigins(texts) : undefined;
  },
  format: (value) => value.join(","),
  hide: hidePassword,
};

function checkOrigins(items: readonly string[]): readonly string[] | undefined {
  if (items.length === 0 || items.length > 1_000) return undefined;
  const found = items.map((item) => {
    if (item === "*") return item;
    const url = URL.parse(item);
    const bare = url !== null && /^https?:$/.test(url.protocol) && item.replace(/\/$/, "").toLowerCase() === url.origin;
    return bare ? url.origin : undefined;
  });
  return found.every((item) => item !== undefined) ? found : undefined;
}

/** The catalog: a file on this machine, or a database server. */
export type CatalogUrl =
  | { readonly kind: "sqlite"; readonly path: string }
  | { readonly kind: "postgres"; readonly url: string };

export const catalogUrl: Kind<CatalogUrl> = {
  accepts: "sqlite:PATH or postgres://…",
  label: "`sqlite:PATH` or `postgres://…`",
  parse(text, context) {
    if (/^postgres(ql)?:\/\//i.test(text)) return URL.canParse(text) ? { kind: "postgres", url: text } : undefined;
    if (!/^sqlite:/i.test(text)) return undefined;
    const file = text.slice("sqlite:".length);
    // A catalog in memory would lose what was acknowledged; `sqlite://name` would name a host.
    if (file.startsWith(":memory:") || (file.startsWith("//") && !file.startsWith("///"))) return undefined;
    const found = path.parse(file, context);
    return found === undefined ? undefined : { kind: "sqlite", path: found };
  },
  format: (value) => (value.kind === "sqlite" ? `sqlite:${value.path}` : value.url),
  // What is neither form might hold a password anywhere: only its scheme is shown.
  hide: (text) =>
    /^(sqlite:|postgres(ql)?:\/\/)/i.test(text) ? hidePassword(text) : text.replace(/^([a-z+]*:)?.*$/is, `$1${HIDDEN}`),
};

/** Takes passwords out of text that is, or was meant to be, a URL. */
function hidePassword(text: string): string {
  return text
    .replace(/\/\/([^:@/?#]*):.*@/s, `//$1:${HIDDEN}@`)
    .replace(/([?&](?:password|sslpassword|passfile)=)[^&]*/gi, `$1${HIDDEN}`);
}
