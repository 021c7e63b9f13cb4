import type { Socket } from "node:net";
import { DirectInput, DirectOutput } from "./direct-pipes.ts";
import { MessageReader, encodeMessage } from "./messages.ts";
import { type Exec, type ExecOutput, RuntimeError } from "./runtime.ts";
import { type SupervisorClient, openStream, piecesIn } from "./supervisor-client.ts";

/** Of input, in one message: the supervisor takes messages whole. */
const PIECE_BYTES = 64 * 1024;

export type SupervisedExecParts = {
  id: string;
  folder: string;
  client: SupervisorClient;
  letGo: AbortSignal;
  /** See `ExecRequest`. */
  isSoleUser: boolean;
};

type Input = { socket: Socket; direct: DirectInput | undefined };

/** A command that a supervisor has. Input and output have connections of their own, so that neither waits for others. */
export class SupervisedExec implements Exec {
  readonly id: string;
  readonly #folder: string;
  readonly #client: SupervisorClient;
  /** Aborted when this process lets go of the machine: connections end then, though the command goes on. */
  readonly #letGo: AbortSignal;
  readonly #isSoleUser: boolean;
  #input: Promise<Input> | undefined;

  constructor(parts: SupervisedExecParts) {
    this.id = parts.id;
    this.#isSoleUser = parts.isSoleUser;
    this.#folder = parts.folder;
    this.#client = parts.client;
    this.#letGo = parts.letGo;
  }

  async *output(from = { stdout: 0, stderr: 0 }, signal?: AbortSignal): AsyncGenerator<ExecOutput> {
    let news = Promise.withResolvers<void>();
    const ring = () => news.resolve();
    const { socket, direct } = await this.#openOutput(from, ring);
    const reader = new MessageReader();
    const giveUp = () => {
      socket.destroy();
      direct?.close();
    };
    signal?.addEventListener("abort", giveUp, { once: true });
    if (signal?.aborted === true) giveUp();
    socket.on("readable", ring).on("end", ring).on("close", ring);
    /** Of standard output, from the supervisor. */
    let had = from.stdout;
    try {
      for (;;) {
        news = Promise.withResolvers();
        for (const output of outputsIn(socket, reader)) {
          if (output.type === "exit" && direct !== undefined) yield* stdoutOf(direct.rest());
          yield output;
          if (output.type === "exit") return;
          had += bytesOfStdout(output);
        }
        if (direct !== undefined && had >= direct.start) yield* stdoutOf(direct.pieces());
        if (socket.destroyed || socket.readableEnded) break;
        await news.promise;
      }
    } finally {
      signal?.removeEventListener("abort", giveUp);
      giveUp();
    }
    signal?.throwIfAborted();
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

  async #openOutput(
    { stdout, stderr }: { stdout: number; stderr: number },
    onNews: () => void,
  ): Promise<{ socket: Socket; direct: DirectOutput | undefined }> {
    if (this.#isSoleUser) {
      const { socket, fields } = await this.#open("output", stdout, stderr, 1);
      const direct = DirectOutput.open(fields, onNews);
      // Nobody else takes from a pipe that is lent.
      if (direct !== undefined || fields.length === 0) return { socket, direct };
      socket.destroy();
    }
    const { socket } = await this.#open("output", stdout, stderr, 0);
    return { socket, direct: undefined };
  }

  #openInput(): Promise<Input> {
    this.#input ??= this.#open("input").then(({ socket, fields }) => {
      const direct = this.#isSoleUser ? DirectInput.open(fields) : undefined;
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

function* stdoutOf(pieces: Iterable<Uint8Array>): Generator<ExecOutput> {
  for (const bytes of pieces) yield { type: "stdout", bytes };
}

/** What has arrived by now: no more, however fast it goes on. */
function* outputsIn(socket: Socket, reader: MessageReader): Generator<ExecOutput> {
  const pieces = [...piecesIn(socket)];
  for (const piece of pieces) {
    reader.push(piece);
    for (let message = reader.next(); message !== undefined; message = reader.next()) yield outputOf(message);
  }
}

function bytesOfStdout(output: ExecOutput): number {
  if (output.type === "stdout") return output.bytes.length;
  return output.type === "skipped" && output.stream === "stdout" ? output.bytes : 0;
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
