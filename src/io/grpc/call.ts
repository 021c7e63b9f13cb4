import { Metadata, type ServerUnaryCall, type ServerWritableStream } from "@grpc/grpc-js";
import type { Clock, TimerHandle } from "../../core/clock.ts";
import { CallEndedError, STALL_TIMEOUT_MS, UNSENT_TIMEOUT_MS, type GrpcCall } from "./grpc.ts";
import { sentMetadata } from "./status.ts";

/** A call of @grpc/grpc-js; its messages are bytes. */
export type DriverCall = ServerUnaryCall<Buffer, Buffer> | ServerWritableStream<Buffer, Buffer>;

/** Timers cannot wait for longer. */
const MAX_DELAY_MS = 2 ** 31 - 1;

/** See `GrpcCall.header`. */
export function headerOf(metadata: Metadata, name: string): string | undefined {
  const values = metadata.get(name);
  if (values.length === 0) return undefined;
  return values.map((value) => (typeof value === "string" ? value : value.toString("base64"))).join(", ");
}

/** A call as methods see it, and what ends it. */
export class WatchedCall implements GrpcCall {
  readonly path: string;
  readonly remoteAddress: string;
  readonly #call: DriverCall;
  readonly #clock: Clock;
  readonly #hangUp: (peer: string) => void;
  readonly #ended = new AbortController();
  #deadline: TimerHandle | undefined;
  #isDone = false;

  /** `hangUp` closes the connection of a peer. */
  constructor(call: DriverCall, { clock, hangUp }: { clock: Clock; hangUp: (peer: string) => void }) {
    this.path = call.getPath();
    this.remoteAddress = addressOf(call.getPeer());
    this.#call = call;
    this.#clock = clock;
    this.#hangUp = hangUp;
    // It is emitted at the end of every call, too.
    call.on("cancelled", () => this.#end("cancelled"));
    if (call.cancelled) this.#end("cancelled");
    // The driver's own timer only ends the answer, and that waits for the client to take what was sent before.
    const leftMs = Number(call.getDeadline()) - clock.nowMs();
    if (leftMs <= MAX_DELAY_MS) this.#deadline = clock.after(Math.max(leftMs, 0), () => this.#end("deadline"));
  }

  get signal(): AbortSignal {
    return this.#ended.signal;
  }

  header(name: string): string | undefined {
    return headerOf(this.#call.metadata, name);
  }

  headerNames(): readonly string[] {
    return Object.keys(this.#call.metadata.getMap());
  }

  /** Sends a message; resolves when the client can take the next one, rejects when the call ends before. */
  send(message: Uint8Array): Promise<void> {
    const call = this.#call as ServerWritableStream<Buffer, Buffer>;
    return new Promise((resolve, reject) => {
      let unsent: TimerHandle | undefined;
      const peer = this.#call.getPeer();
      const onEnd = (): void => {
        unsent = this.#clock.after(UNSENT_TIMEOUT_MS, () => this.#hangUpOn(peer), { background: true });
        settle(this.signal.reason);
      };
      const stall = this.#clock.after(STALL_TIMEOUT_MS, () => this.#end("stalled"));
      const settle = (failure: unknown): void => {
        stall.cancel();
        this.signal.removeEventListener("abort", onEnd);
        if (failure === undefined || failure === null) resolve();
        else reject(failure);
      };
      this.signal.addEventListener("abort", onEnd, { once: true });
      if (this.signal.aborted) {
        settle(this.signal.reason);
        return;
      }
      call.write(bufferOf(message), (failure: unknown) => {
        unsent?.cancel();
        settle(failure);
      });
    });
  }

  /** Unless the client has ended the call itself: it has no connection then, as far as the driver tells. */
  #hangUpOn(peer: string): void {
    if (this.#call.getPeer() === peer) this.#hangUp(peer);
  }

  /** The answer is complete, or has failed: nothing ends the call any more. */
  done(): void {
    this.#isDone = true;
    this.#deadline?.cancel();
  }

  #end(reason: CallEndedError["reason"]): void {
    if (!this.#isDone && !this.signal.aborted) this.#ended.abort(new CallEndedError(reason));
  }
}

/** `192.0.2.7:50000`, `fd00::1:50000` or `unknown`. */
export function addressOf(peer: string): string {
  const address = /^(.+):\d+$/.exec(peer)?.[1] ?? "";
  return address.replace(/^::ffff:(?=\d+\.)/, "");
}

/** The same bytes. */
export function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

export function metadataOf(values: Readonly<Record<string, string>> | undefined): Metadata {
  const metadata = new Metadata();
  for (const [name, value] of sentMetadata(values)) metadata.set(name, value);
  return metadata;
}
