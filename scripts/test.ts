import { spawn } from "node:child_process";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { startVitest } from "vitest/node";
import { systemClock } from "../src/core/clock.ts";
import { capabilityTable } from "../src/core/capabilities.test-kit.ts";
import { TestTally } from "./test-reporter.ts";

/**
 * `npm test`: formatting, lint, types, dead code, then the short tests. `npm run test:long` runs those that are named
 * `*.long.test.ts`, `npm run test:all` both; `*.soak.test.ts` are for `npm run soak`. With files or parts of their names (`npm test -- src/io`) it runs
 * just their tests, short or long, at once; `-t PATTERN` picks tests by name.
 *
 * The last line is `N passed, N failed, N skipped`; a check that fails counts as one failure. Where `CI` is set a skipped
 * test fails the run: what CI leaves out, nobody runs.
 */
const repository = fileURLToPath(new URL("..", import.meta.url));
const inCi = (process.env.CI ?? "") !== "" && process.env.CI !== "false";

/** Where more files fail, the cause is hardly a busy machine: none is run again. */
const MOST_TRIED_AGAIN = 5;

type Outcome = { name: string; ok: boolean; seconds: number; output: string };
type Selection = "short" | "long" | "all";

const CHECKS: readonly (readonly [name: string, command: string, ...args: string[]])[] = [
  ["format", "oxfmt", "--check", "."],
  // The linter has the compiler's findings too: asked for them, it reads all types once instead of twice.
  ["lint, types", "oxlint", "--type-aware", "--type-check", "--deny-warnings"],
  ["dead code", "knip", "--no-progress"],
];

process.exitCode = await main(process.argv.slice(2));

async function main(args: readonly string[]): Promise<number> {
  const { values, files } = parse(args);
  const named = files.length > 0 || values.pattern !== undefined;
  const selections: Selection[] = named ? ["all"] : values.selections;
  const checks = named || !selections.includes("short") ? [] : await runChecks();
  if (!named) console.log(`${capabilityTable()}\n`);
  const tally = new TestTally();
  const runs: Outcome[] = [];
  for (const selection of selections) runs.push(await runTests(selection, tally, files, values.pattern));
  return sumUp([...checks, ...runs], checks, tally);
}

function parse(args: readonly string[]) {
  const at = args.findIndex((word) => word === "-t");
  const pattern = at === -1 ? undefined : args[at + 1];
  const words = args.filter((_word, i) => at === -1 || (i !== at && i !== at + 1));
  const unknown = words.find((word) => word.startsWith("-") && word !== "--long" && word !== "--all");
  if (unknown !== undefined || (at !== -1 && pattern === undefined)) {
    console.error(`error: ${unknown ?? "-t"} is not understood: [--long | --all] [-t PATTERN] [FILE ...]`);
    process.exit(2);
  }
  const selections: Selection[] = words.includes("--all")
    ? ["short", "long"]
    : [words.includes("--long") ? "long" : "short"];
  return { values: { selections, pattern }, files: words.filter((word) => !word.startsWith("-")) };
}

async function runChecks(): Promise<Outcome[]> {
  const checks = await Promise.all(CHECKS.map(([name, command, ...rest]) => run(name, command, rest)));
  for (const check of checks) if (!check.ok) console.log(`\n--- ${check.name}\n${check.output.trim()}`);
  return checks;
}

async function runTests(
  selection: Selection,
  tally: TestTally,
  files: readonly string[],
  pattern: string | undefined,
): Promise<Outcome> {
  const startedMs = systemClock.monotonicMs();
  const failedBefore = tally.failed;
  process.env["TEST_SELECTION"] = selection;
  // Vitest sets it where a run fails; what an earlier one left says nothing of this one.
  process.exitCode = 0;
  const vitest = await startVitest("test", [...files], {
    run: true,
    watch: false,
    reporters: [tally, ...(process.stdout.isTTY ? ["default"] : [])],
    ...(pattern === undefined ? {} : { testNamePattern: pattern }),
  });
  const failed = vitest.state.getTestModules().filter((module) => !module.ok());
  // Vitest fails for reasons that no test has, too: no file found, a global set-up that threw.
  if (tally.failed === failedBefore && process.exitCode !== 0) tally.failOutside(`the ${selection} tests did not run`);
  if (inCi && failed.length > 0 && failed.length <= MOST_TRIED_AGAIN) {
    const again = failed.map(({ project, moduleId }) => project.createSpecification(moduleId));
    console.log(`\nfailed, and run again: ${failed.map((module) => module.relativeModuleId).join(", ")}`);
    await tally.secondAttempt(() => vitest.runTestSpecifications(again));
  }
  await vitest.close();
  const seconds = (systemClock.monotonicMs() - startedMs) / 1000;
  return { name: `${selection} tests`, ok: tally.failed === failedBefore, seconds, output: "" };
}

function sumUp(outcomes: readonly Outcome[], checks: readonly Outcome[], tally: TestTally): number {
  console.log();
  for (const { name, ok, seconds } of outcomes) {
    console.log(`${name.padEnd(12)} ${ok ? "ok    " : "FAILED"} ${seconds.toFixed(1).padStart(6)} s`);
  }
  for (const { name, seconds } of tally.slowest()) {
    console.log(`${name.padEnd(60)} ${seconds.toFixed(1).padStart(6)} s`);
  }
  for (const name of tally.skipped) console.log(`skipped: ${name}`);
  for (const flaky of tally.flaky) console.log(`flaky, passed at one of two attempts: ${flaky}`);
  for (const failure of tally.failures) console.log(`failed: ${failure}`);
  const failed = tally.failed + checks.filter((check) => !check.ok).length;
  const skipFails = inCi && tally.skipped.length > 0;
  if (skipFails) console.log("FAILED: tests were skipped, which CI does not accept");
  console.log(`${tally.passed} passed, ${failed} failed, ${tally.skipped.length} skipped`);
  return failed > 0 || skipFails ? 1 : 0;
}

/** Runs a tool of this repository and keeps its output. */
async function run(name: string, command: string, args: readonly string[]): Promise<Outcome> {
  const startedMs = systemClock.monotonicMs();
  const path = [join(repository, "node_modules/.bin"), process.env.PATH].join(delimiter);
  const child = spawn(command, args, {
    cwd: repository,
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, PATH: path },
  });
  let output = "";
  child.stdout.on("data", (chunk) => (output += String(chunk)));
  child.stderr.on("data", (chunk) => (output += String(chunk)));
  const ok = await new Promise<boolean>((resolve) => {
    child.on("error", (error) => {
      output += error.message;
      resolve(false);
    });
    child.on("close", (code) => resolve(code === 0));
  });
  return { name, ok, seconds: (systemClock.monotonicMs() - startedMs) / 1000, output };
}
