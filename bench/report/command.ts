import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { VERSION } from "../../src/core/version.ts";
import { UsageError, type Command } from "../suite/commands/command.ts";
import { valuesByFlag } from "../suite/commands/flags.ts";
import { REPOSITORY } from "../suite/revision.ts";
import { writeResult } from "../suite/result.ts";
import type { Evidence } from "./evidence.ts";
import { readFiles } from "./files.ts";
import { withResults } from "./goals-file.ts";
import { goalsIn, type Goal } from "./goals.ts";
import type { Growth } from "./growth.ts";
import { reportPage } from "./page.ts";
import { printReport } from "./print.ts";
import { evidenceByGoal, withNewest } from "./report.ts";

const GOALS = join(REPOSITORY, "bench", "goals.toml");

export const report: Command = {
  usage: "[RESULT.json…] [--html FILE] [--goals FILE] [--update]",
  doc:
    "prints which goals hold, which are missed and which have no result, by bench/goals.toml and these results; " +
    "--html writes a page, --update writes the results into the goals and keeps their files in results/ beside them",
  run: async (args) => {
    const { paths, page, goalsPath, updates } = argumentsIn(args);
    const text = await readFile(goalsPath, "utf8");
    const goals = goalsIn(text, goalsPath);
    const { results, growth, heldOut } = await readFiles(paths);
    const evidence = await evidenceByGoal(goals, results);
    const whole = { release: VERSION, goals: withNewest(goals, evidence), results, growth, heldOut };
    printReport(whole);
    if (page !== undefined) {
      await mkdir(dirname(page), { recursive: true });
      await writeFile(page, reportPage(whole));
    }
    if (updates) {
      const found = new Map([...evidence].map(([name, { own }]) => [name, own]));
      await writeFile(goalsPath, withResults(text, found));
      await keepFiles(join(dirname(goalsPath), "results"), { goals, evidence, growth });
    }
    return 0;
  },
};

function argumentsIn(args: readonly string[]) {
  const first = args.findIndex((word) => word.startsWith("--"));
  const paths = first < 0 ? args : args.slice(0, first);
  const words = first < 0 ? [] : args.slice(first).filter((word) => word !== "--update");
  const values = valuesByFlag(words);
  const unknown = [...values.keys()].find((name) => name !== "html" && name !== "goals");
  if (unknown !== undefined) throw new UsageError(`report takes no --${unknown}`);
  const updates = args.includes("--update");
  return { paths, page: values.get("html")?.at(-1), goalsPath: values.get("goals")?.at(-1) ?? GOALS, updates };
}

/**
 * What the documents are written from: files that gave a goal its result, and curves, each in the place of its last. One
 * benchmark has a file for each of the options that goals ask of it.
 */
async function keepFiles(
  folder: string,
  {
    goals,
    evidence,
    growth,
  }: { goals: readonly Goal[]; evidence: ReadonlyMap<string, Evidence>; growth: readonly Growth[] },
): Promise<void> {
  await mkdir(folder, { recursive: true });
  for (const { name, options } of goals) {
    const source = evidence.get(name)?.source;
    if (source === undefined) continue;
    const words = [source.benchmark, ...Object.values(options)].map((word) => fileName(String(word)));
    await writeResult(join(folder, `${words.join("-")}.json`), source);
  }
  for (const curve of growth) {
    await writeFile(join(folder, `growth-${fileName(curve.name)}.json`), `${JSON.stringify(curve, undefined, 2)}\n`);
  }
}

function fileName(name: string): string {
  return name.replaceAll(/[^a-z0-9-]/g, "-");
}
