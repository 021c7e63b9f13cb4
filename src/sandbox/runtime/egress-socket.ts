import { once } from "node:events";
import { chmod, rm } from "node:fs/promises";
import { type Server, type Socket, createServer } from "node:net";
import { openFolder, shortPath } from "./supervisor-client.ts";

/**
 * Where a supervisor takes what something in its machine opens to the proxy: a socket in the machine's folder. Until it
 * is there, and when it is not any more, such connections are closed at once.
 */
export class EgressSocket {
  readonly #server: Server;
  readonly #closed: Promise<void>;
  readonly #connections = new Set<Socket>();
  #close: () => void = () => undefined;

  constructor(folder: string, listener: (connection: Socket) => void, onProblem: (error: unknown) => void) {
    this.#server = createServer({ allowHalfOpen: true }, (connection) => {
      this.#connections.add(connection);
      connection.on("close", () => this.#connections.delete(connection));
      // It may fail before whoever gets it listens for that.
      connection.on("error", () => connection.destroy());
      listener(connection);
    });
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#close = resolve;
    this.#closed = this.#serve(folder, promise).catch(onProblem);
  }

  /** Connections that are open end with it. */
  async close(): Promise<void> {
    this.#close();
    for (const connection of this.#connections) connection.destroy();
    await this.#closed;
  }

  async #serve(folder: string, untilClosed: Promise<void>): Promise<void> {
    const handle = await openFolder(folder);
    try {
      const path = `${shortPath(handle)}/egress.sock`;
      await rm(path, { force: true });
      this.#server.listen(path);
      await once(this.#server, "listening");
      await chmod(path, 0o600);
      this.#server.unref();
      await untilClosed;
      // The name of the socket, which this removes, holds only for as long as the handle is open.
      this.#server.close();
      await once(this.#server, "close");
    } finally {
      await handle.close();
    }
  }
}
