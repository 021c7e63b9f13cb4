import { mkdir, open, readFile, rm, statfs } from "node:fs/promises";
import { availableParallelism, cpus, release, totalmem } from "node:os";
import { join } from "node:path";
import type { Machine } from "../../src/capacity/machine.ts";
import { quantile } from "../../src/capacity/quantile.ts";
import { systemCodeOf } from "../../src/core/errors.ts";
import { MIB } from "../support/report.ts";

/** Takes about two seconds. `folder` is made, and removed again. */
export async function probeMachine(folder: string): Promise<Machine> {
  await mkdir(folder, { recursive: true });
  try {
    const disk = await statfs(folder);
    return {
      processor: cpus()[0]?.model ?? "unknown",
      cores: availableParallelism(),
      cpuQuota: await cpuQuota(),
      memoryBytes: totalmem(),
      kernel: release(),
      node: process.version,
      fileSystem: disk.type.toString(16),
      fsyncMs: await fsyncTimes(join(folder, "sync")),
      sequentialWriteMiBPerSecond: await sequentialWrite(join(folder, "write")),
      memoryCopyMiBPerSecond: memoryCopy(),
      singleCoreMops: singleCore(),
    };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Of control groups, version 2 or 1. */
async function cpuQuota(): Promise<number | null> {
  const [limit, period] = (await contentOf("/sys/fs/cgroup/cpu.max"))?.trim().split(" ") ?? [];
  if (limit !== undefined && limit !== "max") return Number(limit) / Number(period);
  const quota = Number((await contentOf("/sys/fs/cgroup/cpu/cpu.cfs_quota_us")) ?? "-1");
  if (quota <= 0) return null;
  return quota / Number((await contentOf("/sys/fs/cgroup/cpu/cpu.cfs_period_us")) ?? "100000");
}

async function contentOf(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if (["ENOENT", "ENOTDIR", "EACCES"].includes(systemCodeOf(error) ?? "")) return undefined;
    throw error;
  }
}

const SYNCS = 200;
const PAGE_BYTES = 4_096;

/** Of a page that is written behind the last one. */
async function fsyncTimes(path: string): Promise<{ p50: number; p99: number }> {
  const file = await open(path, "w");
  try {
    const page = Buffer.alloc(PAGE_BYTES, 1);
    const times = new Float64Array(SYNCS);
    for (let i = 0; i < SYNCS; i++) {
      await file.write(page);
      const startedMs = performance.now();
      await file.datasync();
      times[i] = performance.now() - startedMs;
    }
    const sorted = times.toSorted();
    return { p50: quantile(sorted, 0.5), p99: quantile(sorted, 0.99) };
  } finally {
    await file.close();
  }
}

const WRITTEN_MIB = 128;

/** In pieces of 1 MiB, up to the sync at the end. */
async function sequentialWrite(path: string): Promise<number> {
  const file = await open(path, "w");
  try {
    const piece = Buffer.alloc(MIB, 7);
    const startedMs = performance.now();
    for (let i = 0; i < WRITTEN_MIB; i++) await file.write(piece);
    await file.datasync();
    return WRITTEN_MIB / secondsSince(startedMs);
  } finally {
    await file.close();
  }
}

const COPIED_MIB = 128;
const COPIES = 4;

function memoryCopy(): number {
  const from = Buffer.alloc(COPIED_MIB * MIB, 3);
  const to = Buffer.alloc(COPIED_MIB * MIB, 4);
  let best = 0;
  for (let i = 0; i < COPIES; i++) {
    const startedMs = performance.now();
    from.copy(to);
    best = Math.max(best, COPIED_MIB / secondsSince(startedMs));
  }
  return best;
}

const LOOP_ROUNDS = 50_000_000;

function singleCore(): number {
  let state = 1;
  const startedMs = performance.now();
  for (let i = 0; i < LOOP_ROUNDS; i++) state = Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + i;
  const seconds = secondsSince(startedMs);
  // The result is used, or the loop could be left out.
  return LOOP_ROUNDS / 1e6 / (seconds + (state === 0 ? 1e-12 : 0));
}

function secondsSince(startedMs: number): number {
  return (performance.now() - startedMs) / 1_000;
}
