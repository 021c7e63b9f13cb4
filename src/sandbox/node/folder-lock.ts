import { createHash } from "node:crypto";
import { once } from "node:events";
import { realpath } from "node:fs/promises";
import { createServer, type Server } from "node:net";
import { systemCodeOf } from "../../core/errors.ts";

/** Keeps the folder from other processes of this computer until it is closed, or this process ends in whatever way. */
export type FolderLock = { close(): void };

/**
 * The folder for this process alone; undefined when another one has it. The lock is a name of the kernel's (an abstract
 * socket, Linux only), which goes with the process: nothing is left to clear away after a crash.
 */
export async function lockFolder(folder: string): Promise<FolderLock | undefined> {
  const name = createHash("sha256")
    .update(await realpath(folder))
    .digest("hex")
    .slice(0, 32);
  const server: Server = createServer((socket) => socket.destroy());
  server.listen({ path: `\0engine-sandboxes-${name}` });
  try {
    await once(server, "listening");
  } catch (error) {
    if (systemCodeOf(error) === "EADDRINUSE") return undefined;
    throw error;
  }
  server.unref();
  return { close: () => void server.close() };
}
