import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { signalProcess } from "./signals.test-kit.ts";
import { eventually } from "./waiting.test-kit.ts";

const KIT = fileURLToPath(new URL("./child-processes.test-kit.ts", import.meta.url));

/** Starts two programs, one of which ends at once, and prints the pids. */
const PARENT = `
import { spawn } from "node:child_process";
import { once } from "node:events";
const { endsWithThisProcess } = await import(${JSON.stringify(KIT)});
const start = (seconds) => endsWithThisProcess(spawn("sleep", [seconds], { stdio: "ignore" }));
const [lasting, ending] = [start("600"), start("0")];
await once(ending, "exit");
console.log(lasting.pid);
`;

function isThere(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

it("what a test started ends with it, even when it is killed", async () => {
  const parent = spawn(process.execPath, ["--input-type=module", "-e", PARENT], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [text] = (await once(parent.stdout, "data")) as [Buffer];
  const pid = Number(text);
  expect(isThere(pid)).toBe(true);
  signalProcess(parent.pid, "SIGKILL");
  await eventually(() => !isThere(pid));
});
