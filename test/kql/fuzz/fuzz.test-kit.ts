import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { seededRandom } from "../../../src/core/random.ts";
import type { Checked } from "./checked.test-kit.ts";
import { callables, mutated, type Material } from "./mutate.test-kit.ts";
import { startingTexts } from "./texts.test-kit.ts";

const CHILD = fileURLToPath(new URL("fuzz-child.test-kit.ts", import.meta.url));

/** A text takes less than a second; the machine may be busy with something else. */
const SILENT_MS = 90_000;

/** So many processes may be lost: each is a finding. */
const MOST_LOST = 5;

export type Finding = { number: number; what: string; text: string; sql?: string };

export type FuzzReport = { texts: number; translated: number; refused: number; findings: Finding[] };

export async function fuzzMaterial(): Promise<Material> {
  return { texts: startingTexts(), functions: callables() };
}

/** The text with that number: those to begin with first, as they are, then mutations of them. */
export function textOf(material: Material, seed: number, number: number): string {
  const own = material.texts[number];
  return own ?? mutated(material, seededRandom(seed ^ Math.imul(number + 1, 0x9e3779b1)));
}

/** Checks so many texts, in a process that is replaced when it is lost. */
export async function fuzz(options: {
  seed: number;
  texts: number;
  first?: number;
  onText?: (done: number) => void;
}): Promise<FuzzReport> {
  const { seed, texts, first = 0 } = options;
  const report: FuzzReport = { texts: 0, translated: 0, refused: 0, findings: [] };
  const material = await fuzzMaterial();
  const found = (number: number, what: string, sql?: string): void => {
    report.findings.push({ number, what, text: textOf(material, seed, number), ...(sql !== undefined && { sql }) });
  };
  let [from, lost] = [first, 0];
  while (from < first + texts) {
    let at = from;
    const end = await run([seed, from, first + texts], (line) => {
      if (!line.startsWith("{")) {
        at = Number(line);
        return;
      }
      const checked = JSON.parse(line) as Checked;
      report.texts++;
      if (checked.kind === "wrong") found(at, checked.what, checked.sql);
      else report[checked.kind]++;
      options.onText?.(report.texts);
    });
    if (end === undefined) return report;
    found(at, end);
    if (++lost === MOST_LOST) return report;
    from = at + 1;
  }
  return report;
}

/** Undefined when all were checked; else how the process was lost. */
async function run(args: readonly number[], onLine: (line: string) => void): Promise<string | undefined> {
  const child = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", CHILD, ...args.map(String)], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  let isSilent = false;
  const watch = setTimeout(() => {
    isSilent = true;
    child.kill("SIGKILL");
  }, SILENT_MS);
  let errors = "";
  child.stderr.on("data", (chunk: Buffer) => {
    errors = `${errors}${chunk.toString()}`.slice(-2_000);
  });
  const ended = new Promise<{ code: number | null; signal: string | null }>((resolve) => {
    child.on("close", (code, signal) => resolve({ code, signal }));
  });
  for await (const line of createInterface({ input: child.stdout })) {
    watch.refresh();
    onLine(line);
  }
  const { code, signal } = await ended;
  clearTimeout(watch);
  if (isSilent) return "it hangs";
  return code === 0 ? undefined : `the process ended with ${code ?? signal}: ${errors}`;
}

/** The findings, one example of each kind: the shortest text, and how many there are. */
export function examplesOf(findings: readonly Finding[]): (Finding & { count: number })[] {
  const kinds = new Map<string, Finding & { count: number }>();
  for (const finding of findings) {
    const kind = finding.what
      .replaceAll(/"[^"]*"|'[^']*'/g, "…")
      .replaceAll(/\d+/g, "9")
      .slice(0, 200);
    const known = kinds.get(kind);
    const count = (known?.count ?? 0) + 1;
    kinds.set(
      kind,
      known === undefined || finding.text.length < known.text.length ? { ...finding, count } : { ...known, count },
    );
  }
  return [...kinds.values()].toSorted((a, b) => b.count - a.count);
}

/** A report for a person. */
export function shown(findings: readonly Finding[]): string {
  return examplesOf(findings)
    .map(
      ({ count, number, what, text, sql }) =>
        `${count}× ${what}\n  ${number}: ${text}${sql === undefined ? "" : `\n  ${sql}`}`,
    )
    .join("\n\n");
}
