import { randomUUID } from "node:crypto";
import { mkdirSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, vi } from "vitest";
import { systemClock } from "../../core/clock.ts";
import { uuidV7Source } from "../../core/ids.ts";
import { silentLog } from "../../core/log.ts";
import { systemRandom } from "../../core/random.ts";
import { listMounts, sweepMounts } from "./mounts.ts";
import { type RuntimeOptions, openRuntime } from "./open-runtime.ts";
import { loopFiles } from "./loop-files.test-kit.ts";
import { rootFolder } from "./root.test-kit.ts";
import type { Exec, ExecRequest, Machine, MachineSpec, Runtime } from "./runtime.ts";

export const FIRST_HOST_ID = 0x7000_0000;
export const DISK_MB = 256;

export type TestRuntime = {
  /** From the first test on. */
  runtime: Runtime;
  home: string;
  options: RuntimeOptions;
};

/** A runtime for a suite, in a folder of its own; at the suite's end nothing may be left of its machines. */
export function testRuntime(name: string, wanted: Partial<RuntimeOptions> = {}): TestRuntime {
  const home = join(rootFolder(name), "home");
  const options: RuntimeOptions = {
    home,
    clock: systemClock,
    ids: uuidV7Source(systemClock, systemRandom),
    log: silentLog,
    runtime: "bubblewrap",
    firstHostId: FIRST_HOST_ID,
    idRanges: 256,
    graceMs: 500,
    warm: { machines: 0, diskMb: DISK_MB },
    cgroupRoot: `engine-test-${randomUUID()}`,
    ...wanted,
  };
  let opened: Runtime | undefined;
  const test: TestRuntime = {
    home,
    options,
    get runtime() {
      if (opened === undefined) throw new Error("the runtime is not open yet");
      return opened;
    },
  };
  beforeAll(async () => {
    mkdirSync(home);
    opened = await openRuntime(options);
  });
  afterAll(async () => {
    await Promise.all((await test.runtime.list()).map((id) => test.runtime.remove(id)));
    await test.runtime.close();
    try {
      await expectLeft(test, NOTHING);
    } finally {
      await sweepMounts(home);
    }
  });
  return test;
}

export const NOTHING = { folders: [], mounts: [], loops: [], cgroups: [], processes: [] };

/**
 * What may be on this computer of the machines of a runtime. Soon: what another process of this computer looks at just
 * then (a copy of all mounts, that it makes to start something of its own) goes when that has gone.
 */
export async function expectLeft(test: TestRuntime, left: Partial<typeof NOTHING>): Promise<void> {
  await vi.waitFor(async () => expect(await leftOf(test)).toMatchObject(left), { timeout: 60_000 });
}

/** What is on this computer of the machines of a runtime. */
async function leftOf({ home, options }: TestRuntime): Promise<Record<keyof typeof NOTHING, string[]>> {
  const machines = join(home, "machines");
  const mounts = (await listMounts(machines)).map((mount) => mount.at).filter((at) => at !== machines);
  const roots = ["cpu", "memory", "pids", "freezer", "unified", "."].map((name) =>
    join("/sys/fs/cgroup", name, options.cgroupRoot),
  );
  return {
    folders: readdirSync(machines),
    mounts,
    loops: loopFiles(machines),
    cgroups: roots.flatMap((root) => foldersOf(root)),
    processes: processesOf(machines),
  };
}

function foldersOf(path: string): string[] {
  try {
    return readdirSync(path, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => join(path, entry.name));
  } catch {
    // There is no such hierarchy here, or no group was ever in it.
    return [];
  }
}

/** The host's id of the machine's root. */
export function firstHostIdOf(machine: Machine): number {
  const [, first] = readFileSync(`/proc/${machine.initPid}/uid_map`, "utf8").trim().split(/\s+/);
  return Number(first);
}

/** Supervisors of machines in this folder. */
function processesOf(machines: string): string[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => readIfThere(`/proc/${pid}/cmdline`).includes(machines));
}

export function readIfThere(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    // It has just ended.
    return "";
  }
}

export function specOf(wanted: Partial<MachineSpec> = {}): MachineSpec {
  return {
    id: randomUUID(),
    image: undefined,
    limits: { cpuCores: 2, memoryMb: 256, diskMb: DISK_MB, maxProcesses: 100 },
    network: { enabled: true },
    volumes: [],
    hostname: "test-machine",
    env: {},
    keepsDisk: false,
    leaseMs: 60_000,
    deadlineMs: undefined,
    ...wanted,
  };
}

export function execRequest(command: string | readonly string[], wanted: Partial<ExecRequest> = {}): ExecRequest {
  return {
    id: randomUUID(),
    argv: typeof command === "string" ? ["sh", "-c", command] : command,
    cwd: undefined,
    env: {},
    user: "agent",
    timeoutMs: undefined,
    tty: undefined,
    ...wanted,
  };
}

export type Ran = {
  stdout: string;
  stderr: string;
  skipped: number;
  exitCode: number | undefined;
  signal: string | undefined;
  timedOut: boolean;
};

/** Everything that a command writes, and how it ends. */
export async function outputOf(exec: Exec, from?: { stdout: number; stderr: number }): Promise<Ran> {
  const pieces = { stdout: [] as Uint8Array[], stderr: [] as Uint8Array[] };
  let skipped = 0;
  for await (const output of exec.output(from)) {
    if (output.type === "exit") {
      const { exitCode, signal, timedOut } = output;
      const [stdout, stderr] = [Buffer.concat(pieces.stdout).toString(), Buffer.concat(pieces.stderr).toString()];
      return { stdout, stderr, skipped, exitCode, signal, timedOut };
    }
    if (output.type === "skipped") skipped += output.bytes;
    else pieces[output.type].push(output.bytes);
  }
  throw new Error("the output ended without an exit");
}

export async function run(
  machine: Machine,
  command: string | readonly string[],
  wanted: Partial<ExecRequest> = {},
): Promise<Ran> {
  return outputOf(await machine.exec(execRequest(command, wanted)));
}
