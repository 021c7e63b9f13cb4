import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { lacks } from "../../src/core/gates.test-kit.ts";
import { signalProcess } from "../../src/core/signals.test-kit.ts";
import { ingest } from "../support/client.ts";
import { startEngine, temporaryHome } from "../support/engine.ts";
import { DurabilityModel } from "./durability.ts";
import { parseTrace, straceCommand, stringOf, TRACEABLE_ENV, type SystemCall } from "./trace.ts";

const SENDS = new Set(["write", "writev", "sendto", "sendmsg"]);

/** Of one buffer, or of the first of several (`[{iov_base="…"}, …]`). */
const isAcknowledgement = (call: SystemCall) =>
  SENDS.has(call.name) &&
  call.args.some((arg) => stringOf(arg.replace(/^\[\{iov_base=/, ""))?.startsWith("HTTP/1.1 200") === true);

/** What one ingest into a fresh server did, and where its extent is. */
async function traceOneIngest(): Promise<{ calls: SystemCall[]; home: string; extent: string }> {
  const { home, remove } = await temporaryHome();
  try {
    const file = join(home, "trace");
    const engine = await startEngine({ home, prefix: straceCommand(file), env: TRACEABLE_ENV });
    const { status } = await ingest(engine.url, "events", '{"body":"durable"}', { "X-Idempotency-Key": "k" });
    expect(status).toBe(200);
    // strace keeps the signals it gets to itself: tell the server, which told the lock who it is.
    signalProcess(Number.parseInt(await readFile(join(home, "catalog.db.pid"), "utf8"), 10), "SIGTERM");
    await engine.stop("SIGCONT");
    const calls = parseTrace(await readFile(file, "utf8"));
    const renamed = calls.flatMap((call) => (call.name.startsWith("rename") ? call.args.map(stringOf) : []));
    const extent = renamed.find((path) => path?.endsWith(".tlm") === true);
    return { calls, home, extent: extent ?? "no extent was renamed into place" };
  } finally {
    await remove();
  }
}

describe.skipIf(lacks("strace"))("the server under strace", () => {
  test("extent, folders and catalog are synced before the 200 is sent", { timeout: 120_000 }, async () => {
    const { calls, home, extent } = await traceOneIngest();
    const acknowledged = calls.find(isAcknowledgement);
    expect(acknowledged).toBeDefined();
    const model = new DurabilityModel();
    model.apply(calls.filter((call) => call.end < (acknowledged?.start ?? 0)));
    expect(model.problemsOf(extent)).toEqual([]);
    for (const name of ["catalog.db", "catalog.db-wal"]) expect(model.problemsOf(join(home, name))).toEqual([]);

    // The same check without the syncs finds all of it, so it can fail.
    const unsynced = new DurabilityModel();
    unsynced.apply(calls.filter(({ name, end }) => end < (acknowledged?.start ?? 0) && !/^f(data)?sync$/.test(name)));
    expect(unsynced.problemsOf(extent)).not.toEqual([]);
    expect(unsynced.problemsOf(join(home, "catalog.db-wal"))).not.toEqual([]);
  });
});
