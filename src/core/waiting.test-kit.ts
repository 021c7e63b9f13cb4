import { once } from "node:events";
import { createServer } from "node:net";
import { setTimeout as after } from "node:timers/promises";

/** Resolves after so long. */
export async function delay(ms: number): Promise<void> {
  await after(ms);
}

/** Resolves when `holds` does; rejects after `timeoutMs`. Most of it is for a machine that is busy with other tests. */
export async function eventually(holds: () => boolean | Promise<boolean>, timeoutMs = 60_000): Promise<void> {
  for (const untilMs = performance.now() + timeoutMs; !(await holds()); await delay(5)) {
    if (performance.now() > untilMs) throw new Error(`not true within ${timeoutMs} ms: ${holds.toString()}`);
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
