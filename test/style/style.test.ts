import { describe, expect, it } from "vitest";
import { checkHazards } from "./hazards.ts";
import { importsOf } from "./imports.ts";
import { checkLayering } from "./layering.ts";
import { checkMachine } from "./machine.ts";
import type { Violation } from "./source.ts";
import { readSources, showViolations } from "./source.ts";

const source = readSources("src", "roles");
const everything = [...source, ...readSources("test", "scripts", "bench")];

const at = (path: string, ...lines: string[]) => [{ path, text: lines.join("\n") }];
const found = (violations: readonly Violation[]) =>
  showViolations(violations)
    .split("\n")
    .filter((line) => line !== "");

describe("layering", () => {
  it("holds: imports point down only", () => {
    expect(found(checkLayering(everything))).toEqual([]);
  });

  it("fails when it sees no files", () => {
    expect(() => checkLayering([])).toThrow("saw no files");
    expect(() => checkLayering(at("test/a.ts", ""))).toThrow("saw no files");
  });

  it.each([
    ["a static import", `import { x } from "../server/x.ts";`],
    ["an import for its effects", `import "../server/x.ts";`],
    ["a type import", `import type { X } from "../server/x.ts";`],
    ["a type import among values", `import { type X } from "../server/x.ts";`],
    ["a namespace", `import * as x from "../server/x.ts";`],
    ["a re-export", `export { x } from "../server/x.ts";`],
    ["a re-export of all", `export * from "../server/x.ts";`],
    ["a re-export of types", `export type { X } from "../server/x.ts";`],
    ["a dynamic import", `const x = await import("../server/x.ts");`],
    ["an import type", `let x: import("../server/x.ts").X | undefined;`],
    ["typeof import", `let x: typeof import("../server/x.ts") | undefined;`],
    ["import equals", `import x = require("../server/x.ts");`],
    ["a thread's file", `const file = new URL("../server/x.ts", import.meta.url);`],
  ])("sees %s", (_what, line) => {
    expect(found(checkLayering(at("src/catalog/c.ts", "// one", line)))).toEqual([
      "src/catalog/c.ts:2: catalog imports ../server/x.ts from server, which is above it",
    ]);
  });

  it.each([
    ["src/core/a.ts", "../config/a.ts", "above"],
    ["src/format/sub/a.ts", "../../io/a.ts", "above"],
    ["src/ingest/a.ts", "../query/a.ts", "same rank"],
    ["src/sandbox/a.ts", "../knowledge/x/a.ts", "same rank"],
    ["src/cli/a.ts", "../web/a.ts", "same rank"],
    ["src/server/a.ts", "../../roles/a.ts", "above"],
    ["src/io/a.test.ts", "../../test/faults/a.ts", "above"],
    ["src/io/a.test-kit.ts", "../../test/faults/a.ts", "above"],
    ["src/io/a.test.ts", "../../roles/a.ts", "above"],
    ["src/db/a.ts", "../catalog/a.ts", "above"],
    ["src/cli/a.ts", "../../scripts/a.ts", "above"],
    ["roles/a.ts", "../bench/a.ts", "above"],
    ["src/a.ts", "./core/a.ts", "no folder"],
    ["src/cli/a.ts", "../unheard/a.ts", "no folder"],
  ])("refuses %s importing %s: %s", (path, specifier, why) => {
    expect(found(checkLayering([...at("src/core/x.ts", ""), ...at(path, `import "${specifier}";`)]))).toEqual([
      expect.stringContaining(why),
    ]);
  });

  it("refuses a computed import", () => {
    expect(found(checkLayering(at("src/io/a.ts", "await import(name);")))).toEqual([
      expect.stringContaining("computed name"),
    ]);
  });

  it("allows what points down, inside, and to packages", () => {
    const allowed = [
      ...at(
        "src/ingest/a.ts",
        `import "../core/a.ts"; import "../catalog/sqlite/a.ts"; import "./sub/b.ts"; import "zod";`,
      ),
      ...at("src/catalog/a.test-kit.ts", `import "../../roles/a.ts"; import "../db/a.ts";`),
      ...at("roles/a.ts", `import "../src/cli/a.ts"; import "../src/core/a.ts"; import "./b.ts";`),
      ...at("test/a.ts", `import "../roles/a.ts"; import "../src/core/a.ts"; import "../bench/a.ts";`),
      ...at("scripts/a.ts", `import "../test/faults/a.ts"; import "../src/cli/a.ts";`),
      ...at("src/core/a.ts", `const text = 'import "../server/x.ts"'; // import "../api/x.ts"`),
      ...at("src/core/b.ts", `const file = new URL("../../package.json", import.meta.url);`),
    ];
    expect(found(checkLayering(allowed))).toEqual([]);
  });

  const inner = { query: [["parse"], ["plan", "fetch"], ["stream"]] };

  it.each([
    ["src/query/parse/a.ts", "../plan/a.ts", "query/parse imports ../plan/a.ts from plan, which is above it"],
    ["src/query/plan/deep/a.ts", "../../stream/a.ts", "which is above it"],
    ["src/query/plan/a.ts", "../fetch/a.ts", "same rank"],
    ["src/query/plan/a.test.ts", "../fetch/a.ts", "same rank"],
    ["src/query/stream/a.ts", "../a.ts", "above"],
    ["src/query/stream/a.ts", "../unheard/a.ts", "in no folder of the ranks of query"],
    ["src/query/unheard/a.ts", "../plan/a.ts", "in no folder of the ranks of query"],
  ])("refuses %s importing %s inside a feature: %s", (path, specifier, why) => {
    expect(found(checkLayering(at(path, `import "${specifier}";`), inner))).toEqual([expect.stringContaining(why)]);
  });

  it("allows what points down inside a feature, and asks nothing of a feature without ranks", () => {
    const allowed = [
      ...at("src/query/a.ts", `import "./stream/a.ts"; import "./b.ts"; import "../core/a.ts";`),
      ...at("src/query/stream/a.ts", `import "../plan/a.ts"; import "../parse/a.ts"; import "./b.ts";`),
      ...at("src/ingest/one/a.ts", `import "../two/a.ts";`),
      ...at("src/ingest/two/a.ts", `import "../one/b.ts";`),
    ];
    expect(found(checkLayering(allowed, inner))).toEqual([]);
  });

  it("refuses circles of folders inside a feature, at every depth", () => {
    const circle = [
      ...at("src/query/plan/one/a.ts", `import "../two/a.ts";`),
      ...at("src/query/plan/two/b.ts", `import type { C } from "../c.ts";`),
      ...at("src/query/plan/c.ts", `import { a } from "./one/b.ts";`),
    ];
    expect(found(checkLayering(circle, inner))).toEqual([
      expect.stringContaining("src/query/plan/one imports src/query/plan/two"),
      expect.stringContaining("src/query/plan/two imports src/query/plan/c.ts"),
      expect.stringContaining("src/query/plan/c.ts imports src/query/plan/one"),
    ]);
  });

  it.each([
    ["a type", `import type { Register } from "../program.ts";`],
    ["a value", `import { build } from "../program.ts";`],
  ])("refuses circles of files that an import() opens and %s closes", (_what, line) => {
    const circle = [
      ...at("src/cli/program.ts", `const load = () => import("./commands/a.ts");`),
      ...at("src/cli/commands/a.ts", "// one", line),
    ];
    expect(found(checkLayering(circle))).toEqual([
      "src/cli/commands/a.ts:2: closes a circle of files: " +
        "src/cli/program.ts imports src/cli/commands/a.ts imports src/cli/program.ts",
    ]);
  });

  it("allows a file below both in the place of a circle, and tests to close one", () => {
    const allowed = [
      ...at("src/cli/program.ts", `import "./command.ts"; const load = () => import("./commands/a.ts");`),
      ...at("src/cli/commands/a.ts", `import type { Register } from "../command.ts";`),
      ...at("src/cli/commands/a.test-kit.ts", `import "../program.ts"; import "./a.test.ts";`),
      ...at("src/cli/commands/a.test.ts", `import "./a.test-kit.ts";`),
    ];
    expect(found(checkLayering(allowed))).toEqual([]);
  });

  it("allows a contract beside the folders that use it, and tests to look around", () => {
    const allowed = [
      ...at("src/query/plan/one/a.ts", `import "../contract.ts"; import "../two/a.ts";`),
      ...at("src/query/plan/open.ts", `import "./contract.ts"; import "./one/a.ts";`),
      ...at("src/query/plan/two/a.test.ts", `import "../one/a.ts"; import "../open.ts";`),
    ];
    expect(found(checkLayering(allowed, inner))).toEqual([]);
  });

  it.each([
    ["src/query/a.ts", `import "./b.test-kit.ts";`, "for tests only"],
    ["src/query/a.ts", `import type { B } from "../core/b.test.ts";`, "for tests only"],
    ["src/query/a.ts", `import "./a.test-kit.ts";`, "for tests only"],
    ["roles/a.ts", `import "../src/core/b.test-kit.ts";`, "for tests only"],
    ["src/query/a.ts", `import { it } from "vitest";`, "imports vitest"],
  ])("refuses %s with %s: %s", (path, line, why) => {
    expect(found(checkLayering(at("src/core/x.ts", "").concat(at(path, line))))).toEqual([
      expect.stringContaining(why),
    ]);
  });

  it("lets tests and their support import test support", () => {
    const line = `import "./b.test-kit.ts"; import { it } from "vitest";`;
    const allowed = [
      ...at("src/query/a.test.ts", line),
      ...at("src/query/a.test-kit.ts", line),
      ...at("test/a.ts", line),
    ];
    expect(found(checkLayering(allowed))).toEqual([]);
  });

  it("reads the imports of the real files", () => {
    expect(everything.flatMap(importsOf).length).toBeGreaterThan(100);
  });
});

describe("clock, timers and randomness", () => {
  it("are used only in src/core", () => {
    expect(source.length).toBeGreaterThan(20);
    expect(found(checkMachine(source))).toEqual([]);
  });

  it.each([
    "const t = Date.now();",
    "const f = Date.now;",
    `const t = Date["now"]();`,
    "const t = globalThis.Date.now();",
    "const t = new Date();",
    "const t = new Date;",
    "const t = new globalThis.Date();",
    "const t = Date();",
    "const { now } = Date;",
    "const { now: clock } = performance;",
    "const D = Date;",
    "let r; r = Math;",
    "const { random } = Math;",
    "const r = Math.random();",
    "const t = performance.now();",
    "const t = process.hrtime.bigint();",
    "setTimeout(() => {}, 5);",
    "const wait = promisify(setTimeout);",
    "const timers = { setTimeout };",
    "globalThis.setInterval(() => {}, 5);",
    "setImmediate(() => {});",
    "const s = AbortSignal.timeout(5);",
    "const id = crypto.randomUUID();",
    "const { randomUUID } = crypto;",
    "crypto.getRandomValues(new Uint8Array(1));",
    `import { setTimeout as sleep } from "node:timers/promises";`,
    `import timers from "timers";`,
    `import { randomBytes } from "node:crypto";`,
    `import { createHash, randomFillSync as fill } from "crypto";`,
    `import { webcrypto } from "node:crypto";`,
    `import * as c from "node:crypto"; c.randomBytes(4);`,
    `import { performance } from "node:perf_hooks";`,
  ])("sees %s", (line) => {
    expect(found(checkMachine(at("src/io/a.ts", "//", line)))).toHaveLength(1);
    expect(found(checkMachine(at("roles/a.ts", line)))).toHaveLength(1);
    expect(found(checkMachine(at("src/core/a.ts", line)))).toEqual([]);
    expect(found(checkMachine(at("src/web/client/base/a.ts", line)))).toHaveLength(1);
    expect(found(checkMachine(at("src/web/client/base/clock.ts", line)))).toEqual([]);
    expect(found(checkMachine(at("src/io/a.test.ts", line)))).toEqual([]);
  });

  it("leaves alone what only looks like it", () => {
    const text = [
      `import { createHash } from "node:crypto";`,
      `import type { Timeout } from "node:timers";`,
      "const t = new Date(5); const p = Date.parse(x); const m = Math.floor(2); x instanceof Date;",
      "response.setTimeout(5); const o = { setTimeout: 1 }; type T = { setTimeout: Date };",
      "clock.now(); random.next(); performance.mark('x');",
      "// setTimeout(() => {}) and Date.now()",
      "const text = 'Math.random()';",
    ];
    expect(found(checkMachine(at("src/io/a.ts", ...text)))).toEqual([]);
  });
});

describe("hazards", () => {
  it("are kept in their cage", () => {
    expect(everything.filter(({ path }) => path.startsWith("test/sandboxes/")).length).toBeGreaterThan(10);
    expect(found(checkHazards(everything))).toEqual([]);
  });

  it.each([
    `run("while :; do :; done");`,
    "run(`while true\ndo x; done`);",
    `run("perl -e 'while (1) {}'");`,
    `run("perl", "-e", "for (;;) { $x++ }");`,
    `run("perl", "-e", "my $pid = fork; 1");`,
    `run("perl", "-e", "fork while 1");`,
    `run("bomb() { bomb | bomb & }; :(){ :|:& };:");`,
    "write(`sh ${bomb} & sh ${bomb} & wait`);",
    "const text = `cat /dev/zero > ${file}`;",
    `run("dd if=/dev/urandom of=x");`,
    `run("fallocate -l 1T x");`,
    `run("yes > file");`,
    `run('exec "yes"');`,
    `run("perl", "-e", '$x = "x" x (1 << 40)');`,
    `run("pkill node");`,
    `run("kill -9 -1");`,
    'run(`echo 0 > "$file"; ${command}`);',
    `process.kill(pid, "SIGKILL");`,
    `process.kill(Number(text));`,
    `process.kill(-pid, "SIGTERM");`,
    `const { kill } = x; pids.forEach((pid) => process.kill(pid, signal));`,
    `import { sweepMounts } from "./mounts.ts"; rmSync(folder, { recursive: true });`,
    `import { sweepMounts } from "./mounts.ts"; await rm(folder, { force: true, recursive: true });`,
  ])("sees %s", (line) => {
    for (const path of ["src/io/a.test.ts", "src/io/a.test-kit.ts", "test/a.ts", "bench/a.ts", "scripts/a.ts"]) {
      expect(found(checkHazards(at(path, line)))).toHaveLength(1);
    }
    expect(found(checkHazards(at("src/io/a.ts", line)))).toEqual([]);
  });

  it("allows what is caged, bounded, or asks only", () => {
    const fine = [
      ...at(
        "test/a.ts",
        `import { spawnCaged } from "../b/cage.test-kit.ts";`,
        `spawnCaged(group, "while :; do :; done");`,
      ),
      ...at("test/b.ts", "// bounded: by the limit of 20 s that spawnSync has", `run("while :; do :; done");`),
      ...at("test/c.ts", `process.kill(pid, 0); process.kill(process.pid, "SIGKILL"); child.kill("SIGKILL");`),
      ...at("test/d.ts", `run("head -c 10 /dev/zero; while read -r line; do x; done; dd if=/dev/zero count=1");`),
      ...at("test/e.ts", `import { sweepMounts } from "./mounts.ts"; rmSync(file); await rm(file, { force: true });`),
    ];
    expect(found(checkHazards(fine))).toEqual([]);
    const tooFar = at("test/b.ts", "// bounded: by nothing here", "", "", `run("while :; do :; done");`);
    expect(found(checkHazards(tooFar))).toHaveLength(1);
  });
});
