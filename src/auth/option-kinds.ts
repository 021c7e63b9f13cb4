import { bearerToken, CALLER_ROLES, HIDDEN, listOf, textsIn, type CallerRole, type Kind } from "../config/kinds.ts";
import { foldName } from "../core/names.ts";

/** The kinds of options about tokens, and about those who issue them. */

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

/** RFC 6749 §3.3, which separates scopes by spaces. */
export const scopes: Kind<readonly string[]> = {
  accepts: "up to 50 scopes separated by spaces",
  label: "scopes",
  parse: (text) => scopesIn(text.split(/[ ,]+/)),
  parseNative: (value) => scopesIn(textsIn(value) ?? []),
  format: (value) => value.join(" "),
};

const MAX_SCOPES = 50;

function scopesIn(items: readonly string[]): readonly string[] | undefined {
  const named = [...new Set(items.filter((item) => item !== ""))];
  const isGood = named.every((item) => /^[\x21\x23-\x5b\x5d-\x7e]{1,200}$/.test(item));
  return isGood && named.length > 0 && named.length <= MAX_SCOPES ? named : undefined;
}

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

/** A token of the configuration, and what its bearer may do; `name` where the configuration gives one. */
export type StaticToken = { readonly token: string; readonly role: CallerRole; readonly name?: string };

/**
 * `TOKEN:ROLE` or `TOKEN:ROLE:NAME`, separated by commas. A token may hold colons, and no commas. A name is no role, and a
 * token does not end with one: of `t:admin:admin` nobody could say which of the two was meant.
 */
export const staticTokens: Kind<readonly StaticToken[]> = {
  accepts: `TOKEN:ROLE or TOKEN:ROLE:NAME, separated by commas, with tokens of visible ASCII characters, roles ${CALLER_ROLES.join(", ")}, and names that are no role`,
  label: "list of `token:role`, or `token:role:name`",
  parse: (text) => tokensIn(text.split(",")),
  parseNative: (value) => tokensIn(textsIn(value) ?? [""]),
  format: (value) =>
    value.map(({ role, name }) => `${HIDDEN}:${role}${name === undefined ? "" : `:${name}`}`).join(","),
  hide: () => HIDDEN,
};

function tokensIn(items: readonly string[]): readonly StaticToken[] | undefined {
  const tokens = items.map((item) => {
    const text = item.trim();
    const [plain, named] = [tokenIn(TOKEN_ROLE.exec(text)), tokenIn(TOKEN_ROLE_NAME.exec(text))];
    return plain === undefined || named === undefined ? (plain ?? named) : undefined;
  });
  return tokens.every((token) => token !== undefined) ? tokens : undefined;
}

const TOKEN_ROLE = /^([\x21-\x7e]+):([a-z]+)$/i;
const TOKEN_ROLE_NAME = /^([\x21-\x7e]+):([a-z]+):([A-Za-z0-9][\w.@-]{0,62})$/i;

function tokenIn(parts: RegExpExecArray | null): StaticToken | undefined {
  const [, token, given, name] = parts ?? [];
  const role = CALLER_ROLES.find((one) => one === given?.toLowerCase());
  if (token === undefined || role === undefined) return undefined;
  return { token, role, ...(name !== undefined && { name }) };
}
