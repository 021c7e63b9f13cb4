import { roleIncludes, type Caller } from "../../auth/caller.ts";
import type { Authenticator } from "../../auth/authenticator.ts";
import type { CallerRole } from "../../config/kinds.ts";
import type { Clock } from "../../core/clock.ts";
import { EngineError } from "../../core/errors.ts";
import type { IdSource } from "../../core/ids.ts";
import { ANSWERED, type Log } from "../../core/log.ts";
import type { Metrics } from "../../core/metrics.ts";
import {
  CallEndedError,
  type GrpcCall,
  type GrpcCallHead,
  type GrpcReply,
  type GrpcService,
} from "../../io/grpc/grpc.ts";
import { failureOf, GrpcError, statusOf, type GrpcStatusName } from "../../io/grpc/status.ts";
import { asEngineError } from "../error-response.ts";
import { requestIdOf } from "../request-id.ts";
import { ObservedMessages } from "./observed-messages.ts";

/**
 * What every call gets before and after its method: a request id, a caller, a refusal while the server drains, failures
 * as statuses that say no more than those of HTTP do, a line in the log and a measurement.
 */
export type GrpcOperation = {
  streams: boolean;
  handle: (context: GrpcContext, message: Uint8Array) => Promise<GrpcReply>;
};

export type GrpcContext = { call: GrpcCall; caller: Caller; requestId: string };

export type GrpcOperations = { name: string; operations: Readonly<Record<string, GrpcOperation>> };

/** Who makes a call. Rejects with an `EngineError` for one that nobody may make. */
export type CallerOf = (call: GrpcCallHead, requestId: string) => Promise<Caller>;

export type GuardDeps = {
  callerOf: CallerOf;
  /** Whether the server refuses new work because it is about to stop. */
  isDraining: () => boolean;
  clock: Clock;
  newId: IdSource;
  log: Log;
  metrics: Pick<Metrics, "grpcDuration">;
};

/** Callers show a token with that role in the metadata `authorization`, as they do over HTTP. */
export function tokenCaller(authenticator: Pick<Authenticator, "authenticate">, role: CallerRole): CallerOf {
  return async (call, requestId) => {
    const credentials = { authorization: call.header("authorization"), address: call.remoteAddress, requestId };
    const caller = await authenticator.authenticate(credentials);
    if (roleIncludes(caller.role, role)) return caller;
    throw new EngineError("forbidden", `this needs the role ${role}; the token has ${caller.role}`);
  };
}

export function guardedService({ name, operations }: GrpcOperations, deps: GuardDeps): GrpcService {
  const methods = Object.entries(operations).map(([method, operation]) => {
    const handle = (call: GrpcCall, message: Uint8Array): Promise<GrpcReply> => {
      return new GuardedCall(call, deps).answer(operation, call, message);
    };
    return [method, { streams: operation.streams, handle }] as const;
  });
  const admit = (head: GrpcCallHead): Promise<void> => new GuardedCall(head, deps).admit();
  return { name, admit, methods: Object.fromEntries(methods) };
}

class GuardedCall {
  readonly #call: GrpcCallHead & Partial<Pick<GrpcCall, "signal">>;
  readonly #deps: GuardDeps;
  readonly #requestId: string;
  readonly #startedMs: number;

  constructor(call: GrpcCallHead & Partial<Pick<GrpcCall, "signal">>, deps: GuardDeps) {
    this.#call = call;
    this.#deps = deps;
    this.#requestId = requestIdOf(call.header("x-request-id"), deps.newId);
    this.#startedMs = deps.clock.monotonicMs();
  }

  /** Refuses a call before its message is read. Who may call is asked again with it: a token may have ended meanwhile. */
  async admit(): Promise<void> {
    try {
      if (this.#deps.isDraining()) throw draining();
      await this.#deps.callerOf(this.#call, this.#requestId);
    } catch (error) {
      const failure = this.#failure(error);
      this.#ended(statusName(failure), 0);
      throw failure;
    }
  }

  async answer(operation: GrpcOperation, call: GrpcCall, message: Uint8Array): Promise<GrpcReply> {
    const requestId = this.#requestId;
    try {
      if (this.#deps.isDraining()) throw draining();
      const caller = await this.#deps.callerOf(call, requestId);
      const reply = await operation.handle({ call, caller, requestId }, message);
      const metadata = { ...reply.metadata, "x-request-id": requestId };
      if (!(reply.messages instanceof Uint8Array)) {
        const observed = new ObservedMessages(reply.messages, {
          failed: (error) => this.#failure(error),
          ended: (bytes, error) => this.#ended(statusName(error), bytes),
        });
        return { metadata, messages: observed };
      }
      this.#ended("OK", reply.messages.byteLength);
      return { metadata, messages: reply.messages };
    } catch (error) {
      const failure = this.#failure(error);
      this.#ended(statusName(failure), 0);
      throw failure;
    }
  }

  /** The failure as the client hears of it; what it does not hear is in the log. */
  #failure(error: unknown): unknown {
    const { signal, path } = this.#call;
    // What was under way failed because of it.
    if (signal?.aborted === true && signal.reason instanceof CallEndedError) return signal.reason;
    if (error instanceof GrpcError || error instanceof CallEndedError) return error;
    const requestId = this.#requestId;
    const failure = asEngineError(error, requestId);
    if (failure.status >= 500 || failure !== error) {
      const level = failure.code === "unavailable" ? "info" : "error";
      this.#deps.log[level]({ err: error, requestId, path }, "request failed");
    }
    const { metadata, ...status } = statusOf(failure);
    return new GrpcError({ ...status, metadata: { ...metadata, "x-request-id": requestId } });
  }

  #ended(status: GrpcStatusName, bytes: number): void {
    const { clock, log, metrics } = this.#deps;
    const durationMs = clock.monotonicMs() - this.#startedMs;
    const method = this.#call.path;
    metrics.grpcDuration.observe({ method, status }, durationMs / 1000);
    const roundedMs = Math.round(durationMs * 1000) / 1000;
    log.info({ method, status, durationMs: roundedMs, bytes, requestId: this.#requestId }, ANSWERED);
  }
}

function statusName(error: unknown): GrpcStatusName {
  return error === undefined ? "OK" : failureOf(error).status;
}

function draining(): EngineError {
  return new EngineError("unavailable", "the server is shutting down; retry elsewhere", {
    headers: { "Retry-After": "1" },
  });
}
