import { createPublicKey } from "node:crypto";
import type { JWK } from "jose";
import { z } from "zod";
import { isSafeKeyUrl } from "../option-kinds.ts";
import type { Clock } from "../../core/clock.ts";
import { messageOf } from "../../core/errors.ts";
import type { Log } from "../../core/log.ts";
import { fetchJson } from "./fetch-json.ts";

/** Fetches the keys that an issuer publishes. Rejects with an `Error` that says what is wrong with them. */
export type LoadKeys = () => Promise<JWK[]>;

type Source = { issuer: string; clock: Clock; log: Log };

/** Of an issuer with OpenID Connect Discovery 1.0: its configuration says where its keys are. */
export function discoveredKeys(source: Source): LoadKeys {
  const { issuer, clock } = source;
  const url = new URL(`${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`);
  return async () => {
    const found = configuration.safeParse(await fetchJson(url, clock));
    if (!found.success) throw new Error(`${url.href} is no configuration of an OpenID provider`);
    if (found.data.issuer !== issuer) {
      // §4.3: another issuer's document would let that one speak for this one.
      throw new Error(`${url.href} is of the issuer ${JSON.stringify(cut(found.data.issuer))}, not of ${issuer}`);
    }
    const keysUrl = URL.parse(found.data.jwks_uri);
    if (keysUrl === null || !mayFollow(new URL(issuer), keysUrl)) {
      throw new Error(`${url.href} says that keys are at ${JSON.stringify(cut(found.data.jwks_uri))}: not https`);
    }
    return await keysAt(keysUrl, source);
  };
}

/** Of an issuer whose keys are at a fixed address. */
export function keysUnder(url: URL, source: Source): LoadKeys {
  return () => keysAt(url, source);
}

const configuration = z.object({ issuer: z.string(), jwks_uri: z.string() });

/** Only an issuer of this machine may have its keys, and what else it names, on this machine without TLS. */
export function mayFollow(issuer: URL, keys: URL): boolean {
  return keys.protocol === "https:" || (issuer.protocol === "http:" && isSafeKeyUrl(keys));
}

const MAX_KEYS = 100;
const keySet = z.object({ keys: z.array(z.record(z.string(), z.unknown())).max(MAX_KEYS) });

async function keysAt(url: URL, { issuer, clock, log }: Source): Promise<JWK[]> {
  const found = keySet.safeParse(await fetchJson(url, clock));
  if (!found.success) throw new Error(`${url.href} is no set of at most ${MAX_KEYS} keys`);
  const keys = found.data.keys.filter((key) => {
    const problem = problemOf(key);
    const kid = typeof key["kid"] === "string" ? cut(key["kid"]) : undefined;
    if (problem !== undefined) log.warn({ issuer, kid, problem }, "a key of the issuer is not used");
    return problem === undefined && isForSignatures(key);
  });
  if (keys.length === 0) log.warn({ issuer, url: url.href }, "the issuer has no key that tokens can be checked with");
  return keys.map(publicPart);
}

const KEY_TYPES = new Set<unknown>(["RSA", "EC", "OKP"]);

/** Keys for encryption, and of kinds that no algorithm here has, are nobody's mistake. */
function isForSignatures({ use, kty, key_ops: uses }: Record<string, unknown>): boolean {
  const isUse = (use === undefined || use === "sig") && (!Array.isArray(uses) || uses.includes("verify"));
  return isUse && KEY_TYPES.has(kty);
}

/** RFC 7517 §4, RFC 7518 §6, RFC 8037 §2. The rest may hold what a key cannot be imported with. */
const MEMBERS = new Set(["kty", "kid", "alg", "n", "e", "crv", "x", "y"]);

function publicPart(key: Record<string, unknown>): JWK {
  return Object.fromEntries(Object.entries(key).filter(([name]) => MEMBERS.has(name)));
}

/** NIST SP 800-131A. */
const MIN_RSA_BITS = 2_048;
/** What a signature takes to check grows with the square of it. */
const MAX_RSA_BITS = 16_384;

function problemOf(key: Record<string, unknown>): string | undefined {
  if (!isForSignatures(key)) return key["kty"] === "oct" ? "a secret is published" : undefined;
  if ("d" in key) return "its private half is published";
  try {
    const { asymmetricKeyDetails } = createPublicKey({ key, format: "jwk" });
    const bits = asymmetricKeyDetails?.modulusLength;
    if (bits !== undefined && (bits < MIN_RSA_BITS || bits > MAX_RSA_BITS)) return `it has ${bits} bits`;
    return undefined;
  } catch (error) {
    return messageOf(error);
  }
}

function cut(text: string): string {
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
}
