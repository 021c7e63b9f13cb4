import { join } from "node:path";

/** Where the engine of a home takes the messages of agents on its machine. */
export function socketPathOf(home: string): string {
  return join(home, "mcp.sock");
}

/** The lock of whoever listens there, or is about to. */
export function socketLockOf(home: string): string {
  return join(home, "mcp.sock.lock");
}

/** What systems have room for in the address of a socket, with the zero at its end: 108 bytes, and 104 on macOS. */
const ADDRESS_BYTES = process.platform === "darwin" ? 103 : 107;

/** Whether a socket can have the path; a longer one would be cut off. */
export function isSocketPath(path: string): boolean {
  return Buffer.byteLength(path) <= ADDRESS_BYTES;
}
