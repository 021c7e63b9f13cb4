import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { SAMPLE_COSTS } from "../../src/capacity/costs/samples.test-kit.ts";
import { lacks } from "../../src/core/gates.test-kit.ts";
import { main } from "../main.ts";
import { keepPrinted } from "../support/printed.test-kit.ts";
import { HELD_OUT } from "./cases.ts";
import { missOf } from "../report/report.ts";
import { predictionOf } from "./predict.ts";
import { comparedIn, proofSchema } from "./proof-file.ts";
import { sha256 } from "./prove.ts";
import { leftBehind } from "./quota.ts";

const printed = keepPrinted();
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "engine-proof-test-"));
  await writeFile(join(folder, "costs.json"), JSON.stringify(SAMPLE_COSTS));
});
afterAll(() => rm(folder, { recursive: true }));

test.skipIf(lacks("root"))(
  "a plan is written before the load is run, under a hash that the result has",
  { timeout: 120_000 },
  async () => {
    const out = join(folder, "proof.json");
    const words = ["proof", "--costs", join(folder, "costs.json"), "--only", "logs-30", "--seconds", "2", "--out", out];
    expect(await main(words)).toBe(0);
    const proof = proofSchema.parse(JSON.parse(await readFile(out, "utf8")));
    const predicted = await readFile(`${out}.predicted.json`, "utf8");
    expect(proof.predictionsSha256).toBe(sha256(predicted));
    expect(proof.cases).toHaveLength(1);
    expect((JSON.parse(predicted) as object)["logs-30" as never]).toEqual(proof.cases[0]?.predicted);
    const [measured] = proof.cases.map((each) => each.measured);
    expect(measured?.cores["server"]).toBeGreaterThan(0.01);
    expect(measured?.storedPerRawByte).toBeGreaterThan(0.05);
    expect(measured?.storedPerRawByte).toBeLessThan(1);
    expect(printed.join("\n")).toMatch(/^logs-30 saturation +[0-9]/m);
    expect(await leftBehind("engine-proof-")).toEqual([]);
  },
);

test("every held-out load can be predicted, and there are twelve", () => {
  const costs = {
    ...SAMPLE_COSTS,
    ingest: SAMPLE_COSTS.ingest.flatMap((each) =>
      each.shape === "wide"
        ? ["wide", "nested", "numbers", "text"].map((shape) => Object.assign({}, each, { shape }))
        : [each],
    ),
  };
  expect(HELD_OUT).toHaveLength(12);
  for (const each of HELD_OUT) {
    const { cores, saturation } = predictionOf(each, costs);
    expect(Math.max(...Object.values(cores))).toBeGreaterThan(0);
    expect(saturation.perSecond).toBeGreaterThan(0);
  }
});

test("a miss is a share of what was predicted, and what idles is not compared", () => {
  expect(missOf({ predicted: { value: 2, low: 1, high: 3 }, measured: 3 })).toBeCloseTo(0.5, 9);
  const predicted = {
    cores: { server: 0.5, query: 0.01 },
    saturation: { perSecond: 10, name: "x" },
    p99Ms: 5,
    storedPerRawByte: 0.3,
    putsPerSecond: null,
  };
  const measured = {
    cores: { server: 0.6, query: 0.02 },
    saturationPerSecond: 9,
    p99Ms: 6,
    storedPerRawByte: 0.3,
    putsPerSecond: null,
    generatorShare: 0.1,
    marks: [],
  };
  const rows = comparedIn({ cases: [{ name: "a", mode: "single", predicted, measured }] });
  expect(rows.map(({ measure }) => measure)).toEqual(["CPU of server", "saturation", "at rest", "p99"]);
});
