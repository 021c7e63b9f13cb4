import { createSocket } from "node:dgram";
import { once } from "node:events";
import { request, type IncomingMessage, type OutgoingHttpHeaders } from "node:http";
import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";

/** A name server that knows these names; `answers` may give another address each time. */
export async function startNameServer(
  answers: (name: string, count: number) => string | undefined,
  { host = "127.0.0.1", port = 0 }: { host?: string; port?: number } = {},
): Promise<{
  address: string;
  /** How often each name was asked for its IPv4 address. */
  asked: Map<string, number>;
  close(): Promise<void>;
}> {
  const socket = createSocket("udp4");
  const asked = new Map<string, number>();
  socket.on("message", (query, from) => {
    const { name, end } = nameIn(query);
    const isIpv4 = query.readUInt16BE(end) === 1;
    const count = (asked.get(name) ?? 0) + (isIpv4 ? 1 : 0);
    asked.set(name, count);
    const address = isIpv4 ? answers(name, count) : undefined;
    const head = Buffer.from(query.subarray(0, end + 4));
    // A response, of a server that would also look further; one answer, or the name is not there.
    head.writeUInt16BE(address === undefined && isIpv4 ? 0x8183 : 0x8180, 2);
    head.writeUInt16BE(address === undefined ? 0 : 1, 6);
    head.fill(0, 8, 12);
    const record = address === undefined ? Buffer.alloc(0) : Buffer.from([192, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4]);
    const bytes = address === undefined ? [] : address.split(".").map(Number);
    socket.send(Buffer.concat([head, record, Buffer.from(bytes)]), from.port, from.address);
  });
  socket.bind(port, host);
  await once(socket, "listening");
  return {
    address: `${host}:${socket.address().port}`,
    asked,
    close: async () => {
      const closed = once(socket, "close");
      socket.close();
      await closed;
    },
  };
}

function nameIn(query: Buffer): { name: string; end: number } {
  const labels: string[] = [];
  let at = 12;
  for (let length = query.readUInt8(at); length > 0; length = query.readUInt8(at)) {
    labels.push(query.toString("latin1", at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join(".").toLowerCase(), end: at + 1 };
}

export async function listen(server: Server): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

/** Where something in a sandbox reaches its proxy. */
export function listenFor(accept: (connection: Socket) => void): Server {
  return createServer({ allowHalfOpen: true }, accept);
}

/** Sends a request to a proxy, its target as it is. */
export async function throughProxy(
  proxyPort: number,
  target: string,
  {
    headers = {},
    method = "GET",
    body,
  }: { headers?: OutgoingHttpHeaders; method?: string; body?: string | Buffer } = {},
): Promise<{ status: number; headers: IncomingMessage["headers"]; text: string }> {
  const sent = request({ host: "127.0.0.1", port: proxyPort, path: target, method, headers, agent: false });
  sent.end(body);
  const [answer] = (await once(sent, "response")) as [IncomingMessage];
  const pieces: Buffer[] = [];
  for await (const piece of answer) pieces.push(piece as Buffer);
  return { status: answer.statusCode ?? 0, headers: answer.headers, text: Buffer.concat(pieces).toString() };
}

/** A tunnel, or what the proxy answered instead. */
export async function openTunnel(proxyPort: number, authority: string): Promise<Socket | string> {
  const socket = connect(proxyPort, "127.0.0.1");
  socket.on("error", () => {});
  socket.write(`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n\r\n`);
  let text = "";
  for (;;) {
    const [piece] = (await Promise.race([once(socket, "data"), once(socket, "end").then(() => [""])])) as [Buffer | ""];
    text += piece.toString("latin1");
    if (text.startsWith("HTTP/1.1 200 ") && text.endsWith("\r\n\r\n")) return socket;
    if (piece === "") return text;
  }
}
