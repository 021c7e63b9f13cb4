import { PassThrough, type Readable } from "node:stream";
import { z } from "zod";
import { EngineError, messageOf, publicText } from "../../../core/errors.ts";
import { WEBSOCKET_CLOSE, type WebSocketConnection } from "../../../io/http/websocket.ts";
import { encodeShellFrame, shellFramesOf, type ShellFrame } from "../../contract/link/shell-frames.ts";
import type { Sandbox } from "../scheduler/sandbox.ts";
import { defineRoute, webSocketResponse } from "../../../server/route.ts";
import type { SandboxDeps } from "./deps.ts";
import { callNode, inState } from "./node-call.ts";

/** A terminal in a sandbox. */

const MOST_CELLS = 1_000;
const cells = (fallback: number) =>
  z
    .string()
    .regex(/^[1-9]\d{0,2}$|^1000$/, `accepted are integers from 1 to ${MOST_CELLS}`)
    .transform(Number)
    .optional()
    .describe(`${fallback} unless given.`);
const DEFAULT_SIZE = { columns: 80, rows: 24 };

const count = z.int().min(1).max(MOST_CELLS);
const control = z.strictObject({ resize: z.strictObject({ columns: count, rows: count }) });

export const shellRoute = defineRoute({
  role: "write",
  tag: "Sandboxes",
  method: "GET",
  path: "/api/v1/sandboxes/{id}/shell",
  summary: "A terminal in a running sandbox, as a WebSocket",
  description:
    "Runs the login shell of the sandbox's agent. Binary messages are what is typed, and what the terminal shows. Text " +
    "messages are JSON: `{resize: {columns, rows}}` from the client; `{exit: {exit_code, signal, timed_out}}` when the " +
    "shell has ended, the last one, or `{error: {code, message}}` when the terminal is lost or could not be opened. A " +
    "client that leaves hangs up: the shell gets SIGHUP.",
  params: z.object({ id: z.string() }),
  query: z.object({
    columns: cells(DEFAULT_SIZE.columns),
    rows: cells(DEFAULT_SIZE.rows),
    cwd: z
      .string()
      .startsWith("/")
      .optional()
      .describe("Where it begins; by default in the sandbox's working directory, else at home."),
  }),
  webSocket: true,
  responses: [{ status: 101, description: "A WebSocket." }],
  errors: ["sandbox_not_found", "sandbox_invalid_state"],
  handler:
    (deps: SandboxDeps) =>
    async ({ caller, clientAddress, requestId, params: { id }, query, request }) => {
      const asked = await deps.sandboxes.get(id, caller);
      const sandbox = await inState(deps, asked, { allowed: ["running"], asker: caller, signal: request.signal });
      const execId = deps.newId();
      await deps.audit.record({
        origin: { caller, address: clientAddress, requestId },
        action: "sandbox.shell",
        target: id,
        outcome: "ok",
        details: { exec_id: execId },
      });
      const { columns = DEFAULT_SIZE.columns, rows = DEFAULT_SIZE.rows, cwd = sandbox.spec.workingDirectory } = query;
      const params = { exec_id: execId, columns, rows, ...(cwd !== undefined && { cwd }) };
      return webSocketResponse({ run: (connection) => runShell(deps, { sandbox, params, connection }) });
    },
});

type Shell = { sandbox: Sandbox; params: unknown; connection: WebSocketConnection };

async function runShell(deps: SandboxDeps, { sandbox, params, connection }: Shell): Promise<void> {
  const input = new PassThrough();
  const { signal } = connection;
  const typing = type(connection, input);
  try {
    const { body } = await callNode(deps, sandbox, { method: "shell", params, body: input, signal });
    if (body === undefined) throw new EngineError("internal", "the node sends nothing of a terminal");
    if (!(await show(connection, body))) throw new EngineError("unavailable", "the terminal was lost");
    connection.close();
  } catch (error) {
    if (!signal.aborted) await lose(connection, error);
  } finally {
    input.destroy();
    await typing;
  }
}

/** What comes from the client, until it leaves. */
async function type(connection: WebSocketConnection, input: PassThrough): Promise<void> {
  // What ends the terminal ends this too.
  input.on("error", () => undefined);
  try {
    for await (const message of connection.messages()) {
      const frame = frameOf(message);
      if (frame === undefined) {
        connection.close(WEBSOCKET_CLOSE.refused, "a text message is no control message");
        break;
      }
      if (input.destroyed) break;
      if (!input.write(encodeShellFrame(frame))) await drained(input);
    }
  } catch (error) {
    if (!connection.signal.aborted) throw error;
  } finally {
    input.end();
  }
}

function frameOf(message: string | Uint8Array): ShellFrame | undefined {
  if (typeof message !== "string") return { type: "bytes", bytes: message };
  try {
    return { type: "control", control: control.parse(JSON.parse(message)) };
  } catch {
    return undefined;
  }
}

/** Resolves when there is room, or there will be none. */
function drained(input: PassThrough): Promise<void> {
  return new Promise((resolve) => {
    input.once("drain", resolve);
    input.once("close", resolve);
  });
}

/** What the terminal shows; true when it has told how it ended. */
async function show(connection: WebSocketConnection, body: Readable): Promise<boolean> {
  for await (const frame of shellFramesOf(body)) {
    if (frame.type === "bytes") await connection.send(frame.bytes);
    else {
      await connection.send(JSON.stringify(frame.control));
      if (z.object({ exit: z.unknown() }).safeParse(frame.control).success) return true;
    }
  }
  return false;
}

async function lose(connection: WebSocketConnection, error: unknown): Promise<void> {
  const code = error instanceof EngineError ? error.code : "unavailable";
  const message =
    error instanceof EngineError ? error.message : publicText(`the terminal was lost: ${messageOf(error)}`);
  await connection.send(JSON.stringify({ error: { code, message } }));
  connection.close(WEBSOCKET_CLOSE.internal, message);
}
