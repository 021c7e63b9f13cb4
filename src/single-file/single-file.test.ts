import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ManualClock, nextTurn, systemClock } from "../core/clock.ts";
import { checkPath, NODE, type Contents } from "./contents.ts";
import { isWhole, openFolder, runtimeFolders, UNPACKED_AT } from "./folders.ts";
import { holderState, ownHolder } from "./holder.ts";
import { inTurn } from "./turn.ts";
import { sweep } from "./uses.ts";

const uid = process.getuid?.() ?? 0;
const DAY_MS = 24 * 60 * 60 * 1000;
let base: string;

beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), "engine-single-file-unit-"));
});
afterEach(() => rmSync(base, { recursive: true }));

describe("where it is unpacked", () => {
  const HOME = { HOME: "/home/a" };
  test.each([
    [{ ENGINE_RUNTIME_DIR: "/r", ENGINE_HOME: "/e", ...HOME }, ["/r/runtime-7"]],
    [{ ENGINE_HOME: "/e", XDG_CACHE_HOME: "/c" }, ["/c/engine/runtime-7", "/e/runtime-7"]],
    [{ XDG_CACHE_HOME: "relative", ENGINE_RUNTIME_DIR: " ", ENGINE_HOME: "" }, ["~/.cache/engine/runtime-7"]],
    [{ ENGINE_RUNTIME_DIR: "~/r" }, ["~/r/runtime-7"]],
  ])("%j", (env, folders) => {
    const home = process.env["HOME"] ?? "";
    expect(runtimeFolders(env, 7)).toEqual(folders.map((folder) => folder.replace("~", home)));
  });

  test("a folder that is missing is made, for its user alone", () => {
    openFolder(join(base, "a/b"), uid);
    expect(() => openFolder(join(base, "a/b"), uid + 1)).toThrow(`belongs to user ${uid}, not to ${uid + 1}`);
    chmodSync(join(base, "a/b"), 0o750);
    expect(() => openFolder(join(base, "a/b"), uid)).toThrow("is open to other users: chmod 700");
    symlinkSync("b", join(base, "a/link"));
    expect(() => openFolder(join(base, "a/link"), uid)).toThrow("is not a folder");
  });
});

describe("what was unpacked", () => {
  const contents: Contents = {
    id: "0".repeat(64),
    sizeBytes: 4,
    files: [{ path: "dist/engine.js", sizeBytes: 4, isExecutable: false }],
  };
  const own = (path: string): string => join(base, path);

  beforeEach(() => {
    for (const path of [NODE, "dist/engine.js"]) {
      mkdirSync(dirname(own(path)), { recursive: true });
      writeFileSync(own(path), "code");
      utimesSync(own(path), UNPACKED_AT, UNPACKED_AT);
    }
  });

  test("is whole", () => expect(isWhole(base, contents, uid)).toBe(true));

  test.each([
    ["gone", (file: string) => rmSync(file)],
    ["longer", (file: string) => writeFileSync(file, "codes")],
    ["cut off, at the old time", (file: string) => (truncateSync(file, 2), utimesSync(file, UNPACKED_AT, UNPACKED_AT))],
    ["written to", (file: string) => writeFileSync(file, "edoc")],
    ["a link", (file: string) => (renameSync(file, own("moved")), symlinkSync(own("moved"), file))],
    ["a folder", (file: string) => (rmSync(file), mkdirSync(file))],
  ])("is not where a file is %s", (_how, damage) => {
    damage(own("dist/engine.js"));
    expect(isWhole(base, contents, uid)).toBe(false);
  });

  test("is not where Node was written to", () => {
    writeFileSync(own(NODE), "x", { flag: "a" });
    expect(isWhole(base, contents, uid)).toBe(false);
  });

  test("is not another user's", () => {
    expect(() => isWhole(base, contents, uid + 1)).toThrow("belongs to user");
  });
});

test.each(["../x", "/etc/passwd", "a/../b", "a//b", "", ".", "a/", "node", "node/x", "a\0b", "a\\b", "..", "a/./b"])(
  "no file is unpacked to %j",
  (path) => expect(() => checkPath(path)).toThrow("unusable path"),
);
test.each(["dist/engine.js", "node_modules/@a/b.c/.d", "LICENSE.node", "a..b"])("a file is unpacked to %j", (path) => {
  expect(() => checkPath(path)).not.toThrow();
});

test("a process is alive, gone, or elsewhere", () => {
  const own = ownHolder();
  const [pid = "", ticks = "", ...place] = own.split("-");
  expect(holderState(own)).toBe("alive");
  expect(holderState([pid, String(Number(ticks) + 1), ...place].join("-"))).toBe("gone");
  expect(holderState([pid, ticks, "1", place[1]].join("-"))).toBe("elsewhere");
  expect(holderState("../../x")).toBe("gone");
});

describe("turns", () => {
  test("are one after the other, and a lock of a process that is gone is no obstacle", async () => {
    const lock = join(base, "lock");
    writeFileSync(lock, ownHolder().replace(/-\d+-/, "-1-"));
    let running = 0;
    const most: number[] = [];
    const task = async (): Promise<void> => {
      most.push(++running);
      await new Promise<void>((resolve) => systemClock.after(20, resolve));
      running--;
    };
    await inTurn(lock, systemClock, task);
    expect([most, existsSync(lock)]).toEqual([[1], false]);
  });

  test("a task that fails gives the lock back", async () => {
    const lock = join(base, "lock");
    const failing = inTurn(lock, systemClock, () => Promise.reject(new Error("no")));
    await expect(failing).rejects.toThrow("no");
    expect(existsSync(lock)).toBe(false);
  });

  test("a process that cannot be looked at is waited for, not for ever", async () => {
    const lock = join(base, "lock");
    const foreign = "1-1-1-abc";
    writeFileSync(lock, foreign);
    const clock = new ManualClock();
    let isDone = false;
    const turn = inTurn(lock, clock, async () => void (isDone = true));
    const pass = async (ms: number): Promise<void> => {
      for (let passedMs = 0; passedMs < ms; passedMs += 1_000) {
        clock.advance(1_000);
        await nextTurn();
      }
    };
    await pass(50_000);
    expect(isDone).toBe(false);
    await pass(20_000);
    await turn;
    expect([isDone, existsSync(lock)]).toEqual([true, true]);
  });
});

test("programs of other versions go when nobody has used them for a week", () => {
  const now = 1_800_000_000_000;
  const clock = new ManualClock(now);
  const age = (path: string, days: number): void => {
    const at = (now - days * DAY_MS) / 1000;
    utimesSync(join(base, path), at, at);
  };
  const id = (letter: string): string => letter.repeat(64);
  const use = (letter: string, holder: string, days: number): void => {
    mkdirSync(join(base, "uses", id(letter)), { recursive: true });
    writeFileSync(join(base, "uses", id(letter), holder), "");
    age(`uses/${id(letter)}/${holder}`, days);
  };
  const gone = ownHolder().replace(/-\d+-/, "-1-");
  for (const letter of ["a", "b", "c", "d", "e", "f"]) mkdirSync(join(base, id(letter)));
  for (const name of [`unpacking-${gone}`, `unpacking-${ownHolder()}`, "removed-1-1-1-abc"])
    mkdirSync(join(base, name));
  writeFileSync(join(base, "not-ours"), "");
  use("b", ownHolder(), 30);
  use("c", gone, 0);
  use("d", "1-1-1-abc", 1);
  use("e", "1-1-1-abc", 3);
  for (const letter of ["a", "b", "c", "d", "e"]) age(id(letter), 8);
  age(id("f"), 6);
  age("removed-1-1-1-abc", 3);
  sweep(base, id("a"), clock);
  const kept = readdirSync(base).filter((name) => name !== "uses" && name !== "not-ours");
  expect(kept.toSorted()).toEqual([...["a", "b", "d", "f"].map(id), `unpacking-${ownHolder()}`].toSorted());
  expect(readdirSync(join(base, "uses")).toSorted()).toEqual([id("b"), id("d")]);
});
