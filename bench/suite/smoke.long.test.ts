import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import type { CapabilityName } from "../../src/core/capabilities.test-kit.ts";
import { lacks } from "../../src/core/gates.test-kit.ts";
import { cageProblem } from "../../src/sandbox/runtime/cage.test-kit.ts";
import { main } from "../main.ts";
import { SANDBOX_NEEDS } from "../sandbox/with-server.ts";
import { keepPrinted } from "../support/printed.test-kit.ts";
import { readResult } from "./result.ts";

// The machine is measured once for all: that takes two seconds.
vi.mock(import("./probe.ts"), async (original) => {
  const { probeMachine } = await original();
  let machine: ReturnType<typeof probeMachine> | undefined;
  return { probeMachine: (folder) => (machine ??= probeMachine(folder)) };
});

/** Every benchmark of the suite in its smallest form: that it runs and that its sides agree, not how fast. */
const SMALLEST: Readonly<Record<string, readonly string[]>> = {
  "agent/ask": ["--questions", "2"],
  "agent/crowd": ["--clients", "5"],
  "agent/dream": ["--events", "50"],
  "backup/copy": ["--mib", "1", "--extents", "20"],
  "catalog/commits": ["--seconds", "0.2", "--nodes", "2"],
  "catalog/planning": ["--extents", "1000", "--plans", "3"],
  "compaction/lag": ["--seconds", "6", "--lag", "2", "--mb", "2"],
  "compaction/merge": ["--rows", "3000", "--extentRows", "500", "--late", "700"],
  "fabric/claims": ["--crowd", "1000", "--claims", "20"],
  "fabric/jobs": ["--jobs", "50", "--paced", "5", "--peers", "false"],
  "fabric/lists": ["--jobs", "100", "--own", "5", "--lists", "5"],
  "fabric/waiting": ["--claims", "3", "--idleMs", "500"],
  "kernel/encodings": ["--rows", "400", "--times", "5"],
  "kernel/filters": ["--rows", "10000"],
  "kernel/first-body": ["--bytes", "100000"],
  "kernel/otlp": ["--records", "500", "--requests", "2"],
  "kernel/scanner": ["--rows", "1000"],
  "load/bodies": ["--rows", "2000", "--bytes", "65536"],
  "load/cluster": ["--mode", "staged", "--rows", "1000", "--seconds", "1", "--bytes", "65536", "--single", "false"],
  "load/filedrop": ["--rows", "20000", "--files", "20"],
  "load/ingest": ["--rows", "1000", "--bytes", "65536"],
  "load/kafka": ["--messages", "5000", "--partitions", "2", "--batchSize", "500"],
  "load/overload": ["--seconds", "2", "--capacity", "1", "--bytes", "65536", "--connections", "64"],
  "load/profile": ["--seconds", "1", "--processes", "1"],
  "load/second-opinion": ["--seconds", "0.3"],
  "load/until-parquet": ["--rows", "2000", "--warmUpMs", "100", "--chdb", "false"],
  "memory/build": ["--memories", "500", "--edges", "2000"],
  "memory/import": ["--memories", "200", "--edges", "400", "--dimensions", "8"],
  "memory/known-items": ["--documents", fileURLToPath(new URL("../../docs", import.meta.url))],
  "memory/recall": ["--memories", "500", "--edges", "2000", "--questions", "10"],
  "memory/serve": ["--memories", "200", "--edges", "400", "--questions", "10", "--saves", "5", "--dimensions", "8"],
  "open-tables/engines": ["--rows", "2000", "--files", "2", "--times", "1", "--warmUp", "1"],
  "open-tables/load": ["--files", "100", "--loads", "2"],
  "peers/bulk": ["--rows", "1000", "--settleMs", "1", "--chdb", "false"],
  "peers/small": ["--rows", "500", "--clients", "4"],
  "query/fixed": ["--rows", "2000", "--times", "3"],
  "query/flight": ["--rows", "2400"],
  "query/fresh": ["--rows", "2400", "--times", "1", "--extentRows", "800"],
  "query/half-fresh": ["--rows", "2400", "--times", "1", "--extentRows", "800"],
  "query/kql": ["--rows", "2400", "--times", "1", "--extentRows", "800"],
  "query/kql-corpus": ["--times", "1"],
  "query/kql-start": ["--rows", "1000"],
  "query/ndjson": ["--rows", "1000"],
  "query/planning": ["--extents", "100", "--extentRows", "100", "--times", "5"],
  "query/suite": ["--rows", "2400", "--times", "1", "--extentRows", "800", "--chdb", "false"],
  "query/tail": ["--rows", "3", "--tails", "4", "--past", "12000", "--cluster", "false"],
  "query/times": ["--rows", "2000", "--times", "1"],
  "query/widened": ["--rows", "2000", "--times", "1"],
  "sandbox/create": ["--times", "1"],
  "sandbox/idle": ["--sandboxes", "2"],
  "sandbox/images": [],
  "sandbox/launch": [],
  "sandbox/pause": ["--times", "1"],
  "sandbox/pieces": ["--pieces", "100", "--listeners", "2", "--piecesEach", "100"],
  "sandbox/prompts": ["--prompts", "2"],
  "sandbox/traffic": ["--lines", "100", "--fileMib", "2"],
  "web/load": ["--tables", "2", "--columns", "20"],
  "web/rows": ["--rows", "5000"],
  "web/tail": ["--seconds", "8"],
  "start/serve": ["--idleMs", "500"],
};

/** Their rounds take seconds, so they run one. The other benchmarks show that rounds can follow each other. */
const ONE_ROUND = new Set([
  "agent/dream",
  "catalog/planning",
  "compaction/lag",
  "load/cluster",
  "load/filedrop",
  "load/kafka",
  "load/overload",
  "load/profile",
  "load/second-opinion",
  "load/until-parquet",
  "memory/import",
  "memory/serve",
  "query/fresh",
  "query/half-fresh",
  "query/kql",
  "query/kql-start",
  "query/planning",
  "query/suite",
  "sandbox/create",
  "sandbox/idle",
  "sandbox/images",
  "sandbox/launch",
  "start/serve",
  "web/load",
]);

/** Measures that are 0 when all is well. */
const MAY_BE_ZERO = new Set([
  // Where nothing blocked the page for as long as a long task is.
  "longest",
  // Of a page that does not move.
  "signInShift",
  "queryShift",
  // Of a run that is too short for one.
  "merges",
  "written",
  "waited",
  "errors",
  "backlog",
  "passing",
  "lag",
  "alone",
  "aloneP99",
  "crowd",
  "crowdP99",
  "crowdMost",
  "refused",
  "unsent",
  // What one cluster hardly does in a second.
  "edgeCpu",
  "queryCpu",
  "get",
  "head",
  "list",
  "delete",
  "multipart",
  // Less than the kernel counts.
  "firstCpu",
  "questionCpu",
  "mcpCpu",
  "saveCpu",
]);
/** What one thing takes beyond another: on a busy machine that may be less. */
const DIFFERENCES = new Set([
  "merging",
  "added",
  "addedP95",
  "above",
  "planMemory",
  "held",
  "uploadAbove",
  "downloadAbove",
  "server",
  "heapGrowth",
  "heapMost",
  "serverGrowth",
]);

const printed = keepPrinted();
let out: string;
beforeAll(async () => {
  out = await mkdtemp(join(tmpdir(), "engine-bench-results-"));
});
afterAll(() => rm(out, { recursive: true }));

test("each is listed with its question, its options and its measures", async () => {
  expect(await main(["list"])).toBe(0);
  const text = printed.join("\n");
  for (const name of Object.keys(SMALLEST)) expect(text).toMatch(new RegExp(`^${name}\\n  .*\\?$`, "m"));
  expect(text.match(/^[a-z][a-z-]*\/[a-z-]+$/gm)).toEqual(Object.keys(SMALLEST));
});

/** What a machine may lack that they need. */
const NEEDS: Readonly<Record<string, readonly CapabilityName[]>> = {
  "fabric/claims": ["PostgreSQL"],
  "fabric/jobs": ["PostgreSQL"],
  "fabric/waiting": ["PostgreSQL"],
  "load/cluster": ["PostgreSQL", "S3 server", "ps"],
  "load/kafka": ["Java", "Maven"],
  "open-tables/engines": ["python3-venv"],
  "peers/small": ["PostgreSQL"],
  "query/flight": ["python3-venv"],
  "sandbox/create": SANDBOX_NEEDS,
  "sandbox/idle": SANDBOX_NEEDS,
  "sandbox/images": SANDBOX_NEEDS,
  "sandbox/launch": [...SANDBOX_NEEDS, "/usr/bin/node", "git"],
  "sandbox/pause": SANDBOX_NEEDS,
  "sandbox/pieces": [...SANDBOX_NEEDS, "/usr/bin/node"],
  "sandbox/prompts": [...SANDBOX_NEEDS, "/usr/bin/node"],
  "sandbox/traffic": SANDBOX_NEEDS,
};

describe.each(Object.entries(SMALLEST))("%s", (name, options) => {
  // Sandboxes are measured with limits that hold; the kit prints why there are none.
  const lacksLimits = name.startsWith("sandbox/") && cageProblem !== undefined;
  test.skipIf(lacks(...(NEEDS[name] ?? [])) || lacksLimits)(
    "runs, and leaves a file that says all of it",
    // One of them runs for nine times two seconds a side and round, and machines are busy.
    { timeout: 480_000 },
    async () => {
      const rounds = ["--rounds", "1", "--warmUpRounds", ONE_ROUND.has(name) ? "0" : "1"];
      expect([0, 3]).toContain(await main(["run", name, ...rounds, "--seed", "7", "--out", out, ...options]));
      const file = (await readdir(out)).find((each) => each.startsWith(name.replace("/", "-"))) ?? "";
      const result = await readResult(join(out, file));
      expect(result).toMatchObject({ benchmark: name, seed: 7, schema: 2 });
      expect(result.rounds).toHaveLength(1);
      expect(result.machine.fsyncMs.p99).toBeGreaterThanOrEqual(result.machine.fsyncMs.p50);
      for (const { measure, median } of result.summary.filter((row) => !DIFFERENCES.has(row.measure))) {
        expect(median).toBeGreaterThanOrEqual(MAY_BE_ZERO.has(measure) ? 0 : Number.MIN_VALUE);
      }
      expect(await main(["show", join(out, file)])).toBe(0);
      expect(printed.join("\n")).toContain(result.question);
    },
  );
});

test.each(["widening", "nulls", "mixed", "times", "late"])(
  "a first body of the kind %s is the extent it is later",
  async (kind) => {
    await main(["run", "kernel/first-body", "--kind", kind, "--bytes", "100000", "--rounds", "1", "--out", out]);
    expect(printed.join("\n")).toMatch(/^later +seal +[0-9.]+/m);
  },
);

test.each(["logs", "wide", "nested", "numbers", "text"])("the scanner agrees with JSON.parse on %s", async (data) => {
  await main(["run", "kernel/scanner", "--data", data, "--rows", "500", "--rounds", "1", "--out", out]);
  expect(printed.join("\n")).toMatch(/^scanner +scan +[0-9.]+/m);
});

test("DuckDB finds the types itself, and agrees", { timeout: 120_000 }, async () => {
  const small = ["--rows", "1000", "--settleMs", "1", "--rounds", "1", "--out", out];
  await main(["run", "peers/bulk", "--types", "inferred", ...small]);
  expect(printed.join("\n")).toMatch(/^duckdb-auto +cpu +[0-9.]+/m);
});

test.each(["own", "turn"])("a merge of nested rows in a process of the kind %s is measured", async (kind) => {
  const small = ["--rows", "1000", "--extentRows", "500", "--late", "100", "--rounds", "1", "--out", out];
  await main(["run", "compaction/merge", "--data", "nested", "--process", kind, ...small]);
  for (const source of ["table", "parquet", "ndjson"]) {
    expect(printed.join("\n")).toMatch(new RegExp(`^COPY, ${source} +cpu +[0-9.]+`, "m"));
  }
});

test("the first query of a process is measured as well", { timeout: 120_000 }, async () => {
  const small = ["--rows", "2400", "--only", "top k", "--extentRows", "800", "--rounds", "1", "--out", out];
  await main(["run", "query/fresh", "--state", "first", ...small]);
  expect(printed.join("\n")).toMatch(/^fresh +top-k +[0-9.]+/m);
});

test("a name that no query has is refused", async () => {
  await expect(main(["run", "query/suite", "--only", "nothing"])).rejects.toThrow(
    "no query has it in its name: count;",
  );
});

test.each(["undeclared", "settled", "inferred"])(
  "columns of the preset %s give the same answers as declared ones",
  { timeout: 120_000 },
  async (preset) => {
    const small = ["--rows", "1000", "--bytes", "65536", "--rounds", "1", "--out", out];
    await main(["run", "load/ingest", "--preset", preset, ...small]);
    for (const side of [preset, "mib"]) expect(printed.join("\n")).toMatch(new RegExp(`^${side} +cpu +[0-9.]+`, "m"));
  },
);
