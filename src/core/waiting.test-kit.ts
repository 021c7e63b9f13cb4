import { once } from "node:events";
import { createServer } from "node:net";
import { setTimeout as after } from "node:timers/promises";

/** Resolves after so long. */
export async function delay(ms: number): Promise<void> {
  await after(ms);
}

const SHORTEST_PAUSE_MS = 5;
const LONGEST_PAUSE_MS = 50;

/**
 * Resolves when `holds` does; rejects after `timeoutMs`. Most of it is for a machine that is busy with other tests. It asks
 * less often the longer it waits: every 5 ms a server that is asked takes most of a processor.
 */
export async function eventually(holds: () => boolean | Promise<boolean>, timeoutMs = 60_000): Promise<void> {
  const startedMs = performance.now();
  while (!(await holds())) {
    const waitedMs = performance.now() - startedMs;
    if (waitedMs > timeoutMs) throw new Error(`not true within ${timeoutMs} ms: ${holds.toString()}`);
    await delay(Math.min(LONGEST_PAUSE_MS, Math.max(SHORTEST_PAUSE_MS, waitedMs / 20)));
  }
}

/**
 * Below the range that Linux takes the ports of outgoing connections from (32,768 on), so that none of those gets a
 * port between its choice and its use. uWebSockets.js could not bind one that another server has just let go either.
 */
const PORTS = { first: 20_000, blocks: 120, perBlock: 100 };
let next = 0;

/** A port of 127.0.0.1 that nobody listens on. Each process takes them from a block of its own, one after the other. */
export async function freePort(): Promise<number> {
  const block = process.pid % PORTS.blocks;
  for (let i = 0; i < PORTS.perBlock; i++) {
    const port = PORTS.first + block * PORTS.perBlock + (next++ % PORTS.perBlock);
    if (await isFree(port)) return port;
  }
  throw new Error(`all ports of block ${block} are taken`);
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, "127.0.0.1");
  try {
    await once(server, "listening");
  } catch {
    return false;
  }
  server.close();
  await once(server, "close");
  return true;
}
