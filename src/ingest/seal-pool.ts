import type { Piscina } from "piscina";
import { MIN_SHARED_BYTES, releaseShared, takePageAligned } from "../core/buffer-pool.ts";
import { Semaphore } from "../core/concurrency.ts";
import { EngineError } from "../core/errors.ts";
import { isolateFile } from "../core/isolate.ts";
import type { Log } from "../core/log.ts";
import type { ParquetEncodings } from "../io/duckdb/parquet-encodings.ts";
import type { SealBody, Sealer, SealResult, SealTask } from "./seal.ts";

/** Sealing on worker threads. */
export type SealPool = {
  seal: Sealer;
  /** Tasks that wait for a thread. */
  queueDepth(): number;
  /** Finishes accepted tasks, then ends the threads. */
  close(): Promise<void>;
};

export type SealPoolOptions = {
  threads: number;
  log: Log;
  /** Of Parquet, for all tasks: see `SealTask`. */
  encodings?: ParquetEncodings | undefined;
};

/** Tasks that may wait. The bytes behind them are bounded by whoever accepts them; this bounds their number. */
const MAX_QUEUED_TASKS = 4_096;
/** A thread takes a tenth of a second to start, so one that served a burst stays for the next. */
const IDLE_MS = 60_000;

/**
 * Starts a pool of at most `threads` threads; one of them at once, the others with the load.
 *
 * `seal` leaves the caller's bytes alone, so that the same bodies can be sealed again: shared ones are read in place,
 * the others are gathered into one buffer, and that is transferred. That is one copy, of the bodies only; structured
 * clone makes two, of the whole of whatever buffer a body is a view of. Rejects with `too_many_requests` when the queue is full, with a plain error
 * when a thread dies (the pool starts another).
 */
export function createSealPool(options: SealPoolOptions): SealPool {
  const opening = openPiscina(options);
  // Buffers are taken when it is a task's turn, so that a queue of large bodies does not hold as many outputs; one task
  // more than there are threads is made ready, so that none waits for the next.
  const turns = new Semaphore(options.threads + 1);
  const accepted = new Set<Promise<SealResult>>();
  let closed = false;
  opening.catch((error: unknown) => {
    // Whoever seals gets the reason; here it must not end the process.
    options.log.error({ err: error }, "the sealing threads did not start");
  });
  return {
    async seal(task) {
      const piscina = await opening;
      // Piscina itself would start new threads.
      if (closed) throw new EngineError("unavailable", "the sealing threads have ended");
      if (turns.waiting >= MAX_QUEUED_TASKS) throw busy();
      const sealing = turns.run(() => sealOn(piscina, { encodings: options.encodings, ...task }));
      accepted.add(sealing);
      return sealing.finally(() => accepted.delete(sealing));
    },
    queueDepth: () => turns.waiting,
    async close() {
      closed = true;
      await Promise.allSettled(accepted);
      // A pool that did not open has said so.
      const piscina = await opening.catch(() => undefined);
      await piscina?.close();
    },
  };
}

async function sealOn(piscina: Piscina, task: SealTask): Promise<SealResult> {
  const output = outputFor(task);
  const { gathered, transferList } = gather(task);
  const sent = output === undefined ? gathered : { ...gathered, output };
  const result = (await piscina.run(sent, { name: "seal", transferList })) as SealResult;
  return output === undefined ? result : withOutput(result, output);
}

async function openPiscina({ threads, log }: SealPoolOptions) {
  const { Piscina } = await import("piscina");
  const piscina = new Piscina({
    filename: isolateFile(new URL("./seal-thread.ts", import.meta.url)),
    name: "seal",
    workerData: { isolate: "seal" },
    minThreads: 1,
    maxThreads: threads,
    maxQueue: MAX_QUEUED_TASKS,
    idleTimeout: IDLE_MS,
  });
  piscina.on("error", (error: unknown) => log.error({ err: error }, "a sealing thread failed"));
  return piscina;
}

/** Extents are mostly smaller than their NDJSON; the one that is not gets a buffer of its own. */
function outputFor(task: SealTask): SharedArrayBuffer | undefined {
  const sizeBytes = task.bodies.reduce((sum, body) => sum + body.bytes.byteLength, 0);
  return task.format === "tlm" && sizeBytes >= MIN_SHARED_BYTES ? takePageAligned(sizeBytes) : undefined;
}

/** The result on this thread's own view of the output buffer, if it is there; else the buffer is given back. */
function withOutput(result: SealResult, output: SharedArrayBuffer): SealResult {
  const { extent } = result;
  if (extent !== undefined && isShared(extent.bytes)) {
    return { ...result, extent: { ...extent, bytes: new Uint8Array(output, 0, extent.bytes.byteLength) } };
  }
  releaseShared(new Uint8Array(output));
  return result;
}

/** The scanner reads whole words, and would copy a body that ends where its buffer does. */
const SLACK_BYTES = 16;

/** The task with those bodies that are not shared copied side by side into one buffer of their own. */
function gather(task: SealTask): { gathered: SealTask; transferList: ArrayBuffer[] } {
  const own = task.bodies.filter(({ bytes }) => !isShared(bytes));
  if (own.length === 0) return { gathered: task, transferList: [] };
  const all = new Uint8Array(own.reduce((sum, body) => sum + body.bytes.byteLength, 0) + SLACK_BYTES);
  let end = 0;
  const bodies = task.bodies.map((body): SealBody => {
    if (isShared(body.bytes)) return body;
    const start = end;
    all.set(body.bytes, start);
    end += body.bytes.byteLength;
    return { ...body, bytes: all.subarray(start, end) };
  });
  return { gathered: { ...task, bodies }, transferList: [all.buffer] };
}

function isShared(bytes: Uint8Array): boolean {
  return bytes.buffer instanceof SharedArrayBuffer;
}

function busy(): EngineError {
  return new EngineError("too_many_requests", "too many flushes wait to be sealed", {
    headers: { "Retry-After": "1" },
  });
}
