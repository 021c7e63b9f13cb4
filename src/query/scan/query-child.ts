import "../../core/warnings.ts";
import { systemClock } from "../../core/clock.ts";
import { EngineError, messageOf, toErrorRecord } from "../../core/errors.ts";
import { loadDuckDb } from "../../io/duckdb/duckdb.ts";
import type { ChildMessage, QueryProgress, ServerMessage } from "./protocol.ts";
import { enterFolder, liveWithServer } from "./confined-child.ts";
import { spillFolder } from "./process-folders.ts";
import { declareSystemTables, type DeclaredTable } from "../system-tables/system-tables.ts";
import { QuerySession } from "./session.ts";
import { UsageMeter } from "./usage.ts";

/**
 * A query process (see `child-pool.ts`): answers one query at a time, and ends when the server's end of the channel
 * closes. Its settings come in the environment because they must be known before the first message.
 */
const MAX_THREADS = 8;

type Running = { session: QuerySession; meter: UsageMeter };

async function openSession(): Promise<Running> {
  const folder = enterFolder();
  const memoryBytes = Number(process.env["ENGINE_QUERY_CHILD_MEMORY_BYTES"]);
  const spillBytes = Number(process.env["ENGINE_QUERY_CHILD_SPILL_BYTES"]);
  const cores = Number(process.env["ENGINE_QUERY_CHILD_CORES"]);
  if (!(memoryBytes > 0) || !(spillBytes > 0) || !(cores > 0)) throw new Error("not started by the query pool");
  declareSystemTables(JSON.parse(process.env["ENGINE_QUERY_CHILD_SYSTEM_TABLES"] ?? "[]") as DeclaredTable[]);
  const threads = Math.min(cores, MAX_THREADS);
  const duckdb = await loadDuckDb();
  const session = await QuerySession.open({ duckdb, folder, memoryBytes, spillBytes, threads, onSpent: endAtOnce });
  return { session, meter: new UsageMeter(systemClock, spillFolder(folder)) };
}

/** The server starts another one, and runs a query that it was about to have again. */
function endAtOnce(reason: unknown): void {
  process.stderr.write(`the process is spent: ${messageOf(reason)}\n`);
  process.kill(process.pid, "SIGKILL");
}

/** Whether the query that is open was cancelled. */
let isCancelled = false;

/** A statement that is about to begin forgets that it was interrupted before. */
const INTERRUPT_AGAIN_MS = 10;

/** Comes while a query is under way: it ends early, and the process takes the next one. */
function cancel(running: Running): void {
  isCancelled = true;
  if (!running.session.interrupt()) return;
  systemClock.after(INTERRUPT_AGAIN_MS, () => {
    if (isCancelled) cancel(running);
  });
}

type Turn = Exclude<ServerMessage, { kind: "cancel" }>;

async function answer({ session, meter }: Running, message: Turn): Promise<ChildMessage> {
  try {
    switch (message.kind) {
      case "parse":
        isCancelled = false;
        meter.start();
        return { kind: "needs", ...(await session.parse(message)) };
      case "run": {
        const done = await toldOf({ session, meter }, () => meter.sample(() => session.run(message)));
        return { kind: "done", ...done, rssBytes: process.memoryUsage.rss(), usage: meter.usage(done.data) };
      }
      case "convert": {
        isCancelled = false;
        meter.start();
        const done = await meter.sample(() => session.convert(message));
        return { kind: "done", ...done, rssBytes: process.memoryUsage.rss(), usage: meter.usage(done.data) };
      }
      case "describe":
        return { kind: "described", columns: await session.describe(message) };
      case "drop":
        session.drop();
        return { kind: "dropped" };
    }
  } catch (error) {
    const known = error instanceof EngineError ? error : new EngineError("query_failed", messageOf(error));
    // What failed in DuckDB itself, or for memory, may leave it in any state; what was interrupted leaves nothing.
    const broken = known.code === "budget_exceeded" || (known.code === "query_failed" && !isCancelled);
    return { kind: "failed", error: toErrorRecord(known), broken, rssBytes: process.memoryUsage.rss() };
  }
}

/** Between two messages about how far a query is. Asking DuckDB takes 50 µs, and now and then waits for a task of it. */
const PROGRESS_MS = 500;

/** Tells the server how far the work is, as long as it lasts. Short queries are over before. */
async function toldOf<T>({ session, meter }: Running, work: () => Promise<T>): Promise<T> {
  let last = "";
  const telling = systemClock.every(PROGRESS_MS, () => {
    const percent = session.percent();
    const progress: QueryProgress = { ...(percent !== undefined && { percent }), spillBytes: meter.spillBytes };
    const text = JSON.stringify(progress);
    if (text !== last) send({ kind: "progress", ...progress });
    last = text;
  });
  try {
    return await work();
  } finally {
    telling.cancel();
  }
}

function send(message: ChildMessage): void {
  process.send?.(message);
}

liveWithServer();
const running = await openSession();
let turn = Promise.resolve();
process.on("message", (received) => {
  const message = received as ServerMessage;
  if (message.kind === "cancel") cancel(running);
  else turn = turn.then(async () => send(await answer(running, message)));
});
send({ kind: "ready" });
