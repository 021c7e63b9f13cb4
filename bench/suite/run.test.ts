import { execFile } from "node:child_process";
import { statfsSync } from "node:fs";
import { mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { main } from "../main.ts";
import { bytesToDiskOf } from "../support/process-stats.ts";
import { defineBenchmark, type Benchmark, type Side } from "./benchmark.ts";
import type { Machine } from "../../src/capacity/machine.ts";
import { probeMachine } from "./probe.ts";
import { QUICK } from "./commands/quick.ts";
import { benchmarksNamed } from "./named.ts";
import { BENCHMARKS } from "./registry.ts";
import { readResult, resultSchema } from "./result.ts";
import { optionsOf, runBenchmark } from "./run.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "engine-bench-run-"));
});
afterEach(() => rm(folder, { recursive: true }));

function asking(sides: readonly Side[], more: Partial<Benchmark> = {}): Benchmark {
  return defineBenchmark({
    name: "made/up",
    question: "What?",
    notMeasured: "All else.",
    options: z.strictObject({ size: z.coerce.number().int().positive().default(1).describe("of it") }),
    measures: { speed: { unit: "1/s", better: "more", doc: "how fast" } },
    rounds: 6,
    open: async () => ({ sides }),
    ...more,
  });
}

const MACHINE: Machine = {
  processor: "one that is made up",
  cores: 2,
  cpuQuota: null,
  memoryBytes: 1,
  kernel: "6",
  node: "v22",
  fileSystem: "ef53",
  fsyncMs: { p50: 1, p99: 2 },
  sequentialWriteMiBPerSecond: 100,
  memoryCopyMiBPerSecond: 1_000,
  singleCoreMops: 100,
};

const run = (
  benchmark: Benchmark,
  options: Record<string, string> = {},
  signal: AbortSignal = new AbortController().signal,
  warmsUp = true,
) =>
  runBenchmark(benchmark, {
    options,
    rounds: undefined,
    warmsUp,
    seed: 5,
    folder,
    revision: { commit: null, isClean: false },
    signal,
    probe: async () => MACHINE,
  });

describe("a run", () => {
  test("lets the sides take turns, each order as often, after a round that does not count", async () => {
    const turns: string[] = [];
    const sideOf = (name: string, value: number): Side => ({
      name,
      answers: async () => 42,
      round: async () => {
        turns.push(name);
        return { speed: value };
      },
    });
    const result = await run(asking([sideOf("ours", 30), sideOf("theirs", 10)]), { size: "3" });
    expect(turns.join(" ")).toBe("ours theirs theirs ours ours theirs theirs ours ours theirs theirs ours ours theirs");
    expect(resultSchema.parse(result)).toEqual(result);
    expect(result).toMatchObject({ benchmark: "made/up", options: { size: 3 }, seed: 5, commit: null });
    expect(result.rounds).toHaveLength(6);
    expect(result.summary).toMatchObject([
      { side: "ours", measure: "speed", median: 30, ratio: null },
      { side: "theirs", median: 10, interval: { low: 10, high: 10 }, ratio: { median: 3 } },
    ]);
  });

  test("hears that it is to stop between sides that never wait, and closes what was opened", async () => {
    const stop = new AbortController();
    let [rounds, closed] = [0, 0];
    const round = async () => {
      // As a signal of the system comes: not before this thread looks for one.
      setImmediate(() => stop.abort(new Error("stopped")));
      return { speed: ++rounds };
    };
    const sides = ["ours", "theirs"].map((name): Side => ({ name, round }));
    const open = async () => ({ sides, close: async () => void closed++ });
    await expect(run(asking(sides, { open }), {}, stop.signal)).rejects.toThrow("stopped");
    expect([rounds, closed]).toEqual([1, 1]);
  });

  test("without a warm-up is no result", async () => {
    let rounds = 0;
    const side: Side = { name: "ours", round: async () => ({ speed: ++rounds }) };
    const result = await run(asking([side]), {}, undefined, false);
    expect([rounds, result.rounds.length]).toEqual([6, 6]);
    expect(result.noise.problems).toContain("no round warmed up");
  });

  test("says when a side differs too much from itself", async () => {
    const speeds = [1, 3, 1, 3, 1, 3, 1];
    const result = await run(asking([{ name: "ours", round: async () => ({ speed: speeds.shift() ?? 1 }) }]));
    expect(result.noise.problems[0]).toMatch(/speed of two rounds differs from itself by \d+ %/);
  });

  test("ends before any time counts where sides answer differently, and closes what was opened", async () => {
    let [rounds, closed] = [0, 0];
    const sideOf = (name: string, answer: number): Side => ({
      name,
      answers: async () => ({ answer }),
      round: async () => ({ speed: ++rounds }),
    });
    const sides = [sideOf("ours", 1), sideOf("theirs", 2)];
    const open = async () => ({ sides, close: async () => void closed++ });
    await expect(run(asking(sides, { open }))).rejects.toThrow('theirs answers {"answer":2}, ours {"answer":1}');
    expect([rounds, closed]).toEqual([0, 1]);
  });

  test("refuses options that a benchmark does not have, and measures that it does not declare", async () => {
    const side = { name: "ours", round: async () => ({ weight: 1 }) };
    await expect(run(asking([side]), { size: "none" })).rejects.toThrow(/made\/up: --size: .*it takes --size/);
    await expect(run(asking([side]), { colour: "red" })).rejects.toThrow(/made\/up: .*colour.*it takes --size/);
    await expect(run(asking([side]))).rejects.toThrow("ours measures weight, which is not declared");
    const endless = { name: "ours", round: async () => ({ speed: 1 / 0 }) };
    await expect(run(asking([endless]))).rejects.toThrow("ours measures speed as Infinity, which is no figure");
  });

  test("beside a side that measures 0 there is no ratio", async () => {
    const none = { name: "theirs", round: async () => ({ speed: 0 }) };
    const { summary } = await run(asking([{ name: "ours", round: async () => ({ speed: 0 }) }, none]));
    expect(summary.map(({ side, median, ratio }) => [side, median, ratio])).toEqual([
      ["ours", 0, null],
      ["theirs", 0, null],
    ]);
  });

  test("counts the CPU seconds and the memory of its processes, and its own", async () => {
    const side: Side = {
      name: "ours",
      round: async () => {
        const before = process.cpuUsage();
        while (process.cpuUsage(before).user < 50_000);
        return { speed: 1 };
      },
      processes: () => ({ server: process.pid }),
    };
    const { rounds } = await run(asking([side]));
    for (const { ours } of rounds) {
      expect(ours?.cpuSeconds["bench"]).toBeGreaterThan(0.01);
      expect(ours?.threadSeconds["bench"]?.main).toBeGreaterThan(0.01);
      expect(ours?.peakBytes["server"]).toBeGreaterThan(1_000_000);
    }
  });
});

const TMPFS = 0x01_02_19_94;

test("bytes that a child sent to a disk are its parent's, and those that it kept in memory are not", async () => {
  // The folder of temporary files lies in memory on many machines, this one hardly anywhere.
  const onDisk = await mkdtemp("/var/tmp/engine-bench-run-");
  try {
    const before = bytesToDiskOf([process.pid]) ?? Number.NaN;
    await promisify(execFile)("sh", ["-c", `printf %0100000d 1 > ${join(onDisk, "written")}; sync`]);
    const sent = (bytesToDiskOf([process.pid]) ?? Number.NaN) - before;
    expect(sent >= 100_000).toBe(statfsSync(onDisk).type !== TMPFS);
  } finally {
    await rm(onDisk, { recursive: true });
  }
});

test("a machine is measured in its folder, which is gone afterwards", async () => {
  const machine = await probeMachine(join(folder, "probe"));
  expect(machine.fsyncMs.p99).toBeGreaterThanOrEqual(machine.fsyncMs.p50);
  for (const name of ["cores", "memoryBytes", "sequentialWriteMiBPerSecond", "memoryCopyMiBPerSecond"] as const) {
    expect(machine[name]).toBeGreaterThan(0);
  }
  await expect(stat(join(folder, "probe"))).rejects.toThrow("ENOENT");
});

test("marks are those of the rounds that count, each once", async () => {
  let rounds = 0;
  const marks: string[] = [];
  const round = async () => {
    marks.push(rounds++ === 0 ? "cold" : "busy");
    return { speed: 1 };
  };
  const open = async () => ({ sides: [{ name: "ours", round }], marks: () => marks.splice(0) });
  const result = await run(asking([], { open }));
  expect(result.marks).toEqual(["busy"]);
});

describe("a file of results", () => {
  test("of schema 1 is read, and does not tell what threads and disks did", async () => {
    const path = join(folder, "old.json");
    const {
      rounds,
      release: _release,
      ...result
    } = await run(asking([{ name: "ours", round: async () => ({ speed: 1 }) }]));
    const old = rounds.map(({ ours }) => {
      const { threadSeconds: _threads, bytesToDisk: _bytes, ...side } = ours ?? {};
      return { ours: side };
    });
    await writeFile(path, JSON.stringify({ ...result, rounds: old, schema: 1 }));
    const found = await readResult(path);
    expect(found.release).toBeNull();
    expect(found.rounds[0]?.["ours"]).toMatchObject({ threadSeconds: {}, bytesToDisk: {} });
  });

  test("of a newer program, or of something else, is told with its name", async () => {
    const path = join(folder, "result.json");
    await writeFile(path, JSON.stringify({ schema: 3 }));
    await expect(readResult(path)).rejects.toThrow(
      `${path} is of schema 3, this program reads up to 2: use the newer program`,
    );
    await writeFile(path, "{}");
    await expect(readResult(path)).rejects.toThrow(/is no result of a benchmark: .*run it again/);
  });
});

describe("the command line", () => {
  test.each([
    [[], /^say what to do:\n\nnpm run bench/],
    [["fly"], /^fly is no command/],
    [["quick", "--rows", "5"], /^quick takes no --rows/],
    [["peers", "kernel"], /^kernel is no option with a value/],
    [["run", "kernel/nothing"], /^there is no benchmark kernel\/nothing; there are agent\/ask, /],
    [["run", "kernel/otlp", "--rounds"], /^--rounds is no option with a value/],
    [["run", "kernel/otlp", "--rounds", "0"], /^--rounds takes a positive whole number, not 0/],
    [["run", "kernel/otlp", "--warmUpRounds", "2"], /^--warmUpRounds takes 0 or 1, not 2/],
    [["run", "kernel/otlp", "--records", "-1"], /^kernel\/otlp: --records: /],
  ])("refuses %j in a sentence", async (args, message) => {
    await expect(main(args)).rejects.toThrow(message);
  });

  test("measures before a merge what is there, with options that it has", async () => {
    for (const [name, options] of Object.entries(QUICK)) {
      for (const benchmark of await benchmarksNamed(name, BENCHMARKS))
        expect(optionsOf(benchmark, options)).toBeDefined();
    }
  });
});
