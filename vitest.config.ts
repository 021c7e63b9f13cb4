import { existsSync } from "node:fs";
import { availableParallelism } from "node:os";
import { delimiter, join } from "node:path";
import { configDefaults, defineConfig } from "vitest/config";

/** It takes minutes to build (`.ci/install-runsc`), so its tests are run where somebody has it. */
const hasRunsc = (process.env["PATH"] ?? "").split(delimiter).some((folder) => existsSync(join(folder, "runsc")));

export default defineConfig({
  test: {
    include: ["src/**/*.test.ts", "roles/**/*.test.ts", "test/**/*.test.ts", "bench/**/*.test.ts"],
    exclude: [...configDefaults.exclude, ...(hasRunsc ? [] : ["src/sandbox/runtime/runsc.test.ts"])],
    pool: "forks",
    // Tests of servers wait much of their time: on two cores three files at once leave less of them idle.
    maxWorkers: Math.max(3, availableParallelism() - 1),
    // A test takes seconds; on a machine that is busy with something else these may be many.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 15_000, interval: 25 } },
    // node:sqlite says once per process that it is experimental; it is a decision here, not news.
    execArgv: ["--disable-warning=ExperimentalWarning"],
  },
});
