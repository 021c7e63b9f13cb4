import { closeSync, mkdtempSync, openSync, readFileSync, readdirSync, rmSync, statSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { trimLog } from "../../src/deploy/local/log-file.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "engine-log-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

it("moves a long log aside, while its writer keeps it open", async () => {
  const file = join(folder, "a-1.log");
  const writer = openSync(file, "a", 0o600);
  try {
    writeSync(writer, "one\n");
    await trimLog(file, 4);
    expect(readdirSync(folder)).toEqual(["a-1.log"]);
    writeSync(writer, "two\n");
    await trimLog(file, 4);
    writeSync(writer, "three\n");
    expect(readFileSync(`${file}.1`, "utf8")).toBe("one\ntwo\n");
    expect(readFileSync(file, "utf8")).toBe("three\n");
    await trimLog(file, 4);
    expect(readFileSync(`${file}.1`, "utf8")).toBe("three\n");
    expect(readFileSync(file, "utf8")).toBe("");
    expect(readdirSync(folder)).toEqual(["a-1.log", "a-1.log.1"]);
    expect(statSync(`${file}.1`).mode & 0o777).toBe(0o600);
  } finally {
    closeSync(writer);
  }
});

it("loses nothing that is written while it copies", async () => {
  const file = join(folder, "a-1.log");
  const writer = openSync(file, "a", 0o600);
  try {
    const text = "x".repeat(2 ** 20);
    for (let i = 0; i < 8; i++) writeSync(writer, text);
    const trimmed = trimLog(file, 2 ** 20);
    const state = { isRunning: true };
    void trimmed.finally(() => (state.isRunning = false));
    let written = 0;
    while (state.isRunning) {
      written += writeSync(writer, "a line\n");
      await new Promise((resolve) => setImmediate(resolve));
    }
    await trimmed;
    expect(statSync(file).size + statSync(`${file}.1`).size).toBe(8 * 2 ** 20 + written);
    expect(written).toBeGreaterThan(0);
  } finally {
    closeSync(writer);
  }
});

it("has nothing to do where there is no log yet", async () => {
  await trimLog(join(folder, "a-1.log"), 4);
  expect(readdirSync(folder)).toEqual([]);
});
