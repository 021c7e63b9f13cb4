import type { MessagePort } from "node:worker_threads";
import {
  EngineError,
  fromErrorRecord,
  messageOf,
  StartupError,
  toErrorRecord,
  type ErrorRecord,
} from "../../core/errors.ts";
import { toDatabaseError, toStartupError } from "./errors.ts";
import type { OpenOptions } from "./open.ts";

/**
 * What the database's threads and their clients say to each other. Requests are answered in order: first `OPEN`, then
 * methods of the thread's part, at last `CLOSE`. A method that returns a generator answers in parts.
 */
export type ThreadData = { isolate: string };

export type Request = { id: number; method: string; args: readonly unknown[] };

/** Its one argument is an `OpenOptions`. */
export const OPEN = "open";
export const CLOSE = "close";

export type Reply =
  | { id: number; kind: "part"; part: unknown }
  | { id: number; kind: "value"; value: unknown }
  | { id: number; kind: "error"; error: WireError };

/** Errors by value, since structured clone drops classes. */
export type WireError =
  | { kind: "engine"; record: ErrorRecord }
  | { kind: "startup"; message: string; exitCode: 1 | 2 }
  | { kind: "own"; error: unknown }
  | { kind: "other"; message: string; stack: string | undefined };

/** The classes of errors that the thread's own work throws, by value and back. */
export type OwnErrors = {
  /** Undefined for an error that is none of them. */
  toWire: (error: unknown) => unknown;
  fromWire: (wire: unknown) => Error;
};

function toWire(error: unknown, own: OwnErrors): WireError {
  if (error instanceof EngineError) return { kind: "engine", record: toErrorRecord(error) };
  if (error instanceof StartupError) return { kind: "startup", message: error.message, exitCode: error.exitCode };
  const known = own.toWire(error);
  if (known !== undefined) return { kind: "own", error: known };
  return { kind: "other", message: messageOf(error), stack: error instanceof Error ? error.stack : undefined };
}

export function fromWire(wire: WireError, own: OwnErrors): Error {
  switch (wire.kind) {
    case "engine":
      return fromErrorRecord(wire.record);
    case "startup":
      return new StartupError(wire.message, wire.exitCode);
    case "own":
      return own.fromWire(wire.error);
    case "other": {
      const error = new Error(wire.message);
      if (wire.stack !== undefined) error.stack = wire.stack;
      return error;
    }
  }
}

type Part = { api: object; close(): void };

/** The thread's side: answers requests until it is told to close, or could not open. */
export function serve(port: MessagePort | null, own: OwnErrors, open: (options: OpenOptions) => Part): void {
  if (port === null) throw new Error("the catalog's thread was started as a program");
  const send = (reply: Reply) => port.postMessage(reply);
  let path = "";
  let part: Part | undefined;
  const answer = ({ method, args }: Request): unknown => {
    if (method === OPEN) {
      const options = args[0] as OpenOptions;
      path = options.path;
      part = open(options);
      return undefined;
    }
    if (part === undefined) throw new Error("the catalog's thread has not opened it");
    return method === CLOSE ? part.close() : call(part.api, method, args);
  };
  port.on("message", (request: Request) => {
    const { id, method } = request;
    try {
      sendAll(send, id, answer(request));
    } catch (error) {
      const mapped = method === OPEN ? toStartupError(error, path) : toDatabaseError(error, path);
      send({ id, kind: "error", error: toWire(mapped, own) });
    }
    if (method === CLOSE || part === undefined) port.close();
  });
}

function sendAll(send: (reply: Reply) => void, id: number, value: unknown): void {
  if (!isGenerator(value)) {
    send({ id, kind: "value", value });
    return;
  }
  for (const part of value) send({ id, kind: "part", part });
  send({ id, kind: "value", value: undefined });
}

function call(api: object, method: string, args: readonly unknown[]): unknown {
  const run = (api as Record<string, unknown>)[method];
  if (typeof run !== "function") throw new Error(`the catalog's thread has no method ${method}`);
  return Reflect.apply(run, api, args) as unknown;
}

function isGenerator(value: unknown): value is Generator {
  return typeof value === "object" && value !== null && Symbol.iterator in value && "next" in value;
}
