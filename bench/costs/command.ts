import { parseArgs } from "node:util";
import { writeDurably } from "../../src/core/durable-file.ts";
import { systemRandom } from "../../src/core/random.ts";
import { TOO_NOISY } from "../suite/commands/command.ts";
import { measureCosts, type MeasureOptions } from "./full.ts";

const OPTIONS = {
  out: { type: "string", default: "costs.json" },
  seed: { type: "string", default: "1" },
  brief: { type: "boolean" },
} as const;

/**
 * `bench full`: measures what this machine spends, and writes the file that `engine plan` reads, whole or not at all.
 * Resolves to the exit code.
 */
export async function runFull(
  args: readonly string[],
  { commit, signal, say }: Pick<MeasureOptions, "commit" | "signal" | "say">,
): Promise<number> {
  const { values, positionals } = parseArgs({ args: [...args], options: OPTIONS, allowPositionals: true });
  const [unknown] = positionals;
  if (unknown !== undefined)
    throw new Error(`${unknown} is no option of full; it takes --out FILE, --seed N and --brief`);
  const { out, brief = false } = values;
  const seed = Number(values.seed);
  if (!Number.isSafeInteger(seed) || seed < 1) throw new Error("--seed takes a positive whole number");
  const { costs, problems } = await measureCosts({ seed, brief, commit, signal, say });
  for (const problem of problems) say(`too noisy: ${problem}`);
  // The figures of a brief run say nothing in any case.
  if (problems.length > 0 && !brief) {
    say(`no result, and ${out} is not written: run it again on a quiet machine`);
    return TOO_NOISY;
  }
  await writeDurably(out, `${JSON.stringify(costs, null, 2)}\n`, 0o644, systemRandom);
  say(out);
  return 0;
}
