/**
 * The connection between a node that runs sandboxes and the control plane.
 *
 * Nodes are where nobody can dial them: behind address translation, on machines that listen to nothing. So the node
 * dials: it keeps one WebSocket (`GET /v1/sandbox-nodes/link`, with its worker's token) to every process of the control
 * plane (`dialler.ts`; `gateways.ts` says which there are), and whichever of them gets a client's request has the node
 * at hand (`node-directory.ts`). Nothing of a sandbox depends on a connection: what one that breaks had under way fails
 * with `unavailable`, commands go on, and their output is fetched again over the next one.
 *
 * Over the WebSocket's binary messages goes HTTP/2 with the roles reversed: the control plane, which accepted the
 * connection, is the client and opens streams (`link-client.ts`), the node serves them (`link-server.ts`). It brings what
 * a protocol of our own would have to invent: many streams over one connection, a window for each of them, so that one
 * slow reader stops nobody else, and resets. What one stream carries says `link-stream.ts`.
 *
 * - Windows: a stream may be `STREAM_WINDOW_BYTES` ahead of its reader. That, and not the connection's window, bounds
 *   memory: the connection's is opened as soon as bytes have come, so it never stops the others.
 * - Both sides send pings, and take a side that is silent for `deadAfterMs` for dead.
 * - The subprotocol names the version. A side that does not know the other's refuses at the handshake.
 * - Text messages, from the control plane to the node, name a sandbox whose order has changed. They make the node look
 *   at once at what it looks at now and then anyway; one that is lost costs a little time.
 * - A node that connects twice to one process has lost its first connection, whatever that process still knows: the
 *   first is broken off.
 *
 * The control plane trusts a node with the sandboxes that it has, and with nothing else: what a node sends is bounded
 * (heads, header lists, streams, windows), parsed before it is used, and never makes the process do work that the node
 * has not been asked for. A node trusts the control plane, which could have it do anything by the routes.
 */
export const LINK_PATH = "/v1/sandbox-nodes/link";
export const LINK_PROTOCOL = "engine.sandbox-link.v1";

/** Of the JSON that goes along with a call, and with its reply. */
export const CALL_HEAD_BYTES = 64 * 1024;
export const REPLY_HEAD_BYTES = 4 * 1024 * 1024;

/** Calls at once over one connection. */
export const MAX_STREAMS = 2_000;

const STREAM_WINDOW_BYTES = 1024 * 1024;
const CONNECTION_WINDOW_BYTES = 16 * 1024 * 1024;
const FRAME_BYTES = 64 * 1024;
const HEADER_LIST_BYTES = 16 * 1024;
/** In units of a million bytes: all streams with full windows, and then some. */
const SESSION_MEMORY = 4_096;

/** How both sides set HTTP/2. */
export const LINK_SESSION = {
  maxSessionMemory: SESSION_MEMORY,
  maxHeaderListPairs: 16,
  maxOutstandingPings: 4,
  maxSettings: 8,
  settings: {
    enablePush: false,
    // No header is worth a table.
    headerTableSize: 0,
    initialWindowSize: STREAM_WINDOW_BYTES,
    maxConcurrentStreams: MAX_STREAMS,
    maxFrameSize: FRAME_BYTES,
    maxHeaderListSize: HEADER_LIST_BYTES,
  },
} as const;

/** Opens the connection's window: HTTP/2 knows no setting for it. */
export function widen(session: { setLocalWindowSize(sizeBytes: number): void }): void {
  session.setLocalWindowSize(CONNECTION_WINDOW_BYTES);
}

/** How both sides set the WebSocket. */
export const LINK_LIMITS = {
  maxMessageBytes: 1024 * 1024,
  // What may be under way by the windows, and what frames it.
  maxWaitingBytes: 32 * 1024 * 1024,
  pingEveryMs: 5_000,
  deadAfterMs: 15_000,
} as const;
