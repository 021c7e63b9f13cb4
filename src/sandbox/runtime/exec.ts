import type { Socket } from "node:net";
import { DirectInput } from "./direct-input.ts";
import { MessageReader, encodeMessage } from "./messages.ts";
import { type Exec, type ExecOutput, RuntimeError } from "./runtime.ts";
import { type SupervisorClient, openStream } from "./supervisor-client.ts";

/** Of input, in one message: the supervisor takes messages whole. */
const PIECE_BYTES = 64 * 1024;

export type SupervisedExecParts = {
  id: string;
  folder: string;
  client: SupervisorClient;
  letGo: AbortSignal;
  /** See `ExecRequest`. */
  isSoleWriter: boolean;
};

type Input = { socket: Socket; direct: DirectInput | undefined };

/** A command that a supervisor has. Input and output have connections of their own, so that neither waits for others. */
export class SupervisedExec implements Exec {
  readonly id: string;
  readonly #folder: string;
  readonly #client: SupervisorClient;
  /** Aborted when this process lets go of the machine: connections end then, though the command goes on. */
  readonly #letGo: AbortSignal;
  readonly #isSoleWriter: boolean;
  #input: Promise<Input> | undefined;

  constructor(parts: SupervisedExecParts) {
    this.id = parts.id;
    this.#isSoleWriter = parts.isSoleWriter;
    this.#folder = parts.folder;
    this.#client = parts.client;
    this.#letGo = parts.letGo;
  }

  async *output(from = { stdout: 0, stderr: 0 }, signal?: AbortSignal): AsyncGenerator<ExecOutput> {
    const { socket } = await this.#open("output", from.stdout, from.stderr);
    const reader = new MessageReader();
    const giveUp = () => void socket.destroy();
    signal?.addEventListener("abort", giveUp, { once: true });
    if (signal?.aborted === true) giveUp();
    try {
      for await (const piece of socket as AsyncIterable<Buffer>) {
        reader.push(piece);
        for (let message = reader.next(); message !== undefined; message = reader.next()) {
          const output = outputOf(message);
          yield output;
          if (output.type === "exit") return;
        }
      }
    } catch (error) {
      if (!this.#letGo.aborted) throw error;
    } finally {
      signal?.removeEventListener("abort", giveUp);
      socket.destroy();
    }
    throw new RuntimeError("not_running", `how the command ${this.id} ended is not known: its supervisor is gone`);
  }

  async write(bytes: Uint8Array): Promise<void> {
    const { socket, direct } = await this.#openInput();
    for (let at = direct?.write(bytes) ?? 0; at < bytes.length; at += PIECE_BYTES) {
      await send(socket, encodeMessage("data", bytes.subarray(at, at + PIECE_BYTES)));
    }
  }

  async endInput(): Promise<void> {
    const { socket, direct } = await this.#openInput();
    direct?.close();
    await send(socket, encodeMessage("eof"));
    socket.end();
  }

  async resize({ columns, rows }: { columns: number; rows: number }): Promise<void> {
    await this.#client.request("resize", this.id, columns, rows);
  }

  async kill(signal: "SIGTERM" | "SIGINT" | "SIGKILL" | "SIGHUP"): Promise<void> {
    await this.#client.request("kill", this.id, signal);
  }

  #openInput(): Promise<Input> {
    this.#input ??= this.#open("input").then(({ socket, fields }) => {
      const direct = this.#isSoleWriter ? DirectInput.open(fields) : undefined;
      // It says nothing more; its end, which is the command's, is to be noticed.
      socket.on("end", () => socket.destroy());
      socket.on("close", () => direct?.close());
      socket.resume();
      socket.unref();
      return { socket, direct };
    });
    return this.#input;
  }

  #endedWithUs(socket: Socket): Socket {
    const letGo = this.#letGo;
    const end = () => void socket.destroy();
    letGo.addEventListener("abort", end, { once: true });
    socket.once("close", () => letGo.removeEventListener("abort", end));
    if (letGo.aborted) end();
    return socket;
  }

  async #open(
    use: "input" | "output",
    ...asked: readonly number[]
  ): Promise<{ socket: Socket; fields: readonly string[] }> {
    const opened = await openStream(this.#folder, use, this.id, ...asked);
    if ("socket" in opened) return { socket: this.#endedWithUs(opened.socket), fields: opened.fields };
    throw new RuntimeError("not_running", `nothing is known any more of the command ${this.id}`);
  }
}

/**
 * Resolves when the bytes are on their way; the socket's queue is the only one. The supervisor closes it when the command
 * has ended: what is written from then on is for nobody, and that it has ended is told by its output.
 */
function send(socket: Socket, bytes: Buffer): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  socket.write(bytes, () => resolve());
  return promise;
}

function outputOf([kind, ...fields]: Buffer[]): ExecOutput {
  const [first = Buffer.alloc(0), second = Buffer.alloc(0), third = Buffer.alloc(0)] = fields;
  const stream = first.toString() === "stderr" ? "stderr" : "stdout";
  if (kind?.toString() === "output") return { type: stream, bytes: second };
  if (kind?.toString() === "skipped") return { type: "skipped", stream, bytes: Number(second.toString()) };
  return {
    type: "exit",
    exitCode: first.length === 0 ? undefined : Number(first.toString()),
    signal: second.length === 0 ? undefined : second.toString(),
    timedOut: third.toString() === "1",
  };
}
