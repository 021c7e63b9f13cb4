import { finished } from "node:stream";
import { z } from "zod";
import type { Clock } from "../../../core/clock.ts";
import { EngineError, messageOf } from "../../../core/errors.ts";
import type { Log } from "../../../core/log.ts";
import { ExecLines, outputBody } from "./output-body.ts";
import type { NodeCall, NodeCallHandler, NodeMethod, NodeReply } from "../../contract/link/calls.ts";
import type { Exec, Machine } from "../../runtime/runtime.ts";
import { Abandoned } from "../abandoned.ts";
import { figuresOf, type TrafficOf } from "../figures.ts";
import { Lines } from "../lines.ts";
import { liveError } from "./live-errors.ts";
import { openShell, shellParams } from "./live-shell.ts";

export type LiveCallOptions = {
  /** The sandbox's machine, where it is up here. */
  machineOf: (sandboxId: string) => Machine | undefined;
  /** Takes a line that a command with `log` wrote. */
  onLine: (sandboxId: string, line: { stream: "stdout" | "stderr"; line: string }) => void;
  trafficOf: TrafficOf;
  clock: Clock;
  log: Log;
};

/** The input of a command, which comes whole before the command is begun: a connection that is lost cuts none off. */
const MOST_INPUT_BYTES = 16 * 1024 * 1024;

const env = z.record(z.string(), z.string());
const execParams = z.strictObject({
  exec_id: z.uuid(),
  argv: z.array(z.string()).min(1),
  cwd: z.string().optional(),
  env: env.optional(),
  user: z.enum(["agent", "root"]).optional(),
  timeout_ms: z.int().min(1).optional(),
  stdin: z.boolean().optional(),
  cancel_on_disconnect: z.boolean().optional(),
  log: z.boolean().optional(),
});
const count = z.int().min(0);
const attachParams = z.strictObject({ exec_id: z.uuid(), stdout: count, stderr: count });
const killParams = z.strictObject({
  exec_id: z.uuid(),
  signal: z.enum(["SIGTERM", "SIGINT", "SIGKILL", "SIGHUP"]),
});
const connectParams = z.strictObject({ port: z.int().min(1).max(65_535) });

type Answer = (call: NodeCall, machine: Machine) => Promise<NodeReply>;

/**
 * Answers calls about what runs in machines of this node: `exec`, `exec.attach`, `exec.kill`, `shell`, `connect` and
 * `stats`. Rejects with `EngineError`s: `sandbox_invalid_state` where the machine is not up, `bad_request` for another
 * method and for params of another shape.
 */
export function liveCallHandler(options: LiveCallOptions): NodeCallHandler {
  const abandoned = new Abandoned(options);
  const answers: Partial<Record<NodeMethod, Answer>> = {
    exec: (call, machine) => beginExec(options, abandoned, call, machine),
    "exec.attach": async (call, machine) => {
      const { exec_id: id, ...from } = paramsOf(call, attachParams);
      const exec = await known(machine, id);
      return { result: { exec_id: id }, body: bodyOf(exec, from, call, abandoned) };
    },
    "exec.kill": async (call, machine) => {
      const { exec_id: id, signal } = paramsOf(call, killParams);
      await (await known(machine, id)).kill(signal);
      return { result: {} };
    },
    shell: async (call, machine) => openShell(machine, call, paramsOf(call, shellParams), options),
    connect: async (call, machine) => connect(machine, call),
    stats: async (call, machine) => ({ result: figuresOf(await machine.stats(), options.trafficOf(call.sandboxId)) }),
  };
  return async (call) => {
    const answer = answers[call.method];
    if (answer === undefined) throw new EngineError("bad_request", `${call.method} is no call about a machine`);
    const machine = options.machineOf(call.sandboxId);
    if (machine === undefined) throw new EngineError("sandbox_invalid_state", "the sandbox is not up on its node");
    try {
      return await answer(call, machine);
    } catch (error) {
      throw liveError(error);
    }
  };
}

async function beginExec(
  options: LiveCallOptions,
  abandoned: Abandoned,
  call: NodeCall,
  machine: Machine,
): Promise<NodeReply> {
  const params = paramsOf(call, execParams);
  checkRuns(machine);
  const input = params.stdin === true ? await inputOf(call) : undefined;
  const exec = await machine.exec({
    id: params.exec_id,
    argv: params.argv,
    cwd: params.cwd,
    env: params.env ?? {},
    user: params.user ?? "agent",
    timeoutMs: params.timeout_ms,
    tty: undefined,
  });
  void feed(exec, input, options.log);
  if (params.log === true) void follow(exec, call.sandboxId, options);
  if (params.cancel_on_disconnect === true) abandoned.watch(exec);
  return { result: { exec_id: exec.id }, body: bodyOf(exec, { stdout: 0, stderr: 0 }, call, abandoned) };
}

function checkRuns(machine: Machine): void {
  if (machine.isPaused) throw new EngineError("sandbox_invalid_state", "the sandbox is paused: nothing starts in it");
}

async function inputOf({ body }: NodeCall): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  let sizeBytes = 0;
  for await (const piece of (body ?? []) as AsyncIterable<Uint8Array>) {
    pieces.push(piece);
    sizeBytes += piece.length;
    if (sizeBytes > MOST_INPUT_BYTES) {
      throw new EngineError("body_too_large", `a command takes up to ${MOST_INPUT_BYTES} bytes of input`);
    }
  }
  return Buffer.concat(pieces);
}

/** Never rejects: a command may end, or close its input, before it has read all of it. */
async function feed(exec: Exec, input: Uint8Array | undefined, log: Log): Promise<void> {
  try {
    if (input !== undefined && input.length > 0) await exec.write(input);
    await exec.endInput();
  } catch (error) {
    log.debug({ execId: exec.id, reason: messageOf(error) }, "a command did not take its input");
  }
}

/** What the command writes becomes lines of the sandbox, whoever else reads it. Never rejects. */
async function follow(exec: Exec, sandboxId: string, { onLine, log }: LiveCallOptions): Promise<void> {
  const linesOf = (stream: "stdout" | "stderr") => new Lines((line) => onLine(sandboxId, { stream, line }));
  const lines = { stdout: linesOf("stdout"), stderr: linesOf("stderr") };
  try {
    for await (const output of exec.output()) {
      if (output.type === "stdout" || output.type === "stderr") lines[output.type].push(output.bytes);
    }
  } catch (error) {
    log.debug({ sandboxId, reason: messageOf(error) }, "the output of a command is not logged any more");
  }
  lines.stdout.end();
  lines.stderr.end();
}

async function known(machine: Machine, id: string): Promise<Exec> {
  const exec = await machine.attach(id);
  if (exec === undefined) throw new EngineError("not_found", `the sandbox knows no command ${id}`);
  return exec;
}

/** Its output from there, for as long as the call is wanted. */
function bodyOf(exec: Exec, from: { stdout: number; stderr: number }, { signal }: NodeCall, abandoned: Abandoned) {
  const lines = new ExecLines(from);
  const body = outputBody(
    (reading) => exec.output(from, reading),
    (output) => lines.encode(output),
  );
  const giveUp = () => void body.destroy();
  signal.addEventListener("abort", giveUp, { once: true });
  if (signal.aborted) giveUp();
  const leave = abandoned.enter(exec.id);
  finished(body, { writable: false }, (error) => {
    signal.removeEventListener("abort", giveUp);
    leave({ isOver: error === undefined || error === null });
  });
  return body;
}

async function connect(machine: Machine, call: NodeCall): Promise<NodeReply> {
  const { port } = paramsOf(call, connectParams);
  checkRuns(machine);
  const connection = await machine.connect(port);
  const end = () => void connection.destroy();
  // Whoever reads it sees that it broke; nobody else is to be told.
  connection.on("error", end);
  call.signal.addEventListener("abort", end, { once: true });
  connection.once("close", () => call.signal.removeEventListener("abort", end));
  if (call.signal.aborted) end();
  call.body?.on("error", end).pipe(connection);
  return { result: {}, body: connection };
}

function paramsOf<T>({ method, params }: NodeCall, schema: z.ZodType<T>): T {
  const result = schema.safeParse(params);
  if (result.success) return result.data;
  throw new EngineError("bad_request", `the params of ${method} are not understood: ${result.error.message}`);
}
