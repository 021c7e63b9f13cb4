import type { IncomingMessage } from "node:http";
import { forwardable, framingOf } from "../http/request.ts";
import { EgressRefusal } from "../http/refusal.ts";
import type { Addition } from "../credentials/credential.ts";

/** Fields in which a client says who it is. Names are compared as servers of CGI do: `_` is `-`. */
const OF_CLIENTS = new Set([
  "authorization",
  "proxy-authorization",
  "cookie",
  "cookie2",
  "x-api-key",
  "x-goog-api-key",
  "api-key",
  "apikey",
  "private-token",
  "job-token",
  "deploy-token",
  "x-auth-token",
  "x-access-token",
  "x-amz-security-token",
]);

/** Fields by which some servers take a request for another one than its first line says. */
const OF_ROUTING = new Set([
  "forwarded",
  "x-forwarded-host",
  "x-forwarded-prefix",
  "x-forwarded-server",
  "x-host",
  "x-http-method",
  "x-http-method-override",
  "x-method-override",
  "x-original-host",
  "x-original-uri",
  "x-original-url",
  "x-rewrite-url",
]);

/** All that git and git-lfs need to say. */
const OF_GIT = new Set([
  "accept",
  "accept-encoding",
  "accept-language",
  "cache-control",
  "content-encoding",
  "content-type",
  "git-protocol",
  "pragma",
  "range",
  "user-agent",
]);

/**
 * The fields of a request as it goes on: without all that may be a credential, with the one that is added. Throws
 * `EgressRefusal` for a body whose length cannot be told.
 */
export function headersWith(
  request: IncomingMessage,
  { addition, authority, git }: { addition: Addition; authority: string; git: boolean },
): Record<string, string | string[]> {
  const framing = framingOf(request);
  const kept = Object.entries(forwardable(request)).filter(([name]) => {
    const plain = name.replaceAll("_", "-");
    // The server of this side has answered `Expect` already.
    if (plain === "expect" || plain === "content-length" || plain === addition.name.replaceAll("_", "-")) return false;
    return git ? OF_GIT.has(name) : !OF_CLIENTS.has(plain) && !OF_ROUTING.has(plain);
  });
  return {
    ...Object.fromEntries(kept),
    ...framing,
    host: authority,
    connection: "close",
    [addition.name]: addition.value,
  };
}

/** The fields of an answer, without those that show the secret. */
export function answerHeaders(answer: IncomingMessage, { secrets }: Addition): Record<string, string[]> {
  const shown = Object.entries(forwardable(answer)).filter(
    ([, values]) => !values.some((value) => secrets.some((secret) => shows(value, secret))),
  );
  return Object.fromEntries(shown);
}

/** A short secret is a part of many words: it counts as a whole word. */
const SHORT_CHARS = 8;

function shows(value: string, secret: string): boolean {
  if (secret.length >= SHORT_CHARS) return value.includes(secret) || value.includes(encodeURIComponent(secret));
  return secret !== "" && value.split(/[^A-Za-z0-9_+/=-]+/).includes(secret);
}

/** Throws `EgressRefusal` for methods that have a server show the request. */
export function checkMethod(method: string): void {
  if (method === "TRACE" || method === "TRACK" || method === "DEBUG") {
    throw new EgressRefusal(405, `${method} would show the credential`);
  }
}
