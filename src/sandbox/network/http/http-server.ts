import { createServer, type IncomingMessage, type Server } from "node:http";
import { endWith } from "./answers.ts";
import { EgressRefusal } from "./refusal.ts";

const HEAD_MS = 10_000;

/**
 * A server for connections from inside, which are given to it by `emit("connection")`: whoever asks is hostile, so heads
 * and times are bounded, and the parser is strict. `upgradeNeeds`: what is said to a request that wants another protocol.
 */
export function createInsideServer(upgradeNeeds: (request: IncomingMessage) => string): Server {
  const server = createServer({
    maxHeaderSize: 32 * 1024,
    headersTimeout: HEAD_MS,
    requestTimeout: 0,
    keepAliveTimeout: 30_000,
    connectionsCheckingInterval: HEAD_MS / 2,
    insecureHTTPParser: false,
    requireHostHeader: true,
  });
  server.on("upgrade", (request, socket) => endWith(socket, new EgressRefusal(403, upgradeNeeds(request))));
  server.on("clientError", (_error, socket) => {
    if (socket.writable) endWith(socket, new EgressRefusal(400, "this is no request of HTTP"));
    else socket.destroy();
  });
  // It never listens itself, and looks for heads that take too long only once that was said.
  server.emit("listening");
  return server;
}
