import { execFileSync } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { lacks } from "../core/gates.test-kit.ts";
import { signalProcess } from "../core/signals.test-kit.ts";
import { systemClock } from "../core/clock.ts";
import { drawnSeed } from "../core/drawn-seed.test-kit.ts";
import { seededRandom } from "../core/random.ts";
import { checksumOf } from "../format/checksum.ts";
import { ColumnSet } from "../format/columns/column-set.ts";
import { encodeTlm } from "../format/tlm.ts";
import { loadDuckDb, quoteText, runSql } from "../io/duckdb/duckdb.ts";
import { mergeInProcess, SpareProcess } from "./merge-process.ts";
import type { MergeColumn, MergedFile, MergeInput, MergeTask } from "./merge.ts";

const COLUMNS: readonly MergeColumn[] = [
  { id: 1, name: "at", type: { kind: "timestamp" } },
  { id: 2, name: "host", type: { kind: "string" } },
  { id: 3, name: "body", type: { kind: "string" } },
];
const MIB = 1024 * 1024;

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "engine-merge-"));
});
afterEach(() => rm(folder, { recursive: true }));

const SEED = drawnSeed();

/** A `tlm` file of random rows of one day; text that hardly shrinks. */
async function input(id: number, rows: number, bodyChars: number, times = 86_400_000): Promise<MergeInput> {
  const random = seededRandom(SEED + id);
  const set = new ColumnSet(COLUMNS);
  const [at, host, body] = set.columns;
  for (let row = 0; row < rows; row++) {
    if (at?.storage !== "long" || host?.storage !== "text" || body?.storage !== "text") throw new Error("no columns");
    at.appendLong(1_704_067_200_000_000_000n + BigInt(Math.floor(random.next() * times)) * 1_000_000n);
    host.appendText(`host-${Math.floor(random.next() * 20)}`);
    body.appendText(Buffer.from(random.fill(new Uint8Array(bodyChars / 2))).toString("hex"));
    set.endRow();
  }
  const bytes = encodeTlm(set);
  const path = join(folder, `${id}.tlm`);
  await writeFile(path, bytes);
  return { id: String(id), path, format: "tlm", rows, checksum: checksumOf(bytes) };
}

function merge(task: Partial<MergeTask> & Pick<MergeTask, "inputs">): Promise<MergedFile[]> {
  const limits = { memoryBytes: 256 * MIB, spillBytes: 4_096 * MIB, threads: 1 };
  return mergeInProcess(
    { columns: COLUMNS, clusterBy: [], folder, targetBytes: 256 * MIB, limits, ...task },
    { clock: systemClock, share: () => 1, signal: new AbortController().signal },
  );
}

async function ask(sql: string): Promise<(string | null)[]> {
  const duckdb = await loadDuckDb();
  const connection = await duckdb.connect(await duckdb.open(":memory:"));
  await duckdb.query(connection, "SET threads = 1");
  return (await runSql(duckdb, connection, sql))[0] ?? [];
}

const IS_SORTED = `count(*) FILTER ("at" < before) FROM (SELECT "at", lag("at") OVER () AS before`;

it(
  "sorts what is larger than its memory, and ends files where they are large enough",
  { timeout: 400_000 },
  async () => {
    const inputs: MergeInput[] = [];
    for (let i = 0; i < 4; i++) inputs.push(await input(i, 60_000, 1_000));
    const memoryBytes = 256 * MIB;
    const files = await merge({
      inputs,
      targetBytes: 50 * MIB,
      limits: { memoryBytes, spillBytes: 4_096 * MIB, threads: 1 },
    });
    expect(files.reduce((sum, { rows }) => sum + rows, 0)).toBe(240_000);
    const ordered = files.toSorted((a, b) => Number(a.minAtNs - b.minAtNs));
    expect(ordered.length).toBeGreaterThanOrEqual(2);
    for (const [i, file] of ordered.entries()) {
      expect(file.minAtNs).toBeGreaterThanOrEqual(ordered[i - 1]?.maxAtNs ?? 0n);
      const from = `read_parquet(${quoteText(file.path)})`;
      expect(await ask(`SELECT ${IS_SORTED} FROM ${from})`)).toEqual(["0"]);
      expect(file.sizeBytes).toBeLessThan(100 * MIB);
    }
    // Without room to spill it would not have gone.
    const cramped = merge({
      inputs,
      limits: { memoryBytes, spillBytes: 16 * MIB, threads: 1 },
      folder: await mkdtemp(join(folder, "cramped-")),
    });
    await expect(cramped).rejects.toThrow("merging failed");
  },
);

it("orders rows of one time by the cluster columns", async () => {
  const one = await input(1, 3_000, 10, 40);
  const [file] = await merge({ inputs: [one], clusterBy: ["host", "body"] });
  const path = quoteText(file?.path ?? "");
  const pairs = `SELECT "at" AS a, host AS h, lag("at") OVER () AS b, lag(host) OVER () AS g FROM read_parquet(${path})`;
  expect(
    await ask(
      `SELECT count(*) FILTER (a < b OR (a = b AND h < g)), CAST(count(*) FILTER (a = b) > 2900 AS BIGINT) FROM (${pairs})`,
    ),
  ).toEqual(["0", "1"]);
});

/** The merging processes that this one has started. */
function mergingProcesses(): string[] {
  const lines = execFileSync("ps", ["-A", "-o", "pid=,ppid=,args="], { encoding: "utf8" }).split("\n");
  return lines.flatMap((line) => {
    const [, pid = "", ppid, args] = /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line) ?? [];
    return Number(ppid) === process.pid && args?.includes("--isolate merge") === true ? [pid] : [];
  });
}

function isThere(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

it.skipIf(lacks("ps"))("merges share a process where they are given a spare one, until one of them fails", async () => {
  const spare = new SpareProcess();
  const inputs = [await input(1, 2_000, 20), await input(2, 3_000, 20)];
  const share = async (task: Partial<MergeTask>): Promise<MergedFile[]> => {
    const limits = { memoryBytes: 256 * MIB, spillBytes: 256 * MIB, threads: 1 };
    const own = await mkdtemp(join(folder, "own-"));
    return mergeInProcess(
      { columns: COLUMNS, inputs, clusterBy: [], folder: own, targetBytes: 256 * MIB, limits, ...task },
      {
        clock: systemClock,
        share: () => 1,
        signal: new AbortController().signal,
        codeCache: join(folder, "code"),
        spare,
      },
    );
  };
  const found = async (task: Partial<MergeTask> = {}) => (await share(task)).map(({ path: _path, ...file }) => file);

  const first = await found();
  const [kept, ...others] = mergingProcesses();
  expect(others).toEqual([]);
  expect(await found()).toEqual(first);
  expect(await found({ inputs: inputs.slice(1) })).not.toEqual(first);
  expect(mergingProcesses()).toEqual([kept]);

  // One that would have another limit gets a process of its own.
  await found({ limits: { memoryBytes: 300 * MIB, spillBytes: 256 * MIB, threads: 1 } });
  expect(mergingProcesses()).not.toEqual([kept]);

  const damaged = [{ ...(await input(1, 2_000, 20)), checksum: "crc32:00000000" }];
  await expect(share({ inputs: damaged })).rejects.toThrow("are not those that were committed");
  expect(mergingProcesses()).toEqual([]);

  // A kept process that dies is found out, and no process has merges without end.
  await found();
  const [mortal = ""] = mergingProcesses();
  signalProcess(Number(mortal), "SIGKILL");
  // Until then it is there, as one that has ended.
  await expect.poll(() => isThere(Number(mortal))).toBe(false);
  const seen = new Set<string>();
  for (let i = 0; i < 9; i++) {
    expect(await found()).toEqual(first);
    for (const pid of mergingProcesses()) seen.add(pid);
  }
  expect(seen.size).toBe(2);
  await spare.end();
  expect(mergingProcesses()).toEqual([]);
});
