import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, it } from "vitest";
import { signalGroup, signalProcess } from "./signals.test-kit.ts";

it("ends one process", async () => {
  const child = spawn("sleep", ["60"], { stdio: "ignore" });
  const ended = once(child, "exit");
  signalProcess(child.pid, "SIGKILL");
  expect(await ended).toEqual([null, "SIGKILL"]);
  expect(() => signalProcess(child.pid, "SIGKILL")).toThrow("ESRCH");
});

it("ends a group", async () => {
  const child = spawn("sh", ["-c", "sleep 60 & wait"], { stdio: "ignore", detached: true });
  const ended = once(child, "exit");
  signalGroup(child.pid, "SIGKILL");
  expect(await ended).toEqual([null, "SIGKILL"]);
});

// SIGURG, which a process ignores unless it listens: a check that does not hold must not end the tests.
it.each([0, -1, 1, -process.pid, Number(""), Number("x"), 1.5, undefined, process.pid, process.ppid])(
  "refuses %s",
  (pid) => {
    expect(() => signalProcess(pid, "SIGURG")).toThrow("is not the pid of a process that a test may send");
    expect(() => signalGroup(pid, "SIGURG")).toThrow("is not the pid of a process that a test may send");
  },
);
