import { isIP } from "node:net";
import { resolve } from "node:path";
import { isDuckDbName, isName } from "../core/names.ts";

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

/** A number from 0 to 1. */
export const share: Kind<number> = {
  accepts: "a number from 0 to 1",
  label: "number, 0 to 1",
  parse: (text) => (/^(?:0|1|[01]?\.\d{1,9}|1\.0{1,9})$/.test(text) && Number(text) <= 1 ? Number(text) : undefined),
  parseNative: (value) => (typeof value === "number" && value >= 0 && value <= 1 ? value : undefined),
  format: String,
};

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

/** A bucket as S3 stores name them; some take capitals and underscores, and names longer than Amazon's 63. */
export const bucketName: Kind<string> = {
  accepts: "3 to 255 letters, digits, '.', '_', '-', with a letter or digit at both ends",
  label: "bucket name",
  parse: (text) => (/^[A-Za-z0-9][A-Za-z0-9._-]{1,253}[A-Za-z0-9]$/.test(text) ? text : undefined),
  format: String,
};

/** A database that may be created. */
export const databaseName: Kind<string> = {
  accepts:
    "a name for a database: an ASCII letter, then letters, digits, '_' or '-', at most 128 characters; none is reserved",
  label: "database name",
  parse: (text) => (isName(text) && !isDuckDbName(text) ? text : undefined),
  format: String,
};

/** A region; it is a part of host names and signatures. */
export const regionName: Kind<string> = {
  accepts: "1 to 63 letters, digits, '-', '_', with a letter or digit at both ends",
  label: "region",
  parse: (text) => (/^[A-Za-z0-9]([A-Za-z0-9_-]{0,61}[A-Za-z0-9])?$/.test(text) ? text : undefined),
  format: String,
};

/** The public half of a key pair: it stands between slashes and commas in a signature. */
export const accessKeyId: Kind<string> = {
  accepts: "1 to 128 visible ASCII characters without '/' and ','",
  label: "access key",
  parse: (text) => (/^[\x21-\x2b\x2d\x2e\x30-\x7e]{1,128}$/.test(text) ? text : undefined),
  format: String,
};

/** A role that may be assumed; services that are not Amazon's have names of their own form. */
export const roleArn: Kind<string> = {
  accepts: "the ARN of a role, as arn:aws:iam::123456789012:role/NAME, of 20 to 2048 characters",
  label: "ARN",
  parse: (text) => (text.length >= 20 && text.length <= 2_048 && ROLE_ARN.test(text) ? text : undefined),
  format: String,
};

const ROLE_ARN = /^arn:[\w-]*:[\w-]*:[\w-]*:[\w-]*:[\x21-\x7e]+$/;

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

/** Where a server listens, or that it does not. */
export const addressOrOff: Kind<Address | "off"> = {
  accepts: `${address.accepts}, or off`,
  label: "host:port, `off`",
  parse: (text, context) => (text.toLowerCase() === "off" ? "off" : address.parse(text, context)),
  format: (value) => (value === "off" ? value : formatAddress(value)),
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

/** A user's name, as `Users` takes it. */
export const userName: Kind<string> = {
  accepts: "1 to 255 characters of an e-mail address, the first a letter or digit",
  label: "user name",
  parse: (text) => (USER_NAME.test(text) ? text : undefined),
  format: String,
};

/** What login names and e-mail addresses are made of (RFC 5322 `atext`, `.` and `@`). */
export const USER_NAME = /^[A-Za-z0-9][A-Za-z0-9.@!#$%&'*+/=?^_`{|}~-]{0,254}$/;

const PASSWORD_BYTES = 1_024;

export const password: Kind<string> = {
  accepts: `1 to ${PASSWORD_BYTES} bytes of text`,
  label: "password",
  parse: (text) => (text !== "" && Buffer.byteLength(text) <= PASSWORD_BYTES ? text : undefined),
  format: String,
  hide: () => HIDDEN,
};

const SECRET_KEY_CHARS = 1_024;

/** A key of the operator's for sealing. */
export const secretKey: Kind<string> = {
  accepts: `1 to ${SECRET_KEY_CHARS} visible ASCII characters without commas`,
  label: "secret key",
  parse: (text) => (text.length <= SECRET_KEY_CHARS && /^[\x21-\x2b\x2d-\x7e]+$/.test(text) ? text : undefined),
  format: String,
  hide: () => HIDDEN,
};

export const secretKeys: Kind<readonly string[]> = {
  accepts: `secret keys separated by commas, each of ${secretKey.accepts}`,
  label: "list of secret keys",
  parse: (text, context) => keysIn(text.split(","), context),
  parseNative: (value) => keysIn(textsIn(value) ?? [""], { baseDir: "", userHome: "" }),
  format: (value) => value.join(","),
  hide: () => HIDDEN,
};

function keysIn(items: readonly string[], context: ReadContext): readonly string[] | undefined {
  const keys = items.map((item) => secretKey.parse(item.trim(), context));
  return keys.every((key) => key !== undefined) ? keys : undefined;
}

/** The secret half of a key pair. */
export const secretAccessKey: Kind<string> = { ...bearerToken, label: "secret key" };

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

/** What a caller may do; each role may do what those before it may. */
export const CALLER_ROLES = ["read", "write", "admin"] as const;
export type CallerRole = (typeof CALLER_ROLES)[number];

/** What a node may be. `all_in_one` is the sum of the others. */
export const ROLE_NAMES = ["all_in_one", "edge", "query", "ingest", "committer", "worker", "compaction"] as const;

export type RoleName = (typeof ROLE_NAMES)[number];

/** The roles of a node by name. A name that is no role does not stop the start: see `rolesOf`. */
export const roles: Kind<readonly string[]> = {
  accepts: `roles separated by commas: ${ROLE_NAMES.join(", ")}`,
  label: ROLE_NAMES.map((name) => `\`${name}\``).join(", ") + "; several separated by commas",
  parse: (text) => namesIn(text.split(",")),
  parseNative: (value) => namesIn(textsIn(value) ?? []),
  format: (value) => value.join(","),
};

function namesIn(items: readonly string[]): readonly string[] | undefined {
  const names = items.map((item) => item.trim().toLowerCase()).filter((item) => item !== "");
  return names.length === 0 ? undefined : [...new Set(names)];
}

/** The names among them that are no roles. */
export function unknownRoles(names: readonly string[]): string[] {
  return names.filter((name) => !ROLE_NAMES.some((known) => known === name));
}

/** What a node with these names is. One of them that is no role makes it everything, so that nothing is left undone. */
export function rolesOf(names: readonly string[]): ReadonlySet<RoleName> {
  const known = ROLE_NAMES.filter((name) => names.includes(name));
  return new Set(unknownRoles(names).length > 0 || known.includes("all_in_one") ? ["all_in_one"] : known);
}

const MAX_PEER_URLS = 1_000;

/** Base addresses of servers, separated by commas. */
export const peerUrls: Kind<readonly string[]> = {
  accepts: `1 to ${MAX_PEER_URLS} http:// or https:// addresses separated by commas, each without user, query or fragment`,
  label: "list of URLs",
  parse: (text, context) => urlsIn(text.split(","), context),
  parseNative: (value) => urlsIn(textsIn(value) ?? [], { baseDir: "", userHome: "" }),
  format: (value) => value.join(","),
  hide: (text) => text.split(",").map(hidePassword).join(","),
};

function urlsIn(items: readonly string[], context: ReadContext): readonly string[] | undefined {
  if (items.length === 0 || items.length > MAX_PEER_URLS) return undefined;
  const urls = items.map((item) => baseUrl.parse(item.trim(), context));
  return urls.every((url) => url !== undefined) ? [...new Set(urls)] : undefined;
}

/** The items of an array of text. */
export function textsIn(value: unknown): string[] | undefined {
  return Array.isArray(value) && value.every((item) => typeof item === "string") ? value : undefined;
}

const MAX_ITEMS = 1_000;

type ListOf = {
  /** An item as it is kept; undefined for what is not accepted. */
  item: (text: string) => string | undefined;
  accepts: string;
  label: string;
  hide?: (text: string) => string;
};

/** Items separated by commas, or an array of TOML; each is kept once. */
export function listOf({ item, accepts, label, hide }: ListOf): Kind<readonly string[]> {
  const check = (texts: readonly string[]) => {
    const items = texts.map((text) => item(text.trim()));
    if (items.length === 0 || items.length > MAX_ITEMS) return undefined;
    return items.every((one) => one !== undefined) ? [...new Set(items)] : undefined;
  };
  return {
    accepts,
    label,
    parse: (text) => check(text.split(",")),
    parseNative: (value) => check(textsIn(value) ?? []),
    format: (value) => value.join(","),
    ...(hide !== undefined && { hide }),
  };
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
