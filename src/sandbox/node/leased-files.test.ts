import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { HeldFiles, HeldSandbox, type Held } from "./leased-files.ts";

const ID = "01900000-0000-7000-8000-000000000001";
const HELD: Held = {
  sandboxId: ID,
  job: { id: "j", holder: "n", fence: 3, leaseMs: 30_000, attempt: 1 },
  keepsDisk: true,
  isProvisioned: false,
};

let folder: string;
let files: HeldFiles;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "engine-held-"));
  files = new HeldFiles(join(folder, "held"));
  await files.readAll();
});
afterEach(() => rmSync(folder, { recursive: true }));

it("keeps what is known of each sandbox", async () => {
  expect(await files.read(ID)).toBeUndefined();
  const sandbox = new HeldSandbox(files, HELD);
  await sandbox.update({ isProvisioned: true, deadlineAtMs: 5 });
  expect(await files.read(ID)).toEqual({ ...HELD, isProvisioned: true, deadlineAtMs: 5 });
  expect(await files.readAll()).toEqual([sandbox.now]);
  await files.remove(ID);
  await files.remove(ID);
  expect(await files.readAll()).toEqual([]);
});

it("keeps the turns that an agent was told of", async () => {
  const sandbox = new HeldSandbox(files, HELD);
  expect(sandbox.begunTurns).toEqual([]);
  await sandbox.update({});
  const ids = Array.from({ length: 256 }, (_, i) => `turn-${i}`);
  for (const known of [ids, ids.slice(3, 5), [], ["turn-1"]]) {
    sandbox.begunTurns = known;
    expect(new HeldSandbox(new HeldFiles(join(folder, "held")), HELD).begunTurns).toEqual(known);
  }
  expect(await files.readAll()).toEqual([HELD]);
  expect(sandbox.begunTurns).toEqual(["turn-1"]);
  await files.remove(ID);
  expect(sandbox.begunTurns).toEqual([]);
  // One file for all that was written, until that is over.
  const opened = () => readdirSync("/proc/self/fd").length;
  const before = opened();
  for (const id of ids) sandbox.begunTurns = [id];
  expect(opened()).toBe(before + 1);
  sandbox.close();
  sandbox.close();
  expect(opened()).toBe(before);
  expect(sandbox.begunTurns).toEqual(["turn-255"]);
  // Of no sandbox.
  sandbox.begunTurns = ["turn-1"];
  await files.readAll();
  expect(sandbox.begunTurns).toEqual([]);
});

it("takes away files that are no such thing, and what a killed process had not finished", async () => {
  await files.write(HELD);
  writeFileSync(join(folder, "held", "torn.json"), '{"sandboxId": "');
  writeFileSync(join(folder, "held", "other.json"), "{}");
  writeFileSync(join(folder, "held", `${ID}.json.new`), "{}");
  expect(await files.readAll()).toEqual([HELD]);
  expect(readdirSync(join(folder, "held"))).toEqual([`${ID}.json`]);
});

it("does not take a file for lost that it cannot read", async () => {
  mkdirSync(join(folder, "held", `${ID}.json`));
  await expect(files.read(ID)).rejects.toMatchObject({ code: "EISDIR" });
});
