import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readCosts } from "../../src/capacity/costs/costs.ts";
import { writeDurably } from "../../src/core/durable-file.ts";
import { systemRandom } from "../../src/core/random.ts";
import { UsageError, type Command } from "../suite/commands/command.ts";
import { valuesByFlag } from "../suite/commands/flags.ts";
import { probeMachine } from "../suite/probe.ts";
import { revisionHere } from "../suite/revision.ts";
import { printProof } from "./print.ts";
import type { Proof } from "./proof-file.ts";
import { prove, sha256 } from "./prove.ts";

const FLAGS = new Set(["costs", "out", "only", "seconds", "seed"]);

/** Loads that the costs have not seen: predicted, then run. */
export const proof: Command = {
  usage: "--costs FILE [--out FILE] [--only CASE] [--seconds N] [--seed N]",
  doc:
    "predicts twelve loads that no cost was fitted to, writes the predictions (FILE.predicted.json), then runs the loads " +
    "under quotas of CPU and compares; as root",
  run: async (args, signal) => {
    const values = valuesByFlag(args);
    const unknown = [...values.keys()].find((name) => !FLAGS.has(name));
    if (unknown !== undefined) throw new UsageError(`proof takes no --${unknown}`);
    const one = (name: string) => values.get(name)?.at(-1);
    const path = one("costs");
    if (path === undefined) throw new UsageError("proof takes --costs, the file of full");
    const out = one("out") ?? "proof.json";
    const costs = await readCosts(path);
    const startedAt = new Date().toISOString();
    const machine = await probeMachine(join(tmpdir(), `engine-proof-${process.pid}`));
    const proved = await prove({
      costs,
      seconds: positive("seconds", one("seconds") ?? "15"),
      seed: positive("seed", one("seed") ?? "1"),
      only: one("only"),
      signal,
      say: (line) => console.log(line),
      keep: (text) => writeDurably(`${out}.predicted.json`, text, 0o644, systemRandom),
    });
    const { commit } = await revisionHere();
    const costsSha256 = sha256(await readFile(path, "utf8"));
    const whole: Proof = { schema: 1, kind: "proof", startedAt, commit, machine, costsSha256, ...proved };
    await writeDurably(out, `${JSON.stringify(whole, undefined, 2)}\n`, 0o644, systemRandom);
    printProof(whole);
    console.log(`\n${out}`);
    return 0;
  },
};

function positive(name: string, text: string): number {
  const value = Number(text);
  if (!(value > 0)) throw new UsageError(`--${name} takes a number above 0, not ${text}`);
  return value;
}
