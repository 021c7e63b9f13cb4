import { finished } from "node:stream";
import { z } from "zod";
import { messageOf } from "../../../core/errors.ts";
import type { Log } from "../../../core/log.ts";
import { outputBody } from "./output-body.ts";
import type { NodeCall, NodeReply } from "../../contract/link/calls.ts";
import { encodeShellFrame, shellFramesOf } from "../../contract/link/shell-frames.ts";
import type { Exec, ExecOutput, Machine } from "../../runtime/runtime.ts";

const size = { columns: z.int().min(1).max(10_000), rows: z.int().min(1).max(10_000) };

export const shellParams = z.strictObject({
  exec_id: z.uuid(),
  argv: z.array(z.string()).min(1).optional(),
  cwd: z.string().optional(),
  env: z.record(z.string(), z.string()).optional(),
  ...size,
});

/** As a client of a terminal may say it. */
export const resizeControl = z.strictObject({ resize: z.strictObject(size) });

/** The login shell of whoever runs it, where the image says one that can be run; else what there is. */
const LOGIN_SHELL =
  'shell=$( (getent passwd "$(id -u)" || grep "^[^:]*:[^:]*:$(id -u):" /etc/passwd) 2>/dev/null | head -n 1 | cut -d : -f 7); ' +
  'case "$shell" in */nologin | */false | "") shell=/bin/bash ;; esac; ' +
  '[ -x "$shell" ] || shell=/bin/bash; [ -x "$shell" ] || shell=/bin/sh; export SHELL="$shell"; exec "$shell" -l';

/** A terminal in the machine. When the call is given up, or its input ends, the terminal hangs up. */
export async function openShell(
  machine: Machine,
  { body: input, signal }: NodeCall,
  { exec_id: id, argv, cwd, env, columns, rows }: z.output<typeof shellParams>,
  { log }: { log: Log },
): Promise<NodeReply> {
  const exec = await machine.exec({
    id,
    argv: argv ?? ["/bin/sh", "-c", LOGIN_SHELL],
    cwd,
    env: { TERM: "xterm-256color", ...env },
    user: "agent",
    timeoutMs: undefined,
    tty: { columns, rows },
  });
  const body = outputBody((reading) => exec.output(undefined, reading), toFrame);
  const leave = () => void body.destroy();
  signal.addEventListener("abort", leave, { once: true });
  if (signal.aborted) leave();
  let isOver = false;
  finished(body, { writable: false }, (error) => {
    isOver = true;
    signal.removeEventListener("abort", leave);
    input?.destroy();
    // It has not ended by itself.
    if (error !== undefined && error !== null) void hangUp(exec, log);
  });
  void type(exec, (input ?? []) as AsyncIterable<Uint8Array>)
    .catch((error: unknown) => log.debug({ execId: id, reason: messageOf(error) }, "a terminal gets no more input"))
    .finally(() => {
      if (!isOver) void hangUp(exec, log);
    });
  return { result: { exec_id: id }, body };
}

async function type(exec: Exec, input: AsyncIterable<Uint8Array>): Promise<void> {
  for await (const frame of shellFramesOf(input)) {
    if (frame.type === "bytes") await exec.write(frame.bytes);
    else await exec.resize(resizeControl.parse(frame.control).resize);
  }
}

/** Never rejects. */
async function hangUp(exec: Exec, log: Log): Promise<void> {
  try {
    await exec.kill("SIGHUP");
  } catch (error) {
    log.debug({ execId: exec.id, reason: messageOf(error) }, "a terminal could not be told to hang up");
  }
}

function toFrame(output: ExecOutput): Uint8Array {
  if (output.type === "exit") {
    const { exitCode = null, signal = null, timedOut } = output;
    return encodeShellFrame({
      type: "control",
      control: { exit: { exit_code: exitCode, signal, timed_out: timedOut } },
    });
  }
  if (output.type === "skipped") return encodeShellFrame({ type: "control", control: { skipped: output.bytes } });
  return encodeShellFrame({ type: "bytes", bytes: output.bytes });
}
