import { once } from "node:events";
import { connect, isIP, type Socket } from "node:net";
import { connect as connectTls, type ConnectionOptions } from "node:tls";
import type { Clock } from "../../core/clock.ts";
import type { ServerAddress } from "./url.ts";

/** "Do you speak TLS?": its length, and a number that is no version of the protocol. The answer is one byte. */
const TLS_REQUEST = Buffer.from([0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f]);
const YES = "S";

/** Connects to the server, with TLS as the address asks for. Rejects when that takes too long. */
export async function openSocket(
  address: ServerAddress,
  { clock, timeoutMs }: { clock: Clock; timeoutMs: number },
): Promise<Socket> {
  const { host, port, tls } = address;
  const socket = host.startsWith("/")
    ? connect({ path: `${host}/.s.PGSQL.${port}` })
    : connect({ host, port, noDelay: true });
  // Until postgres.js listens: an error that nobody hears would end the process. The loss itself shows as a close.
  socket.on("error", () => undefined);
  const giveUp = new AbortController();
  const timer = clock.after(timeoutMs, () => giveUp.abort(), { background: true });
  try {
    await once(socket, "connect", giveUp);
    if (tls.kind === "off") return socket;
    socket.write(TLS_REQUEST);
    const [answer] = (await Promise.race([once(socket, "data", giveUp), ended(socket)])) as [Buffer];
    // More than one byte would be read as if it had come encrypted.
    if (answer.length === 1 && answer.toString() === YES) return await secured(socket, address, giveUp);
    if (tls.kind === "prefer" && answer.length === 1) return socket;
    throw new Error("the server has no TLS: set ssl = on there, or sslmode=disable in the URL");
  } catch (error) {
    socket.destroy();
    if (giveUp.signal.aborted) throw new Error(`no answer within ${timeoutMs} ms`, { cause: error });
    throw error;
  } finally {
    timer.cancel();
  }
}

async function secured(socket: Socket, { host, tls }: ServerAddress, giveUp: AbortController): Promise<Socket> {
  const options: ConnectionOptions = tls.kind === "options" ? tls.options : { rejectUnauthorized: false };
  // The name that the certificate must be for; an address has no place in the greeting.
  const name = isIP(host) === 0 ? { servername: host } : { host };
  const encrypted = connectTls({ ...options, ...name, socket });
  encrypted.on("error", () => undefined);
  await once(encrypted, "secureConnect", giveUp);
  return encrypted;
}

async function ended(socket: Socket): Promise<never> {
  await once(socket, "close");
  throw new Error("the server closed the connection");
}
