import { createHash } from "node:crypto";
import { untilAborted } from "../../../core/concurrency.ts";
import { messageOf } from "../../../core/errors.ts";
import { followOutput } from "../follow-output.ts";
import type { Recorder } from "../recorder.ts";
import type { ExecRequest, Machine } from "../../runtime/runtime.ts";

/** A command of the pipeline did not succeed; the message is for the owner of the sandbox. */
export class CommandFailed extends Error {
  /** The last lines that it wrote, of both streams. */
  readonly lines: readonly string[];

  constructor(message: string, lines: readonly string[]) {
    super(message);
    this.name = "CommandFailed";
    this.lines = lines;
  }
}

export type CommandPorts = {
  machine: Machine;
  recorder: Pick<Recorder, "event">;
  /** Aborted when the sandbox is no longer wanted. */
  signal: AbortSignal;
};

export type Command = Pick<ExecRequest, "argv" | "user" | "timeoutMs"> & {
  /** Of this command alone, among all of the sandbox's pipeline. */
  key: string;
  cwd?: string | undefined;
  env?: ExecRequest["env"];
  input?: Uint8Array;
};

const KEPT_LINES = 20;

/**
 * Runs a command to its end; what it writes becomes lines of the sandbox's log. One that was begun for this sandbox by an
 * earlier process of the node is waited for, and not begun again. Rejects with `CommandFailed`, with the reason of the
 * signal, and when the machine ends.
 */
export async function runCommand({ machine, recorder, signal }: CommandPorts, command: Command): Promise<void> {
  const ended = machine.ended.then((end) => {
    throw new Error(end.cause === "died" ? `the machine ended: ${end.reason}` : `the machine ended (${end.cause})`);
  });
  const run = async (): Promise<void> => {
    const { key, cwd, env = {}, input, ...rest } = command;
    // The same id whenever this is called for this machine.
    const exec = await machine.exec({ ...rest, id: execIdOf(machine.id, key), cwd, env, tty: undefined });
    if (input !== undefined) await exec.write(input);
    await exec.endInput();
    const last: string[] = [];
    try {
      await followOutput(exec, (line, stream) => {
        if (last.push(line) > KEPT_LINES) last.shift();
        recorder.event("log_line", { line, stream });
      });
    } catch (error) {
      throw new CommandFailed(messageOf(error), last);
    }
  };
  await untilAborted(Promise.race([run(), ended]), signal);
}

function execIdOf(sandboxId: string, key: string): string {
  const bytes = createHash("sha256").update(`${sandboxId}/${key}`).digest().subarray(0, 16);
  // RFC 9562: version 8, whose bits are the maker's own.
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x80, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  const hex = bytes.toString("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}
