import { once } from "node:events";
import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { type Socket, connect } from "node:net";
import { messageOf, systemCodeOf } from "../../core/errors.ts";
import { MessageReader, encodeMessage } from "./messages.ts";
import { RuntimeError } from "./runtime.ts";

/** What a supervisor says without being asked. */
export type SupervisorEvents = {
  onLine: (stream: "stdout" | "stderr", line: string) => void;
  /** So many lines were not kept for want of a listener. */
  onLost: (lines: number) => void;
  /** It has ended its machine; or, without a cause, is not there any more. Called once. */
  onEnd: (end: { cause: string; reason: string } | undefined) => void;
};

type Pending = { resolve: (fields: string[]) => void; reject: (error: Error) => void };

/** Requests to a supervisor over one connection; `supervisor/supervisor.pl` lists them. */
export class SupervisorClient {
  readonly #socket: Socket;
  readonly #events: SupervisorEvents;
  readonly #pending = new Map<string, Pending>();
  #nextNumber = 0;
  #ended = false;

  private constructor(socket: Socket, events: SupervisorEvents) {
    this.#socket = socket;
    this.#events = events;
    const reader = new MessageReader();
    socket.on("data", (piece: Buffer) => {
      reader.push(piece);
      for (let message = reader.next(); message !== undefined; message = reader.next()) {
        this.#take(message.map((field) => field.toString()));
      }
    });
    // The supervisor never ends one direction only, and whatever ends the connection ends the machine for us.
    socket.on("end", () => socket.destroy());
    socket.on("error", () => socket.destroy());
    socket.on("close", () => this.#gone());
  }

  /** Undefined when no supervisor is in this folder. */
  static async open(folder: string, events: SupervisorEvents): Promise<SupervisorClient | undefined> {
    const socket = await connectIfThere(folder);
    return socket === undefined ? undefined : new SupervisorClient(socket, events);
  }

  /** Rejects with a `RuntimeError`: the supervisor's, or `not_running` when it goes meanwhile. */
  request(verb: string, ...fields: readonly (string | number)[]): Promise<string[]> {
    const number = String(this.#nextNumber++);
    const { promise, resolve, reject } = Promise.withResolvers<string[]>();
    if (this.#socket.destroyed) return Promise.reject(goneError());
    this.#pending.set(number, { resolve, reject });
    this.#socket.write(encodeMessage(verb, number, ...fields.map(String)));
    return promise;
  }

  /** The supervisor goes on. */
  close(): void {
    this.#ended = true;
    this.#socket.destroy();
  }

  /** The connection does not keep this process alive. */
  unref(): void {
    this.#socket.unref();
  }

  #take([kind, first = "", ...rest]: string[]): void {
    if (kind === "line") this.#events.onLine(first === "stderr" ? "stderr" : "stdout", rest[0] ?? "");
    else if (kind === "lost") this.#events.onLost(Number(rest[0]));
    else if (kind === "ended") this.#end({ cause: first, reason: rest[0] ?? "" });
    else {
      const pending = this.#pending.get(first);
      this.#pending.delete(first);
      if (kind === "ok") pending?.resolve(rest);
      else pending?.reject(new RuntimeError(codeOf(rest[0]), rest[1] ?? ""));
    }
  }

  #gone(): void {
    for (const { reject } of this.#pending.values()) reject(goneError());
    this.#pending.clear();
    this.#end(undefined);
  }

  #end(end: { cause: string; reason: string } | undefined): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#events.onEnd(end);
  }
}

const CODES: readonly RuntimeError["code"][] = ["not_runnable", "refused", "not_running", "no_space", "unable"];

function codeOf(code: string | undefined): RuntimeError["code"] {
  return CODES.find((known) => known === code) ?? "failed";
}

function goneError(): RuntimeError {
  return new RuntimeError("not_running", "the machine's supervisor is gone");
}

/**
 * A connection of its own to a supervisor, for what the first message says. Resolves with it, paused, and the rest of the
 * answer when that is `ok`, or with the answer when it is another.
 */
export async function openStream(
  folder: string,
  ...fields: readonly (string | number)[]
): Promise<{ socket: Socket; fields: string[] } | { refusal: string[] }> {
  const socket = await connectIfThere(folder);
  if (socket === undefined) throw goneError();
  socket.write(encodeMessage(...fields.map(String)));
  const answer = await firstMessage(socket);
  if (answer[0] === "ok") return { socket, fields: answer.slice(1) };
  socket.destroy();
  return { refusal: answer };
}

/** Leaves the socket paused, with what came after the message still to be read. */
function firstMessage(socket: Socket): Promise<string[]> {
  const { promise, resolve, reject } = Promise.withResolvers<string[]>();
  const reader = new MessageReader();
  const onReadable = (): void => {
    for (const piece of piecesIn(socket)) {
      reader.push(piece);
      const message = reader.next();
      if (message === undefined) continue;
      stop();
      const rest = reader.rest();
      if (rest.length > 0) socket.unshift(rest);
      resolve(message.map((field) => field.toString()));
      return;
    }
  };
  const onGone = (error?: Error): void => {
    stop();
    reject(error === undefined ? goneError() : new RuntimeError("not_running", messageOf(error), { cause: error }));
  };
  const stop = (): void => {
    socket.off("readable", onReadable).off("error", onGone).off("end", onGone);
    // Whoever takes it listens from his next step on; until then a failure is not to end this process.
    socket.on("error", () => socket.destroy());
  };
  socket.on("readable", onReadable).on("error", onGone).on("end", onGone);
  return promise;
}

/** What has arrived, of a socket that is read by hand. */
export function* piecesIn(socket: Socket): Generator<Buffer> {
  for (;;) {
    const piece: unknown = socket.read();
    if (!Buffer.isBuffer(piece)) return;
    yield piece;
  }
}

async function connectIfThere(folder: string): Promise<Socket | undefined> {
  try {
    return await inFolder(folder, async (path) => {
      const socket = connect({ path: `${path}/supervisor.sock`, allowHalfOpen: true });
      await once(socket, "connect");
      return socket;
    });
  } catch (error) {
    if (["ENOENT", "ECONNREFUSED", "ENOTDIR"].includes(systemCodeOf(error) ?? "")) return undefined;
    throw error;
  }
}

async function inFolder<T>(folder: string, task: (path: string) => Promise<T>): Promise<T> {
  const handle = await openFolder(folder);
  try {
    return await task(shortPath(handle));
  } finally {
    await handle.close();
  }
}

/** Names of sockets have 107 bytes at most, which a folder may well have; a name by its descriptor is always short. */
export function openFolder(folder: string): Promise<FileHandle> {
  return open(folder, constants.O_RDONLY | constants.O_DIRECTORY);
}

export function shortPath(folder: FileHandle): string {
  return `/proc/self/fd/${folder.fd}`;
}
