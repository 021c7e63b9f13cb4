import { request as httpRequest } from "node:http";
import { connect, isIP, type Socket } from "node:net";
import { messageOf } from "../../../core/errors.ts";
import type { DialableAddresses } from "./addresses.ts";
import { EgressRefusal } from "../http/refusal.ts";

/** An HTTP proxy of the operator that all connections go through. */
export type UpstreamProxy = { host: string; port: number; authorization: string | undefined };

const DIAL_MS = 10_000;

/** A connection to the first of the addresses that takes one. Throws `EgressRefusal`. */
export async function dialAny(addresses: readonly string[], port: number): Promise<Socket> {
  let refusal = new EgressRefusal(502, "there is no address to connect to");
  for (const address of addresses) {
    try {
      return await dial(address, port);
    } catch (error) {
      refusal = new EgressRefusal(502, `${address} port ${port}: ${messageOf(error)}`);
    }
  }
  throw refusal;
}

/**
 * A tunnel through the operator's proxy, which looks the name up. An address is judged here all the same: it needs no
 * looking up. Throws `EgressRefusal`.
 */
export async function dialThrough(
  { host: proxy, port: proxyPort, authorization }: UpstreamProxy,
  host: string,
  port: number,
  addresses: DialableAddresses,
): Promise<Socket> {
  if (isIP(host) !== 0 && !addresses.has(host)) {
    throw new EgressRefusal(403, `${host} is an address that sandboxes may not reach`);
  }
  const path = `${isIP(host) === 6 ? `[${host}]` : host}:${port}`;
  const headers = { Host: path, ...(authorization === undefined ? {} : { "Proxy-Authorization": authorization }) };
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  const request = httpRequest({ host: proxy, port: proxyPort, method: "CONNECT", path, headers, timeout: DIAL_MS });
  request.once("connect", ({ statusCode = 0 }, socket, head) => {
    if (statusCode === 200) {
      if (head.length > 0) socket.unshift(head);
      resolve(socket);
      return;
    }
    socket.destroy();
    reject(new EgressRefusal(502, `the proxy before this one answered ${statusCode}`));
  });
  request.once("response", ({ statusCode }) => {
    request.destroy();
    reject(new EgressRefusal(502, `the proxy before this one answered ${statusCode}`));
  });
  request.once("timeout", () => request.destroy(new Error("it did not answer in time")));
  request.once("error", (error) => {
    reject(new EgressRefusal(502, `the proxy before this one: ${messageOf(error)}`));
  });
  request.end();
  const socket = await promise;
  socket.setTimeout(0);
  socket.on("error", () => socket.destroy());
  return socket;
}

function dial(address: string, port: number): Promise<Socket> {
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  const socket = connect({ host: address, port, noDelay: true, keepAlive: true });
  const late = (): void => void socket.destroy(new Error("it did not answer in time"));
  socket.setTimeout(DIAL_MS, late);
  socket.once("error", reject);
  socket.once("connect", () => {
    socket.setTimeout(0);
    socket.removeListener("timeout", late);
    // From here on a failure ends the streams that use it.
    socket.removeListener("error", reject);
    socket.on("error", () => socket.destroy());
    resolve(socket);
  });
  return promise;
}
