import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { MANIFEST, writeManifest } from "../../scripts/bundle-manifest.ts";
import { cleanEnv } from "../support/engine.ts";

/** A checkout in small: `bin/engine.js` runs its bundle while that was made of the sources that are there. */
const SOURCE = "roles/main.ts";
const OTHERS = ["package.json", "package-lock.json", "scripts/build.ts"];

let folder = "";
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "engine-bin-"));
  mkdirSync(join(folder, "bin"));
  cpSync("bin/engine.js", join(folder, "bin/engine.js"));
  place(SOURCE, "console.log('from source');");
  place("dist/engine.js", "console.log('from bundle');");
  for (const name of OTHERS) place(name, '{"type":"module"}');
  await writeManifest(folder, join(folder, "dist", MANIFEST), {
    sources: [SOURCE],
    startedMs: Number.POSITIVE_INFINITY,
  });
});
afterEach(() => rmSync(folder, { recursive: true }));

function place(path: string, text: string): void {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), text);
}

function run(): string {
  const { stdout, stderr } = spawnSync(process.execPath, ["bin/engine.js"], {
    cwd: folder,
    env: cleanEnv(),
    encoding: "utf8",
  });
  return stdout === "" ? stderr : stdout;
}

test("the bundle runs while it is current", () => {
  expect(run()).toBe("from bundle\n");
});

test("the bundle runs when a source was touched or copied, and holds the same", () => {
  utimesSync(join(folder, SOURCE), 1, 1);
  expect(run()).toBe("from bundle\n");
});

test("the sources run when one has changed to a text of the same length", () => {
  place(SOURCE, "console.log('FROM SOURCE');");
  utimesSync(join(folder, SOURCE), 1, 1);
  expect(run()).toBe("FROM SOURCE\n");
});

test.each(OTHERS)("the sources run when %s has changed", (path) => {
  place(path, '{"type": "module"}');
  expect(run()).toBe("from source\n");
});

test("the sources run when a file of which the bundle was made is gone", () => {
  rmSync(join(folder, "scripts/build.ts"));
  expect(run()).toBe("from source\n");
});

test("the sources run when the manifest is gone or damaged", () => {
  place("dist/manifest.json", "[");
  expect(run()).toBe("from source\n");
  rmSync(join(folder, "dist/manifest.json"));
  expect(run()).toBe("from source\n");
});

test("a manifest is refused when a source changed during the build", async () => {
  const writing = writeManifest(folder, join(folder, MANIFEST), { sources: [SOURCE], startedMs: 0 });
  await expect(writing).rejects.toThrow("package-lock.json changed during the build: build again");
});
