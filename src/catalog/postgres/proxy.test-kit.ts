import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";

/**
 * A wire to the server that a test can cut at a point of its choice: the first message to the server that holds a given
 * text. What is sent before and after on other connections passes.
 */
export type Cut =
  /** The message never arrives. */
  | "request"
  /** It arrives and is answered, and the answer never comes. */
  | "answer"
  /** The client hears nothing, and the message arrives when the test says so. */
  | "late";

export class CuttingProxy {
  readonly #server: Server;
  #target: number;
  readonly #sockets = new Set<Socket>();
  #cut: { kind: Cut; text: string } | undefined;
  #late: (() => Promise<void>) | undefined;
  /** How many connections were cut. */
  cuts = 0;
  /** How often a client has sent something and then waited, on all connections: what is sent at once counts once. */
  roundTrips = 0;

  private constructor(server: Server, target: number) {
    this.#server = server;
    this.#target = target;
  }

  static async start(target: number): Promise<CuttingProxy> {
    const server = createServer();
    const proxy = new CuttingProxy(server, target);
    server.on("connection", (client) => proxy.#join(client));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return proxy;
  }

  /** The address, by this wire. */
  urlOf(url: string): string {
    const address = this.#server.address();
    if (address === null || typeof address === "string") throw new Error("the proxy has no port");
    const through = new URL(url);
    through.port = String(address.port);
    return through.href;
  }

  /** Connections lead to another port from now on; those that are open are cut. */
  moveTo(target: number): void {
    this.#target = target;
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Cuts the next message with that text. */
  cutAt(text: string, kind: Cut): void {
    this.#cut = { kind, text };
  }

  /** Delivers what was cut off as `late`; resolves when the server has answered it. */
  async deliver(): Promise<void> {
    if (this.#late === undefined) throw new Error("nothing was cut off");
    await this.#late();
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, "close");
  }

  #join(client: Socket): void {
    const server = connect(this.#target, "127.0.0.1");
    for (const socket of [client, server]) {
      this.#sockets.add(socket);
      socket.on("error", () => socket.destroy());
      socket.on("close", () => this.#sockets.delete(socket));
    }
    let isWaiting = false;
    const forward = (data: Buffer) => void client.write(data);
    server.on("data", forward);
    server.on("data", () => (isWaiting = false));
    server.on("close", () => client.destroy());
    const onClientClose = () => server.destroy();
    client.on("close", onClientClose);
    client.on("data", (data) => {
      if (!isWaiting) this.roundTrips++;
      isWaiting = true;
      const cut = this.#cut;
      if (cut === undefined || !data.includes(cut.text)) {
        server.write(data);
        return;
      }
      this.#cut = undefined;
      this.cuts++;
      server.off("data", forward);
      if (cut.kind === "late") {
        client.off("close", onClientClose);
        this.#late = async () => {
          const answered = once(server, "data");
          server.write(data);
          await answered;
          server.destroy();
        };
      }
      if (cut.kind === "answer") {
        server.write(data);
        server.once("data", () => client.destroy());
      } else client.destroy();
    });
  }
}
