import type { IncomingMessage } from "node:http";
import { canonicalHost } from "./host-names.ts";

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
