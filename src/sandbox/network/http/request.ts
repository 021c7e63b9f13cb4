import type { IncomingMessage } from "node:http";
import { canonicalHost } from "../../contract/host-names.ts";
import { EgressRefusal } from "./refusal.ts";

/** Fields that are about one connection (RFC 9110 §7.6.1), or about the way to this proxy. */
const OF_THE_CONNECTION = new Set([
  "connection",
  "proxy-connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "http2-settings",
]);

/** Of a request to `CONNECT`: the port is 0 where there is none. */
export function splitAuthority(authority: string): { host: string | undefined; port: number } {
  const match = /^(\[[^\]]*\]|[^:]*):(\d{1,5})$/.exec(authority);
  return { host: canonicalHost(match?.[1] ?? ""), port: Number(match?.[2] ?? 0) };
}

/** `Host` of a request: the name as it came, and the port where one is said. No name: it is malformed. */
export function splitHost(text: string): { name: string; port: number | undefined } {
  const [, name = "", port] = /^(\[[^\]]*\]|[^:@/?#\\]*)(?::(\d{1,5}))?$/.exec(text) ?? [];
  return { name, port: port === undefined ? undefined : Number(port) };
}

type Target = { host: string | undefined; port: number; path: string; authority: string };

/** Undefined where the request is not one for a proxy, or its `Host` is another host than its target. */
export function targetOf({ url = "", headers }: IncomingMessage): Target | undefined {
  if (!/^http:\/\//i.test(url) || !URL.canParse(url)) return undefined;
  const { hostname, port, host: authority, pathname, search, username, password } = new URL(url);
  const named = URL.canParse(`http://${headers.host ?? ""}`) ? new URL(`http://${headers.host}`).host : undefined;
  if (named !== authority || username !== "" || password !== "") return undefined;
  const target = { port: port === "" ? 80 : Number(port), path: pathname + search, authority };
  return { ...target, host: canonicalHost(hostname) };
}

/** Where a tunnel leads. */
export type TunnelEnd = { host: string; port: number };

/** The same of a request that came in a tunnel, as it is sent to the server itself. */
export function targetInTunnel({ url = "", headers }: IncomingMessage, { host, port }: TunnelEnd): Target | undefined {
  const text = `http://${headers.host ?? ""}`;
  if (!url.startsWith("/") || !URL.canParse(text)) return undefined;
  const named = new URL(text);
  const namedPort = named.port === "" ? 80 : Number(named.port);
  if (canonicalHost(named.hostname) !== host || namedPort !== port) return undefined;
  return { host, port, path: url, authority: named.host };
}

/** The fields that go on, each as often as it came. */
export function forwardable({ headersDistinct, headers }: IncomingMessage): Record<string, string[]> {
  const named = new Set((headers.connection ?? "").split(",").map((name) => name.trim().toLowerCase()));
  const kept = Object.entries(headersDistinct).filter(
    ([name]) => !OF_THE_CONNECTION.has(name) && !named.has(name) && name !== "host",
  );
  return Object.fromEntries(kept.map(([name, values]) => [name, values ?? []]));
}

/**
 * How the length of the body is told, so that it is said again as it was understood here: what is read in another way
 * by the server would be a request of its own (request smuggling, RFC 9112 §11.2). Without any there is no body. Throws
 * `EgressRefusal`.
 */
export function framingOf({ headers }: IncomingMessage): Record<string, string> {
  const coding = headers["transfer-encoding"];
  if (coding !== undefined) {
    if (coding.trim().toLowerCase() === "chunked") return { "transfer-encoding": "chunked" };
    throw new EgressRefusal(501, "the only transfer coding that goes on is chunked");
  }
  const length = headers["content-length"];
  return length === undefined ? {} : { "content-length": length };
}
