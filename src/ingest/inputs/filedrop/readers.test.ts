import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { delay } from "../../../core/waiting.test-kit.ts";
import { confinementHere, DropWorld } from "./drop-world.test-kit.ts";
import { openDisk, openSqlite } from "./opened.test-kit.ts";
import { parquetOf } from "./parquet.test-kit.ts";

/** What the kernel says of our child processes that run this program; none of those that are gone meanwhile. */
function statusesOf(program: string): string[] {
  return readdirSync("/proc").flatMap((pid) => {
    if (!/^\d+$/.test(pid)) return [];
    try {
      const status = readFileSync(`/proc/${pid}/status`, "utf8");
      const [file, ...args] = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
      const isOurs = new RegExp(`^PPid:\\s+${process.pid}$`, "m").test(status);
      return isOurs && file === process.execPath && args.some((arg) => arg.includes(program)) ? [status] : [];
    } catch {
      return [];
    }
  });
}

test.runIf(confinementHere.isOn)("the processes that read CSV and Parquet are confined", async () => {
  const world = await DropWorld.open(await openSqlite(), await openDisk());
  const row = `1,${"x".repeat(1_000)}\n`;
  await world.drop("shop/orders/large.csv", `id,pad\n${row.repeat(20_000)}`);
  await world.drop(
    "shop/orders/a.parquet",
    await parquetOf("SELECT i AS id, repeat('y', 1000) AS pad FROM range(20000) t(i)"),
  );
  const over = new AbortController();
  const looking = world
    .node()
    .look()
    .finally(() => over.abort());
  const seen: Record<string, string[]> = { "csv-child": [], "parquet-child": [] };
  while (!over.signal.aborted) {
    for (const [program, statuses] of Object.entries(seen)) statuses.push(...statusesOf(program));
    await delay(5);
  }
  await looking;
  for (const statuses of Object.values(seen)) {
    expect(statuses.length).toBeGreaterThan(0);
    for (const status of statuses) {
      expect(status).toMatch(/^NoNewPrivs:\s+1$/m);
      expect(status).toMatch(/^Seccomp:\s+2$/m);
    }
  }
  expect(await world.values("id")).toHaveLength(40_000);
  await world.close();
});
