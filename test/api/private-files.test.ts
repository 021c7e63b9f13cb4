import { lstat, readdir } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ingest, ndjson, query } from "../support/client.ts";
import { startEngine, temporaryHome } from "../support/engine.ts";
import { eventually } from "../../src/core/waiting.test-kit.ts";

/** What a server writes is for its owner alone, also where the umask takes no bits away. */

const OTHERS = 0o077;

/** Adds each entry below a folder that others may open, as `mode path`; entries come and go meanwhile. */
async function findOpen(folder: string, found: Set<string>, seen: Set<string>): Promise<void> {
  for (const name of await readdir(folder).catch(() => [])) {
    const path = join(folder, name);
    const stats = await lstat(path).catch(() => undefined);
    if (stats === undefined || stats.isSymbolicLink()) continue;
    seen.add(path);
    if ((stats.mode & OTHERS) !== 0) found.add(`${(stats.mode & 0o777).toString(8)} ${path}`);
    if (stats.isDirectory()) await findOpen(path, found, seen);
  }
}

const rows = (n: number, from: number) =>
  ndjson(
    Array.from({ length: n }, (_, i) => ({
      at: new Date(1_704_067_200_000 + (from + i) * 1_000).toISOString(),
      body: `row ${from + i} ${"x".repeat(100)}`,
    })),
  );

test.each([
  ["in sync mode", {}],
  ["in staged mode", { ENGINE_INGEST_MODE: "staged" }],
])("with a umask of 000, %s", { timeout: 180_000 }, async (_what, env) => {
  const { home, remove } = await temporaryHome();
  const engine = await startEngine({
    home,
    prefix: ["/bin/sh", "-c", 'umask 000; exec "$@"', "sh"],
    env: { ...env, ENGINE_COMPACTION_MIN_EXTENTS: "2", ENGINE_COMPACTION_POLL_SECS: "1" },
  });
  const [found, seen] = [new Set<string>(), new Set<string>()];
  const over = new AbortController();
  const watching = (async () => {
    while (!over.signal.aborted) {
      await findOpen(home, found, seen);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  })();
  try {
    for (let i = 0; i < 4; i++) {
      expect((await ingest(engine.url, "t", rows(20_000, i * 20_000), { "X-Database": "d" })).status).toBe(200);
    }
    const count = async () =>
      (await query(engine.url, "SELECT count(*) AS n FROM t", { "X-Database": "d" })).rows[0]?.["n"];
    await eventually(async () => (await count()) === 80_000);
    const sorted = await query(
      engine.url,
      "SELECT a.body FROM t a JOIN t b ON a.body = b.body ORDER BY b.body DESC, a.at",
      { "X-Database": "d", "X-Engine-Max-Memory-Bytes": "67108864" },
    );
    expect([sorted.status, sorted.rows.length]).toEqual([200, 80_000]);
    expect((await query(engine.url, "SELECT * FROM system.extents", { "X-Database": "d" })).status).toBe(200);
    const begun = await fetch(`${engine.url}/v1/exports`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ query: "SELECT * FROM t", database: "d" }),
    });
    const { id } = (await begun.json()) as { id: string };
    await eventually(async () => (await (await fetch(`${engine.url}/v1/exports/${id}`)).text()).includes('"done"'));
    await eventually(() => Promise.resolve([...seen].some((path) => path.endsWith(".parquet"))));
    await eventually(
      async () => /^engine_compaction_merges_total\{outcome="published"\} [1-9]/m.test(await metricsOf(engine.url)),
      60_000,
    );
  } finally {
    await engine.stop();
    over.abort();
    await watching;
    await findOpen(home, found, seen);
  }
  // The walk has met what it is about: extents of both formats, results of queries, the catalog.
  for (const part of [/\.tlm$/, /\.parquet$/, /_exports/, /tmp\/query-/, /catalog\.db-wal$/, /catalog\.db\.lock$/]) {
    expect([...seen].some((path) => part.test(path))).toBe(true);
  }
  expect([...found].map((line) => line.replace(home, ""))).toEqual([]);
  await remove();
});

async function metricsOf(url: string): Promise<string> {
  return await (await fetch(`${url}/metrics`)).text();
}
