import { isIP } from "node:net";
import type { Duplex } from "node:stream";
import type { Clock } from "../../../core/clock.ts";
import { MAX_HELLO_BYTES, readClientHello } from "./client-hello.ts";
import { canonicalHost } from "../../contract/host-names.ts";
import { EgressRefusal } from "../http/refusal.ts";

const HELLO_MS = 10_000;
/** After which there is more to read, or will never be. */
const MOVES = ["readable", "end", "close", "error"] as const;

/** All that a client has sent when it is known what it speaks: a whole ClientHello, or a request of HTTP has begun. */
export type TunnelStart =
  | { kind: "tls"; bytes: Uint8Array; serverName: string | undefined }
  | { kind: "http"; bytes: Uint8Array };

/** What a client sends first in a tunnel. Throws `EgressRefusal` for what is neither TLS nor HTTP. */
export async function readStart(client: Duplex, head: Uint8Array, clock: Clock): Promise<TunnelStart> {
  let bytes: Uint8Array = head;
  const late = clock.after(HELLO_MS, () => client.destroy(new EgressRefusal(504, "nothing was begun in the tunnel")));
  try {
    for (;;) {
      const reading = readClientHello(bytes);
      if (reading.kind === "hello") return { kind: "tls", bytes, serverName: reading.serverName };
      if (startsMethod(bytes)) return { kind: "http", bytes };
      if (reading.kind === "invalid")
        throw new EgressRefusal(403, `only TLS and HTTP pass a tunnel: ${reading.reason}`);
      const piece = await nextPiece(client);
      if (piece === undefined) throw new EgressRefusal(400, "the connection ended before anything began in it");
      bytes = Buffer.concat([bytes, piece]).subarray(0, MAX_HELLO_BYTES + piece.length);
    }
  } finally {
    late.cancel();
  }
}

/** Methods of HTTP are in upper case; no record of TLS begins with a letter. */
function startsMethod([first = 0]: Uint8Array): boolean {
  return first >= 0x41 && first <= 0x5a;
}

/** Undefined at the end. What is not read stays in the stream. */
async function nextPiece(stream: Duplex): Promise<Uint8Array | undefined> {
  for (;;) {
    const piece: unknown = stream.read();
    if (piece instanceof Uint8Array) return piece;
    if (stream.readableEnded || stream.destroyed) return undefined;
    const { promise, resolve } = Promise.withResolvers<void>();
    for (const event of MOVES) stream.once(event, resolve);
    await promise;
    for (const event of MOVES) stream.removeListener(event, resolve);
  }
}

/** Whether a ClientHello is for that host. One for an address has no name in it (RFC 6066 §3). */
export function isNamed(serverName: string | undefined, host: string): boolean {
  if (serverName === undefined) return isIP(host) !== 0;
  return canonicalHost(serverName) === host;
}

/**
 * Both directions, until the client has gone, or has all that the server said before its end, however slowly it takes it.
 * `pipeline` would drop what is on its way when the server's socket closes.
 */
export function join(client: Duplex, server: Duplex): void {
  client.once("close", () => server.destroy());
  client.once("finish", () => client.destroy());
  server.once("close", () => {
    if (!server.readableEnded) client.destroy();
  });
  client.pipe(server);
  server.pipe(client);
}
