import { execFile } from "node:child_process";
import { copyFile, mkdir, readdir, symlink } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { ingest, rowsOf } from "../support/client.ts";
import { cleanEnv, startEngine, temporaryHome } from "../support/engine.ts";

const run = promisify(execFile);
const BUNDLE = "dist/engine.js";
const PACKAGES = resolve("node_modules");

/** Gives the folder all packages of the repository but one. */
async function linkPackages(folder: string, except: string): Promise<void> {
  const names = (await readdir(PACKAGES)).filter((name) => !name.startsWith("."));
  for (const name of names) {
    const isScope = name.startsWith("@");
    const inside = isScope ? (await readdir(join(PACKAGES, name))).map((own) => `${name}/${own}`) : [name];
    for (const one of inside.filter((one) => one !== except)) {
      const link = join(folder, "node_modules", one);
      await mkdir(dirname(link), { recursive: true });
      await symlink(join(PACKAGES, one), link);
    }
  }
}

test("the sources serve as they are", async () => {
  const { home, remove } = await temporaryHome();
  const engine = await startEngine({ home, entry: "roles/main.ts" });
  expect((await ingest(engine.url, "events", '{"body":"from sources"}')).status).toBe(200);
  expect(await rowsOf(engine.url, "SELECT body FROM events")).toEqual([{ body: "from sources" }]);
  expect(await engine.stop()).toMatchObject({ code: 0 });
  await remove();
});

/** It was built before the first test. */
describe("the bundled release", () => {
  test("prints its version", async () => {
    const { stdout } = await run(process.execPath, [BUNDLE, "--version"], { env: cleanEnv() });
    expect(stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  });

  test.each([
    ["postgres", { ENGINE_CATALOG_URL: "postgres://nobody@127.0.0.1:1/engine" }],
    ["piscina", {}],
  ])("names %s when it is not installed, and says what to do", async (name, env) => {
    const { home, remove } = await temporaryHome();
    try {
      const entry = join(home, "engine.mjs");
      await copyFile(BUNDLE, entry);
      await linkPackages(home, name);
      const problem = `the package ${name} is not installed: install what package.json lists beside this program`;
      await expect(startEngine({ home, entry, env })).rejects.toThrow(problem);
    } finally {
      await remove();
    }
  });

  test.each(["tlm", "parquet"])("serves, with its threads and processes in the one file (%s)", async (format) => {
    const { home, remove } = await temporaryHome();
    const engine = await startEngine({ home, entry: BUNDLE, env: { ENGINE_WRITE_FORMAT: format } });
    expect((await ingest(engine.url, "events", '{"body":"bundled","n":1}')).status).toBe(200);
    expect(await rowsOf(engine.url, "SELECT body, n FROM events")).toEqual([{ body: "bundled", n: "1" }]);
    expect(await engine.stop()).toMatchObject({ code: 0 });
    await remove();
  });
});
