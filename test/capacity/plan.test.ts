import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runHere } from "../../src/cli/cli.test-kit.ts";
import { SAMPLE_COSTS } from "../../src/capacity/costs/samples.test-kit.ts";
import { WORKLOAD } from "../../src/capacity/workload/samples.test-kit.ts";

let folder: string;
const at = (name: string) => join(folder, name);
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "engine-plan-"));
  await writeFile(at("costs.json"), JSON.stringify({ ...SAMPLE_COSTS, version: "1.2.3" }));
  await writeFile(at("workload.toml"), WORKLOAD);
  await writeFile(at("prices.toml"), 'currency = "EUR"\ncore_hour = 0.04\n');
});
afterAll(() => rm(folder, { recursive: true }));

const plan = (...more: string[]) => runHere(["plan", at("workload.toml"), "--costs", at("costs.json"), ...more]);

describe("engine plan", () => {
  it("prints what carries the workload, and what runs out first", async () => {
    const { code, stdout, stderr } = await plan("--prices", at("prices.toml"));
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).toMatch(/^Plan of fifty in mode staged/);
    for (const title of [
      "Nodes",
      "Storage",
      "Waits at the peak",
      "What runs out first",
      "Twice the load",
      "Cost of a month",
    ])
      expect(stdout).toContain(title);
    expect(stdout).toMatch(/^query +3 +4 /m);
  });

  it("shows no cost without prices", async () => {
    expect((await plan()).stdout).not.toContain("Cost");
  });

  it("prints JSON, a page, and what Terraform takes", async () => {
    const json = JSON.parse((await plan("--format", "json")).stdout) as { roles: unknown[]; cost: unknown };
    expect([json.roles.length, json.cost]).toEqual([6, null]);
    expect((await plan("--format", "html")).stdout).toMatch(/^<!doctype html>[\s\S]*<\/html>\n$/);
    const variables = JSON.parse((await plan("--format", "tfvars")).stdout) as { roles: object };
    expect(Object.keys(variables.roles)).toContain("compaction");
  });

  it("ends with 1 where it does not keep what is wanted", async () => {
    await writeFile(at("impatient.toml"), WORKLOAD.replace('p99 = "2 s"', 'p99 = "1 ms"'));
    const { code, stdout } = await runHere(["plan", at("impatient.toml"), "--costs", at("costs.json")]);
    expect(code).toBe(1);
    expect(stdout).toMatch(/Not reached\n\n- logs: p99 is expected at/);
  });

  it.each([
    [
      "a costs file that is not there",
      ["--costs", "/nowhere/costs.json"],
      /^error: cannot read the costs in \/nowhere\/costs.json/,
    ],
    [
      "costs of a newer schema",
      ["--costs", "newer"],
      /is of schema 99, this program reads up to 1: use the newer program/,
    ],
    ["costs that are none", ["--costs", "wrong"], /wrong is no file of costs: machine: .*; measure it again/],
    ["a format that is none", ["--format", "pdf"], /Allowed choices are text, json, html, tfvars/],
    ["prices with a key that is none", ["--prices", "prices"], /prices: gold: no such key/],
  ])("says in a sentence what is wrong with %s", async (_what, more, expected) => {
    await writeFile(at("newer"), JSON.stringify({ ...SAMPLE_COSTS, schema: 99 }));
    await writeFile(at("wrong"), JSON.stringify({ ...SAMPLE_COSTS, machine: 1 }));
    await writeFile(at("prices"), 'currency = "EUR"\ngold = 1\n');
    const words = more.map((word) => (["newer", "wrong", "prices"].includes(word) ? at(word) : word));
    const { code, stderr, stdout } = await plan(...words);
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toMatch(expected);
    expect(stderr.trim().split("\n")).toHaveLength(1);
  });

  it("says in a sentence that nobody is there to watch, and takes either a workload or servers", async () => {
    const watched = await runHere(["plan", "--from", "http://127.0.0.1:1", "--costs", at("costs.json")]);
    expect([watched.code, watched.stdout]).toEqual([1, ""]);
    expect(watched.stderr).toMatch(/^error: cannot read http:\/\/127.0.0.1:1\/metrics: .*ECONNREFUSED.*\n$/);
    const both = await plan("--from", "http://127.0.0.1:1");
    expect([both.code, both.stderr]).toEqual([2, expect.stringContaining("one of them")]);
  });

  it("warns of costs that another version has", async () => {
    await writeFile(at("old.json"), JSON.stringify({ ...SAMPLE_COSTS, version: "0.0.1" }));
    const { stderr } = await plan("--costs", at("old.json"));
    expect(stderr).toMatch(/warning: .*old.json is of version 0.0.1, this is .*: measure it again/);
  });
});
