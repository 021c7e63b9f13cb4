import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { cleanEnv } from "../support/engine.ts";

/** `npm test -- FILE` on files of our own: what the last lines say, and the exit code. */
let folder = "";
beforeAll(async () => {
  await mkdir("test/tmp", { recursive: true });
  folder = await mkdtemp("test/tmp/reporter-");
});
afterAll(() => rm(folder, { recursive: true }));

async function run(name: string, lines: readonly string[], ci = "false"): Promise<{ code: number; last: string[] }> {
  const file = join(folder, `${name}.test.ts`);
  await writeFile(file, `import { beforeAll, describe, expect, it } from "vitest";\n${lines.join("\n")}\n`);
  return await new Promise((resolve) => {
    const env = { ...cleanEnv(), CI: ci, NO_COLOR: "1" };
    execFile(process.execPath, ["scripts/test.ts", file], { env }, (error, stdout) => {
      const said = stdout.trimEnd().split("\n");
      resolve({
        code: error === null ? 0 : Number(error.code),
        last: said.slice(said.findIndex((line) => line === "")),
      });
    });
  });
}

test("counts what passes, and ends with 0", async () => {
  const { code, last } = await run("good", [`it("a", () => expect(1).toBe(1));`, `it("b", () => expect(1).toBe(1));`]);
  expect(code).toBe(0);
  expect(last.at(-1)).toBe("2 passed, 0 failed, 0 skipped");
});

test("names what failed, and ends with 1", async () => {
  const { code, last } = await run("bad", [`it("a", () => expect(1).toBe(2));`, `it("b", () => expect(1).toBe(1));`]);
  expect(code).toBe(1);
  expect(last.slice(-2)).toEqual([
    `failed: ${folder}/bad.test.ts > a: expected 1 to be 2 // Object.is equality`,
    "1 passed, 1 failed, 0 skipped",
  ]);
});

test("a file that does not load, and a hook that throws, are failures", async () => {
  const broken = await run("broken", [`throw new Error("it does not load");`]);
  expect(broken.code).toBe(1);
  expect(broken.last.at(-1)).toBe("0 passed, 1 failed, 0 skipped");
  const hook = `describe("d", () => { beforeAll(() => { throw new Error("hook"); }); it("a", () => expect(1).toBe(1)); });`;
  expect((await run("hook", [hook])).code).toBe(1);
});

test("no file of that name is a failure", async () => {
  const said = await new Promise<string>((resolve) => {
    execFile(process.execPath, ["scripts/test.ts", "no-such-file"], { env: cleanEnv() }, (error, stdout) => {
      resolve(`${String(error?.code)} ${stdout.trimEnd().split("\n").at(-1)}`);
    });
  });
  expect(said).toBe("1 0 passed, 1 failed, 0 skipped");
});

test("skipped tests fail the run in CI", async () => {
  const skipped = [`it("a", () => expect(1).toBe(1));`, `it.skip("b", () => expect(1).toBe(1));`];
  expect((await run("skipped", skipped)).code).toBe(0);
  const inCi = await run("skipped", skipped, "true");
  expect(inCi.code).toBe(1);
  expect(inCi.last.at(-1)).toBe("1 passed, 0 failed, 1 skipped");
});

describe("what fails in CI is tried again in a new process", () => {
  /** True in the first process that runs a file of these lines. */
  const first = (name: string) => [
    `import { existsSync, writeFileSync } from "node:fs";`,
    `const isFirst = !existsSync("${folder}/${name}.seen");`,
    `writeFileSync("${folder}/${name}.seen", "");`,
  ];

  test("and is named as flaky if it passes then", async () => {
    const lines = (name: string) => [
      ...first(name),
      `it("a", () => expect(isFirst).toBe(false));`,
      `it("b", () => expect(isFirst).toBe(true));`,
      `it("c", () => expect(1).toBe(1));`,
    ];
    const { code, last } = await run("flaky", lines("flaky"), "true");
    expect(code).toBe(0);
    expect(last.slice(-3)).toEqual([
      expect.stringMatching(/^flaky, passed at one of two attempts: .*flaky\.test\.ts > a: expected true to be false/),
      expect.stringMatching(/^flaky, passed at one of two attempts: .*flaky\.test\.ts > b: expected false to be true/),
      "3 passed, 0 failed, 0 skipped",
    ]);
    expect((await run("flaky-here", lines("flaky-here"))).code).toBe(1);
  });

  test("and has failed if it fails again", async () => {
    const lines = [`let n = 0;`, `it("a", () => expect(n++).toBe(1));`, `it("b", () => expect(1).toBe(1));`];
    const { code, last } = await run("twice", lines, "true");
    expect(code).toBe(1);
    expect(last.slice(-2)).toEqual([
      `failed: ${folder}/twice.test.ts > a: expected +0 to be 1 // Object.is equality`,
      "1 passed, 1 failed, 0 skipped",
    ]);
  });

  test("and so is a file that did not load", async () => {
    const lines = [...first("load"), `if (isFirst) throw new Error("not yet");`, `it("a", () => expect(1).toBe(1));`];
    const { code, last } = await run("load", lines, "true");
    expect(code).toBe(0);
    expect(last.at(-1)).toBe("1 passed, 0 failed, 0 skipped");
  });

  test("but a test that the second attempt does not come to has failed", async () => {
    const lines = [
      ...first("gone"),
      `if (isFirst) it("a", () => expect(1).toBe(2));`,
      `it("b", () => expect(1).toBe(1));`,
    ];
    expect((await run("gone", lines, "true")).last.at(-1)).toBe("1 passed, 1 failed, 0 skipped");
  });
});
