import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { systemClock } from "../../src/core/clock.ts";
import { createLog } from "../../src/core/log.ts";
import { systemRandom } from "../../src/core/random.ts";
import { isAlive, signal } from "../../src/deploy/local/process-identity.ts";
import type { Desired, ProgramSpec, SupervisorState } from "../../src/deploy/local/state.ts";
import { isSupervised, runningOf, Supervisor } from "../../src/deploy/local/supervisor.ts";

/** The supervisor in this process, over programs that sleep. */

let folder: string;
let state: SupervisorState | undefined;
let desired: Desired;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "engine-supervisor-"));
  state = undefined;
});
afterEach(() => {
  for (const known of Object.values(state?.processes ?? {})) signal(known, "SIGKILL");
  rmSync(folder, { recursive: true, force: true });
});

const sleeper = (name: string, hash = "1", command: ProgramSpec["command"] = ["/bin/sleep", "120"]): ProgramSpec => ({
  name,
  rank: 1,
  command,
  env: {},
  log: join(folder, `${name}.log`),
  probe: { kind: "command", command: ["/bin/true"] },
  stopSignal: "SIGTERM",
  stopTimeoutMs: 5_000,
  hash,
});

/** A supervisor; `end` stops it and leaves what it watches. */
function supervise(writeState = (next: SupervisorState) => void (state = structuredClone(next))) {
  const stop = new AbortController();
  const done = Supervisor.run({
    clock: systemClock,
    random: systemRandom,
    log: createLog("silent"),
    version: "1",
    readDesired: () => Promise.resolve(desired),
    readState: () => Promise.resolve(structuredClone(state)),
    writeState: async (next) => writeState(next),
    stopped: stop.signal,
  });
  const end = async () => {
    stop.abort();
    await done;
  };
  return { done, end };
}

const want = (generation: number, programs: ProgramSpec[], isRunning = true): void => {
  desired = { format: 1, generation, isRunning, programs };
};
const settled = (generation: number) => expect.poll(() => state?.settled).toBe(generation);
const pidOf = (name: string) => state?.processes[name]?.pid;

it("adopts, restarts what changed or ended, and ends what is listed no more", async () => {
  want(1, [sleeper("a-1"), sleeper("b-1")]);
  const first = supervise();
  await settled(1);
  await first.end();
  const [a, b] = [pidOf("a-1"), pidOf("b-1")];

  want(2, [sleeper("a-1"), sleeper("b-1", "2")]);
  const second = supervise();
  await settled(2);
  expect(pidOf("a-1")).toBe(a);
  expect(pidOf("b-1")).not.toBe(b);

  const killed = state?.processes["a-1"];
  if (killed !== undefined) signal(killed, "SIGKILL");
  await expect.poll(() => pidOf("a-1")).not.toBe(a);

  want(3, [sleeper("a-1")]);
  await expect.poll(() => pidOf("b-1")).toBeUndefined();
  want(4, [sleeper("a-1")], false);
  await second.done;
  expect(state?.processes).toEqual({});
});

it("signals no process that got the id of one of its own later", async () => {
  want(1, [sleeper("a-1")]);
  const other = supervise();
  await settled(1);
  await other.end();
  const bystander = state?.processes["a-1"];
  if (state === undefined || bystander === undefined) throw new Error("nothing runs");
  // The same id, as of an earlier process.
  state = { ...state, processes: { "a-1": { ...bystander, identity: "earlier:1" } } };
  want(2, [sleeper("a-1")], false);
  await supervise().done;
  expect(isAlive(bystander)).toBe(true);
  signal(bystander, "SIGKILL");
});

it("starts everything after a restart of the machine, and signals nobody who has an old id", async () => {
  want(1, [sleeper("a-1"), sleeper("b-1")]);
  const before = supervise();
  await settled(1);
  await before.end();
  const others = state?.processes ?? {};
  if (state === undefined) throw new Error("nothing runs");
  // The ids belong to other programs now: same ids, another start of the machine.
  const stale = Object.entries(others).map(([name, known]) => [name, { ...known, identity: "other-boot:1" }]);
  const supervisor = { ...state.supervisor, identity: "other-boot:1" };
  state = { ...state, supervisor, processes: Object.fromEntries(stale) };
  expect(isSupervised(state)).toBe(false);
  expect(runningOf(state).size).toBe(0);
  want(2, [sleeper("a-1"), sleeper("b-1", "2")]);
  const after = supervise();
  await settled(2);
  for (const name of ["a-1", "b-1"]) expect(pidOf(name)).not.toBe(others[name]?.pid);
  want(3, [], false);
  await after.done;
  expect(Object.values(others).map(isAlive)).toEqual([true, true]);
  for (const other of Object.values(others)) signal(other, "SIGKILL");
});

it("lets nothing begin whose process id is not on disk", async () => {
  const mark = join(folder, "mark");
  want(1, [sleeper("a-1", "1", ["/bin/sh", "-c", `echo begun > ${mark}; exec sleep 120`])]);
  const full = supervise(() => {
    throw new Error("the disk is full");
  });
  await expect(full.done).rejects.toThrow("the disk is full");
  expect(existsSync(mark)).toBe(false);
});
