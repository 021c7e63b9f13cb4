import { availableParallelism } from "node:os";
import { configDefaults, defineConfig } from "vitest/config";

/** Tests that take long are named so: `npm test` leaves them to `npm run test:long`. */
const LONG = "**/*.long.test.ts";
/** Those that take minutes: `npm run soak` runs them by name, and whoever names a file. */
const SOAK = "**/*.soak.test.ts";
const SHORT = "!(*.long|*.soak).test.ts";
const selection = (process.env["TEST_SELECTION"] ?? "all") as "short" | "long" | "all";

/**
 * Modules that leave nothing behind in their process: no servers, no patched globals. The files of their tests share
 * processes, so that a module is loaded once per process instead of once per file, which is most of what they take.
 */
const PURE = [
  `src/{config,db,fabric,format,server}/**/${SHORT}`,
  `src/{auth,credentials}/**/${SHORT}`,
  `src/io/rows/**/${SHORT}`,
  `src/query/{budgets,errors,flight,parse,resolve,tail}/**/${SHORT}`,
  `src/sandbox/{contract,control}/**/${SHORT}`,
];
const left = { short: [LONG, SOAK], long: [SOAK], all: [] };
const exclude = [...configDefaults.exclude, ...left[selection]];

export default defineConfig({
  test: {
    projects: [
      {
        extends: true,
        test: {
          name: "isolated",
          include:
            selection === "long"
              ? [LONG]
              : ["src/**/*.test.ts", "roles/**/*.test.ts", "test/**/*.test.ts", "bench/**/*.test.ts"],
          exclude: [...exclude, ...PURE],
        },
      },
      {
        extends: true,
        test: { name: "pure", include: selection === "long" ? [] : PURE, exclude, isolate: false },
      },
    ],
    globalSetup: ["test/support/global-setup.ts"],
    setupFiles: ["test/support/setup.ts"],
    pool: "forks",
    // Tests of servers wait much of their time: on two cores three files at once leave less of them idle. Four took as long
    // as three (2026-11-30).
    maxWorkers: Math.max(3, availableParallelism() - 1),
    // A test takes seconds; on a machine that is busy with something else these may be many.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 60_000, interval: 25 } },
    // node:sqlite says once per process that it is experimental; it is a decision here, not news.
    execArgv: ["--disable-warning=ExperimentalWarning"],
  },
});
