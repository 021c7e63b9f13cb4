import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { createServer, type AddressInfo, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { pino } from "pino";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { silentLog } from "../../core/log.ts";
import { noConfinement, type Confinement } from "./confinement.ts";
import { processEnv } from "./environment.ts";
import { findLandlock } from "./landlock.ts";
import { configuredConfinement, openConfinement } from "./open-confinement.ts";

const NOBODY = 65_534;
const CHILD = fileURLToPath(new URL("./escape-child.test-kit.ts", import.meta.url));

const base = mkdtempSync(join(tmpdir(), "engine-confinement-test-"));
const failures: string[] = [];
const log = pino({}, { write: (line) => void failures.push(line) });
const confinement = await openConfinement({ log, tempDir: base });
let bystander: ChildProcess;
let loopback: Server;
let local: Server;

/** The folders of one process; `beside` is another query's. */
const inside = join(base, "child-a", "in");
const outside = join(base, "child-a", "out");
const beside = join(base, "child-b", "out");
const canary = join(base, "canary");
const socket = join(base, "socket");

beforeAll(async () => {
  for (const folder of [inside, outside, beside]) mkdirSync(folder, { recursive: true });
  for (const file of [canary, join(inside, "extent"), join(beside, "result")]) writeFileSync(file, "text");
  // As extents come here: the file can be read by the one name, and not by the other.
  writeFileSync(join(base, "object"), "text");
  linkSync(join(base, "object"), join(inside, "object"));
  bystander = spawn("sleep", ["60"]);
  loopback = createServer().listen(0, "127.0.0.1");
  local = createServer().listen(socket);
  await Promise.all([once(bystander, "spawn"), once(loopback, "listening"), once(local, "listening")]);
});

afterAll(() => {
  bystander.kill("SIGKILL");
  loopback.close();
  local.close();
  rmSync(base, { recursive: true });
});

test.skipIf("missing" in findLandlock())("passes its test wherever the kernel has Landlock", () => {
  expect(failures).toEqual([]);
  expect(confinement.isOn).toBe(true);
});

/** How each attempt of a process went that is confined as one with these folders is. */
function tryAll(
  by: Confinement,
  attempts: readonly (readonly string[])[],
  as?: { uid: number; gid: number },
): string[] {
  const command = [as === undefined ? process.execPath : nodeForAll(), CHILD, JSON.stringify(attempts)];
  const [file = "", ...args] = by.wrap(command, { readable: [inside], writable: [outside] });
  const options = { env: processEnv(), cwd: outside, encoding: "utf8", timeout: 60_000, ...as } as const;
  const { stdout, stderr, status } = spawnSync(file, args, options);
  if (status !== 0) throw new Error(`${status} ${stderr}`);
  return JSON.parse(stdout) as string[];
}

/** Node where everybody may run it: it may have been installed below a home that others cannot enter. */
function nodeForAll(): string {
  if (isOpenToAll(process.execPath)) return process.execPath;
  const copy = join(base, "node");
  if (!existsSync(copy)) copyFileSync(process.execPath, copy);
  chmodSync(copy, 0o755);
  chmodSync(base, 0o755);
  return copy;
}

const port = (): string => String((loopback.address() as AddressInfo).port);

/** What it must not be able to do, and can where nothing confines it. */
const escapes = (): string[][] => [
  ["read", "/etc/passwd"],
  ["read", canary],
  ["read", join(base, "object")],
  ["read", join(beside, "result")],
  ["read", `/proc/${process.pid}/environ`],
  ["read", "/proc/self/environ"],
  ["list", "/"],
  ["list", base],
  ["list", beside],
  ["write", join(inside, "new")],
  ["write", join(inside, "extent")],
  ["write", join(beside, "result")],
  ["write", join(base, "new")],
  ["write", "/proc/self/oom_score_adj"],
  ["touch", canary],
  ["symlink", canary, join(outside, "symlink")],
  ["link", join(inside, "extent"), join(outside, "link")],
  ["truncate", join(beside, "result")],
  ["chmod", join(beside, "result")],
  ["connect", port()],
  ["connectPath", socket],
  ["listen"],
  ["datagram"],
  ["signal", String(process.pid), "0"],
  ["signal", String(bystander.pid), "0"],
  ["run", "/bin/sh", "-c :"],
  ["run", process.execPath, "--version"],
];

const DUTIES: readonly (readonly string[])[] = [
  ["read", join(inside, "extent")],
  ["read", join(inside, "object")],
  ["list", inside],
  ["write", join(outside, "result")],
  ["read", join(outside, "result")],
  ["rename", join(outside, "result"), join(outside, "renamed")],
  ["mkdir", join(outside, "spill")],
  ["write", join(outside, "spill", "block")],
  ["remove", join(outside, "spill")],
  ["remove", join(outside, "renamed")],
  ["signalSelf"],
  ["thread"],
  ["look"],
];

const REFUSED = /^(EACCES|EPERM|EAFNOSUPPORT)$/;
const outcomesOf = (attempts: readonly (readonly string[])[], outcomes: readonly string[]): string[] =>
  attempts.map((attempt, index) => `${attempt.join(" ")}: ${outcomes[index]}`);

describe.runIf(confinement.isOn)("a confined process", () => {
  test("reaches no file, socket, program or process of others", () => {
    const attempts = escapes();
    const outcomes = tryAll(confinement, attempts);
    expect(outcomesOf(attempts, outcomes).filter((_, index) => !REFUSED.test(outcomes[index] ?? ""))).toEqual([]);
    expect(readFileSync(join(beside, "result"), "utf8")).toBe("text");
    expect(readdirSync(inside)).toEqual(["extent", "object"]);
    expect(readdirSync(outside)).toEqual([]);
    // The same attempts go well, or fail for another reason, where nothing confines: they are real ones.
    const free = tryAll(noConfinement("to compare"), attempts);
    expect(outcomesOf(attempts, free).filter((_, index) => REFUSED.test(free[index] ?? ""))).toEqual([]);
    for (const file of readdirSync(outside)) rmSync(join(outside, file));
    rmSync(join(inside, "new"));
    rmSync(join(base, "new"));
  });

  test("does not stop a bystander", async () => {
    expect(tryAll(confinement, [["signal", String(bystander.pid), "9"]])).toEqual(["EPERM"]);
    expect([bystander.exitCode, bystander.signalCode]).toEqual([null, null]);
  });

  test("does all that a query needs", () => {
    expect(outcomesOf(DUTIES, tryAll(confinement, DUTIES))).toEqual(DUTIES.map((duty) => `${duty.join(" ")}: done`));
  });

  test.runIf(process.getuid?.() === 0 && isOpenToAll(CHILD))("is one without any root, too", () => {
    for (const path of [base, join(base, "child-a"), inside, outside, join(inside, "extent"), join(inside, "object")]) {
      chownSync(path, NOBODY, NOBODY);
    }
    const as = { uid: NOBODY, gid: NOBODY };
    const attempts = [
      ["read", "/etc/passwd"],
      ["connect", port()],
      ["run", "/bin/sh", "-c :"],
    ];
    expect(tryAll(confinement, attempts, as).every((outcome) => REFUSED.test(outcome))).toBe(true);
    expect(new Set(tryAll(confinement, DUTIES, as))).toEqual(new Set(["done"]));
    expect(existsSync(join(outside, "renamed"))).toBe(false);
  });
});

function isOpenToAll(path: string): boolean {
  return spawnSync("test", ["-r", path], { uid: NOBODY, gid: NOBODY }).status === 0;
}

describe("what does not hold", () => {
  const leaky = { name: "leaky", wrap: (command: readonly string[]) => [...command] };

  test("does not count as on", async () => {
    const found = await openConfinement({ log: silentLog, tempDir: base }, leaky);
    expect(found).toMatchObject({ isOn: false, name: "none (the test of leaky failed)" });
    expect(readdirSync(base).filter((name) => name.includes("-probe-"))).toEqual([]);
  });

  test("keeps a server from starting that requires it", async () => {
    const options = { log: silentLog, tempDir: base };
    const none = () => Promise.resolve(noConfinement("perl is not installed"));
    await expect(configuredConfinement("required", options, none)).rejects.toThrow(
      "ENGINE_QUERY_CONFINEMENT is required, and query confinement is none (perl is not installed)",
    );
    expect(await configuredConfinement("auto", options, none)).toMatchObject({ isOn: false });
  });

  test("is not even tried when it is switched off", async () => {
    const open = () => expect.fail("tried");
    const found = await configuredConfinement("off", { log: silentLog, tempDir: base }, open);
    expect(found).toMatchObject({ isOn: false, name: "none (switched off)" });
    expect(found.wrap(["node", "x"], { readable: ["/a"], writable: ["/b"] })).toEqual(["node", "x"]);
  });
});
