import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { PassThrough } from "node:stream";

/** Connections to a server that break, after so many bytes of what it says. */
export class CutWire {
  /** Of the next connections that say anything; none: they last. */
  cuts: number[] = [];
  /** How many there were. */
  connections = 0;
  /** What the server has said. */
  said = "";
  readonly #sockets = new Set<Socket>();
  readonly #server = createServer((client) => this.#join(client));
  #to: number;

  constructor(url: string) {
    this.#to = Number(new URL(url).port);
  }

  async open(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Where the next connections lead. */
  leadTo(url: string): void {
    this.#to = Number(new URL(url).port);
  }

  close(): void {
    this.#server.close();
    this.breakAll();
  }

  /** Those that are open. */
  breakAll(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  #join(client: Socket): void {
    this.connections++;
    const server = connect(this.#to, "127.0.0.1");
    let left = this.cuts.shift() ?? Number.POSITIVE_INFINITY;
    for (const socket of [client, server]) {
      this.#sockets.add(socket);
      // Each side that breaks breaks the other.
      socket.on("error", () => undefined);
      socket.once("close", () => {
        this.#sockets.delete(socket);
        (socket === client ? server : client).destroy();
      });
    }
    client.pipe(server);
    server.on("data", (bytes: Buffer) => {
      const part = bytes.subarray(0, left);
      left -= part.length;
      this.said += part.toString("latin1");
      client.write(part, () => {
        if (left === 0) client.destroy();
      });
    });
    server.once("end", () => client.end());
  }
}

/** Standard output whose bytes a test reads, and which may be a terminal. */
export class SeenOutput extends PassThrough {
  readonly isTTY?: boolean;
  columns?: number;
  rows?: number;
  readonly #chunks: Buffer[] = [];

  constructor(properties: { isTTY?: boolean; columns?: number; rows?: number } = {}) {
    super();
    Object.assign(this, properties);
    this.on("data", (chunk: Buffer) => this.#chunks.push(chunk));
  }

  bytes(): Buffer {
    return Buffer.concat(this.#chunks);
  }

  text(): string {
    return this.bytes().toString();
  }
}

/** A keyboard: what a test types, and whether it is read key by key. */
export class Keyboard extends PassThrough {
  readonly isTTY = true;
  readonly modes: boolean[] = [];

  setRawMode(on: boolean): void {
    this.modes.push(on);
  }
}
