import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["src/**/*.test.ts", "roles/**/*.test.ts", "test/**/*.test.ts", "bench/**/*.test.ts"],
    pool: "forks",
    testTimeout: 30_000,
    hookTimeout: 30_000,
    // node:sqlite says once per process that it is experimental; it is a decision here, not news.
    execArgv: ["--disable-warning=ExperimentalWarning"],
  },
});
