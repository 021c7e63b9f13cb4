import { foldName } from "../core/names.ts";
import { bearerToken, CALLER_ROLES, HIDDEN, textsIn, type Kind, type StaticToken } from "./kinds.ts";

/** The kinds of options about issuers of tokens. */

const ISSUER_CHARS = 1_000;

/**
 * The address of an issuer, exactly as its tokens spell it in `iss`: whether a slash ends it matters. Keys come from
 * there, so nobody on the way may change them: `https`, but for a host of this machine.
 */
export const issuerUrl: Kind<string> = {
  accepts: "an https:// address (http:// on a loopback host only) without user, query or fragment",
  label: "URL",
  parse: checkIssuer,
  format: String,
  hide: hideUser,
};

function checkIssuer(text: string): string | undefined {
  if (text.length > ISSUER_CHARS || !/^https?:\/\/[\x21-\x7e]+$/.test(text) || /[,?#]/.test(text)) return undefined;
  const url = URL.parse(text);
  if (url === null || url.username !== "" || url.password !== "") return undefined;
  return isSafeKeyUrl(url) ? text : undefined;
}

/** Whether what comes from there can be trusted to be what was sent. */
export function isSafeKeyUrl({ protocol, hostname }: URL): boolean {
  return protocol === "https:" || (protocol === "http:" && isLoopback(hostname));
}

/** The name or address of a host, as URLs spell it or bare; `localhost` never leaves the machine (RFC 6761 §6.3). */
export function isLoopback(hostname: string): boolean {
  return /^(localhost|.+\.localhost|127\.\d+\.\d+\.\d+|\[::1\]|::1)$/.test(hostname);
}

/** Takes users and passwords out of text that is, or was meant to be, a URL. */
export function hideUser(text: string): string {
  return text.replace(/\/\/[^/@]*@/g, `//${HIDDEN}@`);
}

/** The base address of an identity provider: no trailing slash. */
export const providerUrl: Kind<string> = {
  ...issuerUrl,
  parse: (text) => checkIssuer(text)?.replace(/\/+$/, ""),
};

const CLAIM_CHARS = 255;

/** A claim's name or value: some issuers use addresses for both. */
export const claimText: Kind<string> = {
  accepts: `1 to ${CLAIM_CHARS} visible ASCII characters`,
  label: "text",
  parse: (text) => (text.length <= CLAIM_CHARS && /^[\x21-\x7e]+$/.test(text) ? text : undefined),
  format: String,
};

/** The secret of an app that is registered with a provider. */
export const clientSecret: Kind<string> = { ...bearerToken, label: "client secret" };

/** Where browsers find this server; providers compare it letter by letter. */
export const publicOrigin: Kind<string> = {
  accepts: "an http:// or https:// address with a host, and a port where it needs one",
  label: "origin",
  parse(text) {
    const url = URL.parse(text);
    const isBare = url !== null && /^https?:$/.test(url.protocol) && url.href === `${url.origin}/`;
    return isBare && !/[?#]/.test(text) ? url.origin : undefined;
  },
  format: String,
  hide: hideUser,
};

/** A key that its issuer publishes: no secret. */
export const publicKey: Kind<string> = {
  accepts: bearerToken.accepts,
  label: "token",
  parse: (text, context) => bearerToken.parse(text, context),
  format: String,
};

const MIN_SECRET_BYTES = 32;
const MAX_SECRET_BYTES = 1_024;

/** A key of HMAC-SHA-256, which must be as long as the hash at least (RFC 7518 §3.2). */
export const hmacSecret: Kind<string> = {
  accepts: `${MIN_SECRET_BYTES} to ${MAX_SECRET_BYTES} bytes of text`,
  label: "secret",
  parse(text) {
    const sizeBytes = Buffer.byteLength(text);
    return sizeBytes >= MIN_SECRET_BYTES && sizeBytes <= MAX_SECRET_BYTES ? text : undefined;
  },
  format: String,
  hide: () => HIDDEN,
};

export const issuerUrls = listOf({
  item: checkIssuer,
  accepts: "addresses separated by commas, each https:// (http:// on a loopback host only) without query or fragment",
  label: "list of URLs",
  hide: hideUser,
});

export const providerNames = listOf({
  item: (text) => (/^[a-z0-9][a-z0-9_:-]{0,62}$/i.test(text) ? text : undefined),
  accepts: "names separated by commas, each of 1 to 63 letters, digits, '_', '-' and ':'",
  label: "list of names",
});

/** Folded, as they are compared. */
export const emails = listOf({
  item: (text) => (/^[^\s@,]{1,64}@[^\s@,]{1,190}$/.test(text) ? foldName(text) : undefined),
  accepts: "e-mail addresses separated by commas",
  label: "list of e-mail addresses",
});

export const emailDomains = listOf({
  item: (text) => (/^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/i.test(text) ? foldName(text) : undefined),
  accepts: "domains separated by commas (example.com), without @",
  label: "list of domains",
});

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

/** `NAME:ROLE:KEY` or keys alone, separated by commas. A key that has a name may hold colons; none holds commas. */
export const apiKeys: Kind<readonly StaticToken[]> = {
  accepts: `NAME:ROLE:KEY or a key alone, separated by commas, with keys of visible ASCII characters and roles ${CALLER_ROLES.join(", ")}`,
  label: "list of `name:role:key`, or keys",
  parse: (text) => apiKeysIn(text.split(",")),
  parseNative: (value) => apiKeysIn(textsIn(value) ?? [""]),
  format: (value) =>
    value.map(({ name, role }) => (name === undefined ? HIDDEN : `${name}:${role}:${HIDDEN}`)).join(","),
  hide: () => HIDDEN,
};

const NAMED_KEY = /^([A-Za-z0-9][\w.@-]{0,62}):([a-z]+):([\x21-\x2b\x2d-\x7e]+)$/i;
const BARE_KEY = /^[\x21-\x2b\x2d-\x39\x3b-\x7e]+$/;

function apiKeysIn(items: readonly string[]): readonly StaticToken[] | undefined {
  const keys = items.map((item): StaticToken | undefined => {
    const text = item.trim();
    if (BARE_KEY.test(text)) return { token: text, role: "write" };
    const [, name, given, token] = NAMED_KEY.exec(text) ?? [];
    const role = CALLER_ROLES.find((one) => one === given?.toLowerCase());
    return name === undefined || token === undefined || role === undefined ? undefined : { token, role, name };
  });
  return keys.every((key) => key !== undefined) ? keys : undefined;
}
