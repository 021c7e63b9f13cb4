import "../core/warnings.ts";
import { writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { systemClock } from "../core/clock.ts";
import { EngineError, messageOf, toErrorRecord } from "../core/errors.ts";
import { keepFilesPrivate } from "../core/isolate.ts";
import { loadDuckDb } from "../io/duckdb/duckdb.ts";
import type { ChildMessage, ServerMessage } from "./protocol.ts";
import { QuerySession, spillFolder } from "./session.ts";
import { UsageMeter } from "./usage.ts";

/**
 * A query process (see `child-pool.ts`): answers one query at a time, and ends when the server's end of the channel
 * closes. Its settings come in the environment because they must be known before the first message.
 */
const MAX_THREADS = 8;

type Running = { session: QuerySession; meter: UsageMeter };

async function openSession(): Promise<Running> {
  const folder = process.env["ENGINE_QUERY_CHILD_FOLDER"];
  const memoryBytes = Number(process.env["ENGINE_QUERY_CHILD_MEMORY_BYTES"]);
  const spillBytes = Number(process.env["ENGINE_QUERY_CHILD_SPILL_BYTES"]);
  if (folder === undefined || !(memoryBytes > 0) || !(spillBytes > 0)) throw new Error("not started by the query pool");
  const threads = Math.min(availableParallelism(), MAX_THREADS);
  const session = await QuerySession.open({ duckdb: await loadDuckDb(), folder, memoryBytes, spillBytes, threads });
  return { session, meter: new UsageMeter(systemClock, spillFolder(folder)) };
}

/** When the machine runs out of memory, a query is what should go first. Linux only; elsewhere there is no such file. */
function volunteerForTheOomKiller(): void {
  if (process.platform !== "linux") return;
  try {
    writeFileSync("/proc/self/oom_score_adj", "1000");
  } catch (error) {
    process.stderr.write(`cannot set oom_score_adj: ${messageOf(error)}\n`);
  }
}

async function answer({ session, meter }: Running, message: ServerMessage): Promise<ChildMessage> {
  try {
    switch (message.kind) {
      case "parse":
        meter.start();
        return await session.parse(message);
      case "run": {
        const done = await meter.sample(() => session.run(message));
        return { kind: "done", ...done, rssBytes: process.memoryUsage.rss(), usage: meter.usage(done.data) };
      }
      case "drop":
        session.drop();
        return { kind: "dropped" };
    }
  } catch (error) {
    const known = error instanceof EngineError ? error : new EngineError("query_failed", messageOf(error));
    // What failed in DuckDB itself, or for memory, may leave it in any state.
    const broken = known.code === "query_failed" || known.code === "budget_exceeded";
    return { kind: "failed", error: toErrorRecord(known), broken };
  }
}

function send(message: ChildMessage): void {
  process.send?.(message);
}

keepFilesPrivate();
volunteerForTheOomKiller();
// A terminal's Ctrl-C goes to the whole group; when this process ends is for the server to say.
process.on("SIGINT", () => {});
// The server is gone. An ordinary exit would wait for the thread that runs the query, however long that takes.
process.on("disconnect", () => process.kill(process.pid, "SIGKILL"));
const running = await openSession();
let turn = Promise.resolve();
process.on("message", (message) => {
  turn = turn.then(async () => send(await answer(running, message as ServerMessage)));
});
send({ kind: "ready" });
