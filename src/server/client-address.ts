import { isIP } from "node:net";
import type { HttpRequest } from "../io/http/http.ts";
import { textAddress } from "../io/http/request-text.ts";

/** Whether what is at that address tells the truth in `X-Forwarded-For`. */
export type IsTrustedProxy = (address: string) => boolean;

/**
 * The address that a request was sent from, for limits and the audit log. Every proxy adds to `X-Forwarded-For` whom it
 * was asked by, at the end; a client can write anything before that. So it is read from its end, for as long as whoever
 * wrote an entry is trusted.
 */
export function clientAddress(
  request: Pick<HttpRequest, "remoteAddress" | "header">,
  isTrustedProxy: IsTrustedProxy,
): string {
  let address = request.remoteAddress;
  if (!isTrustedProxy(address)) return address;
  const hops = (request.header("x-forwarded-for") ?? "").split(",");
  while (isTrustedProxy(address)) {
    const next = addressIn(hops.pop()?.trim() ?? "");
    if (next === undefined) break;
    address = next;
  }
  return address;
}

/** The address of an entry, which some proxies write with a port; undefined for what is none. */
function addressIn(entry: string): string | undefined {
  const [, v6, v4] = /^(?:\[([^\]]+)\](?::\d+)?|([\d.]+):\d+)$/.exec(entry) ?? [];
  const address = textAddress(v6 ?? v4 ?? entry);
  return isIP(address) === 0 || address.includes("%") ? undefined : address;
}
