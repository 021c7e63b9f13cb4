import { isIP, type Socket } from "node:net";
import { connect, createSecureContext, getCACertificates, type SecureContext, type TLSSocket } from "node:tls";
import type { Clock } from "../../../core/clock.ts";
import { messageOf } from "../../../core/errors.ts";
import { EgressRefusal } from "../http/refusal.ts";

const HANDSHAKE_MS = 10_000;

/** The trust that gateways share: all of a node have the same operator. */
let shared: { certificates: string; context: SecureContext } | undefined;

/** The system's authorities, and those in PEM beside them. Undefined: the system's alone. */
function trustWith(certificates: string | undefined): SecureContext | undefined {
  if (certificates === undefined) return undefined;
  if (shared?.certificates !== certificates) {
    shared = { certificates, context: createSecureContext({ ca: [...getCACertificates("default"), certificates] }) };
  }
  return shared.context;
}

/**
 * TLS over a connection to a host, whose certificate was verified when it resolves: nothing of a request has been sent
 * before. Rejects with `EgressRefusal`.
 */
export async function secure(
  socket: Socket,
  { host, certificates, clock }: { host: string; certificates: string | undefined; clock: Clock },
): Promise<TLSSocket> {
  const secureContext = trustWith(certificates);
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const secured = connect({
    socket,
    host,
    ...(isIP(host) === 0 && { servername: host }),
    ...(secureContext !== undefined && { secureContext }),
    ALPNProtocols: ["http/1.1"],
    rejectUnauthorized: true,
  });
  const late = clock.after(HANDSHAKE_MS, () => secured.destroy(new Error("it took too long")));
  secured.once("secureConnect", resolve);
  secured.once("error", reject);
  secured.once("close", () => reject(new Error("the connection ended")));
  try {
    await promise;
  } catch (error) {
    secured.destroy();
    socket.destroy();
    throw new EgressRefusal(502, `no TLS with ${host}: ${messageOf(error)}`);
  } finally {
    late.cancel();
  }
  // From here on a failure ends the streams that use it.
  secured.on("error", () => secured.destroy());
  return secured;
}
