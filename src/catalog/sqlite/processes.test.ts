import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { sleep, systemClock } from "../../core/clock.ts";
import { silentLog } from "../../core/log.ts";
import { drawnRandom } from "../../core/drawn-seed.test-kit.ts";
import type { Catalog } from "../catalog.ts";
import { aFlush, column, committed } from "../contract-fixtures.test-kit.ts";
import { MIGRATIONS } from "../migrations.test-kit.ts";
import { openSqliteCatalog } from "./sqlite.ts";
import { makeFolder, startChild, type Child } from "./child-process.test-kit.ts";

let path: string;
let remove: () => void;
const children: Child[] = [];

beforeEach(() => {
  const made = makeFolder();
  path = join(made.folder, "catalog.db");
  remove = made.remove;
});

afterEach(async () => {
  for (const child of children) child.process.kill("SIGKILL");
  await Promise.all(children.splice(0).map(({ exited }) => exited));
  remove();
});

function start(task: string, argument?: string): Child {
  const child = startChild(task, path, argument);
  children.push(child);
  return child;
}

function open(mode: "server" | "admin"): Promise<Catalog> {
  return openSqliteCatalog({ path, clock: systemClock, log: silentLog, migrations: MIGRATIONS, mode });
}

describe("the server's lock", () => {
  it("refuses a second server, naming the first one's process, and goes with the first one however it ends", async () => {
    const first = start("server");
    expect(await first.next()).toBe("open");
    await expect(open("server")).rejects.toThrow(
      `${path} is in use by the server with process id ${first.process.pid}`,
    );
    await (await open("admin")).close();
    first.process.kill("SIGKILL");
    await first.exited;
    expect(readFileSync(`${path}.pid`, "utf8")).toBe(`${first.process.pid}\n`);
    const second = await open("server");
    await expect(open("server")).rejects.toThrow(`process id ${process.pid}`);
    await second.close();
    await (await open("server")).close();
  });

  it("does not believe a stale process id", async () => {
    writeFileSync(`${path}.pid`, `${process.pid}\n`);
    const catalog = await open("server");
    writeFileSync(`${path}.pid`, "no number");
    await expect(open("server")).rejects.toThrow("in use by another server");
    await catalog.close();
  });

  it("lets one of several servers through that start at the same instant", async () => {
    const all = [start("server"), start("server"), start("server"), start("server")];
    const said = await Promise.all(all.map((child) => child.next()));
    const winner = all[said.indexOf("open")];
    expect(said.filter((line) => line === "open")).toHaveLength(1);
    for (const line of said) expect(line).toMatch(/^open$|^failed: .* is in use by /);
    for (const child of all) child.process.stdin.end();
    await Promise.all(all.map(({ exited }) => exited));
    expect(winner?.process.exitCode).toBe(0);
  });
});

describe("kill -9", () => {
  it("loses nothing that was acknowledged and keeps every commit whole", async () => {
    const random = drawnRandom();
    const acknowledged = new Map<number, number>();
    let firstKey = 0;
    for (let round = 0; round < 4; round++) {
      const child = start("commit", String(firstKey));
      expect(await child.next()).toMatch(/^\d+ \d+$/);
      await sleep(systemClock, 50 + random.next() * 200);
      child.process.kill("SIGKILL");
      await child.exited;
      for (const line of child.lines) {
        const [snapshot, key] = line.split(" ").map(Number);
        acknowledged.set(key ?? -1, snapshot ?? -1);
        firstKey = Math.max(firstKey, (key ?? 0) + 6);
      }
      await expectWhole(acknowledged);
    }
    expect(acknowledged.size).toBeGreaterThanOrEqual(4);
  });
});

/** Every acknowledged commit is there, and every snapshot has all of its six extents and three keys. */
async function expectWhole(acknowledged: ReadonlyMap<number, number>): Promise<void> {
  const catalog = await open("server");
  await catalog.verify();
  const table = await catalog.table("d", "t");
  const tableId = table?.id ?? -1;
  const head = await catalog.head();
  const bySnapshot = Map.groupBy(await catalog.extents(tableId, head.id), ({ beginSnapshot }) => beginSnapshot);
  expect([...bySnapshot.keys()]).toEqual(Array.from({ length: head.id }, (_, i) => i + 1));
  for (const [snapshotId, extents] of bySnapshot) {
    expect(extents).toHaveLength(6);
    for (const { id } of extents) {
      const key = id.replace(/^extent-(\d+)-[ab]$/, "key-$1");
      expect((await catalog.lookUpKey(tableId, key)).entry).toMatchObject({ snapshotId });
    }
  }
  for (const [key, snapshotId] of acknowledged) {
    expect((await catalog.lookUpKey(tableId, `key-${key}`)).entry).toMatchObject({ snapshotId });
  }
  await catalog.close();
}

describe("an administrative process beside a server", () => {
  it("writes without either failing, and the server sees it at once", async () => {
    const catalog = await open("server");
    const { table } = await catalog.createTable({ database: "d", name: "t", columns: [column("at", "timestamp")] });
    const admins = [start("tables", "a"), start("tables", "b")];
    const done = new AbortController();
    const watch = async (admin: Child) => {
      for (let name = await admin.next(); name !== undefined; name = await admin.next()) {
        const seen = await catalog.table("d", name);
        expect(seen?.columns.map((c) => c.name)).toEqual(["at", "added"]);
      }
    };
    const commits = (async () => {
      const ids: number[] = [];
      while (!done.signal.aborted) {
        const [outcome] = await catalog.commit([aFlush(table)]);
        ids.push(committed(outcome).snapshot.id);
      }
      return ids;
    })();
    await Promise.all(admins.map(watch));
    done.abort();
    const ids = await commits;
    expect(ids).toEqual(ids.map((_, i) => i + 1));
    for (const admin of admins) expect(admin.lines).toHaveLength(25);
    expect(await catalog.tables("d")).toHaveLength(51);
    await catalog.verify();
    await catalog.close();
  });
});
