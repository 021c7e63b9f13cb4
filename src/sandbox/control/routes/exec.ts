import { Readable } from "node:stream";
import { z } from "zod";
import { roleIncludes, type Caller } from "../../../auth/caller.ts";
import { EngineError } from "../../../core/errors.ts";
import type { HttpResponse } from "../../../io/http/http.ts";
import { mayComeBack, readExec, reattach } from "../exec/exec-reader.ts";
import type { ExecParams, NodeReply } from "../../contract/link/calls.ts";
import type { Sandbox } from "../scheduler/sandbox.ts";
import { defineRoute, type Call } from "../../../server/route.ts";
import { eventStream, eventStreamResponse } from "../../../server/server-sent-events.ts";
import type { SandboxDeps } from "./deps.ts";
import { EXEC_PLACE, ExecMessages, execPlaceOf } from "./exec-messages.ts";
import { callNode, inState } from "./node-call.ts";
import { nameSchemas } from "../../../server/schema-names.ts";

/** Commands in sandboxes: begun, followed, ended. */

const MOST_SECS = 7 * 86_400;
/** How long a command that is to be begun waits for its node to be connected. */
const BEGIN_MS = 5_000;
/** For `stdin`; larger input is put into a file first. */
const MOST_REQUEST_BYTES = 16 * 1024 * 1024;
/** Of a command in the audit log. */
const SHOWN_COMMAND_CHARS = 2_000;

const noNul = (text: string) => !text.includes("\0");
const word = z.string().refine(noNul, "must not have a NUL");
const envName = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "is no name of a variable");

const execRequest = z
  .strictObject({
    command: z
      .union([word.min(1), z.array(word).min(1).max(4_096)])
      .describe("A program and its arguments; or a text, which is run by `sh -c`."),
    cwd: word
      .startsWith("/")
      .optional()
      .describe("Where it runs; by default the sandbox's working directory, else the home of its user."),
    env: z.record(envName, word).optional().describe("Variables on top of the sandbox's."),
    timeout_secs: z.number().positive().max(MOST_SECS).optional().describe("Then it is killed; by default never."),
    stdin: z.string().optional().describe("What it reads; nothing by default."),
    stdin_encoding: z.enum(["utf-8", "base64"]).optional().describe("Of `stdin`."),
    user: z.enum(["agent", "root"]).optional().describe("`root`, of the sandbox, is for admins alone."),
    log: z.boolean().optional().describe("Whether what it writes also becomes lines of the sandbox's log."),
    cancel_on_disconnect: z.boolean().optional().describe("Whether it is killed when this client leaves."),
  })
  .refine(({ stdin, stdin_encoding: encoding }) => encoding !== "base64" || z.base64().safeParse(stdin ?? "").success, {
    path: ["stdin"],
    message: "is not base64",
  });

nameSchemas({ Command: execRequest });
type ExecRequest = z.output<typeof execRequest>;

const EVENTS =
  "Events are stream events. `connected` (`exec_id`) comes first. `stdout` and `stderr` have `text`; or `data` with " +
  "`encoding: base64`, where the output is not UTF-8. `exit` comes last, with the command's `exit_code`, or the " +
  "`signal` that ended it, and `timed_out`. An `error` with the code `output_lost` stands for output that was not read " +
  "in time; one with another code is the last: the node could not be reached for 15 s, and the command may go on.";

export const execStreamRoute = defineRoute({
  role: "write",
  tag: "Sandboxes",
  method: "POST",
  path: "/api/v1/sandboxes/{id}/exec/stream",
  summary: "Run a command in a sandbox",
  description:
    `${EVENTS} A client that lost the connection goes on by \`GET /api/v1/sandboxes/{id}/exec/{exec_id}/stream\` with the ` +
    "last `id`. A command goes on without its client, unless `cancel_on_disconnect` says otherwise; while nobody reads, " +
    "the newest mebibyte of each stream is kept. Only a running sandbox takes commands, not a paused one; one that is " +
    "being made is waited for.",
  params: z.object({ id: z.string() }),
  json: execRequest,
  jsonLimitBytes: MOST_REQUEST_BYTES,
  responses: [eventStreamResponse("Events, until the command has ended.")],
  errors: [
    "bad_request_body",
    "config_validation_error",
    "forbidden",
    "sandbox_not_found",
    "sandbox_invalid_state",
    "sandbox_timeout",
    "unavailable",
  ],
  handler: (deps: SandboxDeps) => async (call) => {
    const { caller, params, json, request } = call;
    const asked = await deps.sandboxes.get(params.id, caller);
    if (json.user === "root" && !roleIncludes(caller.role, "admin")) {
      throw new EngineError("forbidden", "commands run as root of a sandbox for admins alone");
    }
    const sandbox = await inState(deps, asked, { allowed: ["running"], asker: caller, signal: request.signal });
    const execId = deps.newId();
    await audit(deps, call, { execId, request: json });
    const stream = new ExecStream(deps, { caller, sandbox, execId });
    return await stream.begin(json);
  },
});

export const resumeExecRoute = defineRoute({
  role: "read",
  tag: "Sandboxes",
  method: "GET",
  path: "/api/v1/sandboxes/{id}/exec/{exec_id}/stream",
  summary: "Follow a command in a sandbox",
  description: `From the beginning, or from the event whose \`id\` is in \`Last-Event-ID\`. ${EVENTS}`,
  params: z.object({ id: z.string(), exec_id: z.uuid("is no id of a command") }),
  headers: z.object({
    "last-event-id": z
      .string()
      .regex(EXEC_PLACE, "is no id of such an event")
      .transform(execPlaceOf)
      .optional()
      .describe("The `id` of the last event that came."),
  }),
  responses: [
    eventStreamResponse("Events, until the command has ended."),
    { status: 204, description: "The client has had the end: it need not come again." },
  ],
  errors: ["not_found", "sandbox_not_found", "sandbox_invalid_state", "sandbox_timeout", "unavailable"],
  handler:
    (deps: SandboxDeps) =>
    async ({ caller, params: { id, exec_id: execId }, headers }) => {
      const sandbox = await deps.sandboxes.get(id, caller);
      const { isOver, ...from } = headers["last-event-id"] ?? { stdout: 0, stderr: 0, isOver: false };
      if (isOver) return { status: 204, headers: {} };
      checkHasCommands(sandbox);
      return await new ExecStream(deps, { caller, sandbox, execId }).resume(from);
    },
});

export const killExecRoute = defineRoute({
  role: "write",
  tag: "Sandboxes",
  method: "DELETE",
  path: "/api/v1/sandboxes/{id}/exec/{exec_id}",
  summary: "End a command in a sandbox",
  params: z.object({ id: z.string(), exec_id: z.uuid("is no id of a command") }),
  query: z.object({
    signal: z
      .enum(["SIGTERM", "SIGINT", "SIGKILL", "SIGHUP"])
      .optional()
      .describe("Sent to all its processes; SIGKILL unless given."),
  }),
  responses: [{ status: 204, description: "The signal was sent." }],
  errors: ["not_found", "sandbox_not_found", "sandbox_invalid_state", "sandbox_timeout", "unavailable"],
  handler:
    (deps: SandboxDeps) =>
    async ({ caller, params: { id, exec_id: execId }, query: { signal = "SIGKILL" }, request }) => {
      const sandbox = await deps.sandboxes.get(id, caller);
      checkHasCommands(sandbox);
      const params = { exec_id: execId, signal };
      await callNode(deps, sandbox, { method: "exec.kill", params, signal: request.signal });
      return { status: 204, headers: {} };
    },
});

/** In these all have ended. Its node may be away for good, and is not asked: it would seem to be about the moment. */
function checkHasCommands({ state }: Sandbox): void {
  if (state !== "stopped" && state !== "failed") return;
  throw new EngineError("sandbox_invalid_state", `the sandbox is ${state}: its commands have ended`);
}

/** What is run, without what may be secrets: values of variables, and the input. */
async function audit(
  { audit: log }: SandboxDeps,
  { caller, clientAddress, requestId, params: { id } }: Call<{ id: string }>,
  { execId, request: { command, user = "agent", cwd, env = {} } }: { execId: string; request: ExecRequest },
): Promise<void> {
  const shown = typeof command === "string" ? command : JSON.stringify(command);
  await log.record({
    origin: { caller, address: clientAddress, requestId },
    action: "sandbox.exec",
    target: id,
    outcome: "ok",
    details: {
      exec_id: execId,
      command: shown.slice(0, SHOWN_COMMAND_CHARS),
      user,
      cwd: cwd ?? null,
      env: Object.keys(env),
    },
  });
}

function paramsOf(execId: string, { spec }: Sandbox, request: ExecRequest): ExecParams {
  const {
    command,
    cwd = spec.workingDirectory,
    env,
    timeout_secs: timeoutSecs,
    stdin,
    user,
    log,
    cancel_on_disconnect: cancels,
  } = request;
  return {
    exec_id: execId,
    argv: typeof command === "string" ? ["/bin/sh", "-c", command] : command,
    ...(cwd !== undefined && { cwd }),
    ...(env !== undefined && { env }),
    ...(timeoutSecs !== undefined && { timeout_ms: Math.ceil(timeoutSecs * 1_000) }),
    ...(stdin !== undefined && { stdin: true }),
    ...(user !== undefined && { user }),
    ...(log !== undefined && { log }),
    ...(cancels !== undefined && { cancel_on_disconnect: cancels }),
  };
}

/** One client's stream of one command. */
class ExecStream {
  readonly #deps: SandboxDeps;
  readonly #caller: Caller;
  readonly #execId: string;
  readonly #reading = new AbortController();
  #sandbox: Sandbox;

  constructor(deps: SandboxDeps, { caller, sandbox, execId }: { caller: Caller; sandbox: Sandbox; execId: string }) {
    this.#deps = deps;
    this.#caller = caller;
    this.#execId = execId;
    this.#sandbox = sandbox;
  }

  async begin(request: ExecRequest): Promise<HttpResponse> {
    const { clock } = this.#deps;
    const body = await reattach({
      attach: () => this.#begin(request),
      clock,
      signal: this.#reading.signal,
      untilMs: clock.monotonicMs() + BEGIN_MS,
      isWorthIt: isUnreached,
    });
    return this.#answer(body, { stdout: 0, stderr: 0 }, request.cancel_on_disconnect === true);
  }

  async resume(from: { stdout: number; stderr: number }): Promise<HttpResponse> {
    return this.#answer(await this.#attach(from), from, false);
  }

  async #begin(request: ExecRequest): Promise<Readable> {
    const { stdin, stdin_encoding: encoding } = request;
    const input = stdin === undefined ? undefined : Buffer.from(stdin, encoding === "base64" ? "base64" : "utf8");
    try {
      return bodyOf(
        await callNode(this.#deps, this.#sandbox, {
          method: "exec",
          params: paramsOf(this.#execId, this.#sandbox, request),
          ...(input !== undefined && { body: Readable.from([input]) }),
          signal: this.#reading.signal,
        }),
      );
    } catch (error) {
      if (!isUnreached(error)) throw error;
      // It may have begun: then it is followed, and not begun again.
      return await this.#attach({ stdout: 0, stderr: 0 }).catch(() => Promise.reject(error));
    }
  }

  async #attach(from: { stdout: number; stderr: number }): Promise<Readable> {
    const { exec_id, ...params } = { exec_id: this.#execId, ...from };
    const request = { method: "exec.attach", params: { exec_id, ...params }, signal: this.#reading.signal } as const;
    return bodyOf(await callNode(this.#deps, this.#sandbox, request));
  }

  #answer(body: Readable, from: { stdout: number; stderr: number }, cancels: boolean): HttpResponse {
    const { clock, events, sandboxes } = this.#deps;
    const reading = this.#reading;
    const attach = async (had: { stdout: number; stderr: number }) => {
      // It may have another node by then, or be no more.
      this.#sandbox = await sandboxes.get(this.#sandbox.id, this.#caller);
      const { state } = this.#sandbox;
      if (state === "stopped" || state === "failed") throw new EngineError("gone", `the sandbox is ${state}`);
      return await this.#attach(had);
    };
    const messages = new ExecMessages({
      sandboxId: this.#sandbox.id,
      execId: this.#execId,
      news: readExec({ body, from, attach, clock, signal: reading.signal }),
      nowMs: () => clock.nowMs(),
      reading,
      closing: events.closing,
      onLeft: async () => {
        if (cancels && !events.closing.aborted) await this.#cancel();
      },
    });
    return eventStream({ events: messages, clock, heartbeat: () => messages.keepalive() });
  }

  /** The node does it by itself a little later where it cannot be told. */
  async #cancel(): Promise<void> {
    const params = { exec_id: this.#execId, signal: "SIGKILL" };
    const signal = new AbortController().signal;
    await callNode(this.#deps, this.#sandbox, { method: "exec.kill", params, signal }).catch((error: unknown) => {
      if (!mayComeBack(error)) throw error;
    });
  }
}

function bodyOf({ body }: NodeReply): Readable {
  if (body === undefined) throw new EngineError("internal", "the node sends nothing of a command");
  return body;
}

/** Whether it is not known that the node has had the request. */
function isUnreached(error: unknown): boolean {
  return error instanceof EngineError && (error.code === "unavailable" || error.code === "sandbox_timeout");
}
