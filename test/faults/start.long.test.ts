import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { mountTmpfs, unmount } from "../../src/io/objectstore/tmpfs.test-kit.ts";
import { lacks } from "../../src/core/gates.test-kit.ts";
import { ingest, ndjson, query, rowsOf } from "../support/client.ts";
import { startEngine, temporaryHome } from "../support/engine.ts";

let home: string;
let removeHome: () => Promise<void>;

beforeEach(async () => {
  ({ home, remove: removeHome } = await temporaryHome());
});

afterEach(() => removeHome());

describe("starting", () => {
  test("a restart shows what was acknowledged before a kill -9", async () => {
    const first = await startEngine({ home });
    await ingest(first.url, "events", ndjson([{ body: "kept" }]));
    await first.stop("SIGKILL");
    const second = await startEngine({ home });
    expect(await rowsOf(second.url, "SELECT body FROM events")).toEqual([{ body: "kept" }]);
    await second.stop();
  });

  test("a second server on the same catalog refuses, naming the first one's pid", async () => {
    const first = await startEngine({ home });
    await expect(startEngine({ home })).rejects.toThrow(String(first.pid));
    expect((await fetch(`${first.url}/health`)).status).toBe(200);
    await first.stop();
  });

  test("a port in use is one sentence that says what to do", async () => {
    const first = await startEngine({ home });
    const other = await temporaryHome();
    const port = Number(new URL(first.url).port);
    await expect(startEngine({ home: other.home, port })).rejects.toThrow(/exit code 1 .*in use.*--addr/s);
    await first.stop();
    await other.remove();
  });

  test("an invalid value stops the start with exit code 2, naming variable and value", async () => {
    const start = startEngine({ home, env: { ENGINE_FLUSH_MAX_ROWS: "many" } });
    await expect(start).rejects.toThrow(/exit code 2 .*ENGINE_FLUSH_MAX_ROWS.*many/s);
  });

  test("an unknown variable is a warning with the nearest name", async () => {
    const engine = await startEngine({ home, env: { ENGINE_FLUSH_MAX_ROW: "1" } });
    expect(engine.log()).toMatch(/ENGINE_FLUSH_MAX_ROW .*did you mean ENGINE_FLUSH_MAX_ROWS/);
    await engine.stop();
  });

  test("a catalog that is no database is named, and left as it is", async () => {
    writeFileSync(join(home, "catalog.db"), "this is not a database, and longer than a header would be".repeat(50));
    await expect(startEngine({ home })).rejects.toThrow(/catalog\.db/);
  });
});

describe("stopping", () => {
  test("SIGTERM: what was accepted is answered, health says draining, then the process ends with 0", async () => {
    // What is on its way on a slow machine comes within the notice.
    const engine = await startEngine({ home, env: { ENGINE_DRAIN_NOTICE_SECS: "2" } });
    await ingest(engine.url, "events", '{"body":"seed"}');
    const slow = query(engine.url, "SELECT count(*) AS n FROM range(100000000) a WHERE hash(a.range) % 7 = 1");
    const pending = Array.from({ length: 20 }, (_, i) => ingest(engine.url, "events", ndjson([{ body: `b${i}` }])));
    await Promise.race(pending);
    const stopped = engine.stop("SIGTERM");
    const answers = await Promise.all(pending);
    expect(answers.every(({ status }) => status === 200)).toBe(true);
    expect((await slow).status).toBe(200);
    expect(await stopped).toMatchObject({ code: 0 });
    const again = await startEngine({ home });
    expect(await rowsOf(again.url, "SELECT count(*) AS n FROM events")).toEqual([{ n: 21 }]);
    await again.stop();
  });
});

describe("storage that fails", () => {
  test("a data folder that vanished is said, nothing is acknowledged, and it works again when it is back", async () => {
    const engine = await startEngine({ home });
    await ingest(engine.url, "events", '{"body":"before"}');
    renameSync(join(home, "data"), join(home, "gone"));
    const lost = await ingest(engine.url, "events", '{"body":"lost"}');
    expect(lost.status).toBeGreaterThanOrEqual(500);
    // The client hears that it failed, the operator where.
    expect(lost.json.error.message).not.toContain(home);
    expect(engine.log()).toContain(join(home, "data"));
    if (existsSync(join(home, "data"))) rmSync(join(home, "data"), { recursive: true });
    renameSync(join(home, "gone"), join(home, "data"));
    expect((await ingest(engine.url, "events", '{"body":"after"}')).status).toBe(200);
    const rows = await rowsOf(engine.url, "SELECT body FROM events ORDER BY body");
    expect(rows).toEqual([{ body: "after" }, { body: "before" }]);
    await engine.stop();
  });

  test.skipIf(lacks("mounts", "mount"))(
    "a disk that fills up: 507, what was acknowledged stays, and it goes on when there is room",
    { timeout: 120_000 },
    async () => {
      const disk = join(home, "disk");
      mkdirSync(disk);
      mountTmpfs(disk, "size=24m");
      try {
        const engine = await startEngine({ home: disk });
        const filler = join(disk, "filler");
        writeFileSync(filler, Buffer.alloc(8 * 1024 * 1024));
        const noise = () => ndjson(Array.from({ length: 500 }, (_, n) => ({ n, body: `${Math.random()}`.repeat(50) })));
        let acknowledged = 0;
        let refused: Awaited<ReturnType<typeof ingest>> | undefined;
        for (let i = 0; i < 200 && refused === undefined; i++) {
          const answer = await ingest(engine.url, "events", noise());
          if (answer.status === 200) acknowledged += answer.json.rows_ingested;
          else refused = answer;
        }
        expect({ status: refused?.status, code: refused?.json.error.code }).toEqual({
          status: 507,
          code: "insufficient_storage",
        });
        rmSync(filler);
        const again = await ingest(engine.url, "events", noise());
        expect(again.status).toBe(200);
        const [row] = await rowsOf(engine.url, "SELECT count(*) AS n FROM events");
        expect(row).toEqual({ n: acknowledged + 500 });
        await engine.stop();
      } finally {
        unmount(disk);
      }
    },
  );

  test.skipIf(lacks("read-only files"))("a read-only catalog file is named", async () => {
    const engine = await startEngine({ home });
    await engine.stop();
    const catalog = join(home, "catalog.db");
    chmodSync(catalog, 0o444);
    // Permissions do not bind root; an immutable flag does, where the file system has one.
    const immutable = process.getuid?.() === 0;
    if (immutable) execFileSync("chattr", ["+i", catalog]);
    try {
      await expect(startEngine({ home })).rejects.toThrow(/catalog\.db/);
    } finally {
      if (immutable) execFileSync("chattr", ["-i", catalog]);
    }
  });
});
