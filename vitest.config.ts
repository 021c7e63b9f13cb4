import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["src/**/*.test.ts", "roles/**/*.test.ts", "test/**/*.test.ts", "bench/**/*.test.ts"],
    pool: "forks",
    // Tests of servers wait most of their time: two at once take little longer than one, also on two cores.
    maxWorkers: Math.max(2, availableParallelism() - 1),
    testTimeout: 30_000,
    hookTimeout: 30_000,
    // node:sqlite says once per process that it is experimental; it is a decision here, not news.
    execArgv: ["--disable-warning=ExperimentalWarning"],
  },
});
