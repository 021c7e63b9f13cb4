import { fileURLToPath } from "node:url";
import { sleep, systemClock } from "../../src/core/clock.ts";
import { readArguments } from "../support/arguments.ts";
import { median } from "../../src/capacity/quantile.ts";
import { machine, MIB, printTable, shown } from "../support/report.ts";
import { residentBytesOfSandboxes } from "../support/sandbox-processes.ts";
import type { BenchServer } from "../support/server.ts";
import type { SandboxClient } from "./client.ts";
import { measureMachines } from "./machines.ts";
import { RuncByHand } from "./runc-by-hand.ts";
import { withServer } from "./with-server.ts";

/**
 * Questions: how long does it take from asking for a sandbox until a first command in it has ended, cold and from
 * prepared machines, against `runc run` and `runc exec` by hand with the same namespaces, disk and limits; what do pause
 * and resume take against runc's; how fast are events of a command and files; and what memory does an idle sandbox take?
 *
 *     node bench/sandbox/sandboxes.ts [--rounds 20] [--lines 200000] [--file-mb 1024] [--idle 100]      (as root, on Linux)
 *
 * Rounds take the sides in turn, each with the same command, whose output is checked, and each on a quiet machine: the
 * prepared machine that was taken is replaced when its user has had what he waits for.
 */
const OPTIONS = {
  rounds: { type: "string", default: "20" },
  lines: { type: "string", default: "200000" },
  "file-mb": { type: "string", default: "1024" },
  idle: { type: "string", default: "100" },
} as const;

/** With the disk that sandboxes have by default: such machines are prepared. */
const LIMITS = { cpuCores: 1, memoryMb: 512, diskMb: 4096, maxProcesses: 256 };
const SMALL = { cpu_cores: 1, memory_mb: 512, disk_mb: 4096, max_processes: 256 };
const COMMAND = ["/bin/echo", "hello"];
const ECHOED = "hello\n";

export async function main(args: readonly string[]): Promise<void> {
  const options = readArguments(args, OPTIONS);
  console.log(machine());
  if (process.platform !== "linux" || process.getuid?.() !== 0) {
    console.log("sandboxes: skipped, they need Linux and root");
    return;
  }
  await compareCreation(options.count("rounds"));
  await measureMachines(options.count("rounds"), LIMITS);
  await measureTraffic(options.count("lines"), options.count("file-mb"));
  await measureIdle(options.count("idle"));
}

async function compareCreation(rounds: number): Promise<void> {
  const byHand = await RuncByHand.open(LIMITS);
  const took = { runc: [] as number[], cold: [] as number[], warm: [] as number[] };
  try {
    await withServer({ warmPool: 0 }, async (_cold, cold) =>
      withServer({ warmPool: 2 }, async (_warm, warm) => {
        // The first of a server prepares the image, and fills the pool.
        for (const client of [cold, warm]) await client.remove(await client.create({ resource_limits: SMALL }));
        for (let round = 0; round < rounds; round++) {
          took.runc.push(await timed((mark) => handMade(byHand, mark)));
          await settled();
          took.cold.push(await timed((mark) => sandbox(cold, mark)));
          await settled();
          took.warm.push(await timed((mark) => sandbox(warm, mark)));
          await settled();
        }
      }),
    );
  } finally {
    await byHand.close();
  }
  console.log(`\n${rounds} times: create until \`echo\` has ended`);
  const row = (name: string, ms: readonly number[]) => [
    name,
    shown(median(ms)),
    shown(ms.toSorted((a, b) => a - b)[Math.floor(ms.length * 0.95)] ?? Number.NaN),
    shown(median(ms.map((value, i) => value / (took.runc[i] ?? Number.NaN)))),
  ];
  printTable(
    ["", "p50 ms", "p95 ms", "× runc"],
    [row("runc by hand", took.runc), row("engine, cold", took.cold), row("engine, prepared", took.warm)],
  );
}

/** No side pays for what another is still putting away, or preparing for the next. */
function settled(): Promise<void> {
  return sleep(systemClock, 750);
}

type Timed = { until(): void };

/** What is to be undone after the measured part is undone by whoever measures. */
async function timed(run: (mark: Timed) => Promise<void>): Promise<number> {
  const beganAt = performance.now();
  let endedAt = Number.NaN;
  await run({
    until: () => {
      endedAt = performance.now();
    },
  });
  return endedAt - beganAt;
}

async function handMade(byHand: RuncByHand, mark: Timed): Promise<void> {
  const made = await byHand.create();
  check(await made.exec(COMMAND));
  mark.until();
  await made.remove();
}

async function sandbox(client: SandboxClient, mark: Timed): Promise<void> {
  const id = await client.begin({ resource_limits: SMALL });
  check(await client.exec(id, COMMAND));
  mark.until();
  await client.remove(id);
}

function check(text: string): void {
  if (text !== ECHOED) throw new Error(`the command wrote ${JSON.stringify(text)}`);
}

async function measureTraffic(lines: number, fileMb: number): Promise<void> {
  await withServer({ warmPool: 0 }, async (server, client) => {
    const id = await client.create({ resource_limits: { ...SMALL, disk_mb: fileMb + 1024, memory_mb: 2048 } });
    const beganAt = performance.now();
    let [events, bytes] = [0, 0];
    for await (const { event_type: type, data } of client.events(id, ["/usr/bin/seq", String(lines)])) {
      events += 1;
      if (type === "stdout") bytes += String(data["text"]).length;
    }
    const seconds = (performance.now() - beganAt) / 1000;
    console.log(
      `\n${lines} lines of a command: ${shown(events / seconds)} events/s, ${shown(bytes / seconds / MIB)} MiB/s`,
    );
    const upload = () => client.put(id, "/home/agent/big", zeroes(fileMb));
    const download = async (): Promise<void> => {
      const got = await client.get(id, "/home/agent/big");
      if (got !== fileMb * MIB) throw new Error(`${got} bytes came back`);
    };
    printTable(
      [`${fileMb} MiB`, "MiB/s", "peak MiB above"],
      [
        ["upload", ...(await speed(server, fileMb, upload))],
        ["download", ...(await speed(server, fileMb, download))],
      ],
    );
    await client.remove(id);
  });
}

async function speed(server: BenchServer, megabytes: number, run: () => Promise<void>): Promise<string[]> {
  server.resetPeak();
  const before = server.memory().residentBytes;
  const beganAt = performance.now();
  await run();
  const seconds = (performance.now() - beganAt) / 1000;
  return [shown(megabytes / seconds), shown((server.memory().peakBytes - before) / MIB)];
}

function zeroes(megabytes: number): ReadableStream<Uint8Array> {
  const piece = new Uint8Array(MIB);
  let left = megabytes;
  return new ReadableStream({
    pull(controller) {
      if (left-- > 0) controller.enqueue(piece);
      else controller.close();
    },
  });
}

async function measureIdle(count: number): Promise<void> {
  await withServer({ warmPool: 0 }, async (server, client) => {
    const first = await client.create({ resource_limits: SMALL });
    const before = { server: server.memory().residentBytes, others: residentBytesOfSandboxes() };
    const ids = await Promise.all(Array.from({ length: count }, () => client.create({ resource_limits: SMALL })));
    const each = (bytes: number) => `${shown(bytes / count / MIB)} MiB`;
    console.log(`\n${count} idle sandboxes, each:`);
    console.log(`  its own processes ${each(residentBytesOfSandboxes() - before.others)} (proportional set size)`);
    console.log(`  the server ${each(server.memory().residentBytes - before.server)}`);
    for (const id of [first, ...ids]) await client.remove(id);
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main(process.argv.slice(2));
