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

/** Why a socket cannot have the path, which would be cut off; undefined where it can. */
export function socketPathProblem(path: string): string | undefined {
  if (Buffer.byteLength(path) <= ADDRESS_BYTES) return undefined;
  return `the path ${path} is too long for a socket: set ENGINE_HOME to a shorter one`;
}
