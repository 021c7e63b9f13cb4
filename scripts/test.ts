import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { systemClock } from "../src/core/clock.ts";
import { type Report, readReport } from "./test-report.ts";

/**
 * `npm test`: formatting, lint, types, dead code, then the tests. Further arguments go to vitest
 * (`npm test -- src/io -t range`). The last line is `N passed, N failed, N skipped`; a check that fails counts as one
 * failure. Where `CI` is set a skipped test fails the run: what CI leaves out, nobody runs.
 */
const repository = fileURLToPath(new URL("..", import.meta.url));
const inCi = (process.env.CI ?? "") !== "" && process.env.CI !== "false";

type Outcome = { name: string; ok: boolean; seconds: number; output: string };

const CHECKS: readonly (readonly [name: string, command: string, ...args: string[]])[] = [
  ["format", "oxfmt", "--check", "."],
  ["lint", "oxlint", "--type-aware", "--deny-warnings"],
  ["types", "tsc", "--noEmit"],
  ["dead code", "knip", "--no-progress"],
];

process.exitCode = await main(process.argv.slice(2));

async function main(args: readonly string[]): Promise<number> {
  const checks = await Promise.all(CHECKS.map(([name, command, ...rest]) => run(name, command, rest)));
  for (const check of checks) if (!check.ok) console.log(`\n--- ${check.name}\n${check.output.trim()}`);
  const { outcome, report } = await runTests(args);
  const failed = report.failed + checks.filter((check) => !check.ok).length;

  console.log();
  for (const { name, ok, seconds } of [...checks, outcome]) {
    console.log(`${name.padEnd(10)} ${ok ? "ok    " : "FAILED"} ${seconds.toFixed(1).padStart(6)} s`);
  }
  for (const { name, seconds } of report.slowest) {
    console.log(`${name.slice(repository.length).padEnd(60)} ${seconds.toFixed(1).padStart(6)} s`);
  }
  for (const name of report.skippedNames) console.log(`skipped: ${name}`);
  for (const failure of report.failures) console.log(`failed: ${failure}`);
  const skipFails = inCi && report.skipped > 0;
  if (skipFails) console.log("FAILED: tests were skipped, which CI does not accept");
  console.log(`${report.passed} passed, ${failed} failed, ${report.skipped} skipped`);
  return failed > 0 || skipFails ? 1 : 0;
}

async function runTests(args: readonly string[]): Promise<{ outcome: Outcome; report: Report }> {
  const folder = await mkdtemp(join(tmpdir(), "engine-test-"));
  try {
    const file = join(folder, "report.json");
    const reporter = process.stdout.isTTY ? "default" : "dot";
    const flags = ["run", `--reporter=${reporter}`, "--reporter=json", `--outputFile.json=${file}`];
    const outcome = await run("tests", "vitest", [...flags, ...args], "inherit");
    const report = readReport(await readFile(file, "utf8").catch(() => undefined), outcome.ok);
    return { outcome, report };
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** Runs a tool of this repository; its output is kept unless it is inherited. */
async function run(
  name: string,
  command: string,
  args: readonly string[],
  stdio: "pipe" | "inherit" = "pipe",
): Promise<Outcome> {
  const startedMs = systemClock.monotonicMs();
  const path = [join(repository, "node_modules/.bin"), process.env.PATH].join(delimiter);
  const child = spawn(command, args, {
    cwd: repository,
    stdio: ["ignore", stdio, stdio],
    env: { ...process.env, PATH: path },
  });
  let output = "";
  child.stdout?.on("data", (chunk) => (output += String(chunk)));
  child.stderr?.on("data", (chunk) => (output += String(chunk)));
  const ok = await new Promise<boolean>((resolve) => {
    child.on("error", (error) => {
      output += error.message;
      resolve(false);
    });
    child.on("close", (code) => resolve(code === 0));
  });
  return { name, ok, seconds: (systemClock.monotonicMs() - startedMs) / 1000, output };
}
