import { randomUUID } from "node:crypto";
import { systemClock } from "../../core/clock.ts";
import { uuidV7Source } from "../../core/ids.ts";
import { silentLog } from "../../core/log.ts";
import { systemRandom } from "../../core/random.ts";
import { openRuntime } from "./open-runtime.ts";
import type { MachineSpec } from "./runtime.ts";

/**
 * A process that makes a machine and starts a command in it, to be killed: its arguments are the home, the cgroup root,
 * a command for `sh`, and the machine as JSON. Prints the ids of the command and then, when it is so far, `begun`.
 */
const [home = "", cgroupRoot = "", command = "", machine = "{}"] = process.argv.slice(2);

const runtime = await openRuntime({
  home,
  cgroupRoot,
  clock: systemClock,
  ids: uuidV7Source(systemClock, systemRandom),
  log: silentLog,
  runtime: "bubblewrap",
  firstHostId: 0x7000_0000,
  idRanges: 256,
  graceMs: 500,
  warm: { machines: 0, diskMb: 256 },
});
process.stdout.write("open\n");
const made = await runtime.create(JSON.parse(machine) as MachineSpec);
const id = randomUUID();
const exec = await made.exec({
  id,
  argv: ["sh", "-c", command],
  cwd: undefined,
  env: {},
  user: "agent",
  timeoutMs: undefined,
  tty: undefined,
});
process.stdout.write(`${id}\n`);
for await (const output of exec.output()) {
  if (output.type === "stdout") process.stdout.write("begun\n");
}
