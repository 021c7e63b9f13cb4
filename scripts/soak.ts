import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { systemClock } from "../src/core/clock.ts";

/**
 * `npm run soak`: the long forms of tests, for a night, with other seeds each time:
 *
 *     npm run soak                        all of them, one after the other
 *     npm run soak -- kill simulation     those that are named
 *
 * Goes on after one that fails. Prints each one's result at the end, and exits with 1 where one failed. As root, on
 * Linux, for those of sandboxes. Whoever runs it writes the last result beside the change it was run for.
 */
const SOAKS: Readonly<Record<string, readonly string[]>> = {
  kill: ["scripts/kill.ts", "300"],
  "kill-large": ["scripts/kill.ts", "soak", "60"],
  simulation: ["scripts/simulate.ts", "10000"],
  "simulation-jobs": ["scripts/simulate-jobs.ts", "10000"],
  differential: ["scripts/query-differential.ts", "10000"],
  scanner: ["scripts/fuzz.ts", "1000000"],
  kql: ["scripts/kql-fuzz.ts", "100000"],
  "hostile-statements": ["scripts/hostile-corpus.ts", "10000"],
  abuse: ["--expose-gc", "scripts/abuse.ts", "200"],
  chaos: ["scripts/chaos.ts", "100"],
  // The first commit whose servers start on a catalog that a newer version has changed.
  "chaos-mixed": ["scripts/chaos.ts", "100", "--earlier", "9af5c301"],
  "rolling-upgrade": ["scripts/rolling-upgrade.ts"],
  "chaos-jobs": ["scripts/chaos-jobs.ts"],
  "chaos-sandboxes": ["scripts/chaos-sandboxes.ts"],
  agents: ["scripts/adapters.ts"],
  deployment: ["scripts/deployment.ts"],
  kafka: ["scripts/test.ts", "test/kafka/nodes.pg.soak.test.ts", "test/kafka/topics.soak.test.ts"],
  "two-versions": ["scripts/test.ts", "test/upgrade/rolling.pg.soak.test.ts"],
  "single-file": ["scripts/test.ts", "test/single-file/single-file.soak.test.ts"],
};

process.exitCode = await main(process.argv.slice(2));

async function main(args: readonly string[]): Promise<number> {
  const unknown = args.find((name) => !Object.hasOwn(SOAKS, name));
  if (unknown !== undefined) {
    console.error(`error: there is no soak ${unknown}; there are: ${Object.keys(SOAKS).join(", ")}`);
    return 2;
  }
  const results: { line: string; ok: boolean }[] = [];
  for (const name of args.length > 0 ? args : Object.keys(SOAKS)) {
    console.log(`--- ${name}`);
    const startedMs = systemClock.monotonicMs();
    const ok = await passes(SOAKS[name] ?? []);
    const minutes = (systemClock.monotonicMs() - startedMs) / 60_000;
    results.push({ line: `${name.padEnd(20)} ${ok ? "ok    " : "FAILED"} ${minutes.toFixed(1).padStart(6)} min`, ok });
  }
  console.log(`\n${results.map(({ line }) => line).join("\n")}`);
  return results.every(({ ok }) => ok) ? 0 : 1;
}

async function passes(args: readonly string[]): Promise<boolean> {
  const repository = fileURLToPath(new URL("..", import.meta.url));
  const [code] = await once(spawn(process.execPath, args, { cwd: repository, stdio: "inherit" }), "close");
  return code === 0;
}
