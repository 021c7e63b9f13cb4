import { spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { lacks } from "../core/gates.test-kit.ts";
import { systemClock } from "../core/clock.ts";
import { standInJob, type StandInJob } from "../fabric/running-job.test-kit.ts";
import { findProgram, Programs } from "./worker-exec.ts";

let folder: string;
let programs: Programs;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "engine-exec-"));
});
afterEach(() => {
  programs.kill();
  rmSync(folder, { recursive: true, force: true });
});

function run(text: string, payload: unknown = null): { job: StandInJob; result: Promise<unknown> } {
  const file = join(folder, "run");
  writeFileSync(file, `#!/bin/sh\n${text}\n`);
  chmodSync(file, 0o755);
  programs = new Programs(file, systemClock);
  const job = standInJob({ kind: "x.demo", payload, attempt: 3, fence: 8, traceContext: "00-1-2-01" });
  return { job, result: programs.handler("x.demo").run(job) };
}

it.each([
  ["JSON", "echo '{\"a\": [1]}'", { a: [1] }],
  ["text", "echo 'not {json'", "not {json"],
  ["nothing", "exit 0", null],
  ["its payload", "cat", { n: "ü" }],
  ["a payload that nobody reads", "exec 0<&-; echo 1", 1],
])("takes %s for the result", async (_, text, value) => {
  expect(await run(text, { n: "ü" }).result).toEqual(value);
});

it("tells the program which job it is, and none of the engine's options", async () => {
  process.env["ENGINE_WORKER_TOKEN"] = "hunter2";
  try {
    const { job, result } = run(
      'echo "$ENGINE_JOB_ID $ENGINE_JOB_KIND $ENGINE_JOB_ATTEMPT $ENGINE_JOB_FENCE"; env >&2',
    );
    expect(await result).toMatch(/^[0-9a-f-]{36} x\.demo 3 8$/);
    expect(job.lines.map(({ message }) => message)).toContain("TRACEPARENT=00-1-2-01");
    expect(JSON.stringify(job.lines)).not.toContain("hunter2");
  } finally {
    delete process.env["ENGINE_WORKER_TOKEN"];
  }
});

it.each([
  ["75", "echo soon >&2; exit 75", { error: "it ended with 75\nsoon", retryable: true }],
  [
    "3",
    "echo a >&2; printf 'b without end' >&2; exit 3",
    { error: "it ended with 3\na\nb without end", retryable: false },
  ],
  ["a signal", "kill -KILL $$", { error: "it was ended by SIGKILL", retryable: true }],
  ["too much output", "head -c 300000 /dev/zero; sleep 60", { error: "it wrote more than 262144 bytes" }],
])("fails the job of a program that ends with %s", async (_, text, failure) => {
  await expect(run(text).result).rejects.toMatchObject({ failure });
});

it("quotes the last lines alone, and keeps the others in the log", async () => {
  const { job, result } = run("for n in $(seq 1 30); do echo $n >&2; done; exit 1");
  await expect(result).rejects.toThrow(/^it ended with 1\n21\n(\d\d\n)+30$/);
  expect(job.lines).toHaveLength(30);
});

it.skipIf(lacks("ps"))("asks a program to stop, with all that it started", async () => {
  const { job, result } = run("sleep 300 & echo $! >&2; trap 'echo told >&2; exit 0' TERM; wait");
  await expect.poll(() => job.lines.length).toBe(1);
  job.stop.abort(new Error("cancelled"));
  await expect(result).rejects.toThrow("cancelled");
  expect(job.lines.at(-1)?.message).toBe("told");
  expect(isThere(Number(job.lines[0]?.message))).toBe(false);
});

it.skipIf(lacks("ps"))("leaves nothing running that a program started and left", async () => {
  const { job, result } = run("sleep 300 & echo $! >&2; echo 5");
  expect(await result).toBe(5);
  await expect.poll(() => isThere(Number(job.lines[0]?.message))).toBe(false);
});

it("finds programs as a shell does", () => {
  programs = new Programs("sh", systemClock);
  expect(findProgram("sh", "/nowhere:/bin")).toBe("/bin/sh");
  expect(findProgram("/bin/sh", "")).toBe("/bin/sh");
  expect(findProgram("/bin", "/bin")).toBeUndefined();
  expect(findProgram("no-such-program", "/bin")).toBeUndefined();
});

/** Whether a process runs; one that has ended and that nobody has asked about does not. */
function isThere(pid: number): boolean {
  const { stdout } = spawnSync("ps", ["-o", "stat=", "-p", String(pid)], { encoding: "utf8" });
  return /^[^Z]/.test(stdout.trim());
}
